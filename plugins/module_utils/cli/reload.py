"""`agentlab reload COMPONENT [--from DIR] [--watch | -o json|yaml]`: a component of the lab payload, replaced in a running lab."""

from __future__ import annotations

import argparse
import re
import sys
import time
from functools import partial
from pathlib import Path
from typing import NamedTuple

from .. import signals
from ..errors import LabError
from ..plan import overrides
from ..plan.overrides import Kind
from ..reload import lab, logins, watch
from ..terminal import write_line, write_or_drop
from ..vocabulary import Exit
from .cluster import Cluster, add_cluster, again_as_root, attempt
from .output import add_output, print_failure, print_output

_SHOWN = 3  # names of changed files
# A line of Python's tracebacks and syntax errors, for a file of the images' code.
_PLACE = re.compile(r'File "[^"]*?((?:payload|plugins)/[^"]+)", line (\d+)')


def main(argv: list[str]) -> int:
    """Replace a component once, or at every change of what it is built from until Ctrl-C."""
    parser = argparse.ArgumentParser(
        prog="agentlab reload",
        description="Build a component of the lab payload, and let the nodes of a running lab that run it start with the new image.",
    )
    parser.add_argument("component", metavar="COMPONENT", help=f"one of {', '.join(lab.PLACES)}")
    parser.add_argument(
        "--from",
        dest="source",
        metavar="DIR",
        help="a directory with the component's programs or files, or what else --override of deploy takes "
        "(default: the replacement of the plan, else this checkout)",
    )
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "-w", "--watch", action="store_true", help="reload it again when its sources change, until Ctrl-C"
    )
    add_output(group, "print component, image, whether it changed and seconds as JSON or YAML; the progress to stderr")
    add_cluster(parser)
    args = parser.parse_args(argv)

    def act(cluster: Cluster) -> int:
        what = _reload_of(cluster, args.component, args.source)
        if args.watch and not _files(what):
            raise LabError(f"--watch: {what.source} is not a directory, so it has no files to watch")
        prefix = cluster.enter(root=True)
        again_as_root(["reload", *argv])
        with signals.raise_terminated(), logins.open_logins(cluster.directory, prefix) as connections:
            # Without a reader of its output a replacement continues to its end: on all nodes, or on none.
            report = partial(write_or_drop, stream=sys.stderr if args.output else None)
            running = lab.Lab(cluster.plan, prefix, connections, report)
            return _watch(running, what) if args.watch else _reload(running, what, args.output)

    return attempt(args.cluster, act)


class Reload(NamedTuple):
    """A component, what it is built from (a value of `payload_overrides`, or None for this checkout), and the kind of that."""

    component: str
    source: str | None
    kind: Kind | None


def _reload_of(cluster: Cluster, component: str, given: str | None) -> Reload:
    """Return what the arguments name. Raises LabError or `OverrideError` for what cannot be reloaded in this cluster."""
    try:
        overrides.check_name(component)
    except overrides.OverrideError as error:
        raise LabError(f"{component}: {error}") from None
    lab.places_of(component)
    if cluster.plan["hypervisor"]["kind"] == "ssh":
        raise LabError("a component can be reloaded only where the lab runs on this host")
    release = cluster.plan["release"]
    if release["payload"] != "lab":
        raise LabError(
            f"cluster {cluster.name} installs a real release; only components of the lab payload are reloaded"
        )
    source = overrides.absolute(given) if given else release["payload_overrides"].get(component)
    if not source:
        return Reload(component, None, None)
    try:
        return Reload(component, source, overrides.check(component, source))
    except overrides.OverrideError as error:
        raise LabError(f"{component}: {source}: {error}") from None


def _reload(running: lab.Lab, what: Reload, form: str | None = None) -> int:
    """Build and replace once; form: in which the result is printed."""
    from ....payload import build
    from ....payload.images.oci import ImageError
    from ....payload.machine_os.distro import BuildError, host

    begin = time.monotonic()
    lab.log_in(running, what.component)
    chosen = {what.component: what.source} if what.source else {}
    storage = Path(running.plan["services"]["registry"]["storage"])
    try:
        builder = build.Builder(build.cache_root(), chosen, running.report, host())
        image = builder.component(what.component, storage)
    except (BuildError, ImageError) as error:
        raise LabError(f"{what.component} cannot be built, the lab is as it was: {_reason(str(error))}") from None
    running.report(f"{what.component}: built and pushed in {time.monotonic() - begin:.1f} s: {image}")
    changed = lab.replace(running, what.component, image)
    seconds = round(time.monotonic() - begin, 1)
    if form:
        print_output({"component": what.component, "image": image, "changed": changed, "seconds": seconds}, form)
    elif changed:
        running.report(f"{what.component}: reloaded in {seconds} s")
    else:
        running.report(f"{what.component}: no change since it was started; nothing was restarted")
    return Exit.OK


def _reason(text: str) -> str:
    """Return where Python failed and why, if that is in the output of a build; else all of it."""
    places = _PLACE.findall(text)
    return f"{places[-1][0]}, line {places[-1][1]}: {text.splitlines()[-1]}" if places else text


def _watch(running: lab.Lab, what: Reload) -> int:
    """Reload now, and at every change; a failure is printed, and the watch continues."""
    while True:
        state = watch.look(_files(what))
        try:
            _reload(running, what)
        except (LabError, ValueError, OSError) as error:
            print_failure(error)
        write_line(f"watching {len(state)} files; Ctrl-C ends it")
        now = watch.wait(state, lambda: _files(what))
        write_line(f"changed: {', '.join(path.name for path in watch.changed_files(state, now)[:_SHOWN])}")


def _files(what: Reload) -> list[Path]:
    """Return the files that a component is built from; none for an image."""
    if what.source is None:
        from ....payload.images import code, components

        own = components.COMPONENTS[what.component].files.values()
        return [code.ROOT / path for path in code.sources()] + [code.ROOT / "payload" / path for path in own]
    if what.kind is Kind.LAYOUT:
        return [Path(what.source, "index.json")]
    return list(overrides.contents(what.component, what.source).values()) if what.kind is Kind.FILES else []
