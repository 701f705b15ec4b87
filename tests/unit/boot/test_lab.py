"""Each boot mode: what is published, which image machines get, and what drives them."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.bmc import kinds
from ansible_collections.agentlab.ocp.plugins.module_utils.bmc.kind import Kind
from ansible_collections.agentlab.ocp.plugins.module_utils.boot import bmc, lab
from ansible_collections.agentlab.ocp.plugins.module_utils.errors import LabError

NAMES = ("master-0", "master-1")


class Machine:
    """A machine that is off, and remembers what it was given."""

    def __init__(self, name: str, driver: str, done: dict[str, tuple[str, str]]) -> None:
        self.name, self.driver, self.done = name, driver, done

    def power(self) -> str:
        return "off"

    def power_on(self) -> bool:
        return True

    def power_off(self) -> bool:
        return False

    def insert(self, url: str) -> bool:
        self.done[self.name] = (self.driver, url)
        return True

    def eject(self) -> bool:
        return True

    def boot_from_cd(self) -> None:
        pass


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[str, str]]:
    """Name of a machine -> its driver, and the image that it got."""
    found: dict[str, tuple[str, str]] = {}

    @contextlib.contextmanager
    def connect() -> Iterator[None]:
        yield None

    def through_bmc(
        name: str, address: str, username: str, password: str, verify: bool | str, quirks: Collection[str]
    ) -> Machine:
        checked = Path(verify).read_text() if isinstance(verify, str) else ""
        return Machine(name, f"{address} {username} {password} {checked}".strip(), found)

    monkeypatch.setattr(lab, "connect", connect)
    monkeypatch.setattr(
        lab.domain,
        "Machine",
        lambda __, name, medium, more: Machine(name.replace("_", "-"), " ".join([medium, *more]), found),
    )
    monkeypatch.setattr(
        lab.domain, "LunMachine", lambda __, name, lun: Machine(name.replace("_", "-"), f"lun {lun}", found)
    )
    monkeypatch.setattr(lab.domain, "blank", lambda *rest: None)
    row = Kind("Other", ("other",), ("https",), "other+https://host/1", ("other",), "ca", lambda: through_bmc)
    monkeypatch.setitem(kinds.KINDS, "other", row)
    return found


def made(tmp_path: Path, mode: str, foreigners: Collection[str] = (), **options: Any) -> lab.Lab:
    root = tmp_path / "state/services/http/root"
    root.mkdir(parents=True)
    (tmp_path / "run/boot-artifacts").mkdir(parents=True)
    (tmp_path / "run/boot-artifacts/rootfs.img").write_text("rootfs")
    image = tmp_path / ("run/boot-artifacts/agent.ipxe" if mode == "pxe" else "run/agent.iso")
    image.write_text("image")
    (tmp_path / "run/agentconfig.noarch.iso").write_text("config")
    plan = {
        "cluster": {"name": "ostest", "domain": "ostest.test"},
        "hypervisor": {"state_dir": str(tmp_path / "state"), "pool": "pool", "pool_dir": "/pool"},
        "services": {
            "http": {"url": "http://[fd00::1]:8089", "root": str(root)},
            "iscsi": {"address": "192.168.145.1", "port": 3260, "lun": 1},
        },
        "boot": {"script": "agent-iscsi.ipxe"},
        "rendezvous": {"node": "master-1", "ip": "fd00::51"},
        "faults": [{"kind": "wrong_token", "node": name} for name in foreigners],
        "nodes": [
            {
                "name": name,
                "domain": name.replace("-", "_"),
                "disks": [{"name": f"{name}-disk"}],
                "bmc": {"address": f"other+https://bmc/{number}", "username": "admin", "password": "secret"},
            }
            for number, name in enumerate(NAMES)
        ],
    }
    return lab.Lab(plan=plan, mode=mode, image=image, **options)


@pytest.mark.parametrize(
    ("mode", "driver", "url", "published"),
    [
        ("redfish", "other+https://bmc/1 admin secret CA", "http://[fd00::1]:8089/agent.iso", {"agent.iso"}),
        (
            "minimal",
            "other+https://bmc/1 admin secret CA",
            "http://[fd00::1]:8089/agent.iso",
            {"agent.iso", "rootfs.img"},
        ),
        ("cdrom", "cdrom", "{run}/agent.iso", set()),
        ("usb", "usb", "{run}/agent.iso", set()),
        ("config-image", "cdrom {run}/agentconfig.noarch.iso", "{run}/agent.iso", set()),
        ("interactive", "other+https://bmc/1 admin secret CA", "http://[fd00::1]:8089/agent.iso", {"agent.iso"}),
        ("iscsi", "lun /pool/master-1-disk", "{run}/agent.iso", {"agent-iscsi.ipxe", "rootfs.img"}),
        ("pxe", "network", "http://[fd00::1]:8089/agent.ipxe", {"agent.ipxe", "rootfs.img"}),
    ],
)
def test_mode(
    tmp_path: Path, done: dict[str, tuple[str, str]], mode: str, driver: str, url: str, published: set[str]
) -> None:
    """The second kind of BMC is a row of `kinds.KINDS`."""
    machines = made(tmp_path, mode, authority="CA")
    # The rendezvous host goes first.
    assert [change["name"] for change in machines.boot()] == ["master-1", "master-0"]
    assert done["master-1"] == (driver.format(run=tmp_path / "run"), url.format(run=tmp_path / "run"))
    assert {path.name for path in (tmp_path / "state/services/http/root").iterdir()} == published
    assert machines.boot() != [] and machines.eject() == ["master-1", "master-0"]


def test_manual_publishes_and_boots_nothing(tmp_path: Path, done: dict[str, tuple[str, str]]) -> None:
    machines = made(tmp_path, "manual")
    waiting = machines.boot()
    assert [change["name"] for change in waiting] == ["master-1", "master-0"] and machines.eject() == [] and done == {}
    assert waiting[0]["after"] == "to be booted from http://[fd00::1]:8089/agent.iso\n"
    assert dataclasses.replace(machines, check=True).note() == ["master-1", "master-0"] and machines.boot() == waiting
    assert machines.note() == ["master-1", "master-0"]
    assert machines.boot() == [] == machines.note(), "a second run does not wait"
    machines.image.write_text("another image")
    assert len(machines.boot()) == 2
    assert machines.url() == "http://[fd00::1]:8089/agent.iso"
    assert (tmp_path / "state/services/http/root/agent.iso").resolve() == tmp_path / "run/agent.iso"


def test_foreigners_boot_from_their_own_copy(
    tmp_path: Path, done: dict[str, tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lab.foreign, "image", lambda source, target: target.write_text(source.read_text() + "!"))
    machines = made(tmp_path, "redfish", foreigners=["master-0"])
    machines.boot()
    assert {name: url.rpartition("/")[2] for name, (__, url) in done.items()} == {
        "master-0": "wrong-token-agent.iso",
        "master-1": "agent.iso",
    }
    assert (tmp_path / "state/services/http/root/wrong-token-agent.iso").read_text() == "image!"


def test_only_existing_machines_that_were_booted_are_released(tmp_path: Path, done: dict[str, tuple[str, str]]) -> None:
    machines = made(tmp_path, "redfish")
    machines.plan["nodes"][0]["bare_metal"] = True
    assert machines.release() == [], "it was never booted: whose it is, is not known"
    machines.boot()
    assert machines.release() == ["master-0"]
    machines.plan["nodes"][0]["bare_metal"] = False
    assert machines.release() == []


def test_an_existing_machine_has_its_own_authority(tmp_path: Path, done: dict[str, tuple[str, str]]) -> None:
    machines = made(tmp_path, "redfish", authority="CA")
    own = tmp_path / "bmc.pem"
    own.write_text("OWN")
    machines.plan["nodes"][0]["bare_metal"] = True
    machines.plan["nodes"][0]["bmc"]["ca_file"] = str(own)
    machines.boot()
    assert done["master-0"][0].endswith("secret OWN") and done["master-1"][0].endswith("secret CA")
    own.unlink()
    with pytest.raises(LabError, match=r"nodes.master-0.bmc.ca_file is '.*bmc.pem': is not a file on the host"):
        machines.eject()


def test_check_changes_nothing(tmp_path: Path, done: dict[str, tuple[str, str]]) -> None:
    machines = made(tmp_path, "redfish", foreigners=["master-0"], check=True)
    before = sorted(tmp_path.rglob("*"))
    assert len(machines.boot()) == 2 and machines.eject() == []
    assert sorted(tmp_path.rglob("*")) == before and done == {}


def test_no_image(tmp_path: Path) -> None:
    machines = made(tmp_path, "redfish")
    machines.image.unlink()
    with pytest.raises(LabError, match="no such image: agentlab image --cluster ostest"):
        machines.boot()


def test_unknown_kind_of_bmc() -> None:
    with pytest.raises(
        LabError,
        match=r"BMC address ipmi://192.0.2.1: scheme 'ipmi' is unknown: known are redfish, redfish-virtualmedia",
    ):
        bmc.connect("master-0", "ipmi://192.0.2.1", "admin", "password")
