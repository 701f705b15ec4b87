"""Virtual addresses by keepalived (VRRP on the machine network), driven by weights that our programs write into files."""

from __future__ import annotations

import ipaddress
import subprocess
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...plugins.module_utils.addresses import version
from ...plugins.module_utils.documents import load_json


@dataclass(frozen=True)
class Instance:
    """One set of addresses that fails over together.

    `track` is a file with a number that is added to the priority; -254 or less excludes this node.
    """

    name: str
    addresses: Sequence[str]
    track: Path
    priority: int = 40


def router_id(cluster: str, name: str) -> int:
    """Return the VRRP router id (1-254) of an instance; derived from the name, so that clusters can share a network."""
    return zlib.crc32(f"{cluster}/{name}".encode()) % 254 + 1


def interface_for(networks: Sequence[str], links: list[dict[str, Any]] | None = None) -> tuple[str, list[str]]:
    """Return the interface that has an address in one of the CIDRs, and its addresses there, in the networks' order.

    `links` is the output of `ip -json address`. Raises LookupError if there is none.
    """
    links = _ip("address") if links is None else links
    wanted = [ipaddress.ip_network(cidr, strict=False) for cidr in networks]
    for link in links:
        found = [
            info["local"]
            for network in wanted
            for info in link.get("addr_info", ())
            if info.get("scope") == "global" and "local" in info and ipaddress.ip_address(info["local"]) in network
        ]
        if found:
            return link["ifname"], found
    raise LookupError(f"no interface has an address in {', '.join(networks)}")


def interface_of_route(
    routes: list[dict[str, Any]] | None = None, links: list[dict[str, Any]] | None = None
) -> tuple[str, list[str]]:
    """Return the interface of the default route, and its global addresses.

    As nodeip-configuration.service chooses a node's address where the cluster has no virtual ones. `routes` is the output of
    `ip -json route show default`, IPv4 and then IPv6; `links` that of `ip -json address`. Raises LookupError if there is none.
    """
    if routes is None:
        routes = [route for family in ("-4", "-6") for route in _ip(family, "route", "show", "default")]
    name = next((str(route["dev"]) for route in routes if route.get("dev")), "")
    for link in _ip("address") if links is None else links:
        if link["ifname"] == name:
            infos = [info for info in link.get("addr_info", ()) if info.get("scope") == "global" and "local" in info]
            if infos:
                return name, [str(info["local"]) for info in infos]
    raise LookupError("there is no default route through an interface with an address")


def _ip(*words: str) -> list[dict[str, Any]]:
    done = subprocess.run(["ip", "-json", *words], check=True, capture_output=True, text=True)
    found: list[dict[str, Any]] = load_json(done.stdout or "[]", name=f"ip {' '.join(words)}")
    return found


def config(cluster: str, interface: str, instances: Sequence[Instance]) -> str:
    """Return the text of keepalived.conf."""
    blocks = ["global_defs {\n    enable_script_security\n    vrrp_garp_master_refresh 60\n    vrrp_version 3\n}\n"]
    for instance in instances:
        same = [a for a in instance.addresses if version(a) == version(instance.addresses[0])]
        other = [a for a in instance.addresses if a not in same]
        blocks.append(f'track_file {instance.name} {{\n    file "{instance.track}"\n    weight 1\n}}\n')
        excluded = _addresses("virtual_ipaddress_excluded", other) if other else ""
        lines = [
            f"vrrp_instance {instance.name} {{",
            "    state BACKUP",
            f"    interface {interface}",
            f"    virtual_router_id {router_id(cluster, instance.name)}",
            f"    priority {instance.priority}",
            "    advert_int 1",
            f"    track_file {{\n        {instance.name}\n    }}",
        ]
        blocks.append("\n".join(lines) + "\n" + _addresses("virtual_ipaddress", same) + excluded + "}\n")
    return "\n".join(blocks)


def _addresses(block: str, addresses: Sequence[str]) -> str:
    # As on OpenShift: /32 and /128, so that the address is never chosen as a source.
    lines = "".join(f"        {address}/{'128 no_dad' if ':' in address else '32'}\n" for address in addresses)
    return f"    {block} {{\n{lines}    }}\n"


class Keepalived:
    """The child process."""

    def __init__(self, cluster: str, networks: Sequence[str], directory: Path, instances: Sequence[Instance]) -> None:
        self._cluster, self._networks, self._directory, self._instances = cluster, networks, directory, instances
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Write the configuration and start keepalived; missing tracked files are created with -254."""
        self._directory.mkdir(parents=True, exist_ok=True)
        for instance in self._instances:
            if not instance.track.exists():
                instance.track.write_text("-254\n")
        interface, __ = interface_for(self._networks)
        path = self._directory / "keepalived.conf"
        path.write_text(config(self._cluster, interface, self._instances))
        path.chmod(0o600)
        command = [
            "keepalived",
            "--dont-fork",
            "--log-console",
            "--vrrp",
            "--use-file",
            str(path),
            "--pid",
            str(self._directory / "keepalived.pid"),
            "--vrrp_pid",
            str(self._directory / "vrrp.pid"),
        ]
        self._process = subprocess.Popen(command)

    def keep(self) -> None:
        """Restart it if it has exited."""
        if self._process is not None and self._process.poll() is not None:
            self.start()

    def stop(self) -> None:
        """Release the addresses, wait for the process to exit, and end this node's own connections to the addresses.

        A local client of an address that has moved is not told: it would retransmit for 15 minutes.
        """
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None
        for address in (address for instance in self._instances for address in instance.addresses):
            subprocess.run(["ss", "--kill", "src", address], stdout=subprocess.DEVNULL, check=False)
