"""Names of notebooks in, their tables, pictures and one HTML report out, without a browser.

Each notebook runs in a kernel of this Python. It does not judge the numbers: a notebook fails by an error of its own.
"""

from __future__ import annotations

import asyncio
import base64
import math
import os
import re
import sys
import tempfile
import time
import warnings
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from openclaw_lab import files
from openclaw_lab.errors import ConfigError, DataError, excerpt
from openclaw_lab.knobs import nearest
from openclaw_lab.notebook import parameters, report
from openclaw_lab.notebook.signals import stoppable
from openclaw_lab.notebook.workspace import RECORD, shipped_notebooks

REPORT = "report.html"
_ERROR = 200  # characters of an error in its one line
_FILE_OF_A_CELL = re.compile(r"cell\d{2,}-\d+\.(png|csv)")


@dataclass(frozen=True, slots=True)
class Failure:
    """What stopped a notebook: the number of the code cell (0: none had started) and the error in one line."""

    cell: int
    error: str

    def __str__(self) -> str:
        return f"cell {self.cell}: {self.error}" if self.cell else self.error


@dataclass(frozen=True, slots=True)
class NotebookRun:
    """One executed notebook and the files that it gave."""

    name: str
    seconds: float
    notebook: Path
    pictures: tuple[Path, ...]
    tables: tuple[Path, ...]
    failure: Failure | None


@dataclass(frozen=True, slots=True)
class RunReport:
    """All notebooks of one run, in their order, and the page about them."""

    path: Path
    runs: tuple[NotebookRun, ...]

    @property
    def ok(self) -> bool:
        """Whether every notebook ran to its end."""
        return not self.failures

    @property
    def failures(self) -> dict[str, Failure]:
        """What stopped the notebooks that did not run to their end, by name."""
        return {run.name: run.failure for run in self.runs if run.failure}

    def __str__(self) -> str:
        failed = [f"{name}: {failure}" for name, failure in self.failures.items()]
        return "\n".join([*failed, f"{len(self.runs) - len(failed)} of {len(self.runs)} ran to the end: {self.path}"])


def run(
    names: Sequence[str], out: Path, *, parameters: Mapping[str, str] | None = None, timeout: float = 600
) -> RunReport:
    """Execute notebooks (all shipped ones when none is named) and write their results into the folder `out`.

    A name is a shipped notebook (`00_tour`, `00_tour.ipynb`, `00`) or the path of an .ipynb file. `parameters` override
    the cell tagged `parameters`; `timeout` is in seconds for each cell. A shipped notebook works in `out/NAME/`, one of
    the user's own in the folder where it is. A failed cell ends its notebook, not the run. Raises LabError, before
    anything runs, when a name, a parameter or `out` is wrong.
    """
    out = Path(out).absolute()
    overrides = dict(parameters or {})
    if timeout <= 0:
        raise ConfigError("timeout", timeout, "seconds above 0")
    jobs = [_load(path, out) for path in select(names)]
    _check(jobs, overrides, out)
    done: list[tuple[_Job, NotebookRun]] = []
    with stoppable():
        try:
            for number, job in enumerate(jobs, 1):
                _say(f"[{number}/{len(jobs)}] {job.name} …")
                done.append((job, job.run(timeout)))
                _say(f"[{number}/{len(jobs)}] {job.name} {_verdict(done[-1][1])}")
        finally:  # Ctrl-C too: what is done is kept
            result = _write_report(out, done, [job.name for job in jobs[len(done) :]])
    return result


def select(names: Sequence[str]) -> list[Path]:
    """The notebooks of these names, each once, in the order in which they were named."""
    wanted = [names] if isinstance(names, str) else list(names)
    paths = [_find(name) for name in wanted] or shipped_notebooks()
    unique = list({path.resolve(): path for path in paths}.values())
    stems = [path.stem for path in unique]
    if twice := sorted({stem for stem in stems if stems.count(stem) > 1}):
        raise DataError("notebooks", f"{twice[0]} more than once", "different names", "run them one after the other")
    return unique


