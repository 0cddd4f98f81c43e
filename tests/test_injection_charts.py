"""Charts of the injection task: titles say the finding, gaps and Chinese draw, lines and bars differ without colour."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import matplotlib
import pytest

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba

from openclaw_lab.errors import TaskError
from openclaw_lab.experiments.curves import Curves, pr, roc, together
from openclaw_lab.experiments.dataset import Dataset, Sample
from openclaw_lab.experiments.evaluate import Results, evaluate
from openclaw_lab.experiments.table import Table
from openclaw_lab.injection.verdict import Detection
from openclaw_lab.ui import charts
from openclaw_lab.ui.curves import plot_bars, plot_curves, plot_robustness

pytestmark = (
    []
    if charts.chinese_font()
    else [
        pytest.mark.filterwarnings("ignore:no font with Chinese:openclaw_lab.errors.LabWarning"),
        pytest.mark.filterwarnings("ignore:Glyph .* missing:UserWarning"),
    ]
)
NAN = math.nan


@pytest.fixture(autouse=True)
def closed_figures() -> Iterator[None]:
    """Nothing is left open, and no test changes the settings of the next."""
    with matplotlib.rc_context():
        yield
        plt.close("all")


def drawn(ax: Axes) -> Axes:
    """The chart, rendered; a character without a glyph is a warning and so an error."""
    ax.figure.canvas.draw()
    return ax


def title(ax: Axes) -> str:
    return str(ax.get_title(loc="left"))


def legend(ax: Axes) -> list[str]:
    box = ax.get_legend()
    return [each.get_text() for each in box.get_texts()] if box else []


def results(**datasets: str) -> Results:
    """Scores by dataset: "1 0.9 0.4 / 0.5 0.1" are those of the attacks and of the harmless texts."""
    samples = []
    for name, scores in datasets.items():
        for label, part in zip((1, 0), scores.split("/"), strict=True):
            samples += [Sample(f"{name}{label}{n}", score, label, name) for n, score in enumerate(part.split())]
    detect = lambda text: Detection(float(text), False)  # noqa: E731
    return evaluate("injection", Dataset("made", "injection", tuple(samples)), detector=detect)


TWO = {"英文": "0.9 0.4 / 0.5 0.1", "中文": "0.8 0.3 / 0.2 0.1"}


@pytest.mark.parametrize(
    ("curves", "wanted", "lines"),
    [
        (roc(results(**TWO)), "ROC: area 0.750 (英文) to 1.000 (中文)", ["中文  1.000", "英文  0.750"]),
        (pr(results(**TWO)), "PR: area 0.833 (英文) to 1.000 (中文)", ["中文  1.000", "英文  0.833"]),
        (roc(results(one="0.9 / 0.1")), "ROC: area 1.000 on one", ["one  1.000"]),
        (roc(results(gap="/ 0.1", one="0.9 / 0.1")), "ROC: area 1.000 on one", ["one  1.000"]),
        (roc(results(gap="/ 0.1")), "ROC: no dataset has attacks and harmless texts", []),
        (together({"种子": roc(results(one="0.9 / 0.1")), "rules": roc(results(one="0.1 / 0.9"))}),
         "ROC: area 0.000 (rules: one) to 1.000 (种子: one)", ["种子: one  1.000", "rules: one  0.000"]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("log", [False, True])
def test_curves(curves: Curves, wanted: str, lines: list[str], log: bool) -> None:
    ax = drawn(curves.plot(log=log))
    assert title(ax) == wanted
    references = ["chance  0.500", "1 % false alarms"] if curves.kind == "roc" and lines else []
    assert [each for each in legend(ax) if "%" not in each and "chance" not in each] == lines
    assert set(legend(ax)) - set(lines) <= set(references)
    assert ax.get_xlabel()
    assert ax.get_ylabel()


def test_the_line_of_the_limit() -> None:
    ax = drawn(plot_curves(roc(results(**TWO)), fpr=0.05))
    assert "5 % false alarms" in legend(ax)
    assert [0.05, 0.05] in [list(line.get_xdata()) for line in ax.lines]


def test_a_logarithmic_axis_shows_what_raises_no_alarm_at_its_left_edge() -> None:
    ax = drawn(roc(results(one="0.9 0.4 / 0.5 " + "0.1 " * 99)).plot(log=True))
    assert ax.get_xscale() == "log"
    line = ax.lines[0]
    assert line.get_xdata()[0] == 0.5 / 100
    assert line.get_drawstyle() == "steps-post", "nothing between two thresholds can be had"
    assert ax.get_xlim()[0] < 0.5 / 100


def test_many_lines_differ_without_colour() -> None:
    many = {f"集 {n:02}": "0.9 0.4 / 0.5 0.1" for n in range(15)}
    ax = drawn(roc(results(**many)).plot())
    looks = {(line.get_marker(), line.get_linestyle()) for line in ax.lines[:15]}
    assert len(looks) == 15


@pytest.mark.parametrize("style", ["default", "dark_background"])
def test_references_show_on_a_dark_background(style: str) -> None:
    with plt.style.context(style):
        ax = drawn(roc(results(**TWO)).plot())
        ink, paper = to_rgba(matplotlib.rcParams["text.color"]), to_rgba(ax.get_facecolor())
        assert {to_rgba(line.get_color()) for line in ax.lines[-2:]} == {ink}
        assert ink != paper


# --- bars ---------------------------------------------------------------------------------------------------------


def table(*rows: list[Any], columns: str) -> Table:
    return Table.of_rows(rows, columns.split(), "t")


BARS = table(["中文", "seed", 0.1, 0.0, 0.2], ["中文", "rules", 0.6, 0.5, 0.7], ["en", "seed", NAN, NAN, NAN],
             columns="dataset detector recall recall_low recall_high")  # fmt: skip


def test_bars() -> None:
    ax = drawn(plot_bars(BARS, "recall", group="detector"))
    assert title(ax) == "recall: 0.100 (中文, seed) to 0.600 (中文, rules)"
    assert [each.get_text() for each in ax.get_yticklabels()] == ["中文", "en"]
    assert legend(ax) == ["seed", "rules"]
    assert ax.get_xlabel() == "recall and its 95 % interval"
    assert len({bar.get_hatch() for bar in ax.patches}) == 2, "told apart without colour"
    seed = ax.containers[1]
    assert [bar.get_width() for bar in seed] == pytest.approx([0.1, NAN], nan_ok=True)


def test_bars_without_groups_or_values() -> None:
    one = table(["en", 0.5], columns="lang fpr")
    ax = drawn(plot_bars(one, "fpr"))
    assert (title(ax), legend(ax)) == ("fpr: 0.500 (en)", [])
    assert title(drawn(plot_bars(table(["en", NAN], columns="lang fpr"), "fpr"))) == "fpr: nothing to measure"
    assert title(drawn(plot_bars(table(columns="lang fpr"), "fpr"))) == "fpr: nothing to measure"
    assert title(drawn(plot_bars(one, "fpr", title="误报"))) == "误报"
    with pytest.raises(TaskError, match="did you mean fpr"):
        plot_bars(one, "fprs")


def test_bars_show_their_intervals() -> None:
    ax = plot_bars(BARS, "recall", group="detector")
    (errors,) = ax.containers[0].lines[2]
    assert errors.get_segments()[0][:, 0].tolist() == pytest.approx([0.0, 0.2])


def test_robustness() -> None:
    one = table(
        ["mini", "base64", 0.5, 0.1], ["mini", "空格", 0.5, 0.5], columns="dataset disguise recall_plain recall"
    )
    ax = drawn(plot_robustness(one))
    assert title(ax) == "base64 costs most recall: 0.500 plain, 0.100 in disguise"
    assert legend(ax) == ["plain", "in disguise"]
    assert [each.get_text() for each in ax.get_yticklabels()] == ["base64", "空格"]


def test_robustness_of_several_sets_and_of_none() -> None:
    two = table(["中文", "leet", 0.5, 0.6], ["en", "leet", NAN, NAN], columns="dataset disguise recall_plain recall")
    ax = drawn(plot_robustness(two))
    assert title(ax) == "no disguise costs recall"
    assert [each.get_text() for each in ax.get_yticklabels()] == ["中文: leet", "en: leet"]
    assert (
        title(drawn(plot_robustness(table(columns="dataset disguise recall_plain recall"))))
        == "no disguise costs recall"
    )
    with pytest.raises(TaskError, match="a column of the table"):
        plot_robustness(table(columns="dataset recall"))
