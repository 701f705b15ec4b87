"""Directories with inputs, and a base ISO made here."""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pycdlib
import pytest
import yaml
from ansible_collections.agentlab.ocp.plugins.module_utils.coreos import cpio
from ansible_collections.agentlab.ocp.plugins.module_utils.coreos.iso import LiveIso
from ansible_collections.agentlab.ocp.plugins.module_utils.ignition.config import files_of
from ansible_collections.agentlab.ocp.plugins.module_utils.installer import credentials, run
from ansible_collections.agentlab.ocp.plugins.module_utils.log import Log

ASSETS = Path(__file__).resolve().parents[3] / "roles" / "agent_image" / "files" / "live"
RELEASE = "127.0.0.1:9/lab/release@sha256:" + "0" * 64  # nothing answers there
INITRD = cpio.archive({"init": b"initrd"})
KEY = (
    "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBPZ09izplhbJwtz5iixTX9EKIB3hvds2cHqtMO9cZAu"
    "2o5ksZcCMPBnS6AevY4z7e3N+zxb/mNFQ7ZMcTZ4FZVs= somebody@example"
)


def install_config(**changes: Any) -> dict[str, Any]:
    """A single node on platform none; keyword arguments replace top-level fields, None removes them."""
    config: dict[str, Any] = {
        "apiVersion": "v1",
        "baseDomain": "test.example",
        "metadata": {"name": "ostest", "namespace": "cluster0"},
        "controlPlane": {"name": "master", "replicas": 1},
        "compute": [{"name": "worker", "replicas": 0}],
        "networking": {
            "networkType": "OVNKubernetes",
            "clusterNetwork": [{"cidr": "10.128.0.0/14", "hostPrefix": 23}],
            "machineNetwork": [{"cidr": "192.168.111.0/24"}],
            "serviceNetwork": ["172.30.0.0/16"],
        },
        "platform": {"none": {}},
        "sshKey": KEY,
        "pullSecret": json.dumps({"auths": {"quay.io": {"auth": "dTpw"}}}),
    }
    config |= changes
    return {key: value for key, value in config.items() if value is not None}


def agent_config(**changes: Any) -> dict[str, Any]:
    """An agent-config with a rendezvous IP."""
    return {"apiVersion": "v1beta1", "kind": "AgentConfig", "rendezvousIP": "192.168.111.20"} | changes


def host(name: str, number: int, role: str = "", static: bool = False) -> dict[str, Any]:
    """A host of agent-config, with address .20+number if `static`."""
    mac = f"52:54:00:aa:bb:{number:02x}"
    found: dict[str, Any] = {"hostname": name, "interfaces": [{"name": "eth0", "macAddress": mac}]}
    if role:
        found["role"] = role
    if static:
        address = {"ip": f"192.168.111.{20 + number}", "prefix-length": 24}
        nic = {"name": "eth0", "type": "ethernet", "state": "up", "mac-address": mac,
               "ipv4": {"enabled": True, "dhcp": False, "address": [address]}}  # fmt: skip
        found["networkConfig"] = {"interfaces": [nic]}
    return found


