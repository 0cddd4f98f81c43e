"""A table as a notebook shows it: HTML, plain text where HTML is dead, and CSV for the headless run."""

from __future__ import annotations

import html
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from openclaw_lab.experiments.metrics import Metric, shown

if TYPE_CHECKING:
    import pandas as pd


class Displayed(ABC):
    """What Jupyter and a terminal do with anything that is shown as a Table."""

    @property
    @abstractmethod
    def table(self) -> Table:
        """What is shown."""

    def __str__(self) -> str:
        return str(self.table)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return self.table.mimebundle()["text/html"]

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        return {**self.table.mimebundle(), "text/plain": str(self), "text/html": self._repr_html_()}


@dataclass(frozen=True, repr=False)
class Table(Displayed):
    """A frame with a title; `frame` holds the plain numbers, the display shows value and interval together."""

    frame: pd.DataFrame
    title: str = ""
    folded: tuple[str, ...] = ()  # metrics whose _low, _high and _n columns are shown within their own column
    narrow: tuple[str, ...] = ()  # of these, the ones that are displayed; all when empty

    @classmethod
    def of_rows(cls, rows: Sequence[Sequence[Any]], columns: Sequence[str], title: str) -> Table:
        """From plain rows."""
        import pandas as pd

        return cls(pd.DataFrame(list(rows), columns=list(columns)), title)

    @classmethod
    def of_metrics(
        cls, rows: Mapping[str, Mapping[str, Metric]], label: str, title: str, narrow: tuple[str, ...] = ()
    ) -> Table:
        """From metrics by name for each row: columns `name`, `name_low`, `name_high`, `name_n`."""
        import pandas as pd

        flat = [{label: key, **flat_metrics(metrics)} for key, metrics in rows.items()]
        names = tuple(dict.fromkeys(name for metrics in rows.values() for name in metrics))
        return cls(pd.DataFrame(flat), title, names, narrow)

    @property
    def table(self) -> Table:
        """Itself."""
        return self

    def __str__(self) -> str:
        import pandas as pd

        with pd.option_context("display.unicode.east_asian_width", True):  # Chinese takes two places a character
            return f"{self.title}\n{self.shown().to_string(index=False)}"

    def shown(self) -> pd.DataFrame:
        """The table as a reader sees it: short numbers, the interval beside its value."""
        parts = {f"{name}{end}" for name in self.folded for end in ("_low", "_high", "_n", "_kind")}
        parts |= self._hidden
        result = self.frame[[column for column in self.frame if column not in parts]].copy().astype(object)
        for name in self.folded:
            if f"{name}_low" in self.frame and name in result:
                result[name] = [
                    f"{shown(v)} [{shown(low)}, {shown(high)}] n={n}" if not math.isnan(v) else "–"
                    for v, low, high, n in self.frame[[name, f"{name}_low", f"{name}_high", f"{name}_n"]].itertuples(
                        index=False
                    )
                ]
        marked = {name: marked_name(self.frame, name) for name in self.folded}
        return result.map(lambda value: shown(value) if isinstance(value, float) else value).rename(columns=marked)

    @property
    def _hidden(self) -> set[str]:
        return set(self.folded) - set(self.narrow) if self.narrow else set()

    def mimebundle(self) -> dict[str, str]:
        """What Jupyter chooses from."""
        body = self.shown().to_html(index=False, border=0, escape=True, classes="openclaw-lab")
        title = f"<p><b>{html.escape(self.title)}</b></p>" if self.title else ""
        more = f"<p><small>.frame also has {', '.join(sorted(self._hidden))}</small></p>" if self._hidden else ""
        return {"text/html": title + body + more, "text/plain": str(self), "text/csv": self.frame.to_csv(index=False)}


def marked_name(frame: pd.DataFrame, name: str) -> str:
    """A metric's name with the kinds of its figures, where they are not simply measured."""
    if f"{name}_kind" not in frame:
        return name
    return f"{name} ({', '.join(sorted(frame[f'{name}_kind'].dropna().unique()))})"


def flat_metrics(metrics: Mapping[str, Metric]) -> dict[str, float | str]:
    """Metrics as columns: value, bounds and denominator of each, and `name_kind` of one that is not simply measured."""
    flat: dict[str, float | str] = {}
    for name, metric in metrics.items():
        flat |= {name: metric.value, f"{name}_low": metric.low, f"{name}_high": metric.high, f"{name}_n": metric.n}
        if metric.kind != "measured":
            flat[f"{name}_kind"] = metric.kind
    return flat
