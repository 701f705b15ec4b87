"""How the machines of a lab were booted, whether their media are still there, and which time servers they asked meanwhile.

None of this shows in an installed cluster. There are three records, each independent of the plan: the hosts as the assisted service
returned them last to the wait (their agents reported the live system's disks and kernel arguments), the log of the lab's BMCs, and
libvirt's definitions. What is not recorded where the checks run is left out, such as day-2 nodes in the
first record, and existing machines in the others.
"""

from __future__ import annotations

import re
import subprocess
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ..documents import load_json, read_file
from ..plan import faults, ipi, names, phases
from ..plan.machines import Node, own_machines
from ..plan.model import Plan
from ..plan.modes import MODES, Medium, Mode
from ..vocabulary import RunFile
from .links import Finding

Run = Callable[[list[str]], str]
"""Runs a command, and returns its output; raises OSError, also `FileNotFoundError` without the program."""
CD, MINIMAL, STICK, NETWORK, LUN = "CD", "CD without a root file system", "USB stick", "network", "LUN"
_OTHERS: Mapping[Medium, str] = {"usb": STICK, "network": NETWORK, "lun": LUN}
_BY_BMC = {True: "inserted by its BMC", False: "its BMC inserted nothing"}
# The log of werkzeug, whose lines are coloured; the time is the host's.
_INSERTED = re.compile(
    r'\[(\d\d/[A-Z][a-z]{2}/\d{4} \d\d:\d\d:\d\d)\] "(?:\x1b\[[\d;]{1,8}m){0,4}'
    r"POST /redfish/v1/(?:Systems|Managers)/([^/ ]{1,64})/VirtualMedia/\w{1,32}/Actions/VirtualMedia\.InsertMedia HTTP/[\d.]{1,4}"
    r'(?:\x1b\[[\d;]{1,8}m){0,4}" 2\d\d '
)
_SECONDS = 30


def run(command: list[str]) -> str:
    """Run a command; see `Run`."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=_SECONDS).stdout
    except subprocess.CalledProcessError as error:
        raise OSError(error.stderr.strip() or f"exit status {error.returncode}") from error
    except subprocess.TimeoutExpired as error:
        raise OSError(f"no answer within {_SECONDS} s") from error


def findings(plan: Plan, run_dir: Path, command: Run = run) -> Iterator[Finding]:
    """Yield for each node how it was booted, whether its medium is still there, and its time servers.

    run_dir: of the cluster. Nothing for the flow `ipi`, whose machines no agent has seen.
    """
    if ipi.bootstrap(plan):
        return
    hosts = recorded_hosts(run_dir)
    yield from _boots(plan, hosts, run_dir)
    yield from _inserted(plan, command)
    yield from _time_servers(plan, hosts)


def recorded_hosts(run_dir: Path) -> dict[str, Mapping[str, Any]]:
    """Return the hosts of the wait's record, by the MACs of their NICs; `inventory` is what the agent reported. Empty without one."""
    try:
        hosts = load_json(read_file(run_dir / RunFile.LAST_CLUSTER), name=RunFile.LAST_CLUSTER)["hosts"]
        found = [
            {**host, "inventory": load_json(host["inventory"], name="inventory")}
            for host in hosts
            if host.get("inventory")
        ]
        return {
            str(nic["mac_address"]).lower(): host
            for host in found
            for nic in host["inventory"].get("interfaces") or []
            if nic.get("mac_address")
        }
    except (OSError, ValueError, TypeError, KeyError, AttributeError):  # no record, or one of another form
        return {}


def _host(node: Node, hosts: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any] | None:
    return next((hosts[nic["mac"].lower()] for nic in node["nics"] if nic["mac"].lower() in hosts), None)


def _boots(plan: Plan, hosts: Mapping[str, Mapping[str, Any]], run_dir: Path) -> Iterator[Finding]:
    log = insertion_times(Path(names.service_log(plan["services"]["directory"], "bmc")))
    for node in plan["nodes"]:
        mode = MODES[phases.boot_mode(plan) if node.get("day2") else plan["boot"]["mode"]]
        if node["role"] == faults.EXTRA or not mode.boots:
            continue
        wanted, found = [], []
        if host := _host(node, hosts):
            wanted.append(_planned(mode))
            found.append(medium(host["inventory"]))
        if log is not None and not node.get("bare_metal"):
            last = log.get(node["uuid"], 0.0)
            # With another mode, an earlier deployment from another image may be in the log, too.
            since = 0.0 if mode.bmc else _written(run_dir / plan["boot"]["image"])
            wanted.append(_BY_BMC[mode.bmc])
            found.append(_BY_BMC[last > since])
        if wanted:
            yield Finding(f"boot of {node['name']}", "; ".join(wanted), "; ".join(found))


def _planned(mode: Mode) -> str:
    """Return what a live system is booted from, as `medium` names it."""
    if mode.medium in _OTHERS:
        return _OTHERS[mode.medium]
    if mode.second:
        return f"2 {CD}s"
    return MINIMAL if mode.fetches else CD