def fleet(count: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """install-config and agent-config of `count` hosts, each with two ports in a bond and two VLANs on it."""
    hosts = []
    for number in range(count):
        macs = [f"52:54:{number >> 8:02x}:{number & 255:02x}:00:{port:02x}" for port in (1, 2)]
        off: dict[str, Any] = {"enabled": False}
        address = {"ip": f"192.168.{1 + number // 200}.{20 + number % 200}", "prefix-length": 16}
        nics = [
            *({"name": f"eth{port}", "type": "ethernet", "state": "up", "mac-address": mac, "mtu": 9000} for port, mac in enumerate(macs)),
            {"name": "bond0", "type": "bond", "state": "up", "mtu": 9000, "ipv4": off, "ipv6": off, "link-aggregation": {
                "mode": "802.3ad", "options": {"miimon": "140", "xmit_hash_policy": "layer3+4"}, "port": ["eth0", "eth1"]}},
            {"name": "bond0.100", "type": "vlan", "state": "up", "vlan": {"base-iface": "bond0", "id": 100}, "ipv6": off,
             "ipv4": {"enabled": True, "dhcp": False, "address": [address]}},
            {"name": "bond0.200", "type": "vlan", "state": "up", "vlan": {"base-iface": "bond0", "id": 200},
             "ipv4": {"enabled": True, "dhcp": True}},
        ]  # fmt: skip
        route = {"destination": "0.0.0.0/0", "next-hop-address": "192.168.0.1", "next-hop-interface": "bond0.100"}
        state = {
            "interfaces": nics,
            "routes": {"config": [route]},
            "dns-resolver": {"config": {"server": ["192.168.0.1"]}},
        }
        hosts.append({
            "hostname": f"node-{number}", "role": "master" if number < 3 else "worker", "networkConfig": state,
            "interfaces": [{"name": f"eth{port}", "macAddress": mac} for port, mac in enumerate(macs)],
            "rootDeviceHints": {"deviceName": "/dev/sda"},
        })  # fmt: skip
    config = install_config(
        controlPlane={"name": "master", "replicas": 3}, compute=[{"name": "worker", "replicas": count - 3}]
    )
    config["networking"]["machineNetwork"] = [{"cidr": "192.168.0.0/16"}]
    return config, agent_config(rendezvousIP="192.168.1.20", hosts=hosts)


@pytest.fixture(scope="session")
def base_iso(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small ISO in the layout of a CoreOS live ISO."""
    return live_iso(tmp_path_factory.mktemp("iso") / "base.iso", "lab")


def live_iso(path: Path, label: str, vendor: str = "redhat") -> Path:
    """Make a small ISO in the layout of a CoreOS live ISO. label: its volume ID; vendor: its directory below EFI."""
    kargs = f"coreos.liveiso={label} ignition.firstboot ignition.platform.id=metal"
    line = f"linux /images/pxeboot/vmlinuz {kargs}"
    initrd = "initrd /images/pxeboot/initrd.img /images/ignition.img"
    grub = f"{line}\n{'#' * 200}# COREOS_KARG_EMBED_AREA\n{initrd}\n".encode()
    info = {
        "default": kargs, "size": len(kargs) + 201,
        "files": [{"path": f"EFI/{vendor}/grub.cfg", "offset": line.index("coreos.")}],
    }  # fmt: skip
    files = {
        f"EFI/{vendor}/grub.cfg": grub, "coreos/kargs.json": json.dumps(info).encode(),
        "coreos/igninfo.json": b'{"file": "images/ignition.img"}', "images/pxeboot/vmlinuz": b"kernel",
        "images/pxeboot/initrd.img": INITRD, "images/pxeboot/rootfs.img": b"rootfs",
        "images/ignition.img": bytes(262144),
    }  # fmt: skip
    iso = pycdlib.PyCdlib()
    iso.new(interchange_level=3, rock_ridge="1.09", vol_ident=label)
    made: set[str] = set()
    for name, data in files.items():
        parts = name.split("/")
        for depth in range(1, len(parts)):
            folder = "/" + "/".join(parts[:depth])
            if folder not in made:
                iso.add_directory(_plain(folder), rr_name=parts[depth - 1])
                made.add(folder)
        iso.add_fp(io.BytesIO(data), len(data), _plain("/" + name) + ";1", rr_name=parts[-1])
    iso.write(str(path))
    iso.close()
    return path


def _plain(path: str) -> str:
    return path.upper().replace("-", "_")


class Directory:
    """A `--dir` and what can be done with it."""

    def __init__(self, path: Path, base_iso: Path) -> None:
        self.path, self.base_iso = path, base_iso
        self.log = Log(None, emit=lambda _line: None)

    def write(self, name: str, content: Any) -> None:
        """Write a file; what is not a string becomes YAML."""
        target = self.path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content if isinstance(content, str) else yaml.safe_dump(content, sort_keys=False))

    def create(self, *targets: str, consume: bool = False, **options: Any) -> run.Result:
        """Run `create`; its messages are in `log` afterwards."""
        self.log = Log(None, emit=lambda _line: None)
        known: dict[str, Any] = {
            "cache": self.path / ".cache", "release_image": RELEASE, "release_version": "4.22.0",
            "os_image": {"": str(self.base_iso)},
        } | options  # fmt: skip
        return run.create(list(targets), run.Options(self.path, ASSETS, **known), self.log, consume=consume)

    def reported(self, level: str) -> list[str]:
        """Messages of one level."""
        return [text for name, text in self.log.lines if name == level]

    def ignition(self) -> dict[str, Any]:
        """The config in the agent ISO."""
        with LiveIso(next(self.path.glob("agent.*.iso"))) as iso:
            assert iso.ignition is not None
            found: dict[str, Any] = json.loads(iso.ignition)
        return found

    def files(self) -> dict[str, str]:
        """The files in the agent ISO's config."""
        return {name: data.decode() for name, data in files_of(self.ignition()).items()}


@pytest.fixture(scope="session")
def signers() -> dict[str, dict[str, str]]:
    """Signers that are made once: RSA keys take their time."""
    return {name: credentials.signer(name) for name in credentials.SIGNERS}


@pytest.fixture(autouse=True)
def _quick_keys(monkeypatch: pytest.MonkeyPatch, signers: dict[str, dict[str, str]]) -> None:
    client = credentials.admin_client

    def admin_client(ca: dict[str, str]) -> dict[str, str]:
        if not _CLIENT:
            _CLIENT.append(client(ca))
        return _CLIENT[0]

    monkeypatch.setattr(credentials, "signer", signers.__getitem__)
    monkeypatch.setattr(credentials, "admin_client", admin_client)


_CLIENT: list[dict[str, str]] = []


@pytest.fixture
def directory(tmp_path: Path, base_iso: Path) -> Directory:
    """An empty directory."""
    return Directory(tmp_path / "run", base_iso)


@pytest.fixture
def sno(directory: Directory) -> Directory:
    """A directory with the inputs of a single node."""
    directory.write("install-config.yaml", install_config())
    directory.write("agent-config.yaml", agent_config())
    return directory


@pytest.fixture
def make() -> SimpleNamespace:
    """The functions of this file that make inputs."""
    return SimpleNamespace(
        install_config=install_config, agent_config=agent_config, host=host, fleet=fleet, release=RELEASE
    )
