"""Charts: every one draws, in Chinese too, with gaps, one row or many; axes are named, simulations are marked."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import matplotlib
import pandas as pd
import pytest

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba

import openclaw_lab as lab
from openclaw_lab.errors import LabWarning, TaskError
from openclaw_lab.experiments.dataset import Dataset
from openclaw_lab.experiments.metrics import Metric
from openclaw_lab.experiments.sweep import Sweep
from openclaw_lab.experiments.tasks.reminders import RemindersTask
from openclaw_lab.ui import charts

# A machine without a Chinese font draws too, with one warning (which has its own test) and boxes for characters.
pytestmark = (
    []
    if charts.chinese_font()
    else [
        pytest.mark.filterwarnings("ignore:no font with Chinese:openclaw_lab.errors.LabWarning"),
        pytest.mark.filterwarnings("ignore:Glyph .* missing:UserWarning"),
    ]
)
NAN = math.nan
GAP = Metric(NAN, NAN, NAN, 0)
TASK = RemindersTask()


@pytest.fixture(autouse=True)
def closed_figures() -> Iterator[None]:
    """Nothing is left open, and no test changes the settings of the next."""
    with matplotlib.rc_context():
        yield
        plt.close("all")


@pytest.fixture
def no_chinese_font(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(charts, "chinese_font", lambda: None)


def drawn(ax: Axes) -> Axes:
    """The chart, rendered; a character without a glyph is a warning and so an error."""
    ax.figure.canvas.draw()
    return ax


def words(ax: Axes) -> dict[str, Any]:
    """What a reader reads."""
    legend = ax.get_legend()
    return {
        "title": ax.get_title(loc="left"),
        "x": ax.get_xlabel(),
        "y": ax.get_ylabel(),
        "ticks": [each.get_text() for each in ax.get_yticklabels()],
        "legend": [each.get_text() for each in legend.get_texts()] if legend else None,
    }


def metric(value: float, low: float | None = None, high: float | None = None, **more: Any) -> Metric:
    low, high = max(0.0, value - 0.1) if low is None else low, min(1.0, value + 0.1) if high is None else high
    return Metric(value, low, high, 10, **more)


def task(*headline: str) -> RemindersTask:
    return cast(RemindersTask, SimpleNamespace(headline=headline))


# --- metrics ------------------------------------------------------------------------------------------------------

METRICS: list[tuple[str, tuple[str, ...], Mapping[str, Mapping[str, Metric]], list[str], list[str] | None]] = [
    ("one row", ("coverage", "late"), {"all": {"coverage": metric(0.5), "late": metric(0.2)}},
     ["coverage", "late"], None),
    ("Chinese rows", ("coverage",), {"种子": {"coverage": metric(0.5)}, "调好的 tuned": {"coverage": metric(0.6)}},
     ["coverage"], ["种子", "调好的 tuned"]),
    ("mostly English", ("coverage",), {"a rather long English name 中": {"coverage": metric(0.5)}, "b": {}},
     ["coverage"], ["a rather long English name 中", "b"]),
    ("gaps", ("coverage", "late"), {"a": {"coverage": GAP, "late": metric(0.2)}, "b": {"late": GAP}},
     ["coverage", "late"], ["a", "b"]),
    ("nothing but gaps", ("coverage",), {"all": {"coverage": GAP}}, ["coverage"], None),
    ("a metric that no row has", ("coverage", "最新"), {"all": {"coverage": metric(1.0, 1.0, 1.0)}},
     ["coverage"], None),
    ("no row", ("coverage",), {}, [], None),
    ("no headline", (), {"all": {"coverage": metric(0.5)}}, [], None),
    ("many rows", ("coverage", "late"), {f"行 {n}": {"coverage": metric(n / 40), "late": GAP} for n in range(40)},
     ["coverage", "late"], [f"行 {n}" for n in range(40)]),
    ("simulated", ("coverage", "p_save"), {"all": {"coverage": metric(0.5), "p_save": metric(0.4, kind="simulated")}},
     ["coverage", "p_save (simulated)"], None),
    ("no bounds", ("coverage",), {"all": {"coverage": Metric(0.5, NAN, NAN, 1)}}, ["coverage"], None),
]  # fmt: skip


@pytest.mark.parametrize(
    ("headline", "rows", "ticks", "legend"), [row[1:] for row in METRICS], ids=[row[0] for row in METRICS]
)
def test_metrics(
    headline: tuple[str, ...], rows: Mapping[str, Mapping[str, Metric]], ticks: list[str], legend: list[str] | None
) -> None:
    ax = drawn(charts.plot_metrics(rows, task(*headline), title="提醒 reminders"))
    assert words(ax) == {
        "title": "提醒 reminders", "x": "value and its 95 % interval", "y": "", "ticks": ticks, "legend": legend,
    }  # fmt: skip
    assert ax.get_xlim() == (-0.02, 1.02)


def test_metrics_beyond_one_are_on_the_chart() -> None:
    rows = {"all": {"reminders": metric(5.5, 4.0, 7.0), "coverage": metric(0.5)}}
    ax = drawn(charts.plot_metrics(rows, task("reminders", "coverage"), title="t"))
    assert ax.get_xlim()[1] > 7
    below = {"all": {"coverage": metric(-0.5, -0.7, -0.2)}}
    assert drawn(charts.plot_metrics(below, task("coverage"), title="t")).get_xlim()[0] < -0.6


def test_points_are_where_the_values_are() -> None:
    rows = {"all": {"coverage": metric(0.5, 0.3, 0.9), "late": metric(0.2)}}
    ax = charts.plot_metrics(rows, task("coverage", "late"), title="t")
    (points, caps, (bars,)) = ax.containers[0]
    assert points.get_xdata().tolist() == [0.5, 0.2]
    assert points.get_ydata().tolist() == [1, 0], "the most important is on top"
    assert bars.get_segments()[0][:, 0].tolist() == pytest.approx([0.3, 0.9])
    assert len(caps) == 2


# --- differences --------------------------------------------------------------------------------------------------

COLUMNS = ["setting", "metric", "baseline", "value", "difference", "low", "high", "p", "pairs", "verdict"]
DIFFERENCES: list[tuple[str, list[list[Any]], list[str]]] = [
    ("one", [["b", "coverage", 0.5, 0.6, 0.1, 0.0, 0.2, 0.04, 9, "better"]], ["coverage"]),
    ("two settings, in Chinese",
     [["种子", "coverage", 0.5, 0.6, 0.1, 0.0, 0.2, 0.04, 9, ""], ["b", "覆盖", 0.5, 0.4, -0.1, -0.2, 0, 0.1, 9, ""]],
     ["coverage  (种子)", "覆盖  (b)"]),
    ("what is no share", [["b", "tokens", 100.0, 60.0, -40.0, -50.0, -30.0, 0.01, 9, "better"],
                          ["b", "late", 0.5, 0.4, -0.1, -0.2, 0, 0.1, 9, ""]], ["late"]),
    ("gaps", [["b", "precision", NAN, 0.6, NAN, NAN, NAN, NAN, 9, "cannot be compared"],
              ["b", "late", 0.5, 0.4, -0.1, NAN, NAN, NAN, 1, ""]], ["late"]),
    ("only gaps", [["b", "precision", NAN, NAN, NAN, NAN, NAN, NAN, 0, "cannot be compared"]], []),
    ("nothing", [], []),
    ("many", [["b", f"指标 {n}", 0.5, 0.6, 0.1, 0.0, 0.2, 0.04, 9, ""] for n in range(60)],
     [f"指标 {n}" for n in range(60)]),
]  # fmt: skip


@pytest.mark.parametrize(("rows", "ticks"), [row[1:] for row in DIFFERENCES], ids=[row[0] for row in DIFFERENCES])
def test_differences(rows: list[list[Any]], ticks: list[str]) -> None:
    frame = pd.DataFrame(rows, columns=COLUMNS)
    ax = drawn(charts.plot_differences(frame, title="与种子相比"))
    assert words(ax) == {
        "title": "与种子相比", "x": "difference and its 95 % interval", "y": "", "ticks": ticks, "legend": None,
    }  # fmt: skip
    assert ax.lines[-1].get_xdata() == [0, 0], "the line of the baseline"


# --- sweeps -------------------------------------------------------------------------------------------------------


class Swept(SimpleNamespace):
    """A sweep by its frame alone."""


def swept(names: tuple[str, ...], rows: list[dict[str, Any]], *headline: str) -> Sweep:
    return cast(
        Sweep, Swept(frame=pd.DataFrame(rows), names=names, task=SimpleNamespace(name="提醒", headline=headline))
    )


def row(**values: Any) -> dict[str, Any]:
    """Values of a sweep's row; `coverage` gets bounds."""
    value = values.get("coverage", NAN)
    return {**values, "coverage_low": value - 0.1, "coverage_high": value + 0.1, "coverage_n": 9}


