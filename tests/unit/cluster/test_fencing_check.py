"""What `validate` asks two nodes that fence each other, and that it notices when they cannot."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.cluster import fencing
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, configs, profile
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.problems import ProfileError

# As crm_mon of Pacemaker 2.1.5 prints it, without what is not read.
REPORT = """<pacemaker-result api-version="2.25" request="crm_mon --one-shot --output-as=xml">
  <summary>
    <stack type="corosync"/>
    <current_dc present="true" version="2.1.5-a3f44794f94" name="master-1" id="2" with_quorum="true" mixed_version="false"/>
  </summary>
  <nodes>
    <node name="master-0" id="1" online="true" standby="false" pending="false" unclean="false" is_dc="false" type="member"/>
    <node name="master-1" id="2" online="true" standby="false" pending="false" unclean="false" is_dc="true" type="member"/>
  </nodes>
  <resources>
    <resource id="master-0_redfish" resource_agent="stonith:fence_redfish" role="Started" active="true" failed="false"/>
    <resource id="master-1_redfish" resource_agent="stonith:fence_redfish" role="Started" active="true" failed="false"/>
  </resources>
  <fence_history status="0"/>
  <status code="0" message="OK"/>
</pacemaker-result>
"""


def plan(**fields: Any) -> Any:
    text = json.dumps({"topology": "tnf", **fields})  # JSON is YAML
    return build.build(profile.validated_profile(profile.parse(text, "my.yml"), "one"), "one")


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fencing, "SETTLE_SECONDS", 0.0)
    monkeypatch.setattr(fencing, "POLL_SECONDS", 0.01)


def found(answer: str, **fields: Any) -> list[fencing.Finding]:
    return list(fencing.findings(plan(**fields), lambda address, command: answer))


def test_both_can_be_fenced() -> None:
    assert [(finding.subject, finding.ok) for finding in found(REPORT)] == [
        ("fencing on master-0", True),
        ("fencing on master-1", True),
    ]
    assert found(REPORT)[0].found == "online: master-0, master-1; can be fenced: master-0, master-1"


def test_devices_that_start_later_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pacemaker tries a device again a minute after a failure, and the installation may end before."""
    started = 'id="master-1_redfish" resource_agent="stonith:fence_redfish" role="Started"'
    answers = [REPORT.replace(started, started.replace("Started", "Stopped"))] * 2
    monkeypatch.setattr(fencing, "SETTLE_SECONDS", 20.0)
    asked = fencing.findings(plan(), lambda address, command: answers.pop() if answers else REPORT)
    assert [finding.ok for finding in asked] == [True, True]
    assert not answers


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ('name="master-1" id="2" online="true"', 'name="master-1" id="2" online="false"', "online: master-0; can"),
        ('pending="false" unclean="false" is_dc="true"', 'pending="false" unclean="true" is_dc="true"', "online: master-0; "),
        (
            'id="master-1_redfish" resource_agent="stonith:fence_redfish" role="Started"',
            'id="master-1_redfish" resource_agent="stonith:fence_redfish" role="Stopped"',
            "can be fenced: master-0",
        ),
        (REPORT, "Error: no container with name or ID pacemaker", "crm_mon prints no report: Error: no container"),
        (REPORT, "", "crm_mon prints no report: nothing"),
    ],
)  # fmt: skip
def test_what_is_not_as_planned(old: str, new: str, text: str) -> None:
    assert old in REPORT
    for finding in found(REPORT.replace(old, new)):
        assert not finding.ok
        assert text in finding.found


def test_a_node_that_cannot_be_asked() -> None:
    def ask(address: str, command: str) -> str:
        raise OSError(f"{address}: Connection refused")

    assert [finding.found for finding in fencing.findings(plan(), ask)] == [
        "192.168.111.20: Connection refused",
        "192.168.111.21: Connection refused",
    ]


def test_failed_fencing_is_read() -> None:
    history = (
        '<fence_history status="0"><fence_event action="reboot" target="master-0" status="failed"/></fence_history>'
    )
    assert fencing.read(REPORT.replace('<fence_history status="0"/>', history)).failed == {"master-0"}


def test_the_fault_gives_a_wrong_password_and_is_expected() -> None:
    faults = [{"kind": "fence_fails", "node": "master-1"}]
    made = plan(faults=faults)
    credentials = configs.install_config(made, pull_secret={}, ssh_key="", trust_bundle="")["controlPlane"]["fencing"][
        "credentials"
    ]
    right = {node["name"]: node["bmc"]["password"] for node in made["nodes"]}
    assert [entry["password"] == right[entry["hostname"]] for entry in credentials] == [True, False]
    assert not any(finding.ok for finding in found(REPORT, faults=faults)), "it can be fenced although it should not"
    stopped = REPORT.replace(
        'id="master-1_redfish" resource_agent="stonith:fence_redfish" role="Started"',
        'id="master-1_redfish" resource_agent="stonith:fence_redfish" role="Stopped"',
    )
    assert all(finding.ok for finding in found(stopped, faults=faults))


def test_the_fault_requires_fencing() -> None:
    with pytest.raises(ProfileError, match="requires a topology with fencing: tnf"):
        plan(topology="compact", faults=[{"kind": "fence_fails", "node": "master-1"}])
