from __future__ import annotations

import base64
import json
import stat
from pathlib import Path

import jsonschema
import pytest
import yaml
from ansible_collections.agentlab.ocp.plugins.module_utils import state
from ansible_collections.agentlab.ocp.plugins.module_utils.keys import ensure_ssh_key
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import inputs, rundir

PROFILES = Path(__file__).resolve().parents[3] / "config_examples"


def make(run: Path, name: str | None) -> list[str]:
    _plan, changes = rundir.prepare(run, name, PROFILES, "ostest")
    rundir.write(changes)
    return [change.path.name for change in changes]


def configure(run: Path) -> list[str]:
    changes = inputs.prepare(rundir.load_plan(run), run)
    rundir.write(changes)
    return [str(change.path.relative_to(run)) for change in changes]


def test_the_second_time_nothing_changes(tmp_path: Path) -> None:
    run = tmp_path / "ostest"
    assert make(run, "compact_ipv6") == [
        "profile.yaml", "plan.yaml", "plan.schema.json", "inventory.yml", "secrets.json"
    ]  # fmt: skip
    assert make(run, "compact_ipv6") == []
    assert make(run, None) == []
    assert (run / "profile.yaml").read_text() == (PROFILES / "compact_ipv6.yml").read_text()
    assert stat.S_IMODE((run / "plan.yaml").stat().st_mode) == 0o600


def test_an_editor_finds_the_schema_of_a_plan(tmp_path: Path) -> None:
    """It is next to the plan, also where the run directory is moved to, and not shown as a difference."""
    changes = rundir.prepare(tmp_path, "ha_ipv4", PROFILES, "ostest")[1]
    rundir.write(changes)
    text = (tmp_path / "plan.yaml").read_text()
    named = text.splitlines()[0].removeprefix("# yaml-language-server: $schema=")
    jsonschema.Draft202012Validator(json.loads((tmp_path / named).read_text())).validate(yaml.safe_load(text))
    [diff] = [change.diff() for change in changes if change.path.name == named]
    assert diff["before"] == "" and diff["after"] == "the JSON schema of plan.yaml\n"


def test_without_a_profile_the_plan_is_as_users_left_it(tmp_path: Path) -> None:
    make(tmp_path, "sno_ipv4")
    path = tmp_path / "plan.yaml"
    path.write_text(path.read_text().replace("memory_mib: 4096", "memory_mib: 5000"))
    assert rundir.prepare(tmp_path, None, PROFILES, "ostest")[0]["nodes"][0]["memory_mib"] == 5000


def test_a_cluster_that_exists_keeps_its_plan(tmp_path: Path) -> None:
    make(tmp_path, "sno_ipv4")
    state.record(tmp_path, [{"kind": "sandbox", "name": "agentlab-ostest", "host": "hypervisor"}])
    assert make(tmp_path, "sno_ipv4") == []
    with pytest.raises(
        rundir.RunError, match=r"agentlab destroy --cluster ostest\), or choose another name \(CLUSTER="
    ):
        make(tmp_path, "ha_ipv4")
    assert rundir.prepare(tmp_path, "ha_ipv4", PROFILES, "ostest", refuse=False)[1]


def test_the_run_directory_of_another_cluster_is_kept(tmp_path: Path) -> None:
    make(tmp_path, "sno_ipv4")
    with pytest.raises(rundir.RunError, match=r"cluster\.name is 'ostest': cluster other needs a run directory"):
        rundir.prepare(tmp_path, "sno_ipv4", PROFILES, "other")


def test_a_damaged_plan_is_made_again(tmp_path: Path) -> None:
    make(tmp_path, "sno_ipv4")
    (tmp_path / "plan.yaml").write_text("a: [")
    assert make(tmp_path, "sno_ipv4") == ["plan.yaml"]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (None, "there is no plan yet"),
        ("a: [", "not valid YAML"),
        ("cluster: {}", "cluster.name: is missing: must be lower-case"),
    ],
)
def test_a_plan_that_cannot_be_used(tmp_path: Path, text: str | None, wanted: str) -> None:
    if text:
        (tmp_path / "plan.yaml").write_text(text)
    with pytest.raises(rundir.RunError, match=wanted):
        make(tmp_path, None)