ONE = [row(interval=n, coverage=value) for n, value in [(3, 0.3), (1, 0.5), (2, NAN)]]
TWO = [row(interval=n, 主机=host, coverage=0.1 * n) for n in (1, 2) for host in ("种子", "openclaw")]
THREE = [row(interval=n, unit=unit, scope=scope, coverage=0.5) for n in (1, 2) for unit in "ab" for scope in "cd"]
SWEEPS: list[tuple[str, Sweep, dict[str, str], dict[str, Any]]] = [
    ("one setting", swept(("interval",), ONE, "coverage"), {},
     {"title": "提醒: coverage over interval", "x": "interval", "y": "coverage", "legend": None}),
    ("one value", swept(("interval",), ONE[:1], "coverage"), {}, {"x": "interval", "legend": None}),
    ("only a gap", swept(("interval",), ONE[2:], "coverage"), {}, {"x": "interval", "legend": None}),
    ("two settings", swept(("interval", "主机"), TWO, "coverage"), {},
     {"legend": ["主机 = 种子", "主机 = openclaw"]}),
    ("over Chinese values", swept(("interval", "主机"), TWO, "coverage"), {"x": "主机"},
     {"x": "主机", "legend": ["interval = 1", "interval = 2"]}),
    ("three settings", swept(("interval", "unit", "scope"), THREE, "coverage"), {},
     {"legend": [f"unit = {unit}, scope = {scope}" for unit in "ab" for scope in "cd"]}),
    ("three settings, by one", swept(("interval", "unit", "scope"), THREE, "coverage"), {"by": "scope"},
     {"legend": ["scope = c", "scope = d"]}),
    ("over a metric",
     swept(("interval",), [row(interval=n, coverage=0.1 * n, 次数=9 - n) for n in range(5)], "coverage"), {"x": "次数"},
     {"title": "提醒: coverage over 次数", "x": "次数", "legend": None}),
    ("lists", swept(("events", "unit"), [row(events=["a"], unit=["b"], coverage=0.5)], "coverage"), {"x": "unit"},
     {"legend": ["events = ['a']"]}),
    ("switches", swept(("on",), [row(on=value, coverage=0.5) for value in (True, False)], "coverage"), {}, {"x": "on"}),
    ("simulated", swept(("interval",), [row(interval=1, coverage=0.5, coverage_kind="simulated")], "coverage"), {},
     {"y": "coverage (simulated)"}),
    ("a metric without bounds", swept(("interval",), [{"interval": 1, "次数": 3.0}]), {"y": "次数"}, {"y": "次数"}),
    ("many lines", swept(("interval", "n"), [row(interval=i, n=n, coverage=n / 30) for i in (1, 2) for n in range(30)],
                         "coverage"), {}, {"legend": [f"n = {n}" for n in range(30)]}),
]  # fmt: skip


