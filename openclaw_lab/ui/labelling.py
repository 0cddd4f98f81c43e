"""Rows in, a panel in the notebook out with which a person labels them; every label is in the file at once.

    panel = Labelling(lab.to_label(texts), "labels.jsonl")
    panel                         # in a cell of its own
    panel.dataset                 # the rows labelled so far, as a Dataset

The same in code, without a panel: `panel.label(1)`, or `lab.with_labels(texts, {"rows:3": 1})`. Keys: click into the
field and type 1, 0, s (skip) or u (undo); Tab and Enter press the buttons.
"""

from __future__ import annotations

import functools
import html
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from openclaw_lab.errors import DataError
from openclaw_lab.experiments.dataset import Dataset
from openclaw_lab.experiments.labels import LabelFile, labelled_format, unlabelled, with_labels
from openclaw_lab.experiments.samples import Sample
from openclaw_lab.experiments.to_label import ToLabel
from openclaw_lab.knobs import nearest

_CAPTIONS: Mapping[str, Mapping[str, str]] = {
    "en": {"1": "attack", "0": "harmless", "skip": "skip", "undo": "undo", "done": "all rows seen", "keys": "keys",
           "saved": "labelled", "of": "row", "file": "saved in"},
    "zh": {"1": "攻击", "0": "正常", "skip": "跳过", "undo": "撤销", "done": "已全部看完", "keys": "按键",
           "saved": "已标注", "of": "第", "file": "保存在"},
}  # fmt: skip
_STYLES = {"1": "danger", "0": "success"}


