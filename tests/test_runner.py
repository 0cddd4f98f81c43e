"""Headless runs of tiny notebooks in real kernels: the files, the report, the failures, the parameters."""

from __future__ import annotations

import ast
import csv
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import unquote

import nbformat
import psutil
import pytest
from bs4 import BeautifulSoup
from nbformat import NotebookNode, v4

import openclaw_lab as lab
from openclaw_lab import files
from openclaw_lab.errors import ConfigError, DataError
from openclaw_lab.notebook import report
from openclaw_lab.notebook.parameters import literal
from openclaw_lab.notebook.runner import run, select

RESULT = """
class Result:
    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/plain": "a result", "text/html": "<b>a result</b>", "text/csv": "name,值\\nrecall,0.5\\n"}
"""
PICTURE = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()"
HOSTILE = """
from IPython.display import HTML, SVG, Javascript, display
display(HTML("<script src='https://bad.example/x.js'></script><img src=https://bad.example/x.png onerror=alert(1)>"))
display(HTML("<link rel=stylesheet href=//bad.example/x.css><style>@import 'https://bad.example/y.css';</style>"))
display(HTML("<p style='background: url(https://bad.example/z.png)'>kept</p><iframe src=http://bad.example></iframe>"))
display(HTML("<a href='javascript:alert(1)'>a</a> <a href='https://fine.example/'>b</a> <h2 id='Data'>x</h2>"))
display(SVG("<svg xmlns='http://www.w3.org/2000/svg'><image href='https://bad.example/s.png'/></svg>"))
display(Javascript("window.location = 'https://bad.example'"))
print("<script src='https://shown.example/as-text.js'></script>")
"""


def notebook(*sources: str, tags: tuple[str, ...] = ()) -> str:
    """A notebook whose first cell is a heading; the first code cell gets the tags."""
    cells = [v4.new_markdown_cell("# Does it *run*?\n\n## Data\n\n$x^2$"), *map(v4.new_code_cell, sources)]
    if tags:
        cells[1].metadata["tags"] = list(tags)
    return str(nbformat.writes(v4.new_notebook(cells=cells)))


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "shipped"
    home.mkdir()
    (home / "00_tour.ipynb").write_text(notebook(RESULT, "Result()", PICTURE, "open('left.txt', 'w').write('x')"))
    (home / "01_fails.ipynb").write_text(notebook("print('before')", "", "1 / 0", "print('after')"))
    (home / "01_other.ipynb").write_text(notebook("N = 1\nWHO = 'me'", "print(N, WHO)", tags=("parameters",)))
    monkeypatch.setattr(files, "bundled", lambda name: home)
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    return home


def read(path: Path) -> NotebookNode:
    return nbformat.read(path, as_version=4)


def printed(path: Path) -> str:
    return "".join(out.get("text", "") for cell in read(path).cells for out in cell.get("outputs", []))


def own(tmp_path: Path, *sources: str, name: str = "mine.ipynb", tags: tuple[str, ...] = ()) -> str:
    path = tmp_path / "own" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(notebook(*sources, tags=tags))
    return str(path)


