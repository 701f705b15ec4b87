"""`agentlab open [--dir DIR] [--live] [--port N] [-o json|yaml]`: the run page of a cluster."""

from __future__ import annotations

import argparse
import contextlib
import errno
import importlib
import os
import sys
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import LabError
from ..state.events import FILE
from ..terminal import write_line
from .cluster import add_cluster, find
from .output import add_output, message, print_failure, print_output

if TYPE_CHECKING:
    from ..report.page.server import Server


def main(argv: list[str]) -> int:
    """Show the page of a run, or serve it with its changes until Ctrl-C."""
    parser = argparse.ArgumentParser(
        prog="agentlab open",
        description="Write the run page of a cluster, report/index.html of its run directory, and show it in the browser.",
    )
    add_cluster(parser)
    parser.add_argument(
        "--dir",
        type=Path,
        metavar="DIR",
        help="the directory of any installation, such as ocp/CLUSTER of dev-scripts, in place of a cluster's run directory",
    )
    parser.add_argument("--live", action="store_true", help="serve it on 127.0.0.1 and follow the run, until Ctrl-C")
    parser.add_argument("--port", type=int, default=0, help="port for --live (default: a free one)")
    add_output(parser, "print the page's path (null with --live) and its URL as JSON or YAML, and open no browser")
    args = parser.parse_args(argv)
    try:
        if not 0 <= args.port < 1 << 16:
            raise LabError(f"--port is {args.port}: must be from 0 to 65535")
        directory = _directory(args.dir) if args.dir else find(args.cluster).directory
        if not args.live:
            from ..report import page

            page.write(directory)
            path = directory / page.REPORT / page.PAGE
            _show(str(path), path.as_uri(), path, args.output)
            return 0
        with _listen(directory, args.port) as server:
            name = args.dir or f"cluster {args.cluster}"
            _show(f"{server.url}  the run page of {name}, until Ctrl-C", server.url, None, args.output)
            with contextlib.suppress(KeyboardInterrupt):
                server.serve_forever()
        return 0
    except (LabError, ValueError, OSError) as error:
        return print_failure(error)


def _directory(path: Path) -> Path:
    if not path.is_dir():
        raise LabError(f"--dir {path}: there is no such directory")
    return path.absolute()


def load() -> None:
    """Import what writes pages, which takes as long as the other imports of a verb."""
    importlib.import_module("..report.page", __package__)


def write_after_run(run_dir: Path) -> None:
    """Write the page of a run, and print where it is. Errors are messages: the status of the verb stays that of its playbook."""
    from ..report import page

    path = run_dir / page.REPORT / page.PAGE
    try:
        if (run_dir / FILE).exists():
            page.write(run_dir)
    except (OSError, ValueError) as error:
        write_line(f"agentlab: the run page cannot be written: {message(error)}", sys.stderr)
    if path.exists():
        with contextlib.suppress(SystemExit):  # the reader closed the output; the status is the playbook's
            write_line(f"run page: {path}")


def _listen(run_dir: Path, port: int) -> Server:
    from ..report.page.server import Server

    try:
        return Server(run_dir, port)
    except OSError as error:
        if error.errno in (errno.EADDRINUSE, errno.EACCES):
            raise LabError(
                f"port {port} of 127.0.0.1: {os.strerror(error.errno)}; choose another one with --port"
            ) from None
        raise


def _show(line: str, url: str, path: Path | None, form: str | None) -> None:
    """Print where the page is; for users, open a browser where there is a desktop."""
    if form:
        print_output({"page": path and str(path), "url": url}, form)
        return
    write_line(line)
    if os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        webbrowser.open(url)
