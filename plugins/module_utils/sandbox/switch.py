"""The switch of a lab whose nodes have bonds or VLANs: Open vSwitch with its user-space datapath, which needs no kernel module.

Each NIC or bond that needs it has a bridge `sw-<parent>`, to which all nodes are connected by taps. A network is reached by an
internal port, `sw-<parent>.<VLAN id>` (0: untagged), that is a port of the network's own bridge; DHCP, DNS and gateway are there
as always. With `802.3ad` a node's taps are a bond with LACP. With `balance-xor` they are a static link aggregation, which Open
vSwitch has no bond for: a bridge of its own distributes frames (`bundle`, ovs-actions(7)). With `active-backup` they are
independent ports.
"""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ..errors import LabError
from ..plan.machines import Nic, Node
from ..plan.model import Plan
from .relay import deaf

PROGRAMS = {
    "ovs-vswitchd": "openvswitch-switch",
    "ovsdb-server": "openvswitch-switch",
    "ovsdb-tool": "openvswitch-switch",
    "ovs-vsctl": "openvswitch-switch",
}
_SCHEMA = Path("/usr/share/openvswitch/vswitch.ovsschema")
_RUN = Path("/run/openvswitch")
_LIMIT = 30
_DIGEST = "external_ids:agentlab"


class Uplink(NamedTuple):
    """The way of a network to its bridge: `port` of the switch `switch`, with VLAN id `vlan` (0: untagged).

    port is an internal port of Open vSwitch, which becomes a port of the network's `bridge`; mtu: in bytes.
    """

    switch: str
    port: str
    vlan: int
    bridge: str
    mtu: int


class Member(NamedTuple):
    """A node's NIC or bond at the switch `switch`: its taps, the bond's mode (None: a NIC), and the VLAN ids that it may use."""

    switch: str
    name: str
    taps: tuple[str, ...]
    mode: str | None
    vlans: tuple[int, ...]


class Switch(NamedTuple):
    """All ports; taps: name -> MTU.

    mtu is in bytes, 0 where the plan has none. `commands` and `flows` make it; equal values mean the same switch.
    """

    uplinks: list[Uplink]
    members: list[Member]
    taps: dict[str, int]


def needs_switch(plan: Plan) -> bool:
    """Return whether the nodes of a plan need the switch."""
    return any(node.get("links") for node in plan["nodes"])


def of_plan(plan: Plan) -> Switch:
    """Return the switch of a plan; it has no ports where `needs_switch` is false."""
    networks = {network["name"]: network for network in plan["networks"]}
    uplinks: dict[str, Uplink] = {}
    members: list[Member] = []
    taps: dict[str, int] = {}
    for node in plan["nodes"]:
        links = node.get("links") or []
        nics = {nic["name"]: nic for nic in node["nics"] if nic.get("port")}
        bonds = {link["name"]: link["bond"] for link in links if link["bond"]}
        bonded = {nic for bond in bonds.values() for nic in bond["nics"]}
        for parent in [*bonds, *(name for name in nics if name not in bonded)]:
            names = bonds[parent]["nics"] if parent in bonds else [parent]
            ports = {str(nics[name].get("port")): nics[name].get("mtu") or 0 for name in names}
            carried = dict(_carried(node, parent))
            for vlan, name in carried.items():
                port, network = f"sw-{parent}.{vlan}", networks[name]
                uplinks[port] = Uplink(f"sw-{parent}", port, vlan, network["bridge"], network["mtu"])
            mode = bonds[parent]["mode"] if parent in bonds else None
            first = next(iter(ports)).partition("-")[0]
            members.append(Member(f"sw-{parent}", f"{first}-{parent}", tuple(ports), mode, tuple(sorted(carried))))
            taps |= ports
    return Switch(list(uplinks.values()), members, taps)


def _carried(node: Node, parent: str) -> Iterator[tuple[int, str]]:
    """Yield VLAN id (0: untagged) and network of all that a NIC or a bond carries."""
    for link in node.get("links") or []:
        if link["network"] is None:
            continue
        if link["name"] == parent:
            yield 0, link["network"]
        elif link["vlan"] and link["vlan"]["parent"] == parent:
            yield link["vlan"]["id"], link["network"]
    plain: Iterator[Nic] = (nic for nic in node["nics"] if nic["name"] == parent and nic["addresses"])
    yield from ((0, nic["network"]) for nic in plain)


def commands(switch: Switch) -> list[list[str]]:
    """Return the commands of one transaction of ovs-vsctl that make the switch, from nothing or from any state.

    Each is an argument list without `ovs-vsctl`. Bridges of these names are deleted and made again.
    """
    found: list[list[str]] = []
    for name in _bridges(switch):
        found += [["--if-exists", "del-br", name], ["add-br", name], ["set", "Bridge", name, "datapath_type=netdev"]]
    for uplink in switch.uplinks:
        found += [
            ["add-port", uplink.switch, uplink.port, f"tag={uplink.vlan}"],
            ["set", "Interface", uplink.port, "type=internal", f"mtu_request={uplink.mtu}"],
        ]
    for member in switch.members:
        trunks = f"trunks={','.join(str(vlan) for vlan in member.vlans)}"
        if member.mode == "802.3ad":
            lacp = ["lacp=active", "bond_mode=balance-tcp", "other_config:lacp-time=fast"]
            found.append(["add-bond", member.switch, member.name, *member.taps, *lacp, trunks])
        elif member.mode == "balance-xor":
            own, inner, outer = _aggregation(member)
            found += [
                ["set", "Bridge", own, "fail_mode=secure"],
                *(["add-port", own, tap, "--", "set", "Interface", tap, f"ofport_request={number}"]
                  for number, tap in enumerate(member.taps, 2)),
                ["add-port", own, inner],
                ["set", "Interface", inner, "type=patch", f"options:peer={outer}", "ofport_request=1"],
                ["add-port", member.switch, outer, trunks],
                ["set", "Interface", outer, "type=patch", f"options:peer={inner}"],
            ]  # fmt: skip
        else:
            found += [["add-port", member.switch, tap, trunks] for tap in member.taps]
    return found