def test_every_shipped_notebook_gives_its_files_and_a_failure_does_not_stop_the_rest(
    shipped: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    stale = out / "00_tour" / "cell09-1.png"
    stale.parent.mkdir(parents=True)
    stale.write_text("of an earlier run")
    (out / "00_tour" / "mine.png").write_text("kept")
    report = run([], out)

    assert str(report).splitlines() == [
        "01_fails: cell 2: ZeroDivisionError: division by zero",
        f"2 of 3 ran to the end: {out / 'report.html'}",
    ]
    assert [done.name for done in report.runs] == ["00_tour", "01_fails", "01_other"]
    assert not report.ok
    assert {name: str(failure) for name, failure in report.failures.items()} == {
        "01_fails": "cell 2: ZeroDivisionError: division by zero"
    }
    tour = report.runs[0]
    assert [path.relative_to(out).as_posix() for path in tour.tables] == ["00_tour/cell02-1.csv"]
    assert list(csv.reader(tour.tables[0].read_text("utf-8").splitlines())) == [["name", "值"], ["recall", "0.5"]]
    assert [path.relative_to(out).as_posix() for path in tour.pictures] == ["00_tour/cell03-1.png"]
    assert tour.pictures[0].read_bytes().startswith(b"\x89PNG")
    assert sorted(path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()) == [
        "00_tour.ipynb",
        "00_tour/cell02-1.csv",
        "00_tour/cell03-1.png",
        "00_tour/left.txt",
        "00_tour/mine.png",
        "01_fails.ipynb",
        "01_other.ipynb",
        "report.html",
    ]
    assert printed(out / "01_fails.ipynb") == "before\n"
    assert len(list(shipped.iterdir())) == 3
    check_page(report.path)
    progress = capfd.readouterr()
    assert progress.out == ""
    assert re.search(r"\[1/3\] 00_tour ok, \d+\.\d s", progress.err)
    assert "[2/3] 01_fails failed in cell 2: ZeroDivisionError: division by zero" in progress.err
    assert "Traceback" not in progress.err


def check_page(path: Path) -> None:
    soup = BeautifulSoup(path.read_text("utf-8"), "html.parser")
    rows = [
        [cell.get_text() for cell in row.find_all("td")] for row in soup.select("table.contents")[0].select("tr")[1:]
    ]
    assert [row[:3] for row in rows] == [
        ["00_tour", "Does it *run*?", "ok"],
        ["01_fails", "Does it *run*?", "cell 2: ZeroDivisionError: division by zero"],
        ["01_other", "Does it *run*?", "ok"],
    ]
    assert "2 of 3 ran to the end" in soup.get_text()
    assert [tag["src"][:22] for tag in soup.find_all("img")] == ["data:image/png;base64,"]
    alone(soup, path.parent)


def alone(soup: BeautifulSoup, out: Path) -> None:
    """Nothing on the page runs or is loaded, and its links lead somewhere."""
    targets = {tag["id"] for tag in soup.find_all(id=True)}
    assert {tag["href"][1:] for tag in soup.select("a[href^='#']")} <= targets
    assert all((out / unquote(tag["href"])).is_file() for tag in soup.select(".contents a:not([href^='#'])"))
    assert soup.find_all(["script", "link", "iframe", "object", "embed"]) == []
    assert "default-src 'none'" in str(soup.find("meta", {"http-equiv": "Content-Security-Policy"}))
    for tag in soup.find_all(True):
        for name, value in tag.attrs.items():
            assert not name.startswith("on"), tag
            if name != "href" and not name.startswith("xmlns"):
                assert not re.search(r"(https?:)?//\w", re.sub(r"data:\S+", "", str(value))), tag
    for style in soup.find_all("style"):
        assert not re.search(r"https?:|@import|url\((?!data:)", style.get_text())
    ids = [tag["id"] for tag in soup.find_all(id=True)]
    assert len(ids) == len(set(ids))


def test_a_report_says_what_it_was_made_with(tmp_path: Path) -> None:
    mine = own(tmp_path, "import openclaw_lab as lab\ndata = lab.load_dataset('injection/mini')[:40]\nprint(data)")
    text = run([mine], tmp_path / "out").path.read_text("utf-8")
    made = text[text.index("id='made-with'") :]
    data = lab.load_dataset("injection/mini")[:40]
    assert f"<th>openclaw-lab</th><td>{lab.__version__}</td>" in made
    assert "<th>numpy</th>" in made
    assert f"<th>injection/mini</th><td>40 injection rows</td><td><code>{data.hash}</code></td>" in made


def test_a_report_of_hostile_output_loads_nothing(shipped: Path, tmp_path: Path) -> None:
    widget = "import ipywidgets\nipywidgets.IntSlider()"
    mine = own(tmp_path, HOSTILE, widget, name="a b&<i>.ipynb")
    report = run([mine, "00"], tmp_path / "out")
    assert report.ok
    text = report.path.read_text("utf-8")
    assert "bad.example" not in re.sub(r"<div class=.*?highlight.*?</div>", "", text, flags=re.DOTALL)
    assert "interactive control: open the notebook in JupyterLab" in text
    soup = BeautifulSoup(text, "html.parser")
    alone(soup, report.path.parent)
    assert soup.select("a[href='https://fine.example/']")
    assert "<script src='https://shown.example/as-text.js'></script>" in soup.get_text()
    assert (tmp_path / "out" / "a b&<i>.ipynb").is_file()


def test_a_notebook_of_the_user_works_in_its_own_folder_with_this_python(shipped: Path, tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "rows.txt").write_text("mine")
    mine = own(tmp_path, "import sys, os\nprint(open('rows.txt').read(), sys.executable, os.environ['IPYTHONDIR'])")
    before = Path(mine).read_bytes()
    report = run([mine], tmp_path / "out")
    text, executable, ipython = printed(report.runs[0].notebook).split()
    assert (text, executable) == ("mine", sys.executable)
    assert not Path(ipython).exists()
    assert Path(mine).read_bytes() == before


SELECTED = [
    (["00_tour"], ["00_tour"]),
    (["00_tour.ipynb", "00"], ["00_tour"]),
    (["01_o", "00"], ["01_other", "00_tour"]),
    ("00", ["00_tour"]),
    ([], ["00_tour", "01_fails", "01_other"]),
]


@pytest.mark.parametrize(("names", "found"), SELECTED)
def test_select(shipped: Path, names: list[str], found: list[str]) -> None:
    assert [path.stem for path in select(names)] == found
    assert all(path.parent == shipped for path in select(names))


def test_select_tells_the_shipped_notebook_from_the_users(shipped: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("00_tour.ipynb").write_text(notebook("1"))
    assert select(["00_tour.ipynb"]) == [shipped / "00_tour.ipynb"]
    assert f"name .{os.sep}00_tour.ipynb" in capsys.readouterr().err
    assert select([f".{os.sep}00_tour.ipynb"]) == [Path.cwd() / "00_tour.ipynb"]


WRONG_NAMES = [
    ("00_tuor", "did you mean 00_tour?"),
    ("00_tuor.ipynb", "did you mean 00_tour?"),
    ("", "known: 00_tour, 01_fails, 01_other"),
    ("../other.ipynb", "expected a shipped notebook or an existing .ipynb file"),
    ("01", "found '2 that begin so'; expected one of 01_fails, 01_other"),
]


@pytest.mark.parametrize(("name", "message"), WRONG_NAMES)
def test_a_wrong_name_is_one_line(shipped: Path, tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(DataError) as caught:
        run(["00_tour", name], tmp_path / "out")
    assert message.replace("'", "") in str(caught.value).replace("'", "")
    assert not (tmp_path / "out").exists()


def test_two_notebooks_of_one_name_are_refused(shipped: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="00_tour more than once"):
        select(["00_tour", own(tmp_path, "1", name="00_tour.ipynb")])


@pytest.mark.parametrize("content", ["", "{}", "[]", "not json", '{"cells": 3, "nbformat": 4}', '{"nbformat": 99}'])
def test_a_file_that_is_no_notebook(shipped: Path, tmp_path: Path, content: str) -> None:
    (tmp_path / "x.ipynb").write_text(content)
    with pytest.raises(DataError, match="expected a Jupyter notebook") as caught:
        run([str(tmp_path / "x.ipynb")], tmp_path / "out")
    assert "\n" not in str(caught.value)


def test_a_notebook_from_an_older_jupyter_runs(shipped: Path, tmp_path: Path) -> None:
    cell = '{"cell_type": "code", "source": ["print(1)"], "outputs": [], "execution_count": 7, "metadata": {}}'
    rest = '"metadata": {}, "nbformat": 4, "nbformat_minor": 5'
    (tmp_path / "old.ipynb").write_text(f'{{"cells": [{cell}], {rest}}}')
    assert printed(run([str(tmp_path / "old.ipynb")], tmp_path / "out").runs[0].notebook) == "1\n"


def test_results_never_overwrite_notebooks(shipped: Path, tmp_path: Path) -> None:
    mine = own(tmp_path, "1")
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / ".openclaw-lab.json").write_text("{}")
    for out in (Path(mine).parent, tmp_path / "copy"):
        with pytest.raises(DataError, match="another folder for the results"):
            run([mine], out)
    with pytest.raises(DataError, match="another folder for the results"):
        run(["00_tour"], shipped)


def test_a_file_in_the_place_of_the_results(shipped: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for out in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(DataError, match="found a file; expected a folder"):
            run(["00_tour"], out)


def test_parameters_replace_the_defaults(shipped: Path, tmp_path: Path) -> None:
    report = run(["00_tour", "01_other"], tmp_path / "out", parameters={"N": "5", "WHO": "__import__('os').getcwd()"})
    done = read(report.runs[1].notebook)
    assert [cell.metadata.get("tags") for cell in done.cells[1:3]] == [["parameters"], ["injected-parameters"]]
    assert printed(report.runs[1].notebook) == "5 __import__('os').getcwd()\n"
    again = run([str(report.runs[1].notebook)], tmp_path / "again", parameters={"WHO": "you"})
    assert printed(again.runs[0].notebook) == "1 you\n"


WRONG_PARAMETERS = [
    (["01_other"], {"n": "5"}, "known: N, WHO"),
    (["01_other"], {"WHOM": "5"}, "did you mean WHO?"),
    (["01_other"], {"N": "five"}, "expected a number, as in N=1"),
    (["00_tour"], {"N": "5"}, "no chosen notebook has a cell tagged 'parameters'"),
]


@pytest.mark.parametrize(("names", "overrides", "message"), WRONG_PARAMETERS)
def test_a_wrong_parameter_is_one_line(
    shipped: Path, tmp_path: Path, names: list[str], overrides: dict[str, str], message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        run(names, tmp_path / "out", parameters=overrides)
    assert message in str(caught.value)
    assert not (tmp_path / "out").exists()


# default in the notebook, text given -> what is written into the notebook
LITERALS = [
    ("1", "2", "2"),
    ("1", "0.5", "0.5"),
    ("0.5", "1e-3", "0.001"),
    ("True", "False", "False"),
    ("None", "[1, 'a']", "[1, 'a']"),
    ("None", "print(1)", "'print(1)'"),
    ("'a'", "20260101", "'20260101'"),
    ("'a'", "'b'", "'b'"),
    ("'a'", "值 'quoted'\n", "\"值 'quoted'\\n\""),
    ("Path('x')", "3", "3"),
    ("Path('x')", "y", "'y'"),
    ("None", "1e999", "'1e999'"),
    ("None", "(" * 999, repr("(" * 999)),
]


@pytest.mark.parametrize(("default", "text", "written"), LITERALS)
def test_a_text_becomes_a_literal(default: str, text: str, written: str) -> None:
    assert literal("NAME", text, ast.parse(default, mode="eval").body) == written


@pytest.mark.parametrize(("default", "text"), [("True", "false"), ("True", "1"), ("1", "True"), ("1", "x"), ("1", "")])
def test_a_text_of_another_kind_than_the_default_is_refused(default: str, text: str) -> None:
    with pytest.raises(ConfigError, match="parameter NAME"):
        literal("NAME", text, ast.parse(default, mode="eval").body)


def test_a_parameters_cell_that_is_no_python(shipped: Path, tmp_path: Path) -> None:
    mine = own(tmp_path, "%matplotlib inline", tags=("parameters",))
    with pytest.raises(DataError, match="expected plain assignments"):
        run([mine], tmp_path / "out", parameters={"N": "5"})


STOPPED = [
    ("import time\ntime.sleep(60)", "it took more than 2 s"),
    ("import os\nos._exit(3)", "Kernel died"),
    ("raise ValueError('one\\ntwo ' + 'x' * 1000)", "ValueError: one two xxx"),
]


@pytest.mark.parametrize(("source", "error"), STOPPED)
def test_a_cell_that_hangs_dies_or_shouts(shipped: Path, tmp_path: Path, source: str, error: str) -> None:
    mine = own(tmp_path, "print('before')", source)
    report = run([mine], tmp_path / "out", timeout=2)
    failure = report.failures["mine"]
    assert failure.cell == 2
    assert failure.error.startswith(error)
    assert len(failure.error) <= 200
    assert "\n" not in failure.error
    assert printed(tmp_path / "out" / "mine.ipynb").startswith("before")
    assert failure.error[:20] in report.path.read_text("utf-8")


def test_a_kernel_that_does_not_start_says_why(shipped: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ipykernel.kernelspec.get_kernel_dict", lambda: {"argv": [sys.executable, "-c", "1 / 0"]})
    failure = run(["00"], tmp_path / "out").failures["00_tour"]
    assert failure.cell == 0
    assert str(failure).endswith("ZeroDivisionError: division by zero")


def test_a_timeout_must_be_above_zero(shipped: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="seconds above 0"):
        run(["00"], tmp_path / "out", timeout=0)


PROGRAM = """
import sys
from pathlib import Path
import openclaw_lab as lab
from openclaw_lab import files
from openclaw_lab.notebook import runner
files.bundled = lambda name: Path(sys.argv[1])
try:
    runner.run(["quick", "slow"], Path(sys.argv[2]))
except KeyboardInterrupt:
    sys.exit(130)
"""


@pytest.mark.skipif(os.name != "posix", reason="signals are sent as on POSIX")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_run_leaves_no_kernel_and_keeps_what_is_done(tmp_path: Path, number: signal.Signals) -> None:
    own(tmp_path, "print('done')", name="quick.ipynb")
    started = tmp_path / "started"
    own(tmp_path, f"open({str(started)!r}, 'w').close()\nimport time\ntime.sleep(60)", name="slow.ipynb")
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "own"), str(tmp_path / "out")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            until = time.monotonic() + 60
            while not started.exists() and process.poll() is None and time.monotonic() < until:
                time.sleep(0.05)
            kernels = psutil.Process(process.pid).children(recursive=True)
            process.send_signal(number)
            _, error = process.communicate(timeout=30)
        finally:
            process.kill()
    assert process.returncode == 130
    assert kernels
    assert psutil.wait_procs(kernels, timeout=5)[1] == []
    assert error.splitlines()[-1] == "[2/2] slow …"
    assert printed(tmp_path / "out" / "quick.ipynb") == "done\n"
    assert (tmp_path / "out" / "slow.ipynb").is_file()
    assert "1 of 2 ran to the end; stopped before slow had ended" in (tmp_path / "out" / "report.html").read_text()


def test_it_works_inside_a_running_event_loop(shipped: Path, tmp_path: Path) -> None:
    import asyncio

    async def inside() -> bool:
        return run(["00"], tmp_path / "out").ok

    assert asyncio.run(inside())


def test_a_finished_progress_bar_leaves_nothing() -> None:
    bar = "sweep reminders:  33%|###3      | 1/3 [00:01<00:02,  1.18s/setting]"
    widget = {"application/vnd.jupyter.widget-view+json": {"model_id": "x"}, "text/plain": bar}
    assert report._is_progress({"output_type": "display_data", "data": widget})
    assert report._is_progress({"output_type": "stream", "name": "stderr", "text": [bar]})
    assert not report._is_progress({"output_type": "stream", "name": "stdout", "text": "done 33% | 1/3"})
    assert not report._is_progress({"output_type": "display_data", "data": {**widget, "text/plain": "IntSlider()"}})
