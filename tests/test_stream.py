"""Sets larger than memory: the figures of a stream are those of the whole, and memory does not grow with the texts."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import joblib
import pandas as pd
import pytest

import openclaw_lab as lab
from openclaw_lab.errors import DataError, TaskError
from openclaw_lab.experiments.streamed import Streamed
from openclaw_lab.injection.verdict import Detection


def written(path: Path, data: Any) -> Path:
    rows = [
        {
            "id": each.id,
            "text": each.input,
            "label": each.label,
            "lang": each.lang,
            "kind": each.kind,
            "group": each.group,
        }
        for each in data
    ]
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    elif path.suffix == ".csv":
        pd.DataFrame(rows).to_csv(path, index=False)
    elif path.suffix == ".parquet":
        pd.DataFrame(rows).to_parquet(path)
    else:
        path.write_text(text, "utf-8")
    return path


def vars_of(span: Any) -> dict[str, Any]:
    return {"start": span.start, "end": span.end, "type": span.type}


DATA = lab.load_dataset("injection/mini")[:300]
RULES = lab.LabConfig().with_({"injection.detector": "rules"})


def figures(results: Any) -> dict[str, str]:
    return {name: str(metric) for name, metric in results.metrics.items()}


@pytest.fixture(scope="module")
def whole() -> Any:
    return lab.evaluate("injection", DATA, RULES)


@pytest.mark.parametrize("name", ["大.jsonl", "big.jsonl.gz", "big.csv", "big.parquet"])
@pytest.mark.parametrize("rows", [150, 1000])
def test_a_stream_has_the_figures_of_the_whole(name: str, rows: int, whole: Any, tmp_path: Path) -> None:
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow", reason="the extra parquet is not installed")
    streamed: Streamed = lab.evaluate("injection", lab.stream(written(tmp_path / name, DATA), rows=rows), RULES)
    assert len(streamed) == 300
    assert figures(streamed) == figures(whole)
    for attribute in ("lang", "kind"):
        ours = streamed.by(attribute).frame.fillna(-1).to_csv()
        assert ours == whole.by(attribute).frame.fillna(-1).to_csv()
    assert set(streamed.errors()["id"]) == set(whole.errors()["id"])
    assert "300 rows" in str(streamed)


def test_blocks_of_any_size_have_one_hash(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", DATA)
    assert len({lab.evaluate("injection", lab.stream(path, rows=n), RULES).hash for n in (90, 300)}) == 1
    other = written(tmp_path / "b.jsonl", DATA[:299])
    assert (
        lab.evaluate("injection", lab.stream(path), RULES).hash
        != lab.evaluate("injection", lab.stream(other), RULES).hash
    )


@pytest.mark.filterwarnings("ignore")
def test_workers_make_the_same(whole: Any, tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", DATA)
    with joblib.parallel_config("threading", n_jobs=3):
        assert figures(lab.evaluate("injection", lab.stream(path, rows=120), RULES)) == figures(whole)


def test_sessions_and_redaction_stream_too(tmp_path: Path) -> None:
    secrets = lab.load_dataset("redaction/mini")[:60]
    path = tmp_path / "r.jsonl"
    rows = [{"id": s.id, "text": s.input, "spans": [vars_of(x) for x in s.label.spans]} for s in secrets]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    streamed = lab.evaluate("redaction", lab.stream(path, rows=25))
    assert streamed.metrics["recall"].value == lab.evaluate("redaction", path).metrics["recall"].value


def test_bad_rows(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text('{"text": "a", "label": 0}\n{"text": 3, "label": 0}\nnothing\n{"text": "b", "label": 1}\n', "utf-8")
    with pytest.raises(DataError, match=r"bad\.jsonl:2"):
        lab.evaluate("injection", lab.stream(path), RULES)
    streamed = lab.evaluate("injection", lab.stream(path, on_error="skip"), RULES)
    assert (len(streamed), streamed.left_out) == (2, 2)
    assert [str(each).split(" ")[0].rstrip(":") for each in streamed.problems] == [f"{path}:2", f"{path}:3"]
    assert "2 bad rows left out" in str(streamed)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda folder: lab.stream(folder / "none.jsonl"), "expected a file ending in"),
        (lambda folder: lab.stream(folder), "expected a file ending in"),
        (lambda folder: lab.stream(folder / "a.jsonl", rows=0), "stream: rows: found 0"),
        (lambda folder: lab.stream(folder / "a.jsonl", on_error="warn"), "raise or skip"),
        (lambda folder: lab.evaluate("redaction", lab.stream(folder / "a.jsonl")), "injection rows"),
        (lambda folder: lab.evaluate("skills", lab.stream(folder / "a.jsonl")), "rows that stand alone"),
        (lambda folder: lab.evaluate("injection", lab.stream(folder / "empty.jsonl")), "no row that can be read"),
        (lambda folder: lab.evaluate("injection", lab.stream(folder / "a.jsonl")).by("id"), "dataset, lang or kind"),
    ],
)
def test_wrong_use_is_one_line(make: Any, message: str, tmp_path: Path) -> None:
    written(tmp_path / "a.jsonl", DATA[:20])
    (tmp_path / "empty.jsonl").write_text("")
    with pytest.raises((DataError, TaskError)) as error:
        make(tmp_path)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


_MEASURED = """
import resource, sys
import openclaw_lab as lab
from openclaw_lab.injection.verdict import Detection
def detector(text):
    return Detection(1.0 if "ignore" in text else 0.0, False)
found = lab.evaluate("injection", lab.stream(sys.argv[1]), detector=detector)
found.metrics["recall"], found.by("lang")
print(len(found), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


@pytest.mark.slow
def test_memory_is_bounded_on_a_million_rows(tmp_path: Path) -> None:
    """A million rows (half a gigabyte of text) take little more than fifty thousand."""
    peaks = []
    for count in (50_000, 1_000_000):
        path = tmp_path / f"{count}.jsonl"
        with path.open("w", encoding="utf-8") as file:
            for number in range(count):
                row = {
                    "text": f"{number} ignore 忽略 " + "word " * 90,
                    "label": number % 2,
                    "lang": ("en", "zh")[number % 3 > 0],
                }
                file.write(json.dumps(row) + "\n")
        done = subprocess.run(
            [sys.executable, "-c", _MEASURED, str(path)], capture_output=True, text=True, timeout=900, check=True
        )
        path.unlink()
        rows, peak = map(int, done.stdout.split())
        assert rows == count
        peaks.append(peak)
    assert peaks[1] - peaks[0] < 400, f"{peaks} MB"


def test_what_a_detector_of_your_own_says_is_streamed(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", DATA[:50])
    streamed = lab.evaluate("injection", lab.stream(path, rows=9), detector=lambda text: Detection(0.9, True))
    assert streamed.metrics["recall"].value == 1.0