def _find(name: str) -> Path:
    shipped = {path.stem: path for path in shipped_notebooks()}
    stem = name.removesuffix(".ipynb")
    if stem in shipped:
        if Path(f"{stem}.ipynb").is_file():
            _say(f"{stem}: the shipped notebook; for the one in this folder, name .{os.sep}{stem}.ipynb")
        return shipped[stem]
    if Path(name).suffix == ".ipynb" and Path(name).is_file():
        return Path(name).absolute()
    fitting = [known for known in shipped if known.startswith(name)] if name else []
    if len(fitting) == 1:
        return shipped[fitting[0]]
    if fitting:
        raise DataError(f"notebook {name}", f"{len(fitting)} that begin so", f"one of {', '.join(fitting)}")
    expected = "a shipped notebook or an existing .ipynb file"
    raise DataError(f"notebook {name}", expected=expected, todo=nearest(stem, shipped))


@dataclass(frozen=True, slots=True)
class _Job:
    """A notebook that is read and ready: where it works and where its results go."""

    name: str
    source: Path
    notebook: Any
    out: Path
    folder: Path

    def run(self, timeout: float) -> NotebookRun:
        """Execute and write; the notebook is written also when it failed or was stopped."""
        begin = time.perf_counter()
        target = self.out / f"{self.name}.ipynb"
        with _writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        try:
            failure = _execute(self.notebook, self.folder, timeout)
        finally:
            with _writing(target):
                files.write_text(target, _as_text(self.notebook))
        with _writing(self.out / self.name):
            made = _write_outputs(self.notebook, self.out / self.name)
        pictures, tables = (tuple(path for path in made if path.suffix == kind) for kind in (".png", ".csv"))
        return NotebookRun(self.name, time.perf_counter() - begin, target, pictures, tables, failure)


def _load(path: Path, out: Path) -> _Job:
    """Read a notebook, without its old outputs."""
    nbformat = _nbformat()
    text = files.read_text(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # cells without ids, from an older Jupyter, are given theirs
        try:
            notebook = nbformat.reads(text, as_version=4)
            nbformat.validate(notebook)
        except Exception as error:  # each way to be wrong has an exception class of its own
            raise DataError(str(path), excerpt(str(error)), "a Jupyter notebook") from None
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook.metadata["language_info"] = {"name": "python", "pygments_lexer": "ipython3", "file_extension": ".py"}
    notebook.metadata.pop("widgets", None)
    return _Job(path.stem, path, notebook, out, out / path.stem if path in shipped_notebooks() else path.parent)


def _check(jobs: Sequence[_Job], overrides: Mapping[str, str], out: Path) -> None:
    """Everything that can be wrong before anything runs; puts the overrides in."""
    if (out / RECORD).exists() or any(out.resolve() == job.source.parent.resolve() for job in jobs):
        raise DataError(str(out), "notebooks that would be overwritten", "another folder for the results")
    parameters.check(overrides, [parameters.defaults(job.notebook, job.name) for job in jobs])
    for job in jobs:
        parameters.inject(job.notebook, overrides, job.name)
    with _writing(out):
        out.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=out).close()


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """A failed write inside the block is one DataError."""
    try:
        yield
    except (FileExistsError, NotADirectoryError):
        raise DataError(str(path), "a file", "a folder", "choose another folder for the results") from None
    except OSError as error:
        found = error.strerror or type(error).__name__
        raise DataError(str(path), found, "a place that can be written", "choose another folder") from None


def _execute(notebook: Any, folder: Path, timeout: float) -> Failure | None:
    """Run the cells in order in a fresh kernel, which is gone afterwards; the outputs are in `notebook`."""
    with (
        tempfile.TemporaryDirectory(prefix="openclaw-lab-", ignore_cleanup_errors=True) as own,
        (Path(own) / "kernel.log").open("w+", encoding="utf-8", errors="replace") as log,
    ):
        place = {"cwd": str(folder), "env": _environment(own), "stdout": log, "stderr": log}
        failure = _in_own_loop(_cells(notebook, _this_python(Path(own)), timeout, place))
        log.seek(0)
        last = log.read().strip().rpartition("\n")[2]
    if failure and failure.cell == 0:  # the kernel did not start: only its own words say why
        return Failure(0, excerpt(f"{failure.error}: {last}", _ERROR))
    return failure


