"""Copies: the plan of a copy, and what refuses one."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import names, stored
from ansible_collections.agentlab.ocp.plugins.module_utils.snapshot import copies
from ansible_collections.agentlab.ocp.plugins.module_utils.snapshot.manifest import SnapshotError

GOLDEN = Path(__file__).parents[1] / "plan/golden"


@pytest.mark.parametrize("profile", ["sno_ipv4", "ha_dualstack_static"])
def test_the_plan_of_a_copy_is_valid_and_changes_what_the_host_sees_alone(profile: str) -> None:
    plan: Any = yaml.safe_load((GOLDEN / profile / "plan.yaml").read_text())
    plan["snapshots"] = ["ready"]
    before = copy.deepcopy(plan)
    made: Any = copies.plan_of_copy(plan, "two")
    assert plan == before and stored.findings(made) == []
    assert made["cluster"] == before["cluster"] | {"name": "two"}
    assert made["hypervisor"]["state_dir"] == "/var/lib/agentlab/two"
    assert made["hypervisor"]["netns"] == names.netns("two") and made["hypervisor"]["uplink"] == names.uplink("two")
    assert made["hypervisor"]["pool"] == before["hypervisor"]["pool"]
    assert made["snapshots"] == []
    for part in ("networks", "vips", "endpoints", "rendezvous", "boot", "installer", "release", "settings"):
        assert made[part] == before[part]
    assert [node | {"console": ""} for node in made["nodes"]] == [node | {"console": ""} for node in before["nodes"]]
    assert "/var/lib/agentlab/ostest" not in yaml.safe_dump(made)


@pytest.mark.parametrize("name", ["", "../x", "Two", "a b", "-x", "x" * 55])
def test_a_name_that_no_cluster_can_have(name: str) -> None:
    plan: Any = yaml.safe_load((GOLDEN / "sno_ipv4/plan.yaml").read_text())
    with pytest.raises(SnapshotError, match="is not valid"):
        copies.plan_of_copy(plan, name)


def test_only_whole_parts_of_paths_move() -> None:
    data = {"a": "/x/one", "b": ["/x/one/y", "/x/one-more", "http:/x/one"], "c": 3}
    assert copies._moved(data, "/x/one", "/z") == {"a": "/z", "b": ["/z/y", "/x/one-more", "http:/x/one"], "c": 3}
