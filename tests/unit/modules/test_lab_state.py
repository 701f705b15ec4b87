"""What a run directory still has of a cluster that was removed is not taken for the next one's."""

from __future__ import annotations

from pathlib import Path

from ansible_collections.agentlab.ocp.payload.ipi import lab
from ansible_collections.agentlab.ocp.plugins.module_utils.installer import cluster, cluster_record, state
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, ipi, profile
from ansible_collections.agentlab.ocp.plugins.module_utils.state import owner

from .test_own_options import run

LEFT = (
    "logs/wait-for.log",
    cluster_record.FILENAME,
    cluster.METADATA,
    state.FILENAME,
    f"{lab.FOLDER}/provisioned.json",
)


def prepared(tmp_path: Path, text: str = "x") -> list[str]:
    """Note a cluster of flow `ipi` in a directory that has `text` in its files; return what is left of those before."""
    (tmp_path / "p.yml").write_text(f"topology: compact\nflow: ipi\nhypervisor: {{state_dir: {tmp_path}/labs}}\n")
    plan = build.build(profile.load(tmp_path / "p.yml", None, "ostest"), "ostest")
    directory = tmp_path / "run"
    for name in (*LEFT, "install-config.yaml"):
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)
    who = owner.caller(plan, directory).fact()
    made = run("lab_state", plan=plan, owner=who, run_dir=str(directory), host="hypervisor")
    assert "failed" not in made, made
    return [name for name in LEFT if (directory / name).exists()]


def test_what_an_agent_based_installation_made_stays_listed(tmp_path: Path) -> None:
    """`create cluster` removes it; without the list, the next agent-based installation took it for the user's."""
    assert prepared(tmp_path, '{"agentlab": {"made": {}}}') == [state.FILENAME]


def test_a_new_cluster_does_not_continue_the_one_before(tmp_path: Path) -> None:

    assert prepared(tmp_path) == [] and (tmp_path / "run/install-config.yaml").exists()
    assert prepared(tmp_path) == list(LEFT), "a run of the same cluster continues"
    assert {*ipi.LEFT} == {cluster_record.FILENAME, cluster.METADATA, state.FILENAME, lab.FOLDER}
