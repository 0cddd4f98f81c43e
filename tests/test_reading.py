"""Files as people have them: encodings, delimiters, line ends, JSON in its shapes; a place for every row."""

from __future__ import annotations

import csv
import gzip
import io
import json
import tempfile
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import openclaw_lab as lab
from openclaw_lab.errors import DataError, LabError
from openclaw_lab.experiments.reading import checked_encoding, read_rows

TEXT = 'text,label\n你好，世界,0\n"忽略\n以上",1\n'
ROWS = [{"text": "你好，世界", "label": "0"}, {"text": "忽略\n以上", "label": "1"}]


def put(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def rows(path: Path, encoding: str = "") -> list[Any]:
    problems: list[DataError] = []
    found = [row for _, row in read_rows(path, problems, encoding)]
    assert not problems, problems
    return found


def said(path: Path, encoding: str = "") -> str:
    with pytest.raises(LabError) as error:
        rows(path, encoding)
    text = str(error.value)
    assert len(text.splitlines()) == 1
    assert text.startswith(str(path))
    return text


# --- cells --------------------------------------------------------------------------------------------------------

CELLS: list[tuple[str, str, bytes, str]] = [
    ("plain", "a.csv", TEXT.encode(), ""),
    ("mark", "a.csv", TEXT.encode("utf-8-sig"), ""),
    ("CRLF", "a.csv", TEXT.replace("\n", "\r\n").replace("忽略\r\n", "忽略\n").encode(), ""),
    ("gzipped", "a.csv.gz", gzip.compress(TEXT.encode()), ""),
    ("gb18030", "a.csv", TEXT.encode("gb18030"), "gb18030"),
    ("GBK by another name", "a.csv", TEXT.encode("gbk"), "GBK"),
    ("UTF-8 said", "a.csv", TEXT.encode("utf-8-sig"), "utf8"),
    ("UTF-16 of Excel", "a.tsv", TEXT.replace(",", "\t").encode("utf-16"), "utf-16"),
    ("Big5", "a.csv", TEXT.replace("你", "您").replace("您", "你").encode("big5"), "big5"),
    ("TSV", "a.tsv", TEXT.replace(",", "\t").encode(), ""),
    ("TSV, gzipped, capitals", "A.TSV.GZ", gzip.compress(TEXT.replace(",", "\t").encode()), ""),
    ("semicolons", "a.csv", TEXT.replace(",", ";").encode(), ""),
    ("tabs in a CSV", "a.csv", TEXT.replace(",", "\t").encode(), ""),
    ("a note to Excel", "a.csv", b"sep=;\n" + TEXT.replace(",", ";").encode(), ""),
    ("spaces around names", "a.csv", TEXT.replace("text,label", " text , label").encode(), ""),
    ("empty columns at the right", "a.csv", b"text,label,,\n" + '你好，世界,0,,\n"忽略\n以上",1,,\n'.encode(), ""),
    ("empty rows", "a.csv", TEXT.replace("\n你", "\n,\n\n你").encode() + b",\n", ""),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "encoding"), [each[1:] for each in CELLS], ids=[each[0] for each in CELLS])
def test_cells(tmp_path: Path, name: str, content: bytes, encoding: str) -> None:
    path = put(tmp_path, name, content)
    assert rows(path, encoding) == ROWS
    assert [sample.label for sample in lab.load_dataset(path, encoding=encoding)] == [0, 1]


@pytest.mark.parametrize(
    ("content", "advice"),
    [
        (TEXT.encode("gb18030"), 'or say encoding="gb18030" (what Chinese Excel writes)'),
        ("text,label\ncafé,1\n".encode("cp1252"), 'for example encoding="cp1252"'),
        (TEXT.encode("utf-16"), 'or say encoding="utf-16"'),
    ],
)
def test_another_encoding_is_named(tmp_path: Path, content: bytes, advice: str) -> None:
    for path in (put(tmp_path, "a.csv", content), put(tmp_path, "a.csv.gz", gzip.compress(content))):
        text = said(path)
        assert "expected UTF-8; save the file as UTF-8, " in text
        assert advice in text


def test_the_place_of_a_byte_far_into_a_file(tmp_path: Path) -> None:
    content = b"text,label\n" + b"plain,0\n" * 50_000
    path = put(tmp_path, "a.csv", content + "忽略,1\n".encode("gbk"))
    assert f"at byte {len(content)};" in said(path)
    path = put(tmp_path, "m.csv", b"\xef\xbb\xbf" + content + "忽略,1\n".encode("gbk"))
    assert f"at byte {len(content) + 3};" in said(path)


def test_a_wrong_encoding_that_was_said(tmp_path: Path) -> None:
    path = put(tmp_path, "a.csv", TEXT.encode("gb18030"))
    assert "bytes that are not UTF-8 at byte 11" in said(path, "ascii")  # which is a part of UTF-8
    path = put(tmp_path, "a.csv", TEXT.encode("gb18030") + b"\xff")
    assert f"found bytes that are not gb18030 at byte {path.stat().st_size - 1}; expected gb18030" in said(
        path, "gb18030"
    )


@pytest.mark.parametrize("wrong", ["gb-nothing", "rot13", "hex", 5, "a\0b"])
def test_no_encoding(wrong: Any) -> None:
    with pytest.raises(DataError, match=r"encoding: found .*expected the name of an encoding"):
        checked_encoding(wrong)


def test_a_column_without_a_name(tmp_path: Path) -> None:
    """What pandas writes with its index."""
    path = tmp_path / "a.csv"
    pd.DataFrame({"text": ["a"], "label": [1]}).to_csv(path)
    assert rows(path) == [{"": "0", "text": "a", "label": "1"}]


