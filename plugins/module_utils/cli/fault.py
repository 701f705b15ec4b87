"""`agentlab fault [TARGET KIND] [--undo | --seconds N]`: faults of docs/faults.md in a running lab."""

from __future__ import annotations

import argparse
import contextlib
import datetime
import difflib
import time
from typing import Any, cast

from .. import signals
from ..errors import LabError
from ..plan.faults import KINDS, ON_BRIDGE, SERVICES, Fault, ProfileFault, complete
from ..plan.shapes import mismatches
from ..sandbox import faults
from ..terminal import write_line
from ..vocabulary import Exit
from .cluster import Cluster, add_cluster, again_inside, attempt
from .output import add_output, print_output

NOW = {name: kind for name, kind in KINDS.items() if not kind.in_plan}
"""The kinds that can be injected into a running lab."""


def main(argv: list[str]) -> int:
    """Inject or undo a fault, or list those that were injected.

    argv: after `fault`. The kinds are those of `NOW`; others are part of a plan. It runs again as root inside the
    sandbox.
    """
    parser = argparse.ArgumentParser(
        prog="agentlab fault",
        description="Inject a fault into a running lab, or undo it. Without arguments, list those that were injected.",
    )
    parser.add_argument(
        "target", nargs="?", metavar="TARGET", help="a node, such as master-0; a service of the lab; or a component"
    )
    parser.add_argument("kind", nargs="?", metavar="KIND", help=f"one of {', '.join(NOW)} (docs/faults.md)")
    parser.add_argument("--nic", metavar="NIC", help="the network card, where the kind has one (default: eth0)")
    parser.add_argument("--mtu", type=int, metavar="BYTES", help="mtu: the largest packet")
    parser.add_argument("--milliseconds", type=int, metavar="N", help="delay: latency added in each direction, in ms")
    parser.add_argument("--percent", type=int, metavar="N", help="loss: packet loss in each direction, in percent")
    parser.add_argument("--kbits", type=int, metavar="N", help="rate: limit in each direction, in kbit/s")
    parser.add_argument("--bytes-per-second", type=int, metavar="BYTES", help="slow_media: how fast it is read")
    parser.add_argument("--peer", metavar="NODE", help="arp_one_way: the node whose replies are dropped")
    end = parser.add_mutually_exclusive_group()
    end.add_argument("--undo", action="store_true", help="undo the fault")
    end.add_argument("--seconds", type=int, metavar="N", help="wait, and undo it after this time or on Ctrl-C")
    add_cluster(parser)
    add_output(parser)
    args = parser.parse_args(argv)
    if args.target and not args.kind:
        parser.error("name a TARGET and a KIND")

    def act(cluster: Cluster) -> int:
        if cluster.plan["hypervisor"]["kind"] == "ssh":
            raise LabError(
                "faults can be injected by hand only where the lab runs on this host; use faults: in the profile"
            )
        fault = _fault(cluster, args) if args.kind else None
        again_inside(cluster, ["fault", *argv], root=True)
        if fault is None:
            return _list(cluster, args.output)
        with signals.raise_terminated():
            return _change(cluster, fault, args)

    return attempt(args.cluster, act)


def _change(cluster: Cluster, fault: Fault, args: argparse.Namespace) -> int:
    """Inject or undo a fault. One for some seconds does not stay when this is interrupted."""
    if args.undo:
        faults.undo(cluster.plan, fault)
        write_line(f"{faults.title(fault)}: undone")
        return Exit.OK
    try:
        faults.inject(cluster.plan, fault)
        write_line(f"{faults.title(fault)}: injected")
    except KeyboardInterrupt:
        if args.seconds:
            with contextlib.suppress(LabError):  # it had not begun
                faults.undo(cluster.plan, fault)
        raise
    if args.seconds:
        return _lasting(cluster, fault, args.seconds)
    if not NOW[args.kind].lasting:
        write_line(f"undo it with the same command and --undo, or: agentlab destroy --cluster {cluster.name}")
    return Exit.OK


def _fault(cluster: Cluster, args: argparse.Namespace) -> Fault:
    """Return the fault that the arguments describe. Raises LabError with what would be right."""
    kind = NOW.get(args.kind)
    if kind is None:
        near = difflib.get_close_matches(args.kind, NOW, n=1)
        right = f"did you mean {near[0]}?" if near else f"must be one of {', '.join(NOW)}"
        if args.kind in KINDS:
            right = "is part of a plan: put it under `faults` in the profile, and deploy that"
        raise LabError(f"KIND {args.kind!r}: {right}")
    subject = kind.required[0]
    names = ("nic", "mtu", "milliseconds", "percent", "kbits", "bytes_per_second", "peer", "seconds")
    given: dict[str, Any] = {name: getattr(args, name) for name in names}
    fault: dict[str, Any] = {"kind": args.kind, subject: args.target}
    fault |= {name: value for name, value in given.items() if value is not None}
    if subject == "node":
        node = cluster.node(args.target)
        if node.get("bare_metal"):
            raise LabError(f"{node['name']}: is an existing machine, to which the lab cannot do {args.kind}")
        if where := node.get("hypervisor"):
            raise LabError(
                f"{node['name']}: is on hypervisor {where}; the lab does {args.kind} to nodes of the first one"
            )
        fault["node"] = node["name"]
    elif subject == "service" and args.target not in SERVICES:
        raise LabError(f"TARGET {args.target!r}: must be one of {', '.join(SERVICES)} for {args.kind}")
    for wrong in mismatches(fault, ProfileFault):
        shown = "" if wrong.value is None else f" {wrong.value!r}"
        raise LabError(f"{args.kind}: --{'.'.join(map(str, wrong.path))}{shown}: {wrong.remedy}")
    whole = complete(fault)
    if "peer" in whole:
        whole["peer"] = cluster.node(whole["peer"])["name"]
        if whole["peer"] == whole["node"]:
            raise LabError(f"--peer {args.peer}: must differ from TARGET")
    if args.kind in ON_BRIDGE:
        if cluster.plan["hypervisor"]["kind"] != "sandbox":
            raise LabError(f"{args.kind}: needs a sandbox; elsewhere it would change the host's own rules and bridges")
        if cluster.node(whole["node"]).get("links"):
            raise LabError(f"{args.kind}: acts at the bridge, and {whole['node']} has bonds or VLANs")
    nics = [nic["name"] for nic in cluster.node(whole["node"])["nics"]] if "nic" in whole else []
    if "nic" in whole and whole["nic"] not in nics:
        raise LabError(f"--nic {whole['nic']}: must be one of {', '.join(nics)}")
    return cast(Fault, {name: value for name, value in whole.items() if name not in ("when", "seconds")})


def _lasting(cluster: Cluster, fault: Fault, seconds: int) -> int:
    try:
        with signals.raise_terminated():
            time.sleep(seconds)
    except signals.Termination as error:
        return error.exit_code
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    finally:
        faults.undo(cluster.plan, fault)
        write_line(f"{faults.title(fault)}: undone")
    return Exit.OK


def _list(cluster: Cluster, form: str | None) -> int:
    found = faults.active(cluster.plan)
    times = [datetime.datetime.fromtimestamp(int(entry["at"]), datetime.UTC) for entry in found]
    if form:
        print_output(
            [{**entry["fault"], "since": at.isoformat()} for entry, at in zip(found, times, strict=True)], form
        )
        return Exit.OK
    for entry, at in zip(found, times, strict=True):
        write_line(f"{faults.title(entry['fault'])}, since {at:%Y-%m-%d %H:%M:%S} UTC")
    if not found:
        write_line("no fault was injected by hand")
    return Exit.OK
