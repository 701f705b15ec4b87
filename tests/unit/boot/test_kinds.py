"""Another kind of BMC is one row: a plan accepts its machines, and booting connects to them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.bmc import kinds
from ansible_collections.agentlab.ocp.plugins.module_utils.bmc.kind import Kind
from ansible_collections.agentlab.ocp.plugins.module_utils.boot import bmc
from ansible_collections.agentlab.ocp.plugins.module_utils.devscripts import farm
from ansible_collections.agentlab.ocp.plugins.module_utils.errors import LabError
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import profile
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.build import build
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.model import Plan
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.problems import ProfileError

ADDRESS = "ipmi://192.0.2.7:6230"
PACKAGE = "ansible_collections.agentlab.ocp.plugins.module_utils"


class Ipmi:
    """A machine that only remembers how it was connected to."""

    def __init__(
        self, name: str, address: str, username: str, password: str, verify: bool | str, quirks: Collection[str]
    ) -> None:
        self.given = (name, address, username, password, verify, [*quirks])


@pytest.fixture
def _ipmi(monkeypatch: pytest.MonkeyPatch) -> None:
    row = Kind("IPMI", ("ipmi",), (), "ipmi://host:623", ("ipmi", "ipmitool"), "ipmi_ca", lambda: Ipmi)
    monkeypatch.setitem(kinds.KINDS, "ipmi", row)


def planned(folder: Path, **machine: Any) -> Plan:
    """The plan of a single node with an inventory."""
    node = {
        "driver": "ipmitool",
        "driver_info": {"address": ADDRESS, "username": "root", "password": "calvin"},
        "ports": [{"address": "00:1a:2b:3c:4d:5e"}],
        **machine,
    }
    (folder / "nodes.json").write_text(json.dumps({"nodes": [node]}))
    (folder / "p.yml").write_text(f"topology: sno\nmachines_from: {folder}/nodes.json\n")
    return build(profile.load(folder / "p.yml", None, "ostest"), "ostest")


@pytest.mark.usefixtures("_ipmi")
def test_another_kind_is_one_row(tmp_path: Path) -> None:
    authority = tmp_path / "ca.pem"
    authority.write_text("CA")
    about = {"address": ADDRESS, "username": "root", "password": "calvin", "ipmi_ca": str(authority)}
    plan = planned(tmp_path, driver_info=about, agentlab_quirks=["slow_post"])
    machine = bmc.of_node(plan["nodes"][0], lab_ca=False)
    assert isinstance(machine, Ipmi)
    assert machine.given == ("master-0", ADDRESS, "root", "calvin", str(authority), ["slow_post"])
    farm.write(plan, tmp_path / "run", tmp_path / "ds")
    [written] = json.loads((tmp_path / "ds/ostest/ironic_nodes.json").read_text())["nodes"]
    assert written["driver"] == "ipmi" and written["driver_info"]["ipmi_ca"] == str(authority)


@pytest.mark.usefixtures("_ipmi")
def test_messages_have_all_kinds(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match=r"reached by Redfish or IPMI: must be one of redfish, .*, ipmi, ipmitool"):
        planned(tmp_path, driver="snmp")
    with pytest.raises(ProfileError, match=r"must be Redfish: one of .*, with \+http or \+https or IPMI: one of ipmi"):
        planned(tmp_path, driver_info={"address": "snmp://192.0.2.7", "username": "root", "password": "calvin"})
    with pytest.raises(LabError, match=r"known are redfish, .*, ipmi, as in redfish-.*/1 or ipmi://host:623"):
        bmc.connect("master-0", "snmp://192.0.2.7", "root", "calvin")


def test_unknown_without_its_row(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match="driver is 'ipmitool'"):
        planned(tmp_path)


def test_a_plan_does_not_need_what_connects() -> None:
    """Neither a client nor its libraries are imported, or named as requirements of modules that only read a plan."""
    code = (
        f"from {PACKAGE}.plan import build, checks, inventory, profile, stored; from {PACKAGE}._deps import wanted_distributions; import sys; "
        "print(sorted(wanted_distributions()), [name for name in sys.modules if 'sushy' in name or name.endswith('.redfish.client')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "['PyYAML', 'cryptography'] []\n"
