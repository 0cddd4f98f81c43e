"""How the package is built, read from its source: imports point down, and each rule of the style holds everywhere."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import openclaw_lab

ROOT = Path(openclaw_lab.__file__).parent
SOURCES = {str(path.relative_to(ROOT).with_suffix("")).replace("/", "."): path for path in sorted(ROOT.rglob("*.py"))}
TREES = {name.removesuffix(".__init__"): ast.parse(path.read_text("utf-8")) for name, path in SOURCES.items()}

# From the bottom to the top; a module may import from its own line only within its own package.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("errors",),
    ("text", "messages", "knobs", "files", "given"),
    ("config", "rules", "transcripts", "cassette", "pacing", "provider", "faults"),
    ("spending", "pricing"),
    ("asking", "threads"),
    ("models",),
    ("chat",),
    ("reminders", "injection", "redaction"),
    ("knowhub",),
    ("skills",),
    ("growth",),
    ("plugins",),
    ("agent",),
    (
        "experiments.metrics",
        "experiments.duplicates",
        "experiments.progress",
        "experiments.reading",
        "experiments.cache",
        "experiments.code",
    ),
    ("experiments.parallel", "experiments.rows"),
    (
        "experiments.corpus",
        "experiments.secrets",
        "experiments.picks",
        "experiments.memories",
        "experiments.areas",
        "experiments.bounds",
        "experiments.agent_tasks",
    ),
    ("experiments.formats", "experiments.words", "experiments.hub_files", "experiments.annotations"),
    ("experiments.columns", "experiments.samples", "experiments.sources", "experiments.hub"),
    ("experiments.guess",),
    ("experiments.table", "experiments.dataset"),
    (
        "experiments.task",
        "experiments.stream",
        "experiments.cases",
        "experiments.assignment",
        "experiments.obfuscation",
        "experiments.split",
        "experiments.live",
        "experiments.story",
        "experiments.preview",
        "experiments.labels",
        "experiments.catalogue",
    ),
    ("experiments.tasks", "experiments.memo"),
    ("experiments.evaluate", "experiments.to_label"),
    ("experiments.paired",),
    ("experiments.compare", "experiments.sweep", "experiments.curves", "experiments.space", "experiments.trials"),
    ("experiments.search",),
    ("experiments.tune",),
    (
        "experiments.streamed",
        "experiments.robustness",
        "experiments.simulation",
        "experiments.leave_one_out",
        "experiments.scoreboard",
        "experiments.pretrain",
    ),
    ("experiments.pretrain_skills",),
    ("exports",),
    ("experiments.gate", "ui", "notebook", "bench"),
    ("commands",),
    ("cli",),
)
# Imports that point up: only within a function, so that results can draw themselves.
UPWARD = {
    ("experiments.evaluate", "ui.charts"),
    ("experiments.evaluate", "experiments.streamed"),
    ("experiments.compare", "ui.charts"),
    ("experiments.sweep", "ui.charts"),
    ("experiments.curves", "ui.curves"),
    ("growth.track", "ui.growth"),
    ("experiments.tune", "ui.tuning"),
}
# What stands beside the layers: the package itself, and packages that hold nothing but a docstring.
PLAIN = {"__init__", "experiments"}
# Libraries that take long to load, or that only one place should know: the packages that may import them, and whether
# at the top of a file (as opposed to within a function).
LIBRARIES = {
    "matplotlib": ({"ui"}, True),
    "numpy": ({"experiments", "growth", "injection", "knowhub", "models", "reminders", "skills", "ui"}, True),
    "pandas": ({"experiments", "growth", "plugins"}, False),
    "scipy": ({"experiments", "injection"}, False),
    "tqdm": ({"experiments"}, False),
    "joblib": ({"experiments"}, False),
    "platformdirs": ({"experiments"}, False),
    "optuna": ({"experiments"}, False),
    "pyarrow": ({"experiments"}, False),
    "huggingface_hub": ({"experiments"}, False),
    "tiktoken": ({"text"}, False),
    "re2": ({"rules"}, True),
    "rjieba": ({"text"}, False),
    "litellm": ({"provider"}, False),
    "faiss": ({"knowhub"}, False),
    "fastapi": ({"knowhub"}, True),
    "uvicorn": ({"knowhub"}, False),
    "httpx": ({"growth", "knowhub", "plugins"}, True),
    "jsonschema_rs": ({"plugins"}, False),
    "sklearn": ({"experiments", "injection"}, False),
    "yaml": ({"skills"}, False),
    "transformers": ({"injection"}, False),
}
# Who may look at the environment: the command line; tiktoken's cache folder; a switch that litellm reads; what a child
# process inherits; whether a skill's variables are set; where a mirror of the Hugging Face Hub is.
ENVIRONMENT = {
    "cli",
    "commands.agents",
    "commands.catalogue",
    "commands.knowledge",
    "experiments.hub",
    "provider",
    "skills.requirements",
    "text",
    "notebook.runner",
    "notebook.server",
}


@dataclass(frozen=True)
class Import:
    """One import of one module, and where it stands: `top`, `function` or `typing`."""

    target: str
    place: str


def imports(tree: ast.AST, place: str = "top") -> Iterator[Import]:
    for node in ast.iter_child_nodes(tree):
        inner = place
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            inner = "function"
        elif isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            inner = "typing"
        elif isinstance(node, ast.Import):
            yield from (Import(each.name, place) for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            module = str(node.module)
            yield Import(module, place)
            yield from (Import(f"{module}.{each.name}", place) for each in node.names)
        yield from imports(node, inner)


def own(name: str) -> set[Import]:
    """The imports of modules of this package, without its name."""
    found = set()
    for each in imports(TREES[name]):
        target = each.target.removeprefix("openclaw_lab.")
        if target != each.target and target in TREES:
            found.add(Import(target, each.place))
    return found


def layer(name: str) -> tuple[int, str]:
    """The number of the layer, and which of its entries a module belongs to."""
    for number, entries in enumerate(LAYERS):
        for entry in entries:
            if name == entry or name.startswith(f"{entry}."):
                return number, entry
    raise AssertionError(f"{name} is in no layer: give it one")


MODULES = [name for name in TREES if name not in PLAIN]


@pytest.mark.parametrize("name", MODULES)
def test_imports_point_down(name: str) -> None:
    number, entry = layer(name)
    for each in own(name):
        if each.place == "typing" or each.target in PLAIN or (name, each.target) in UPWARD:
            continue
        below, other = layer(each.target)
        assert below < number or other == entry, f"{name} imports {each.target}"


@pytest.mark.parametrize(("name", "target"), sorted(UPWARD))
def test_what_points_up_is_needed_and_stands_within_a_function(name: str, target: str) -> None:
    assert {each.place for each in own(name) if each.target == target} <= {"function", "typing"}
    assert "function" in {each.place for each in own(name) if each.target == target}


def test_no_circle() -> None:
    graph = {name: {each.target for each in own(name) if each.place == "top"} for name in MODULES}
    assert list(TopologicalSorter(graph).static_order())


def test_every_layer_is_used() -> None:
    used = {layer(name)[1] for name in MODULES}
    assert used == {entry for entries in LAYERS for entry in entries}


@pytest.mark.parametrize("name", sorted(PLAIN - {"__init__"}))
def test_plain_packages_hold_a_docstring_only(name: str) -> None:
    assert [type(node) for node in TREES[name].body] == [ast.Expr]


def test_the_package_imports_nothing_but_the_standard_library() -> None:
    assert not [each for each in own("__init__") if each.place == "top"]


@pytest.mark.parametrize("name", TREES)
def test_libraries_are_imported_where_they_belong(name: str) -> None:
    for each in imports(TREES[name]):
        library = each.target.partition(".")[0]
        if library not in LIBRARIES or each.place == "typing":
            continue
        packages, at_the_top = LIBRARIES[library]
        assert name.partition(".")[0] in packages, f"{name} imports {library}"
        assert at_the_top or each.place == "function", f"{name} imports {library} at the top"


@pytest.mark.parametrize("name", TREES)
def test_who_reads_the_environment(name: str) -> None:
    reads = [node.lineno for node in ast.walk(TREES[name]) if _environment(node)]
    assert not reads or name in ENVIRONMENT, reads


def _environment(node: ast.AST) -> bool:
    return (isinstance(node, ast.Attribute) and node.attr in ("environ", "environb", "getenv")) or (
        isinstance(node, ast.ImportFrom)
        and node.module == "os"
        and any(each.name in ("environ", "getenv") for each in node.names)
    )


# --- style --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "path"), SOURCES.items(), ids=list(SOURCES))
def test_no_file_is_long(name: str, path: Path) -> None:
    lines = path.read_text("utf-8").splitlines()
    assert len(lines) <= 400
    assert max(map(len, lines), default=0) <= 120


def public(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.AST]]:
    """Public functions, classes and methods with their dotted names; what is declared twice for types counts once."""
    for each in ast.iter_child_nodes(node):
        if isinstance(each, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            overload = any(isinstance(mark, ast.Name) and mark.id == "overload" for mark in each.decorator_list)
            if each.name.startswith("_") or overload:
                continue
            yield f"{prefix}{each.name}", each
            if isinstance(each, ast.ClassDef):
                yield from public(each, f"{prefix}{each.name}.")


@pytest.mark.parametrize("name", TREES)
def test_everything_public_has_a_docstring(name: str) -> None:
    tree = TREES[name]
    assert ast.get_docstring(tree), "the module"
    bare = [dotted for dotted, node in public(tree) if not ast.get_docstring(node)]  # type: ignore[arg-type]
    assert not bare


@pytest.mark.parametrize("name", TREES)
def test_everything_is_annotated(name: str) -> None:
    for node in ast.walk(TREES[name]):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            given = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
            bare = [each.arg for each in given if each.annotation is None and each.arg not in ("self", "cls")]
            assert node.returns is not None, node.name
            assert not bare, node.name


def test_functions_are_short() -> None:
    lengths = sorted(
        int(node.end_lineno or 0) - node.lineno + 1
        for tree in TREES.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    assert lengths[len(lengths) // 2] <= 10
    assert lengths[len(lengths) * 9 // 10] <= 30


@pytest.mark.parametrize("name", TREES)
def test_names_that_say_nothing_are_not_used(name: str) -> None:
    said = {dotted.rpartition(".")[2].lower() for dotted, _ in public(TREES[name])} | set(name.split("."))
    assert not said & {"process", "handle", "manager", "utils", "helper", "analyze", "run_pipeline", "data", "info"}


@pytest.mark.parametrize("name", TREES)
def test_asserts_do_not_check_what_a_user_gives(name: str) -> None:
    """`python -O` drops them: at most one a module, for what the code itself promises."""
    assert sum(isinstance(node, ast.Assert) for node in ast.walk(TREES[name])) <= 1
