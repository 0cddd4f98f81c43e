"""Public data sets that are known, by name: what they are, under which licence, how to get them, what to beware of.

Nothing is downloaded by looking: `fetch` alone touches the network, for one set that somebody named.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from openclaw_lab.errors import DataError
from openclaw_lab.experiments.columns import Columns
from openclaw_lab.experiments.dataset import Dataset, load_dataset
from openclaw_lab.experiments.formats import FORMATS
from openclaw_lab.experiments.hub import HUB
from openclaw_lab.experiments.samples import Sample
from openclaw_lab.experiments.secrets import Secrets
from openclaw_lab.files import write_bytes, write_text
from openclaw_lab.given import path as checked_path
from openclaw_lab.knobs import nearest

_FILE = Path(__file__).with_name("catalogue.json")
FETCHED = ("injection", "redaction")  # formats that are written down as rows of ours


@dataclass(frozen=True)
class Known:
    """One public set. `get` is what load_dataset takes, empty where it has to be converted first; `rows` as stated.

    `also` names files of the folder $OPENCLAW_LAB_DATA that are made of it.
    """

    name: str
    task: str
    languages: str
    rows: int | str
    licence: str
    where: str
    get: str = ""
    columns: Mapping[str, Any] = field(default_factory=dict)
    labels: Mapping[str, Any] = field(default_factory=dict)
    also: str = ""
    note: str = ""
    note_zh: str = ""

    @property
    def call(self) -> str:
        """The code that loads it; empty where nothing can."""
        if not self.get:
            return ""
        said = [f"columns={dict(self.columns)!r}"] if self.columns else []
        said += [f"labels={dict(self.labels)!r}"] if self.labels else []
        return f"lab.load_dataset({', '.join([repr(self.get), *said])})"

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values."""
        return {**asdict(self), "call": self.call}

    def load(self, **options: Any) -> Dataset:
        """Load it from the Hub; `options` are those of load_dataset."""
        if not self.get:
            todo = f"get it from {self.where} and convert it" + (f"; {self.also} is made of it" if self.also else "")
            raise DataError(self.name, "a set that the Hub does not hold as rows", "one with hf:", todo)
        given = {"columns": self.columns or None, "labels": self.labels or None}
        return load_dataset(self.get, **{**given, **options})


@functools.cache
def catalogue() -> tuple[Known, ...]:
    """Every known set."""
    return tuple(Known(**each) for each in json.loads(_FILE.read_text("utf-8"))["sets"])


def known(name: str) -> Known:
    """The set of that name, or a DataError with the nearest one."""
    for each in catalogue():
        if each.name == name:
            return each
    raise DataError(f"data set {name!r}", expected="a name of the catalogue, or hf:owner/name",
                    todo=nearest(name, (each.name for each in catalogue() if each.get)))  # fmt: skip


def fetch(
    name: str, folder: str | Path = ".", *, columns: object = None, labels: object = None, mirror: str | Path = "",
    replace: bool = False,
) -> Path:  # fmt: skip
    """Get a set of the catalogue, or `hf:owner/name`, and write it as rows of ours: the path of the .jsonl file.

    Beside it stands `<name>.about.json` with the licence and where it came from. A file that is there is a DataError
    unless `replace`.
    """
    Columns.of(columns, labels)
    entry = (
        Known(_file_name(name), "", "", "", "see its page", _page(name), name) if name.startswith(HUB) else known(name)
    )
    target = checked_path("fetch: folder", str(folder), expected="a folder", error=DataError) / f"{entry.name}.jsonl"
    if target.exists() and not replace:
        raise DataError(str(target), "a file that is there", "a new one", "name another folder, or --replace it")
    given = {key: value for key, value in (("columns", columns), ("labels", labels)) if value}
    data = entry.load(mirror=mirror, **given)
    if data.format not in FETCHED:
        raise DataError(
            name, f"{data.format} rows", f"rows of {' or '.join(FETCHED)}", "load it as it is: " + entry.get
        )
    about = {"name": entry.name, "licence": entry.licence, "where": entry.where, "from": entry.get, "rows": len(data),
             "hash": data.hash, "note": entry.note}  # fmt: skip
    try:
        write_bytes(target, b"".join(_line(sample, data.format, entry) for sample in data))
        write_text(target.with_name(f"{entry.name}.about.json"), json.dumps(about, ensure_ascii=False, indent=1) + "\n")
    except OSError as error:
        raise DataError(str(target), error.strerror or type(error).__name__, "a folder that can be written") from None
    return target


def _file_name(reference: str) -> str:
    """The last part of the repository's name, with its config."""
    name, _, wanted = reference.removeprefix(HUB).partition(":")
    plain = name.partition("@")[0].rpartition("/")[2]
    return "-".join([plain, *filter(None, wanted.split("/"))])


def _page(reference: str) -> str:
    return "https://huggingface.co/datasets/" + reference.removeprefix(HUB).partition(":")[0].partition("@")[0]


def _line(sample: Sample, format: str, entry: Known) -> bytes:
    label = next(each.label for each in FORMATS if each.name == format)
    row: dict[str, Any] = {"id": sample.id, "text": sample.input, label: _label(sample)}
    row |= {name: getattr(sample, name) for name in ("lang", "kind", "group") if getattr(sample, name)}
    row |= {"split": sample.fields["split"]} if sample.fields.get("split") else {}
    text = json.dumps({**row, "source": entry.get}, ensure_ascii=False)
    return text.encode("utf-8", "backslashreplace") + b"\n"


def _label(sample: Sample) -> object:
    if isinstance(sample.label, Secrets):
        return [{"start": span.start, "end": span.end, "type": span.type} for span in sample.label.spans]
    return sample.label