@pytest.mark.parametrize(("sweep", "asked", "wanted"), [row[1:] for row in SWEEPS], ids=[row[0] for row in SWEEPS])
def test_sweep(sweep: Sweep, asked: dict[str, str], wanted: dict[str, Any]) -> None:
    ax = drawn(charts.plot_sweep(sweep, **asked))
    found = words(ax)
    assert {name: found[name] for name in wanted} == wanted
    assert len(ax.lines) == (len(found["legend"]) if found["legend"] else 1)
    assert found["title"]
    assert found["x"]
    assert found["y"]


def test_a_line_runs_from_low_to_high() -> None:
    ax = charts.plot_sweep(swept(("interval",), ONE, "coverage"))
    assert ax.lines[0].get_xdata().tolist() == [1, 2, 3]
    assert ax.lines[0].get_ydata().tolist() == pytest.approx([0.5, NAN, 0.3], nan_ok=True)
    named = charts.plot_sweep(swept(("mode",), [row(mode=mode, coverage=0.5) for mode in ("z", "a")], "coverage"))
    assert [each.get_text() for each in named.get_xticklabels()] == ["z", "a"], "names keep their order"


def test_lines_differ_without_colour() -> None:
    ax = charts.plot_sweep(swept(("interval", "主机"), TWO, "coverage"))
    assert len({line.get_marker() for line in ax.lines}) == 2
    assert len({to_rgba(line.get_color()) for line in ax.lines}) == 2


FRONTIER = {"按次数": swept(("interval",), [row(interval=n, coverage=0.1 * n, cost=float(n)) for n in (3, 1)]),
            "event": swept(("gap",), [row(gap=1, coverage=NAN, cost=2.0)])}  # fmt: skip


def test_frontier() -> None:
    ax = drawn(charts.plot_frontier(FRONTIER, x="cost", y="coverage", title="花费与覆盖"))
    found = words(ax)
    assert (found["title"], found["x"], found["y"]) == ("花费与覆盖", "cost", "coverage")
    assert found["legend"] == ["按次数", "event"]
    assert ax.containers[0][0].get_xdata().tolist() == [1.0, 3.0]


def test_frontier_of_many_and_of_simulated_figures() -> None:
    many = {
        f"策略 {n}": swept(("n",), [row(n=n, coverage=0.5, coverage_kind="simulated", cost=float(n))])
        for n in range(20)
    }
    found = words(drawn(charts.plot_frontier(many, x="cost", y="coverage", title="t")))
    assert found["y"] == "coverage (simulated)"
    assert found["legend"] == list(many)


