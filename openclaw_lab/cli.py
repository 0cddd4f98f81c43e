"""The command line: the same actions as a notebook's, with one-line errors.

Exit codes: 0 done; 1 a check failed (a notebook, a gate); 2 wrong usage or input; 130 interrupted.
This is the only module that reads the environment.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn, TextIO

from openclaw_lab import __version__
from openclaw_lab.config import LabConfig
from openclaw_lab.errors import LabError, LabWarning
from openclaw_lab.knobs import mask_secrets, nearest

Command = Callable[[argparse.Namespace], int]


class _Parser(argparse.ArgumentParser):
    """Usage errors are one line, like all others."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    warnings.showwarning = _warn
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a C locale must not turn Chinese output into a crash
            stream.reconfigure(errors="backslashreplace")
    options = _parser().parse_args(arguments)
    command: Command = options.command
    try:
        code = command(options)
        sys.stdout.flush()
        return code
    except LabError as error:
        print(f"openclaw-lab: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("openclaw-lab: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        _drop_output()
        return 0
    except OSError as error:  # a full disk, a folder closed to us
        print(f"openclaw-lab: {LabError(error.filename or 'output', error.strerror or str(error))}", file=sys.stderr)
        _drop_output()
        return 2


def _drop_output() -> None:
    """Let what is still buffered go nowhere: nobody can take it, and Python would complain at its exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _warn(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    if issubclass(category, LabWarning):
        print(f"openclaw-lab: {message}", file=sys.stderr)


def _knowledge_commands(commands: argparse._SubParsersAction[_Parser]) -> None:
    serve = commands.add_parser("serve", help="offer a knowledge base to the OpenClaw plugin over HTTP")
    serve.add_argument("folder", type=Path, help="the knowledge base; made when it is not there")
    serve.add_argument("--host", default="127.0.0.1", help="any but this machine's own needs $OPENCLAW_LAB_TOKEN")
    serve.add_argument("--port", type=_port, default=9999, help="port (0: a free one)")
    serve.add_argument("--embedder", help="by name (default: the one of the settings)")
    serve.add_argument("--extractor", default="rules", help="rules, or litellm:MODEL to ask a model (default: rules)")
    serve.set_defaults(command=_serve)

    verify = commands.add_parser("verify", help="check a knowledge base; exit 1 when anything in it differs")
    verify.add_argument("folder", type=Path, help="the knowledge base")
    verify.add_argument("--reindex", metavar="EMBEDDER", default="", help="first give every entry new vectors")
    verify.add_argument("--rebuild", action="store_true", help="first build the index again from the store")
    verify.set_defaults(command=_verify)

    bench = commands.add_parser("bench", help="what the costly parts cost on this machine")
    bench.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help="import, reminders, injection, redaction, knowhub, skills, agent (all when none)",
    )
    bench.add_argument("--data", default="", help="sessions to measure on (default: the bundled ones)")
    bench.set_defaults(command=_bench)


def _chat_command(commands: argparse._SubParsersAction[_Parser]) -> None:
    chat = commands.add_parser("chat", help="talk to an agent here; /help lists its commands")
    chat.add_argument("message", nargs="*", help="one message, answered and done (default: what is typed)")
    chat.add_argument("--model", default="echo", help="echo, or litellm:PROVIDER/MODEL (default: echo)")
    chat.add_argument("--cassette", type=Path, help="file that keeps the model's answers, and gives them again")
    chat.add_argument("--cassette-only", action="store_true", help="never ask the model")
    chat.add_argument("--session", type=Path, help="file that the session is logged to and resumed from")
    chat.add_argument("--plugin", action="append", default=[], metavar="PLUGIN", help="a folder or a built-in's name")
    chat.add_argument("--skills", action="append", default=[], metavar="FOLDER", help="a folder of skills")
    chat.add_argument("--knowledge", type=Path, help="a knowledge base to recall from and to /remember in")
    chat.add_argument("--root", action="append", default=[], type=Path, help="offer view_file below this folder")
    chat.add_argument("--allow", action="append", default=[], metavar="PROGRAM", help="offer shell with this program")
    chat.add_argument("--host", default="", help="whose hooks fire: seed, openclaw-2026.3 or openclaw-2026.9")
    chat.add_argument("--config", default="tuned", help="seed, tuned, or a lab-config.json (default: tuned)")
    chat.set_defaults(command=_chat)


def _extension_commands(commands: argparse._SubParsersAction[_Parser]) -> None:
    plugins = commands.add_parser("plugins", help="what becomes of plugins; exit 1 when one is at fault")
    plugins.add_argument("folders", nargs="*", metavar="FOLDER", help="a plugin, or a folder of them (default: ours)")
    plugins.add_argument("--config", type=Path, help="a file shaped as ~/.openclaw/openclaw.json")
    plugins.add_argument("--no-code", action="store_true", help="read manifests and configs only")
    plugins.add_argument("--isolated", action="store_true", help="run each plugin in a process of its own")
    plugins.set_defaults(command=_plugins)

    skills = commands.add_parser("skills", help="which skills there are, which can be used, what a message picks")
    skills.add_argument("folders", nargs="*", metavar="FOLDER", help="folders of skills (default: the examples)")
    skills.add_argument("--match", metavar="MESSAGE", help="the skills that a message picks, with the reasons")
    skills.add_argument("--config", default="tuned", help="seed, tuned, or a lab-config.json (default: tuned)")
    skills.set_defaults(command=_skills)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="openclaw-lab", description=__doc__.split("\n", maxsplit=1)[0] if __doc__ else None)
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=_Parser)

    start = commands.add_parser("start", help="open JupyterLab on a working copy of the notebooks")
    start.add_argument(
        "folder", nargs="?", type=Path, default=Path("openclaw-lab"), help="working folder (default: ./openclaw-lab)"
    )
    start.add_argument("--port", type=int, help="port (default: a free one)")
    start.add_argument("--no-browser", action="store_true", help="only print the address")
    start.set_defaults(command=_start)

    run = commands.add_parser("run", help="run notebooks headless; tables, pictures and one HTML report")
    run.add_argument("names", nargs="*", metavar="NAME", help="a notebook's name, its number or a path (default: all)")
    run.add_argument("--out", type=Path, default=Path("openclaw-lab-report"), help="where the results go")
    run.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a parameter of the notebooks")
    run.add_argument("--timeout", type=_positive, default=600, help="seconds a cell may take")
    run.set_defaults(command=_run)

    export = commands.add_parser("export", help="write a config for OpenClaw, with evidence")
    export.add_argument("folder", type=Path, help="a new folder, or one that export wrote")
    export.add_argument("--config", default="tuned", help="seed, tuned, or a lab-config.json (default: tuned)")
    export.add_argument(
        "--set", action="append", default=[], metavar="SETTING=VALUE", help="for example reminders.interval=4"
    )
    export.add_argument(
        "--evidence",
        action="append",
        default=[],
        metavar="TASK=DATA",
        help="measure and attach, for example injection=injection/mini",
    )
    export.set_defaults(command=_export)

    _chat_command(commands)

    data = commands.add_parser("data", help="what data there is and what is in it")
    actions = data.add_subparsers(required=True, metavar="ACTION", parser_class=_Parser)
    listing = actions.add_parser("list", help="bundled datasets, and those under $OPENCLAW_LAB_DATA")
    listing.set_defaults(command=_data_list)
    show = actions.add_parser("show", help="counts and first rows of a dataset")
    show.add_argument("source", help="a bundled name or a path")
    show.add_argument("--rows", type=_count, default=5, help="rows to show")
    show.add_argument("--skip-bad", action="store_true", help="leave bad rows out and count them")
    show.set_defaults(command=_data_show)

    gate = commands.add_parser("gate", help="exit 1 when a metric is significantly worse than recorded")
    gate.add_argument("file", type=Path, metavar="FILE", help="the evidence.json of an export")
    gate.add_argument("--data", help="where the recorded data is now")
    gate.add_argument("--config", help="other settings than the recorded ones: seed, tuned, or a lab-config.json")
    gate.set_defaults(command=_gate)

    _knowledge_commands(commands)
    _extension_commands(commands)
    return parser


def _count(text: str) -> int:
    """A number of things, as an argument."""
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"found {text!r}; expected a whole number")
    return int(text)


def _positive(text: str) -> int:
    if _count(text) == 0:
        raise argparse.ArgumentTypeError("found 0; expected at least 1")
    return int(text)


def _port(text: str) -> int:
    if _count(text) > 65_535:
        raise argparse.ArgumentTypeError(f"found {text}; expected 0 to 65535")
    return int(text)


def _start(options: argparse.Namespace) -> int:
    from openclaw_lab.notebook.server import start

    return start(options.folder, port=options.port, browser=not options.no_browser)


def _run(options: argparse.Namespace) -> int:
    from openclaw_lab.notebook.runner import run

    values = {name: _as_path(value) for name, value in _pairs(options.set, "--set")}
    report = run(options.names, options.out, parameters=values, timeout=options.timeout)
    print(report)
    return 0 if report.ok else 1


def _as_path(text: str) -> str:
    """A value that names something here, as an absolute path: a notebook runs in another folder."""
    try:
        return str(Path(text).absolute()) if Path(text).exists() else text
    except (OSError, ValueError):
        return text


def _export(options: argparse.Namespace) -> int:
    from openclaw_lab.experiments.evaluate import evaluate
    from openclaw_lab.exports.openclaw import export

    config = _config(options.config).with_(_changes(options.set))
    measured = [evaluate(task, data, config) for task, data in _pairs(options.evidence, "--evidence")]
    print(export(config, options.folder, evidence=measured))
    return 0


def _chat(options: argparse.Namespace) -> int:
    from openclaw_lab.agent.terminal import chat

    given = {name: value for name, value in vars(options).items() if name not in ("command", "config")}
    return chat(_config(options.config), dict(os.environ), **given)


def _data_list(_: argparse.Namespace) -> int:
    from openclaw_lab.experiments.dataset import bundled_names

    for name in bundled_names():
        print(name)
    more = os.environ.get("OPENCLAW_LAB_DATA")
    if more:
        root = Path(more)
        for pattern in ("injection/*.json*", "redaction/*.json*", "sessions/*.json*", "*/*_queries.*", "*/queries_*"):
            for path in sorted(root.glob(pattern)):
                print(path)
    return 0


def _data_show(options: argparse.Namespace) -> int:
    from openclaw_lab.experiments.dataset import load_dataset

    data = load_dataset(options.source, on_error="skip" if options.skip_bad else "raise")
    print(data)
    for line in data.summary():
        print(line)
    for sample in data[: options.rows]:
        print(f"- {sample.id}: {data.excerpt(sample)}")
    return 0


def _serve(options: argparse.Namespace) -> int:
    import secrets

    from openclaw_lab.knowhub.guard import LOOPBACK
    from openclaw_lab.knowhub.http import serve
    from openclaw_lab.notebook.signals import stoppable

    token = os.environ.get("OPENCLAW_LAB_TOKEN", "")
    if not token and options.host.lower() not in LOOPBACK:
        token = secrets.token_urlsafe(32)
        print(f"token (shown once; set OPENCLAW_LAB_TOKEN to choose it): {token}", flush=True)
    try:
        with stoppable():
            serve(
                options.folder,
                host=options.host,
                port=options.port,
                embedder=options.embedder,
                token=token,
                extractor=options.extractor,
                ready=lambda address: print(f"KnowHub: {address}", flush=True),
            )
    except KeyboardInterrupt:  # the polite way to stop a server
        print("openclaw-lab: stopped", file=sys.stderr)
    return 0


def _gate(options: argparse.Namespace) -> int:
    from openclaw_lab.experiments.gate import gate

    checks = gate(options.file, data=options.data, config=_config(options.config) if options.config else None)
    for check in checks:
        print(check)
    return 1 if any(check.worse for check in checks) else 0


def _plugins(options: argparse.Namespace) -> int:
    from openclaw_lab.plugins.status import print_status

    return print_status(options.folders, options.config, dict(os.environ), not options.no_code, options.isolated)


def _skills(options: argparse.Namespace) -> int:
    from openclaw_lab.skills.registry import EXAMPLES, SkillRegistry

    registry = SkillRegistry.load(*(options.folders or [EXAMPLES]))
    if options.match is None:
        print(registry.status())
    else:
        found = registry.match(options.match, _config(options.config).skills)
        for match in found:
            print(f"{match.name}  {match.score:.2f}  {match.reason}")
        if not found:
            print("no skill matches")
        for each in registry.problems:
            print(each, file=sys.stderr)
    return 1 if any(each.fatal for each in registry.problems) else 0


def _verify(options: argparse.Namespace) -> int:
    from openclaw_lab.knowhub.care import verify_folder

    count, found = verify_folder(options.folder, embedder=options.reindex, rebuild=options.rebuild)
    for problem in found:
        print(problem)
    print(f"{options.folder}: {count:,} entries, {len(found) or 'no'} problem{'' if len(found) == 1 else 's'}")
    return 1 if found else 0


def _bench(options: argparse.Namespace) -> int:
    from openclaw_lab.bench import bench

    for cost in bench(options.names, options.data):
        print(cost)
    return 0


def _config(name: str) -> LabConfig:
    return LabConfig.preset(name) if name in ("seed", "tuned") else LabConfig.from_json(Path(name))


def _pairs(texts: Sequence[str], option: str) -> list[tuple[str, str]]:
    """`NAME=VALUE` arguments as pairs; what may be a credential is masked in the error."""
    pairs = []
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise LabError(option, mask_secrets(text), "NAME=VALUE")
        pairs.append((name, value))
    return pairs


def _changes(texts: Sequence[str]) -> dict[str, object]:
    """Settings from the command line, each read as its knob's kind."""
    knobs = LabConfig.knobs()
    changes: dict[str, object] = {}
    for name, text in _pairs(texts, "--set"):
        if name not in knobs and name != "reminders.mode":
            raise LabError(
                f"--set {mask_secrets(name)}",
                expected="a known setting",
                todo=nearest(name, [*knobs, "reminders.mode"]),
            )
        changes[name] = knobs[name].parse(text) if name in knobs else text
    return changes


if __name__ == "__main__":
    sys.exit(main())