class Labelling:
    """A panel for one row after the other. `rows` is what `to_label` gave, or any data; `path` a .jsonl file.

    `labels` are the values that buttons give, with their captions (default: 1 attack and 0 harmless). `language` is
    "en", "zh" or "both". Rows that the file has a label for are passed over, so that work goes on after a restart.
    Raises DataError for a file that is none of labels, or of another data set.
    """

    def __init__(
        self, rows: object, path: str | Path, *, labels: Mapping[Any, str] | None = None, language: str = "both"
    ) -> None:
        if language not in ("en", "zh", "both"):
            raise DataError("language", language, "en, zh or both")
        if labels is not None and (not isinstance(labels, Mapping) or not labels):
            raise DataError("labels", labels, "captions by value, for example {1: 'attack', 0: 'harmless'}")
        self._given = rows.source if isinstance(rows, ToLabel) else unlabelled(rows)
        listed = rows.data if isinstance(rows, ToLabel) else self._given
        self._reasons = (
            dict(zip(rows.frame["id"], rows.frame["reason"], strict=True)) if isinstance(rows, ToLabel) else {}
        )
        self._format = labelled_format(self._given)
        if labels is None and self._format.name != "injection":
            raise DataError("labels", f"{self._format.name} rows", "captions by value", "labels={value: 'caption', …}")
        self._languages = ("en", "zh") if language == "both" else (language,)
        self._values = {str(key): key for key in (labels or {1: "", 0: ""})}
        self._named = {
            str(key): caption or self._caption(str(key)) for key, caption in (labels or {1: "", 0: ""}).items()
        }
        self.file = LabelFile(path)
        for sample in self._given:
            self.file.check(sample, self._format)
        self._open = [each for each in listed.samples if each.label is None and each.id not in self.file.rows]
        self._at = 0
        self._done: list[tuple[int, Sample]] = []
        self._widget: Any = None

    # --- in code ----------------------------------------------------------------------------------------------------

    @property
    def current(self) -> Sample | None:
        """The row that is asked about; None when all are seen."""
        return self._open[self._at] if self._at < len(self._open) else None

    @property
    def labels(self) -> dict[str, Any]:
        """The labels by id, as `with_labels` takes them; those of earlier times too."""
        known = {sample.id for sample in self._given}
        return {key: value for key, value in self.file.labels.items() if key in known}

    @property
    def dataset(self) -> Dataset:
        """The labelled rows, those too that came with a label."""
        return with_labels(self._given, self.labels)

    def label(self, value: object) -> None:
        """Give the current row a label, write it down, and go on."""
        sample = self.current
        if sample is None:
            raise DataError("label", value, "a row to label", "all rows are seen; .undo() goes back")
        name = str(value)
        if name not in self._values:
            raise DataError("label", value, "one of the labels", nearest(name, self._values))
        self.file.put(sample, self._values[name], self._format)
        self._done.append((self._at, sample))
        self._step(1)

    def skip(self) -> None:
        """Leave the current row without a label, and go on; it comes again next time."""
        if self.current is not None:
            self._step(1)

    def undo(self) -> None:
        """Go back one row, and take its label away where it has one."""
        if self._at == 0:
            return
        self._step(-1)
        if self._done and self._done[-1][0] == self._at:
            self.file.drop(self._done.pop()[1].id)
            self._draw()

    def press(self, key: str) -> None:
        """What a key does: a label, s (skip) or u (undo); others nothing."""
        actions: dict[str, Callable[[], None]] = {"s": self.skip, "u": self.undo}
        if key in actions:
            actions[key]()
        elif key in self._values and self.current is not None:
            self.label(key)

    def _step(self, by: int) -> None:
        self._at += by
        self._draw()

    # --- shown ------------------------------------------------------------------------------------------------------

    def _caption(self, name: str) -> str:
        return " ".join(dict.fromkeys(_CAPTIONS[each][name] for each in self._languages))

    @property
    def status(self) -> str:
        """Where one is, in a line."""
        row = min(self._at + 1, len(self._open))
        where = f"{self._caption('of')} {row}/{len(self._open)}" if self.current else self._caption("done")
        return f"{where} · {self._caption('saved')} {len(self.labels)} · {self._caption('file')} {self.file.path}"

    def __repr__(self) -> str:
        return f"<Labelling {self.status}>"

    @property
    def widget(self) -> Any:
        """The ipywidgets box; made once."""
        if self._widget is None:
            self._widget = self._made()
            self._draw()
        return self._widget

    def _repr_mimebundle_(self, **options: Any) -> Any:
        return self.widget._repr_mimebundle_(**options)

    def _made(self) -> Any:
        import ipywidgets as widgets

        self._status, self._text = widgets.HTML(), widgets.HTML()
        buttons = [self._button(f"{caption} [{name}]", _STYLES.get(name, "info"), functools.partial(self.press, name))
                   for name, caption in self._named.items()]  # fmt: skip
        buttons.append(self._button(f"{self._caption('skip')} [s]", "", self.skip))
        buttons.append(self._button(f"{self._caption('undo')} [u]", "", self.undo))
        self._buttons = buttons
        self._keys = widgets.Text(placeholder=" / ".join([*self._values, "s", "u"]), description=self._caption("keys"))
        self._keys.observe(self._typed, "value")
        return widgets.VBox([self._status, self._text, widgets.HBox(buttons), self._keys])

    def _button(self, caption: str, style: str, action: Callable[[], None]) -> Any:
        import ipywidgets as widgets

        button = widgets.Button(description=caption, button_style=style, tooltip=caption)
        button.layout.width = "auto"
        button.on_click(lambda _: self._safely(action))
        return button

    def _typed(self, change: Mapping[str, Any]) -> None:
        typed = str(change["new"])
        if typed:
            self._keys.value = ""
            keys: Sequence[str] = [typed] if typed in self._values else list(typed)
            for key in keys:
                self._safely(functools.partial(self.press, key))

    def _safely(self, action: Callable[[], None]) -> None:
        """What goes wrong is shown in the panel: a widget's callback has nobody to raise to."""
        try:
            action()
        except DataError as error:
            self._status.value = f"<b>{html.escape(str(error))}</b>"

    def _draw(self) -> None:
        if self._widget is None:
            return
        sample = self.current
        self._status.value = html.escape(self.status)
        for button in self._buttons[:-1]:
            button.disabled = sample is None
        self._buttons[-1].disabled = self._at == 0
        if sample is None:
            self._text.value = f"<p>{html.escape(self._caption('done'))}</p>"
            return
        reason = html.escape(str(self._reasons.get(sample.id, "")))
        body = html.escape(str(sample.input))
        self._text.value = (
            f"<p><small>{html.escape(sample.id)} {reason}</small></p>"
            f'<pre style="white-space: pre-wrap; max-height: 24em; overflow: auto">{body}</pre>'
        )
