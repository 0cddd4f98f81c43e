"""Errors are one line that says where, found, expected, what to do; values are shortened and made harmless."""

from __future__ import annotations

import inspect
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openclaw_lab import errors
from openclaw_lab.errors import DataError, LabError, LabWarning, MissingExtra, excerpt


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (LabError("a.csv:3"), "a.csv:3"),
        (LabError("a.csv:3", "x"), "a.csv:3: found x"),
        (LabError("a.csv:3", "x", "y"), "a.csv:3: found x; expected y"),
        (LabError("a.csv:3", "x", "y", "do z"), "a.csv:3: found x; expected y; do z"),
        (LabError("a.csv", None, "y"), "a.csv: expected y"),
        (LabError("a.csv", todo="do z"), "a.csv: do z"),
        (LabError("a.csv", 0), "a.csv: found 0"),
        (LabError("a.csv", ""), "a.csv: found "),
        (LabError("目录/文件.csv", "值"), "目录/文件.csv: found 值"),
        (LabError("a\nb\r.csv", "x\u2028y", "p\nq", "r\x1bs"), "a b .csv: found x y; expected p q; r s"),
        (LabError("a  b.csv"), "a  b.csv"),
        (MissingExtra("reading m.parquet", "pyarrow", "parquet"),
         "reading m.parquet: expected the package pyarrow; run: pip install 'openclaw-lab[parquet]'"),
    ],
)  # fmt: skip
def test_the_message(error: LabError, expected: str) -> None:
    assert str(error) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("short", "short"),
        ("  a \n\t b  ", "a b"),
        ("\x1b[31mred\x07", "[31mred"),
        ("", ""),
        (3, "3"),
        (None, "None"),
        ([1, "二"], "[1, '二']"),
        ("x" * 80, "x" * 80),
        ("x" * 81, "x" * 79 + "…"),
        ("长" * 10_000_000, "长" * 79 + "…"),
        (" " * 10_000, "…"),
    ],
)
def test_excerpt(value: object, expected: str) -> None:
    assert excerpt(value) == expected


@settings(deadline=None)
@given(st.text(), st.text(), st.text(), st.text())
def test_a_message_is_always_one_line(where: str, found: str, expected: str, todo: str) -> None:
    error = DataError(where, found, expected, todo)
    assert len(str(error).splitlines()) <= 1
    assert (error.where, error.found, error.expected, error.todo) == (where, found, expected, todo)


@settings(deadline=None)
@given(st.text(), st.integers(1, 50))
def test_an_excerpt_is_never_longer_than_asked(text: str, limit: int) -> None:
    assert len(excerpt(text, limit)) <= limit
    assert len(excerpt(text, limit).splitlines()) <= 1


def test_the_tree_is_the_one_that_is_drawn() -> None:
    drawn = re.findall(r"[├└]── (\w+)", errors.__doc__ or "")
    kinds = {
        name: kind for name, kind in inspect.getmembers(errors, inspect.isclass) if kind.__module__ == errors.__name__
    }
    assert set(drawn) == kinds.keys() - {"LabError", "LabWarning"}
    for name, kind in kinds.items():
        assert issubclass(kind, LabWarning if name.endswith("Warning") else LabError)