@pytest.mark.parametrize(
    ("plot", "error"),
    [
        (lambda: charts.plot_sweep(SWEEPS[0][1], y="coverag"), "plot 'coverag'.*did you mean coverage?"),
        (
            lambda: charts.plot_sweep(SWEEPS[0][1], x="间隔"),
            "plot '间隔'.*expected a column of the sweep; known: interval",
        ),
        (lambda: charts.plot_sweep(SWEEPS[0][1], by="host"), "plot 'host'.*expected a column of the sweep"),
        (lambda: charts.plot_frontier(FRONTIER, x="costs", y="coverage", title=""), "did you mean cost?"),
        (lambda: charts.plot_frontier(FRONTIER, x="cost", y="cover", title=""), "plot 'cover'.*did you mean coverage"),
        (lambda: charts.plot_frontier(FRONTIER, x="coverage", y="cost", title=""), "plot 'cost'"),
        (lambda: charts.plot_frontier({}, x="a", y="b", title=""), "found no sweeps"),
    ],
)
def test_names_that_the_sweep_does_not_have(plot: Callable[[], object], error: str) -> None:
    with pytest.raises(TaskError, match=error) as caught:
        plot()
    assert "\n" not in str(caught.value)
    assert plt.get_fignums() == [], "no half chart is left behind"


# --- what everything has in common --------------------------------------------------------------------------------

ALL: list[Callable[..., Axes]] = [
    lambda **more: charts.plot_metrics(
        {"种子": {"coverage": metric(0.5)}, "b": {}}, task("coverage"), title="提醒", **more
    ),
    lambda **more: charts.plot_differences(pd.DataFrame(DIFFERENCES[1][1], columns=COLUMNS), title="提醒", **more),
    lambda **more: charts.plot_sweep(SWEEPS[4][1], x="主机", **more),
    lambda **more: charts.plot_frontier(FRONTIER, x="cost", y="coverage", title="提醒", **more),
]


@pytest.mark.parametrize("plot", ALL)
def test_on_axes_of_ones_own(plot: Callable[..., Axes]) -> None:
    """Axes that were made before have Chinese labels too."""
    figure, (left, right) = plt.subplots(1, 2)
    assert drawn(plot(ax=right)) is right
    assert left.get_title(loc="left") == ""
    assert plt.get_fignums() == [figure.number]


@pytest.mark.parametrize("plot", ALL)
@pytest.mark.usefixtures("no_chinese_font")
def test_without_a_chinese_font_there_is_one_warning(plot: Callable[..., Axes]) -> None:
    with pytest.warns(
        LabWarning, match="no font with Chinese characters found; install one of Noto Sans CJK SC"
    ) as seen:
        plot()
    assert len(seen) == 1


@pytest.mark.usefixtures("no_chinese_font")
def test_without_chinese_no_font_is_missed() -> None:
    drawn(charts.plot_metrics({"a": {"coverage": metric(0.5)}}, task("coverage"), title="plain"))


def test_results_draw_themselves() -> None:
    data = lab.load_dataset("sessions/mini").where(lang="zh")[:3]
    data = Dataset("会话", data.format, (*data, *lab.load_dataset("sessions/mini").where(lang="en")[:3]))
    config = lab.LabConfig()
    results = lab.evaluate("reminders", data, config)
    assert words(drawn(results.plot()))["ticks"] == list(TASK.headline)
    assert words(drawn(results.plot(by="lang")))["legend"] == ["en", "zh"]
    other = lab.evaluate("reminders", data, lab.LabConfig.preset("seed"))
    assert (
        words(drawn(lab.compare({"种子": other, "调好": results}).plot()))["title"] == "reminders: difference from 种子"
    )
    sweep = lab.sweep("reminders", data, config, {"reminders.min_gap": [1, 2], "reminders.unit": ["llm_call"]})
    assert words(drawn(sweep.plot()))["y"] == "coverage"
    assert words(drawn(sweep.plot(y="p_save")))["y"] == "p_save (simulated)"


def test_a_font_installed_since_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """matplotlib keeps its list of fonts; who follows the warning's advice must not see it again."""
    manager = font_manager.fontManager
    fonts = [font for font in manager.ttflist if font.name in charts._CHINESE_FONTS]
    if not fonts:
        pytest.skip("no Chinese font on this machine")
    files = {font.fname for font in fonts}
    damaged = tmp_path / "damaged.ttf"
    damaged.write_bytes(b"no font at all")
    monkeypatch.setattr(manager, "ttflist", [font for font in manager.ttflist if font.fname not in files])
    monkeypatch.setattr(font_manager, "findSystemFonts", lambda: [str(damaged), fonts[0].fname])
    assert charts._known_chinese_font() is None
    assert charts.chinese_font.__wrapped__() in {font.name for font in fonts}
