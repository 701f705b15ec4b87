"""`agentlab snapshot save|list|restore|copy|delete|export|import`: saved states of a lab."""

from __future__ import annotations

import argparse
import datetime
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from .. import files, signals
from ..errors import LabError
from ..snapshot import bundle, copies, lab
from ..snapshot.manifest import Manifest
from ..state import owner
from ..terminal import write_line
from ..version import VERSION
from . import orphans
from .cluster import Cluster, add_cluster, again_as_root, find
from .output import add_output, print_failure, print_output
from .places import program


def main(argv: list[str]) -> int:
    """Run one of the actions.

    argv: the action and its arguments. All actions run as root: the verb starts itself with sudo.
    """
    parser = argparse.ArgumentParser(
        prog="agentlab snapshot",
        description="Save and restore the whole lab: memory and disks of its machines, services, leases and the run directory.",
    )
    add_cluster(parser)
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    for name, (text, __) in _ACTIONS.items():
        action = actions.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        if name != "list":
            action.add_argument(
                "snapshot" if name != "import" else "file",
                metavar="NAME" if name != "import" else "FILE",
                help="name of the snapshot" if name != "import" else "an exported snapshot",
            )
        if name == "export":
            action.add_argument("file", metavar="FILE", help="file to write")
        if name == "copy":
            action.add_argument("copy", metavar="CLUSTER", help="name of the new cluster")
        if name in _TEXTS:
            add_output(action, _TEXTS[name])
        add_cluster(action, inner=True)
    args = parser.parse_args(argv)
    try:
        cluster = find(args.cluster)
        again_as_root(["snapshot", *argv])  # a sandbox belongs to root
        with signals.raise_terminated():
            return _ACTIONS[args.action][1](cluster, args)
    except (LabError, ValueError, OSError) as error:
        return print_failure(error)


def lab_of(cluster: Cluster) -> lab.Lab:
    """Return the lab of a cluster.

    The caller becomes its owner, and the version of this program is recorded in new snapshots.
    """
    return lab.Lab(cluster.plan, cluster.directory, owner.caller(cluster.plan, cluster.directory), VERSION)


def save(cluster: Cluster, args: argparse.Namespace) -> int:
    begin = time.monotonic()
    made = lab.save(lab_of(cluster), args.snapshot, _warn)
    seconds = time.monotonic() - begin
    text = f"snapshot {made.name} saved in {seconds:.1f} s; the machines were paused for {made.paused:.1f} s"
    return _done(cluster, args, made, text, {"seconds": round(seconds, 1), "paused": made.paused})


def show(cluster: Cluster, args: argparse.Namespace) -> int:
    lab_of(cluster).check()
    found = lab.existing_snapshots(cluster.state_dir)
    sizes = lab.sizes(lab_of(cluster), found)
    if args.output:
        print_output([_row(one, sizes[one.name]) for one in found], args.output)
        return 0
    for name, taken, size, machines in [
        ("NAME", "SAVED", "SIZE", "MACHINES"),
        *((one.name, _time(one.taken), files.size_text(sizes[one.name]), str(len(one.machines))) for one in found),
    ]:
        write_line(f"{name:<20}  {taken:<20}  {size:<10}  {machines}".rstrip())
    return 0


def restore(cluster: Cluster, args: argparse.Namespace) -> int:
    if str(cluster.directory) in orphans.run_dirs():
        raise LabError(
            f"a verb with a playbook, such as wait, runs for cluster {cluster.name}: wait until it has ended, or interrupt it"
        )
    begin = time.monotonic()
    again = f"{program()} snapshot restore {args.snapshot} --cluster {cluster.name}"
    try:
        found = lab.restore(lab_of(cluster), args.snapshot, _warn)
    except KeyboardInterrupt:  # also SIGTERM and SIGHUP: the lab is neither what it was nor what it will be
        write_line(f"\ninterrupted; to resume: {again}", sys.stderr)
        raise
    except lab.RestoreError as error:
        status = print_failure(error)
        write_line(
            f"the restore is not complete, and the lab cannot be used before it is; to repeat it: {again}", sys.stderr
        )
        return status
    seconds = time.monotonic() - begin
    text = f"snapshot {found.name} of {_time(found.taken)} restored in {seconds:.1f} s"
    return _done(cluster, args, found, text, {"seconds": round(seconds, 1)})


def copy(cluster: Cluster, args: argparse.Namespace) -> int:
    begin = time.monotonic()
    found = copies.copy(lab_of(cluster), args.snapshot, args.copy, _warn)
    seconds = time.monotonic() - begin
    text = f"snapshot {args.snapshot} runs as cluster {args.copy}, started in {seconds:.1f} s"
    more = {"seconds": round(seconds, 1), "cluster": args.copy, "run_dir": str(cluster.directory.parent / args.copy)}
    return _done(cluster, args, found, text, more)


def delete(cluster: Cluster, args: argparse.Namespace) -> int:
    lab.delete(lab_of(cluster), args.snapshot)
    write_line(f"snapshot {args.snapshot} deleted")
    return 0


def export(cluster: Cluster, args: argparse.Namespace) -> int:
    path = Path(args.file).absolute()
    found = bundle.export(lab_of(cluster), args.snapshot, path)
    _warn(
        f"{path} holds secrets of the lab: keys, passwords, tokens and the memory of its machines. "
        "Share it only with those who may use the lab"
    )
    size = path.stat().st_size
    return _done(
        cluster, args, found, f"{path} written ({files.size_text(size)})", {"file": str(path), "file_bytes": size}
    )


def import_(cluster: Cluster, args: argparse.Namespace) -> int:
    made = bundle.import_(lab_of(cluster), Path(args.file))
    _warn(
        f"a restore of {made.name} runs what {args.file} defines, as root: machines, services and the files of the run. "
        "Import only from those who may run programs as root on this host"
    )
    text = f"snapshot {made.name} of {_time(made.taken)} imported"
    return _done(cluster, args, made, text, {"file": str(Path(args.file).absolute())})


def _warn(text: str) -> None:
    write_line(f"warning: {text}", sys.stderr)


def _done(cluster: Cluster, args: argparse.Namespace, one: Manifest, text: str, more: Mapping[str, object]) -> int:
    """Print what was done to a snapshot: as text, or with `-o` its row of the list, and more."""
    if args.output:
        print_output({**_row(one, lab.sizes(lab_of(cluster), [one])[one.name]), **more}, args.output)
    else:
        write_line(text)
    return 0


def _time(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _row(one: Manifest, size: int) -> dict[str, object]:
    return {
        "name": one.name,
        "saved": _time(one.taken),
        "bytes": size,
        "machines": {machine.domain: machine.state for machine in one.machines},
        "qemu": one.host.qemu,
        "accelerator": one.host.accelerator,
        "agentlab": one.host.agentlab,
    }


_TEXTS = {
    "list": "print all fields as JSON or YAML instead of a table",
    **dict.fromkeys(
        ("save", "restore", "copy", "export", "import"), "print the snapshot and the result as JSON or YAML"
    ),
}
"""Help for `-o` of the actions that have it."""
_ACTIONS: dict[str, tuple[str, Callable[[Cluster, argparse.Namespace], int]]] = {
    "save": ("save the lab as it is now", save),
    "list": ("print the snapshots of a cluster", show),
    "restore": ("put the lab back to a snapshot, in place of its present state", restore),
    "copy": ("start a snapshot as another cluster, next to this one", copy),
    "delete": ("delete a snapshot", delete),
    "export": ("write a snapshot to a file, which holds secrets", export),
    "import": ("read a snapshot from a file", import_),
}
