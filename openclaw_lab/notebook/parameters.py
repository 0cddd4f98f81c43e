"""A notebook and `NAME=text` overrides in, the notebook with the values in a cell of their own out.

The names are those that the cell tagged `parameters` assigns. A text is read as a literal; it is never run as code.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from openclaw_lab.errors import ConfigError, DataError
from openclaw_lab.knobs import nearest

TAG, INJECTED = "parameters", "injected-parameters"


def defaults(notebook: Any, where: str) -> dict[str, ast.expr]:
    """Each name that the parameters cell assigns, with the expression of its default; none without such a cell."""
    found: dict[str, ast.expr] = {}
    for cell in _tagged(notebook, TAG):
        try:
            body = ast.parse(cell.source).body
        except SyntaxError as error:
            raise DataError(f"{where}, cell {TAG!r}", error.msg, "plain assignments") from None
        for line in body:
            found |= _assigned(line)
    return found


def check(overrides: Mapping[str, str], known: Sequence[Mapping[str, ast.expr]]) -> None:
    """Refuse a name that no chosen notebook has."""
    names = sorted({name for one in known for name in one})
    for name in overrides:
        if name not in names:
            todo = nearest(name, names) if names else f"no chosen notebook has a cell tagged {TAG!r}"
            raise ConfigError(f"parameter {name}", expected="a parameter of a chosen notebook", todo=todo)


def inject(notebook: Any, overrides: Mapping[str, str], where: str) -> None:
    """Put the overrides that this notebook knows into a cell after its parameters; an earlier such cell goes."""
    known = defaults(notebook, where)
    lines = [f"{name} = {literal(name, text, known[name])}" for name, text in overrides.items() if name in known]
    if not lines:
        return
    notebook.cells = [cell for cell in notebook.cells if INJECTED not in _tags(cell)]
    last = max(number for number, cell in enumerate(notebook.cells) if TAG in _tags(cell))
    notebook.cells.insert(last + 1, _code_cell("\n".join(lines)))


def literal(name: str, text: str, default: ast.expr) -> str:
    """The Python literal of a text: what it says, else the text itself; a literal default tells the expected kind."""
    value, usual = _value(text), _default(default)
    if isinstance(usual, str):
        value = value if isinstance(value, str) else text
    elif isinstance(usual, bool):
        if not isinstance(value, bool):
            raise ConfigError(f"parameter {name}", text, "True or False")
    elif isinstance(usual, (int, float)) and (isinstance(value, bool) or not isinstance(value, (int, float))):
        raise ConfigError(f"parameter {name}", text, f"a number, as in {name}={usual}")
    return repr(value)


def _default(expression: ast.expr) -> Any:
    """A default that is a literal; None for one that is computed, of which nothing is known."""
    try:
        return ast.literal_eval(expression)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def _value(text: str) -> Any:
    """A text as a Python value when it is a literal that can be written down again, else the text."""
    try:
        value = ast.literal_eval(text.strip())
        ast.literal_eval(repr(value))
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return text
    return value


def _assigned(line: ast.stmt) -> dict[str, ast.expr]:
    if isinstance(line, ast.Assign):
        return {target.id: line.value for target in line.targets if isinstance(target, ast.Name)}
    if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name) and line.value is not None:
        return {line.target.id: line.value}
    return {}


def _code_cell(source: str) -> Any:
    from nbformat import v4

    new: Any = v4.new_code_cell
    return new(source, metadata={"tags": [INJECTED]})


def _tagged(notebook: Any, tag: str) -> Iterable[Any]:
    return (cell for cell in notebook.cells if cell.cell_type == "code" and tag in _tags(cell))


def _tags(cell: Any) -> Sequence[str]:
    tags = cell.metadata.get("tags", [])
    return tags if isinstance(tags, list) else []
