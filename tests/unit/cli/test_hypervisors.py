"""Several hypervisors on the command line: one that goes away is named, and verbs for a node lead to the one that carries it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.cli import failure
from ansible_collections.agentlab.ocp.plugins.module_utils.cli.cluster import Cluster
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import rundir
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.model import Plan
from ansible_collections.agentlab.ocp.plugins.module_utils.report.causes import causes
from ansible_collections.agentlab.ocp.plugins.module_utils.report.evidence import Facts

TEXT = """
topology: compact
hypervisor: {address: 192.0.2.1}
hypervisors: [{name: second, kind: ssh, host: lab2.example.com, user: admin, address: 192.0.2.2}]
"""


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    (tmp_path / "p.yml").write_text(TEXT)
    made, changes = rundir.prepare(tmp_path, str(tmp_path / "p.yml"), None, "ut")
    rundir.write(changes)
    return made


def test_one_that_goes_away_is_named(tmp_path: Path, plan: Plan, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "logs").mkdir()
    for host in ("second", "second -> localhost"):
        message = (
            "Failed to connect to the host via ssh: ssh: connect to host lab2.example.com port 22: No route to host"
        )
        known = {"task": "Create the networks", "host": host, "message": message, "unreachable": True}
        (tmp_path / failure.FILE).write_text(json.dumps(known))
        failure.explain(tmp_path)
        printed = capsys.readouterr().err
        assert f"first failure: Create the networks [{host}]: {message}\n" in printed
        assert printed.endswith(
            "Next: start admin@lab2.example.com and its sshd, or correct hypervisors.0.host of the profile; "
            "it is reached once this works: ssh admin@lab2.example.com true\n"
        )


def test_it_is_the_first_cause_of_a_wait_without_progress(tmp_path: Path, plan: Plan) -> None:
    facts = Facts(plan=plan, rendezvous_ip=plan["rendezvous"]["ip"], run_dir=tmp_path)
    facts.services = {"ntp": "", "hypervisor second": "192.168.111.2:8000: No route to host"}
    assert causes(facts)[0].text == "hypervisor second does not answer: 192.168.111.2:8000: No route to host"
    facts.services["hypervisor second"] = ""
    assert not any("hypervisor" in cause.text for cause in causes(facts))


def test_a_node_is_reached_where_it_is(tmp_path: Path, plan: Plan) -> None:
    cluster = Cluster("ut", tmp_path, plan)
    first, second = (cluster.seen_from(cluster.node(name)) for name in ("master-0", "master-1"))
    assert (first.libvirt, second.libvirt) == ("qemu:///system", "qemu+ssh://admin@lab2.example.com/system")
    assert second.on_hypervisor() == ["ssh", "admin@lab2.example.com", "sudo"] and second.enter() == []
    assert second.state_dir == Path("/var/lib/agentlab/ut-second")