def medium(inventory: Mapping[str, Any]) -> str:
    """Return what a live system was booted from, by its inventory.

    The medium of a whole ISO is mounted, which the agent notes; without one, the root file system is from the file server. Each CD
    drive counts as a medium for the agent.
    """
    words = str((inventory.get("boot") or {}).get("command_line")).split()
    there = [disk for disk in inventory.get("disks") or [] if isinstance(disk, Mapping)]
    cds = [disk for disk in there if disk.get("drive_type") == "ODD" and disk.get("size_bytes")]
    if any(word.startswith("coreos.live.rootfs_url=") for word in words):
        if cds:
            return MINIMAL
        return LUN if any(disk.get("drive_type") == "iSCSI" for disk in there) else NETWORK
    if any(disk.get("is_installation_media") and disk.get("drive_type") != "ODD" for disk in there):
        return STICK
    return f"{len(cds)} {CD}s" if len(cds) > 1 else CD if cds else "unknown"


def insertion_times(log: Path) -> dict[str, float] | None:
    """Return when each machine, by its UUID, last got a medium through its BMC, in seconds since 1970; None without a log."""
    found = {}
    try:
        with log.open(errors="replace") as stream:
            for line in stream:
                if one := _INSERTED.search(line):
                    found[one[2]] = time.mktime(time.strptime(one[1], "%d/%b/%Y %H:%M:%S"))
    except (OSError, ValueError):
        return None
    return found


def _written(image: Path) -> float:
    """Return when an image was written; 0 without one."""
    try:
        return image.stat().st_mtime
    except OSError:
        return 0.0


def _inserted(plan: Plan, command: Run) -> Iterator[Finding]:
    """Yield the media of each machine of this hypervisor: at its next start, and with `on_rebooting` in the running one, too.

    With `never` that is whether there are any, unless a fault ejects them.
    """
    when = plan["boot"].get("eject", "never")
    if plan["hypervisor"]["kind"] == "ssh" or not MODES[plan["boot"]["mode"]].removable:
        return
    definitions = [["--inactive"], []] if when == "on_rebooting" else [["--inactive"]]
    for node in own_machines(phases.installed_nodes(plan)):
        if when == "never" and any(faults.of_kind(plan, "eject", node["name"])):
            continue
        try:
            texts = [command(["virsh", "dumpxml", *which, node["domain"]]) for which in definitions]
            found = ", ".join(dict.fromkeys(path for text in texts for path in _media(text)))
        except FileNotFoundError:  # not the hypervisor
            return
        except (OSError, ET.ParseError) as error:
            yield Finding(f"medium of {node['name']}", "known", f"unknown: {error}")
            continue
        if when == "never":
            yield Finding(f"medium of {node['name']}", "inserted", "inserted" if found else "none")
        else:
            yield Finding(f"medium of {node['name']}", "none", found or "none")


def _media(text: str) -> Iterator[str]:
    """Yield the files in the CD drives and USB sticks of a definition."""
    for disk in ET.fromstring(text).iterfind("devices/disk"):
        source, target = disk.find("source"), disk.find("target")
        is_medium = disk.get("device") == "cdrom" or (target is not None and target.get("bus") == "usb")
        if is_medium and source is not None and source.get("file"):
            yield str(source.get("file"))


def _time_servers(plan: Plan, hosts: Mapping[str, Mapping[str, Any]]) -> Iterator[Finding]:
    """Yield which time servers each node's live system asked. There may be more than the planned ones, such as a DHCP server's."""
    given = plan["installer"]["agent_config"].get("additionalNTPSources")
    planned = [str(one) for one in (plan["installer"]["ntp_sources"] if given is None else given)]
    names = _names(plan, planned)
    for node in plan["nodes"]:
        host = _host(node, hosts)
        if not planned or host is None:
            continue
        try:
            listed = load_json(host.get("ntp_sources") or "", name="ntp_sources")
            reported = [str(one["source_name"]) for one in listed]
        except (ValueError, TypeError, KeyError):  # of another form, or none yet
            continue
        there = {names.get(one, one) for one in reported}
        missing, others = {*planned} - there, there - {*planned, *names.values()}
        # Agents report names: those of servers outside of the lab are not known.
        is_right = not missing or (not missing & {*names.values()} and len(others) >= len(missing))
        expected = ", ".join(planned)
        yield Finding(
            f"time servers of {node['name']}", expected, expected if is_right else ", ".join(sorted(there)) or "none"
        )


def _names(plan: Plan, planned: list[str]) -> dict[str, str]:
    """Return the address behind each name by which the lab's nodes may know one of the lab's own addresses; a planned one of several."""
    gateways = [subnet["gateway"] for network in plan["networks"] for subnet in network["subnets"]]
    own = {plan["services"]["address"], *gateways}
    # systemd's name for the default gateway, of which a node with two families has two.
    pairs = [*((address, address) for address in own), *(("_gateway", gateway) for gateway in gateways)]
    for network in plan["networks"]:
        for entry in network["dns"]["hosts"]:
            if entry["ip"] in own:
                pairs += [
                    (f"{name}{end}", entry["ip"]) for name in entry["names"] for end in ("", f".{network['domain']}")
                ]
    return dict(sorted(pairs, key=lambda pair: pair[1] in planned))