async def _cells(notebook: Any, kernel: Any, timeout: float, place: Mapping[str, Any]) -> Failure | None:
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError

    client = NotebookClient(notebook, km=kernel, timeout=math.ceil(timeout), coalesce_streams=True)
    number = 0
    try:
        await client.async_start_new_kernel(**place)
        await client.async_start_new_kernel_client()
        for index, cell in enumerate(notebook.cells):
            number += cell.cell_type == "code" and bool(cell.source.strip())
            await client.async_execute_cell(cell, index)
        client.set_widgets_metadata()
    except CellExecutionError as error:
        return Failure(number, excerpt(f"{error.ename}: {error.evalue}", _ERROR))
    except CellTimeoutError:
        return Failure(number, f"it took more than {timeout:g} s")
    except RuntimeError as error:  # the kernel ended, or did not start
        return Failure(number, excerpt(str(error), _ERROR))
    finally:
        if client.kc is not None:
            client.kc.stop_channels()
        if await kernel.is_alive():
            await kernel.shutdown_kernel()
        else:
            await kernel.cleanup_resources()
    return None


def _in_own_loop(work: Coroutine[Any, Any, Failure | None]) -> Failure | None:
    """Run in a thread with an event loop of its own: a notebook that calls us has a running one already.

    Ctrl-C cancels the work and waits until it has stopped its kernel.
    """
    begun: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = Future()

    async def cancellable() -> Failure | None:
        task = asyncio.current_task()
        assert task is not None
        begun.set_result((asyncio.get_running_loop(), task))
        return await work

    with ThreadPoolExecutor(1) as pool:
        try:
            done = pool.submit(asyncio.run, cancellable())
            while not wait([done], 0.5).done:  # a wait without a limit cannot be interrupted on Windows
                pass
        except KeyboardInterrupt:
            loop, task = begun.result(timeout=5)
            loop.call_soon_threadsafe(task.cancel)
            raise
        return done.result()


def _this_python(own: Path) -> Any:
    """A kernel of the running interpreter, whatever kernels the user has installed under the same name."""
    from ipykernel.kernelspec import get_kernel_dict
    from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
    from jupyter_client.manager import AsyncKernelManager

    class ThisPython(KernelSpecManager):
        def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
            return KernelSpec(**get_kernel_dict())

    return AsyncKernelManager(kernel_spec_manager=ThisPython(), connection_file=str(own / "kernel.json"))


def _environment(own: str) -> dict[str, str]:
    """The kernel's environment: pictures go into the notebook, and the user's IPython start-up files are left out."""
    inline = {"MPLBACKEND": "module://matplotlib_inline.backend_inline", "IPYTHONDIR": own}
    return {**os.environ, **inline, "PYDEVD_DISABLE_FILE_VALIDATION": "1"}


def _as_text(notebook: Any) -> str:
    return str(_nbformat().writes(notebook)) + "\n"


def _nbformat() -> Any:
    import nbformat

    return nbformat


def _write_outputs(notebook: Any, folder: Path) -> list[Path]:
    """Write each picture and each table; those of an earlier run that are no longer made are removed."""
    made = {folder / name: data for name, data in _outputs(notebook)}
    for path, data in made.items():
        files.write_bytes(path, data)
    for path in folder.glob("cell*"):
        if path not in made and _FILE_OF_A_CELL.fullmatch(path.name):
            path.unlink()
    return list(made)


def _outputs(notebook: Any) -> Iterator[tuple[str, bytes]]:
    """`cell03-1.png`: the first output of the third code cell."""
    code = [cell for cell in notebook.cells if cell.cell_type == "code" and cell.source.strip()]
    for number, cell in enumerate(code, 1):
        for place, output in enumerate(cell.outputs, 1):
            data = output.get("data", {})
            if "image/png" in data:
                yield f"cell{number:02}-{place}.png", base64.b64decode(data["image/png"])
            if "text/csv" in data:
                yield f"cell{number:02}-{place}.csv", data["text/csv"].encode("utf-8")


def _write_report(out: Path, done: Sequence[tuple[_Job, NotebookRun]], left: Sequence[str]) -> RunReport:
    """One page about the notebooks that ran; `left` are those that a stop kept from running."""
    runs = tuple(run for _, run in done)
    pages = [_page(job, run, out) for job, run in done]
    with _writing(out / REPORT):
        files.write_text(out / REPORT, report.render(pages, left))
    return RunReport(out / REPORT, runs)


def _page(job: _Job, run: NotebookRun, out: Path) -> report.Page:
    links = [path.relative_to(out).as_posix() for path in (run.notebook, *run.tables)]
    status = str(run.failure) if run.failure else "ok"
    return report.Page(run.name, job.notebook, job.source.parent, run.seconds, status, links)


def _verdict(run: NotebookRun) -> str:
    return f"failed in {run.failure}" if run.failure else f"ok, {run.seconds:.1f} s"


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
