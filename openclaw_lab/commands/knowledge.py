"""Commands about knowledge bases: serve, verify."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from openclaw_lab.commands.arguments import Commands, port


def add(commands: Commands) -> None:
    """Add them to the command line."""
    serve = commands.add_parser("serve", help="offer a knowledge base to the OpenClaw plugin over HTTP")
    serve.add_argument("folder", type=Path, help="the knowledge base; made when it is not there")
    serve.add_argument("--host", default="127.0.0.1", help="any but this machine's own needs $OPENCLAW_LAB_TOKEN")
    serve.add_argument("--port", type=port, default=9999, help="port (0: a free one)")
    serve.add_argument("--embedder", help="by name (default: the one of the settings)")
    serve.add_argument("--extractor", default="rules", help="rules, or litellm:MODEL to ask a model (default: rules)")
    serve.set_defaults(command=_serve)

    verify = commands.add_parser("verify", help="check a knowledge base; exit 1 when anything in it differs")
    verify.add_argument("folder", type=Path, help="the knowledge base")
    verify.add_argument("--reindex", metavar="EMBEDDER", default="", help="first give every entry new vectors")
    verify.add_argument("--rebuild", action="store_true", help="first build the index again from the store")
    verify.set_defaults(command=_verify)


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


def _verify(options: argparse.Namespace) -> int:
    from openclaw_lab.knowhub.care import verify_folder

    count, found = verify_folder(options.folder, embedder=options.reindex, rebuild=options.rebuild)
    for problem in found:
        print(problem)
    print(f"{options.folder}: {count:,} entries, {len(found) or 'no'} problem{'' if len(found) == 1 else 's'}")
    return 1 if found else 0
