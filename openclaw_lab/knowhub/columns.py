"""Numbers in, one array out: a column that grows at its end, at a cost that does not depend on its length."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray


class Column:
    """An array with room to spare; `values` is a view, good until the next `extend`."""

    def __init__(self, dtype: DTypeLike) -> None:
        self._room: NDArray[Any] = np.zeros(1024, dtype=dtype)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def values(self) -> NDArray[Any]:
        """What was added so far; changes to it are changes of the column."""
        return self._room[: self._count]

    def extend(self, values: ArrayLike) -> None:
        """Add one value or an array of them."""
        added = np.atleast_1d(np.asarray(values, dtype=self._room.dtype))
        end = self._count + len(added)
        if end > len(self._room):
            larger = np.zeros(max(end, 2 * len(self._room)), dtype=self._room.dtype)
            larger[: self._count] = self.values
            self._room = larger
        self._room[self._count : end] = added
        self._count = end

    def append(self, value: float) -> None:
        """Add one number."""
        if self._count == len(self._room):
            self.extend(value)
            return
        self._room[self._count] = value
        self._count += 1