def older(run: Path, *fields: str) -> None:
    """Remove fields from the plan of a run, as an older version had none of them."""
    path = run / "plan.yaml"
    plan = yaml.safe_load(path.read_text())
    for holder in (plan, plan["boot"], plan["services"], *plan["nodes"]):
        for name in fields:
            holder.pop(name, None)
    path.write_text(yaml.safe_dump(plan))


def test_a_plan_of_an_older_version(tmp_path: Path) -> None:
    """One message has the command that makes it again, also while the cluster exists."""
    run = tmp_path / "one"
    rundir.write(rundir.prepare(run, "ha_ipv4", PROFILES, "one")[1])
    whole = rundir.load_plan(run)
    state.record(run, [{"kind": "sandbox", "name": "agentlab-one", "host": "hypervisor"}])
    older(run, "snapshots", "endpoints", "script_url", "console", "process_dir")
    with pytest.raises(rundir.RunError) as caught:
        rundir.load_plan(run)
    assert str(caught.value) == (
        f"{run}/plan.yaml: another version of agentlab made it, it lacks endpoints, nodes.console, "
        f"services.process_dir, boot.script_url, snapshots. "
        f"Correct it, or make it again: agentlab plan {run}/profile.yaml --cluster one --write"
    )
    rundir.write(rundir.prepare(run, str(run / "profile.yaml"), PROFILES, "one")[1])
    assert rundir.load_plan(run) == whole
    older(run, "snapshots", "memory_mib")
    text = (run / "plan.yaml").read_text()
    (run / "plan.yaml").write_text(text.replace("192.168.111.5", "192.168.111.6"))
    with pytest.raises(rundir.RunError, match="remove it first with the version that made it"):
        rundir.prepare(run, str(run / "profile.yaml"), PROFILES, "one")


def test_the_inventory_of_each_kind(tmp_path: Path) -> None:
    plan = rundir.prepare(tmp_path, "sno_ipv4", PROFILES, "ostest")[0]
    sandbox = rundir.inventory(plan, tmp_path)["all"]["children"]
    assert sandbox["hypervisors"]["hosts"]["hypervisor"]["agentlab_sandbox"] == "ostest"
    assert list(sandbox["observers"]["hosts"]) == ["hypervisor"]
    plan["hypervisor"] |= {"kind": "ssh", "host": "lab.example", "user": None}
    ssh = rundir.inventory(plan, tmp_path)["all"]["children"]
    assert ssh["hypervisors"]["hosts"]["hypervisor"] == {
        "ansible_host": "lab.example",
        "ansible_ssh_extra_args": rundir.SSH_ARGUMENTS,
    }
    assert ssh["observers"]["hosts"]["observer"]["ansible_connection"] == "local"


def test_inputs_that_were_consumed_are_not_written_again(tmp_path: Path) -> None:
    make(tmp_path, "sno_ipv4")
    assert configure(tmp_path) == [
        "install-config.yaml",
        "inputs/install-config.yaml",
        "agent-config.yaml",
        "inputs/agent-config.yaml",
        "openshift/agentlab-settings.yaml",
        "inputs/agentlab-settings.yaml",
    ]
    assert configure(tmp_path) == []
    (tmp_path / "agent-config.yaml").unlink()
    assert configure(tmp_path) == ["agent-config.yaml"]
    (tmp_path / "cluster-manifests").mkdir()
    (tmp_path / "install-config.yaml").unlink()
    assert configure(tmp_path) == []
    make(tmp_path, "sno_ipv6")
    assert "install-config.yaml" in configure(tmp_path)


def test_a_changed_input_is_left_alone(tmp_path: Path) -> None:
    make(tmp_path, "sno_ipv4")
    configure(tmp_path)
    path = tmp_path / "install-config.yaml"
    path.write_text(path.read_text() + "fips: true\n")
    assert configure(tmp_path) == []
    assert path.read_text().endswith("fips: true\n")