def flows(switch: Switch) -> dict[str, list[str]]:
    """Return the flows of each bridge that is a static link aggregation.

    Keys are bridges, values lines for `ovs-ofctl add-flows`. Port 1 is the patch to the switch, the taps follow.
    """
    found = {}
    for member in switch.members:
        if member.mode == "balance-xor":
            numbers = range(2, 2 + len(member.taps))
            out = f"bundle(symmetric_l4,0,hrw,ofport,members:{','.join(map(str, numbers))})"
            found[_aggregation(member)[0]] = [
                f"in_port=1,actions={out}",
                *(f"in_port={number},actions=output:1" for number in numbers),
            ]
    return found


def _aggregation(member: Member) -> tuple[str, str, str]:
    """Return the bridge of a static link aggregation, and the two ends of its patch to the switch."""
    return f"{member.name}-l", f"{member.name}-i", f"{member.name}-o"


def _bridges(switch: Switch) -> list[str]:
    own = [_aggregation(member)[0] for member in switch.members if member.mode == "balance-xor"]
    return [*dict.fromkeys(member.switch for member in switch.members), *own]


def daemons(work: Path) -> dict[str, list[str]]:
    """Return the daemons of the switch for the sandbox whose private files are in `work`, with a new database there.

    The result is name -> argv for the keeper. Raises `LabError` if the database cannot be made.
    """
    database = work / "openvswitch.db"
    database.unlink(missing_ok=True)
    _run("ovsdb-tool", "create", str(database), str(_SCHEMA))
    quiet = ["-vconsole:warn", "-vsyslog:off", "-vfile:off"]
    socket = f"unix:{_RUN}/db.sock"
    return {
        "ovsdb-server": ["ovsdb-server", str(database), f"--remote=p{socket}", f"--unixctl={_RUN}/ovsdb.ctl", *quiet],
        "ovs-vswitchd": ["ovs-vswitchd", socket, f"--unixctl={_RUN}/vswitchd.ctl", *quiet],
    }


def ensure(switch: Switch, *, check: bool = False) -> list[dict[str, str]]:
    """Create taps, bridges and ports in the sandbox that this process is in; return the changes (`name`, `before`, `after`).

    Raises `LabError` with the error output of what failed.
    """
    transaction = commands(switch)
    if not transaction:
        return []
    digest = hashlib.sha256(repr((transaction, flows(switch))).encode()).hexdigest()[:16]
    first = _bridges(switch)[0]
    if _is_there(switch, first, digest):
        return []
    if not check:
        for tap, mtu in switch.taps.items():
            _tap(tap, mtu)
        parts = [part for command in transaction for part in ("--", *command)]
        _run("ovs-vsctl", "--retry", f"--timeout={_LIMIT}", *parts, "--", "set", "Bridge", first, f"{_DIGEST}={digest}")
        for bridge, lines in flows(switch).items():
            _run("ovs-ofctl", "add-flows", bridge, "-", given="\n".join(lines) + "\n")
        for uplink in switch.uplinks:
            deaf(uplink.port)
            _run("ip", "link", "set", "dev", uplink.port, "master", uplink.bridge, "up")
    after = "".join(f"{' '.join(command)}\n" for command in transaction)
    return [{"name": "switch", "before": "", "after": after}]


def _is_there(switch: Switch, bridge: str, digest: str) -> bool:
    """Return whether the switch has these ports, and the kernel the taps and the uplinks where they belong."""
    found = _run("ovs-vsctl", f"--timeout={_LIMIT}", "--if-exists", "get", "Bridge", bridge, _DIGEST, check=False)
    links = all(Path(f"/sys/class/net/{tap}").exists() for tap in switch.taps)
    masters = (Path(f"/sys/class/net/{uplink.port}/master") for uplink in switch.uplinks)
    return (
        found.strip().strip('"') == digest
        and links
        and all(
            path.exists() and path.resolve().name == uplink.bridge
            for path, uplink in zip(masters, switch.uplinks, strict=True)
        )
        and all("bundle" in _run("ovs-ofctl", "dump-flows", bridge, check=False) for bridge in flows(switch))
    )


def _tap(name: str, mtu: int) -> None:
    """Create a tap for a machine. The kernel itself must not answer on it: its frames are those of the switch."""
    if not Path(f"/sys/class/net/{name}").exists():
        _run("ip", "tuntap", "add", "dev", name, "mode", "tap")
    deaf(name)
    _run("ip", "link", "set", "dev", name, "mtu", str(mtu), "arp", "off", "up")


def _run(*command: str, given: str = "", check: bool = True) -> str:
    try:
        done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=_LIMIT * 2, check=False)
    except FileNotFoundError:
        raise LabError(
            f"the program {command[0]} is not installed on the hypervisor: install openvswitch-switch"
        ) from None
    except subprocess.TimeoutExpired:
        raise LabError(f"{command[0]}: not finished after {_LIMIT * 2} s") from None
    if check and done.returncode:
        raise LabError(f"{' '.join(command[:3])}: {(done.stderr or done.stdout).strip()}")
    return done.stdout if not done.returncode else ""
