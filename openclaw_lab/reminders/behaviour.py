"""A model of how likely an agent is to save knowledge, for want of live runs: an assumption, always shown as one.

    p(save) = floor + (p0 - floor) · exp(-λ · gap) · 0.7^extra · 0.9^(repeats / 5 %)

`gap`: user turns since the last reminder. `extra`: reminders in the same turn beyond the first. `repeats`: share of
reminders so far that came with nothing new. Sources: decay λ ≈ 0.107 a turn is ×0.898 a turn of Multi-IF
(arXiv 2410.15553), a pessimistic prior; the floor is arXiv 2510.07777's; the two fatigue factors are measured on
clinicians (Ancker et al. 2017, doi 10.1186/s12911-017-0430-8) and only borrowed for agents.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclasses.dataclass(frozen=True, slots=True)
class Behaviour:
    """Parameters of the model, with the ranges that make its sensitivity band."""

    p0: float = 0.6
    floor: float = 0.05
    decay: float = 0.107
    extra_factor: float = 0.7
    repeat_factor: float = 0.9

    def p_save(
        self, gap: NDArray[np.float64], extra: NDArray[np.float64], repeats: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Probability of a save at each opportunity; `gap` is infinite where no reminder came before."""
        import numpy as np

        kept = np.where(np.isinf(gap), 0.0, np.exp(-self.decay * np.where(np.isinf(gap), 0.0, gap)))
        pull = kept * self.extra_factor**extra * self.repeat_factor ** (repeats / 0.05)
        return self.floor + (self.p0 - self.floor) * pull


# The corners of what we hold plausible; the band is the lowest and the highest result among them.
BAND = tuple(
    Behaviour(p0=p0, floor=floor, decay=decay, extra_factor=extra, repeat_factor=repeat)
    for p0, floor, decay, (extra, repeat) in itertools.product(
        (0.4, 0.8), (0.0, 0.1), (0.03, 0.2), ((0.7, 0.9), (1.0, 1.0))
    )
)
