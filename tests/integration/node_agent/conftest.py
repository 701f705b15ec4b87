"""A switch with hosts in network namespaces: a (probes), b and c (peers), gw (DHCP, DNS, NTP)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.payload.node_agent import PROGRAMS, bundle

NEEDED = ("ip", "dnsmasq", "chronyd", "chronyc")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    missing = [name for name in NEEDED if not shutil.which(name)]
    if os.geteuid() or missing:
        for item in items:
            if Path(__file__).parent in item.path.parents:
                item.add_marker(pytest.mark.skip(reason=f"needs root and {', '.join(missing) or 'no more'}"))


def ip(*args: str) -> str:
    return subprocess.run(["ip", *args], check=True, capture_output=True, text=True).stdout


class Lab:
    def __init__(self, programs: Path, tmp: Path) -> None:
        self.tag, self.programs, self.tmp = uuid.uuid4().hex[:6], programs, tmp
        self.macs: dict[str, str] = {}
        self.daemons: list[subprocess.Popen[bytes]] = []

    def ns(self, name: str) -> str:
        return f"agt{self.tag}{name}"

    def exec(self, name: str, *argv: str | Path, check: bool = True, binds: dict[Path, str] | None = None,
             env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:  # fmt: skip
        return subprocess.run(
            self.command(name, *argv, binds=binds),
            capture_output=True,
            text=True,
            check=check,
            env={**os.environ, **(env or {})},
        )

    def command(self, name: str, *argv: str | Path, binds: dict[Path, str] | None = None) -> list[str]:
        mounts = "".join(f"mount --bind {source} {target} && " for source, target in (binds or {}).items())
        return ["ip", "netns", "exec", self.ns(name), "sh", "-c", mounts + 'exec "$@"', "sh", *map(str, argv)]

    def program(self, host: str, program: str, argument: Any, **more: Any) -> Any:
        """Run one of ours, decode what it prints."""
        text = argument if isinstance(argument, str) else json.dumps(argument)
        done = self.exec(host, self.programs / program, "--with-journal-logging=false", text, check=False, **more)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def daemon(self, name: str, *argv: str | Path, binds: dict[Path, str] | None = None) -> None:
        log = (self.tmp / f"{Path(argv[0]).name}-{name}.log").open("wb")
        self.daemons.append(subprocess.Popen(self.command(name, *argv, binds=binds), stdout=log, stderr=log))

    def add(self, name: str, number: int, mtu: int = 1500) -> None:
        ns, mac = self.ns(name), f"52:54:00:00:00:{number:02x}"
        ip("netns", "add", ns)
        ip("link", "add", "eth0", "netns", ns, "address", mac, "mtu", str(mtu), "type", "veth",
           "peer", "name", f"p{name}", "netns", self.ns("sw"))  # fmt: skip
        ip("-n", self.ns("sw"), "link", "set", f"p{name}", "mtu", str(mtu), "master", "br0", "up")
        for link in ("lo", "eth0"):
            ip("-n", ns, "link", "set", link, "up")
        ip("-n", ns, "addr", "add", f"192.0.2.{number}/27", "dev", "eth0")
        ip("-n", ns, "addr", "add", f"2001:db8::{number:x}/64", "dev", "eth0", "nodad")
        self.macs[name] = mac

    def peer(self, name: str, *addresses: str) -> dict[str, Any]:
        nic = {"name": "eth0", "mac": self.macs.get(name, "52:54:00:00:00:99"), "ip_addresses": list(addresses)}
        return {"host_id": name, "nics": [nic]}

    def build(self) -> None:
        ip("netns", "add", self.ns("sw"))
        ip("-n", self.ns("sw"), "link", "add", "br0", "mtu", "9000", "type", "bridge")
        ip("-n", self.ns("sw"), "link", "set", "br0", "up")
        for name, number, mtu in (("a", 10, 1500), ("b", 11, 1500), ("c", 12, 9000), ("d", 13, 9000), ("gw", 1, 1500)):
            self.add(name, number, mtu)

    def close(self) -> None:
        for daemon in self.daemons:
            daemon.terminate()
            daemon.wait(10)
        for name in ("sw", *self.macs):
            subprocess.run(["ip", "netns", "delete", self.ns(name)], check=False, capture_output=True)


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("bin")
    bundle.write(folder / "agent")
    for name in PROGRAMS[1:]:
        (folder / name).symlink_to("agent")
    had = Path("/run/netns").exists()
    lab = Lab(folder, tmp_path_factory.mktemp("lab"))
    try:
        lab.build()
        yield lab
    finally:
        lab.close()
        if not had and not any(Path("/run/netns").iterdir()):
            subprocess.run(["umount", "/run/netns"], check=False, capture_output=True)
            Path("/run/netns").rmdir()