def test_secrets_are_private_and_not_in_a_diff(tmp_path: Path) -> None:
    make(tmp_path, "tnf_ipv4")
    changes = inputs.prepare(rundir.load_plan(tmp_path), tmp_path)
    rundir.write(changes)
    for name in ("install-config.yaml", "ssh/id_ecdsa", "tls/ca.key", "inputs/install-config.yaml"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600, name
    config = yaml.safe_load((tmp_path / "install-config.yaml").read_text())
    found = json.loads((tmp_path / "secrets.json").read_text())
    assert config["controlPlane"]["fencing"]["credentials"][0]["password"] == found["bmc"]
    token = base64.b64encode(f"ocp-user:{found['registry']}".encode()).decode()
    assert token in config["pullSecret"]
    shown = "".join(change.diff()["after"] for change in changes)
    assert token not in shown and found["bmc"] not in shown and found["registry"] not in shown


def test_check_mode_makes_no_keys(tmp_path: Path) -> None:
    make(tmp_path, "sno_ipv4")
    assert inputs.prepare(rundir.load_plan(tmp_path), tmp_path, check=True)
    assert not (tmp_path / "ssh").exists()
    assert not (tmp_path / "tls").exists()


def test_the_users_key_and_pull_secret_are_added(tmp_path: Path) -> None:
    run, key, secret = tmp_path / "run", tmp_path / "id.pub", tmp_path / "pull.json"
    make(run, "sno_ipv4")
    plan = rundir.load_plan(run)
    plan["installer"] |= {"ssh_key_file": str(key), "pull_secret_file": str(secret)}
    with pytest.raises(rundir.RunError, match=r"installer\.ssh_key_file is .*: cannot be read: No such file"):
        inputs.prepare(plan, run)
    key.write_text("ssh-rsa AAAA me\n")
    with pytest.raises(rundir.RunError, match="is not a file of SSH public keys"):
        inputs.prepare(plan, run)
    key.write_text(f"{ensure_ssh_key(tmp_path / 'other')}\n")
    secret.write_text("{}")
    with pytest.raises(rundir.RunError, match="not a pull secret"):
        inputs.prepare(plan, run)
    secret.write_text('{"auths": {"quay.io": {"auth": "eDp5"}}}')
    config = yaml.safe_load(inputs.prepare(plan, run)[0].after)
    assert config["sshKey"].splitlines()[1] == key.read_text().strip()
    assert set(yaml.safe_load(config["pullSecret"])["auths"]) == {"quay.io", "virthost.ostest.test.metalkube.org:5000"}


def test_extra_manifests_follow_the_profile(tmp_path: Path) -> None:
    """Those of the profile and of its folder are written; one that the profile no longer has is removed."""
    folder, run = tmp_path / "given", tmp_path / "run"
    folder.mkdir()
    (folder / "from-folder.yml").write_text("{apiVersion: v1, kind: Namespace, metadata: {name: two}}\n")
    (folder / "notes.txt").write_text("not a manifest\n")
    own = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "one"}}
    profile = tmp_path / "profile.yml"
    profile.write_text(json.dumps({"installer": {"manifests": {"own": own}, "manifests_dir": str(folder)}}))
    make(run, str(profile))
    configure(run)
    assert yaml.safe_load((run / "openshift/own.yaml").read_text()) == own
    assert (run / "openshift/from-folder.yml").read_text() == (folder / "from-folder.yml").read_text()
    assert sorted(path.name for path in (run / "openshift").iterdir()) == [
        "agentlab-settings.yaml",
        "from-folder.yml",
        "own.yaml",
    ]
    (run / "openshift/from-folder.yml").write_text("changed by a user\n")
    make(run, "sno_ipv4")
    assert configure(run) == ["inputs/from-folder.yml", "openshift/own.yaml", "inputs/own.yaml"]
    assert configure(run) == []
    assert (run / "openshift/from-folder.yml").exists() and not (run / "openshift/own.yaml").exists()
