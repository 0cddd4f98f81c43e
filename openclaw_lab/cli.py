"""The command line: the same actions as a notebook's, with one-line errors.

Exit codes: 0 done; 1 a check failed (a notebook, a gate); 2 wrong usage or input; 130 interrupted.
Only this and its commands read the environment.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import TextIO

from openclaw_lab import __version__
from openclaw_lab.commands import agents, catalogue, experiments, knowledge, notebooks, tuning
from openclaw_lab.commands.arguments import Parser
from openclaw_lab.errors import LabError, LabWarning

Command = Callable[[argparse.Namespace], int]


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
    except KeyboardInterrupt as error:
        print(f"openclaw-lab: {str(error) or 'interrupted'}", file=sys.stderr)
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


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="openclaw-lab", description=__doc__.split("\n", maxsplit=1)[0] if __doc__ else None)
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=Parser)
    for group in (notebooks, tuning, experiments, agents, catalogue, knowledge):
        group.add(commands)
    return parser


if __name__ == "__main__":
    sys.exit(main())
