"""`agentlab prune`: removes what labs of the caller left on this host."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from ..errors import LabError
from ..plan import names
from ..sandbox import prune
from ..terminal import write_line
from ..vocabulary import Exit
from . import orphans
from .cluster import again_as_root
from .output import add_output, message, print_failure, print_output
from .scratch import sweep


def main(argv: list[str]) -> int:
    """Remove labs whose run directory is gone or whose prepare never finished; with --check, list them."""
    parser = argparse.ArgumentParser(
        prog="agentlab prune",
        description="Remove your labs on this host whose run directory is gone or whose prepare was killed, by the marker in "
        "their state directory, and temporary files of killed runs.",
    )
    parser.add_argument("--check", action="store_true", help="change nothing, only report what would be removed")
    parser.add_argument(
        "--state-dir",
        type=Path,
        default=Path(names.STATE_DIR),
        metavar="DIR",
        help="directory with the labs' state directories (default: %(default)s)",
    )
    add_output(parser)
    args = parser.parse_args(argv)
    if os.geteuid() and not args.check:
        sweep()
        again_as_root(["prune", *argv])
    uid = int(os.environ.get("SUDO_UID") or os.getuid()) if os.geteuid() == 0 else os.getuid()
    rows = []
    status = Exit.OK
    try:
        found = prune.leftovers(args.state_dir, uid, orphans.run_dirs())
    except (LabError, ValueError, OSError) as error:
        return print_failure(error)
    for one in found:
        stays = one.stays
        if not stays:
            try:
                if one.found and not args.check:
                    orphans.end(Path(one.found.run_dir))
                prune.prune(one, check=args.check)
            except (LabError, ValueError, OSError) as error:
                stays, status = message(error), Exit.FAILED
        rows.append(
            {"state_dir": str(one.state_dir), "removed": not stays and not args.check, "reason": stays or one.reason}
        )
        if not args.output:
            what = "stays" if stays else "would be removed" if args.check else "removed"
            write_line(f"{one.state_dir}: {what}: {stays or one.reason}", sys.stderr if stays else sys.stdout)
    if not args.check:
        sweep()
    if args.output:
        print_output(rows, args.output)
    elif not rows:
        write_line(f"nothing was left behind in {args.state_dir}")
    return status
