"""What a cluster creates is listed with its owner; what a run directory still has of a removed cluster is not taken for the next one's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.payload.ipi import lab
from ansible_collections.agentlab.ocp.plugins.module_utils.errors import LabError
from ansible_collections.agentlab.ocp.plugins.module_utils.installer import cluster, cluster_record, state
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, ipi, profile
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import host, recorded
from ansible_collections.agentlab.ocp.plugins.module_utils.state import FILE, load, owner

LEFT = (
    "logs/wait-for.log",
    cluster_record.FILENAME,
    cluster.METADATA,
    state.FILENAME,
    f"{lab.FOLDER}/provisioned.json",
)


def planned(tmp_path: Path) -> Any:
    (tmp_path / "p.yml").write_text(f"topology: compact\nflow: ipi\nhypervisor: {{state_dir: {tmp_path}/labs}}\n")
    return build.build(profile.load(tmp_path / "p.yml", None, "ostest"), "ostest")


def prepared(tmp_path: Path, text: str = "x") -> list[str]:
    """Note a cluster of flow `ipi` in a directory that has `text` in its files; return what is left of those before."""
    plan, directory = planned(tmp_path), tmp_path / "run"
    for name in (*LEFT, "install-config.yaml"):
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)
    recorded.record(plan, directory, "hypervisor", owner.caller(plan, directory))
    return [name for name in LEFT if (directory / name).exists()]


def test_what_an_agent_based_installation_made_stays_listed(tmp_path: Path) -> None:
    """`create cluster` removes it; without the list, the next agent-based installation took it for the user's."""
    assert prepared(tmp_path, '{"agentlab": {"made": {}}}') == [state.FILENAME]


def test_a_new_cluster_does_not_continue_the_one_before(tmp_path: Path) -> None:
    assert prepared(tmp_path) == [] and (tmp_path / "run/install-config.yaml").exists()
    assert prepared(tmp_path) == list(LEFT), "a run of the same cluster continues"
    assert {*ipi.LEFT} == {cluster_record.FILENAME, cluster.METADATA, state.FILENAME, lab.FOLDER}


def test_a_check_lists_what_a_run_records_once(tmp_path: Path) -> None:
    plan, directory = planned(tmp_path), tmp_path / "run"
    directory.mkdir()
    who = owner.caller(plan, directory)
    checked = recorded.record(plan, directory, "hypervisor", who, check=True)
    assert checked.certified and list(directory.iterdir()) == []
    made = recorded.record(plan, directory, "hypervisor", who)
    assert (made.created, made.certified) == (checked.created, True) and load(directory)["created"] == made.created
    again = recorded.record(plan, directory, "hypervisor", who)
    assert (again.created, again.certified, again.who) == ([], False, made.who), "the mark of the objects stays"
    there = [directory / FILE, directory / "tls"]
    assert recorded.discard(directory, check=True) == there and all(path.exists() for path in there)
    assert recorded.discard(directory) == there and recorded.discard(directory) == []


def test_a_cluster_of_another_plan_whose_list_is_lost_is_refused(tmp_path: Path) -> None:
    plan, directory = planned(tmp_path), tmp_path / "run"
    directory.mkdir()
    who = owner.caller(plan, directory)
    host.claim(Path(plan["hypervisor"]["state_dir"]), replace(who, owner=replace(who.owner, plan="another")))
    with pytest.raises(LabError, match=r"cluster ostest exists with a different plan, and .*state\.json, which lists"):
        recorded.record(plan, directory, "hypervisor", who)
