"""Steps on screens in a profile: what is planned of them, and what is refused."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.errors import LabError
from ansible_collections.agentlab.ocp.plugins.module_utils.libvirt import display
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, profile, stored
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.problems import ProfileError

STEPS = "[{wait: boot menu, timeout: 90}, {press: esc}, {type: '1'}, {picture: /tmp/menu.png}]"


def planned(tmp_path: Path, text: str) -> Any:
    path = tmp_path / "p.yml"
    path.write_text(text)
    return build.build(profile.load(path, None, "ostest"), "ostest")


def test_steps_of_a_role_and_of_a_node(tmp_path: Path) -> None:
    plan = planned(
        tmp_path,
        f"topology: compact\nmaster: {{screen: true, screen_steps: {STEPS}}}\n"
        "nodes:\n  master-1: {screen_steps: [{press: enter}]}\n  master-2: {screen_steps: []}\n",
    )
    assert [len(node.get("screen_steps", [])) for node in plan["nodes"]] == [4, 1, 0]
    assert plan["nodes"][0]["screen_steps"][0] == {"wait": "boot menu", "timeout": 90}
    assert stored.findings(plan) == []


@pytest.mark.parametrize(
    ("machine", "message"),
    [
        ("screen_steps: [{press: enter}]", "p.yml:2:10: master.screen_steps: requires `screen: true`"),
        (
            "screen: true, screen_steps: [{press: any}]",
            "master.screen_steps.0.press is 'any': is not a key: name a letter",
        ),
        ("screen: true, screen_steps: [{type: \xe4}]", "master.screen_steps.0.type is '\xe4': cannot be typed: a US"),
        ("screen: true, screen_steps: [{}]", "master.screen_steps.0: must have one of wait, press, type, picture"),
        ("screen: true, screen_steps: [{press: a, type: b}]", "must have one of wait, press, type, picture, not press"),
        ("screen: true, screen_steps: [{press: a, timeout: 5}]", "master.screen_steps.0.timeout is 5: is for wait"),
        ("screen: true, screen_steps: [{wait: a, timeout: 3601}]", "screen_steps.0.timeout is 3601: must be from 1 to"),
        ("screen: true, screen_steps: [{click: a}]", "master.screen_steps.0.click: unknown field"),
    ],
)
def test_refused(tmp_path: Path, machine: str, message: str) -> None:
    with pytest.raises(ProfileError) as caught:
        planned(tmp_path, f"topology: sno\nmaster: {{{machine}}}\n")
    assert message in str(caught.value)


def test_steps_of_an_edited_plan(tmp_path: Path) -> None:
    plan = planned(tmp_path, f"topology: sno\nmaster: {{screen: true, screen_steps: {STEPS}}}\n")
    edited = copy.deepcopy(plan)
    edited["nodes"][0]["screen_steps"][1]["press"] = "any"
    (found,) = stored.findings(edited)
    assert found[0] == ("nodes", 0, "screen_steps", 1, "press")
    assert "is not a key" in found[2]


def test_node_of_a_name(tmp_path: Path) -> None:
    plan = planned(tmp_path, "topology: sno\n")
    assert display.node_of(plan, "master-0") is plan["nodes"][0]
    with pytest.raises(LabError, match="unknown node other; nodes: master-0"):
        display.node_of(plan, "other")