# --- JSON ---------------------------------------------------------------------------------------------------------

OBJECTS = [{"text": "你好", "label": 0}, {"text": "忽略", "label": 1}]
FRAME = pd.DataFrame(OBJECTS)
JSON: list[tuple[str, str, str]] = [
    ("a list", "a.json", json.dumps(OBJECTS)),
    ("a list over lines", "a.json", "\n" + json.dumps(OBJECTS, indent=2, ensure_ascii=False)),
    ("an object with a list", "a.json", json.dumps({"version": 1, "data": OBJECTS})),
    ("columns of lists", "a.json", FRAME.to_json(orient="columns")),
    ("columns by pandas", "a.json", json.dumps(FRAME.to_dict(orient="list"))),
    ("records by pandas", "a.json", FRAME.to_json(orient="records")),
    ("lines by another name", "a.json", FRAME.to_json(orient="records", lines=True)),
    ("ndjson", "a.ndjson", FRAME.to_json(orient="records", lines=True)),
    ("lines of an old Mac", "a.jsonl", FRAME.to_json(orient="records", lines=True).replace("\n", "\r")),
    ("CRLF", "a.jsonl", FRAME.to_json(orient="records", lines=True).replace("\n", "\r\n\r\n")),
]


@pytest.mark.parametrize(("name", "content"), [each[1:] for each in JSON], ids=[each[0] for each in JSON])
def test_json(tmp_path: Path, name: str, content: str) -> None:
    for number, data in enumerate((content.encode(), gzip.compress(content.encode()), content.encode("utf-8-sig"))):
        assert rows(put(tmp_path, f"{number}{name}", data)) == OBJECTS
    for encoding in ("gb18030", "utf-16"):
        assert rows(put(tmp_path, f"{encoding}{name}", content.encode(encoding)), encoding) == OBJECTS
    assert len(lab.load_dataset(put(tmp_path, name, content.encode()))) == 2


BAD_JSON: list[tuple[str, str, str]] = [
    ("cut", json.dumps(OBJECTS)[:-9], ":1: found no JSON ("),
    ("cut, said", json.dumps(OBJECTS)[:-9], "expected a whole list of objects (the file seems cut off)"),
    ("a comma too many", '[{"text": "a", "label": 1},]', "expected a list of objects, one a row"),
    (
        "a line is named",
        '[\n{"text": "a", "label": 1},\n{"text" "b"}\n]',
        ":3: found no JSON (Expecting ':' delimiter)",
    ),
    ("NaN", '[{"text": "a", "label": NaN}]', "found the constant NaN, which is not JSON"),
    ("deep", "[" * 100_000 + "]" * 100_000, "found no JSON ("),
]


@pytest.mark.parametrize(("content", "expected"), [each[1:] for each in BAD_JSON], ids=[each[0] for each in BAD_JSON])
def test_bad_json(tmp_path: Path, content: str, expected: str) -> None:
    assert expected in said(put(tmp_path, "a.json", content.encode()))


def test_conversations_in_a_json_file(tmp_path: Path) -> None:
    talks = [
        {"id": "t", "messages": [{"role": "user", "content": "你好"}]},
        {"messages": [{"role": "user", "content": "b"}]},
    ]
    data = lab.load_dataset(put(tmp_path, "talks.json", json.dumps(talks).encode()))
    assert (data.format, [sample.id for sample in data]) == ("sessions", ["t", "talks:2"])
    with pytest.raises(DataError, match=r"talks.json:1 messages\[0\]"):
        lab.load_dataset(put(tmp_path, "talks.json", b'[{"messages": [3]}]'))


def test_json_counts_where_a_folder_has_nothing_else(tmp_path: Path) -> None:
    put(tmp_path, "a.json", json.dumps(OBJECTS).encode())
    assert len(lab.load_dataset(tmp_path)) == 2
    put(tmp_path, "settings.json", b'{"a": 1}')
    assert len(lab.load_dataset(tmp_path)) == 2
    put(tmp_path, "b.tsv", b"text\tlabel\nx\t1\n")
    assert [sample.input for sample in lab.load_dataset(tmp_path)] == ["x"]


# --- always -------------------------------------------------------------------------------------------------------

CELL = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=20)


@settings(deadline=None)
@given(st.lists(st.tuples(CELL, CELL), min_size=1, max_size=6), st.sampled_from(["", "gb18030", "utf-16"]),
       st.sampled_from([",", "\t"]), st.sampled_from(["\n", "\r\n"]))  # fmt: skip
def test_what_a_table_program_writes_is_read(
    cells: list[tuple[str, str]], encoding: str, delimiter: str, end: str
) -> None:
    held = io.StringIO()
    writer = csv.writer(held, delimiter=delimiter, lineterminator=end, quoting=csv.QUOTE_ALL)
    writer.writerows([("first", "second"), *cells])
    with tempfile.TemporaryDirectory() as folder:
        name = "a.csv" if delimiter == "," else "a.tsv"
        path = put(Path(folder), name, held.getvalue().encode(encoding or "utf-8"))
        assert rows(path, encoding) == [{"first": one, "second": other} for one, other in cells]


@settings(deadline=None, max_examples=200)
@given(st.binary(max_size=200), st.sampled_from(["a.csv", "a.json", "a.jsonl", "a.tsv", "a.csv.gz", "a.parquet"]))
def test_any_bytes_are_rows_or_one_line(content: bytes, name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = put(Path(folder), name, content)
        problems: list[DataError] = []
        try:
            for where, row in read_rows(path, problems):
                assert where.startswith(str(path))
                assert isinstance(row, dict)
        except LabError as error:
            problems.append(error)  # type: ignore[arg-type]
        assert all(len(str(each).splitlines()) == 1 for each in problems)
