"""The machines of a plan in libvirt, with libvirt's own test driver: what is created, once, and what a check reports."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.errors import LabError
from ansible_collections.agentlab.ocp.plugins.module_utils.libvirt import storage
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, profile
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import machines
from ansible_collections.agentlab.ocp.plugins.module_utils.state.owner import Owner

libvirt = pytest.importorskip("libvirt")
MARK = "6f0c2f5e-7d0e-4c77-9a51-0f9a3b1f0c11"
OWNER = Owner("ostest", "/runs/ostest", 0, "root", "lab", "", MARK)


@pytest.fixture
def connection() -> Iterator[Any]:
    found = libvirt.open("test:///default")
    yield found
    found.close()


def planned(tmp_path: Path) -> Any:
    (tmp_path / "p.yml").write_text(
        f"topology: compact\nhypervisor: {{kind: local, state_dir: {tmp_path}/labs}}\nmaster: {{extra_disks: [{{size_gib: 10}}]}}\n"
        "faults: [{kind: clock, node: master-1, offset: -3600}]\n"
    )
    return build.build(profile.load(tmp_path / "p.yml"), "ostest")


def test_a_check_reports_what_is_created_once(tmp_path: Path, connection: Any) -> None:
    plan = planned(tmp_path)
    wanted = [
        plan["hypervisor"]["pool"],
        *(disk["name"] for node in plan["nodes"] for disk in node["disks"]),
        *(node["domain"] for node in plan["nodes"]),
    ]
    before = connection.listAllDomains()
    assert [one["name"] for one in machines.apply(connection, plan, OWNER, "test", check=True)] == wanted
    assert len(connection.listAllDomains()) == len(before) and not Path(plan["hypervisor"]["console_dir"]).exists()
    made = machines.apply(connection, plan, OWNER, "test")
    assert [one["name"] for one in made] == wanted
    assert made[2] == {"name": wanted[2], "before": "", "after": "disk of 10 GiB\n"}
    assert not any(connection.lookupByName(node["domain"]).isActive() for node in plan["nodes"])
    assert 'adjustment="-3600"' in connection.lookupByName(plan["nodes"][1]["domain"]).XMLDesc().replace("'", '"')
    assert machines.apply(connection, plan, OWNER, "test") == []


def test_a_disk_of_another_size_is_refused(tmp_path: Path, connection: Any) -> None:
    plan = planned(tmp_path)
    machines.apply(connection, plan, OWNER, "test")
    plan["nodes"][0]["disks"][1]["size_gib"] += 1
    with pytest.raises(LabError, match="has 10 GiB, not 11: destroy the cluster first"):
        machines.apply(connection, plan, OWNER, "test")


def test_an_image_is_read_for_a_new_disk_alone(
    tmp_path: Path, connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = planned(tmp_path)
    image = tmp_path / "image.raw"
    image.write_bytes(bytes(510) + b"\x55\xaa")
    disk = plan["nodes"][0]["disks"][0]["name"]
    backings: dict[str, Any] = {}
    create = storage.create
    monkeypatch.setattr(
        storage, "create", lambda pool, one, below: (backings.update({one["name"]: below}), create(pool, one, None))
    )
    made = machines.create(connection, plan, OWNER, plan["nodes"], [], {disk: str(image)})
    assert made[1]["after"].endswith(f" over {image}\n")
    assert backings[disk] == storage.Backing(str(image), "raw")
    image.unlink()
    assert machines.create(connection, plan, OWNER, plan["nodes"], [], {disk: str(image)}) == []
