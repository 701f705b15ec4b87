"""Passwords are random for each run directory, unless the profile sets them, and not in a plan that is passed on."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import inputs, rundir, secrets

PROFILES = Path(__file__).parents[3] / "config_examples"


def make(run: Path, profile: dict[str, Any], cluster: str = "ostest") -> Any:
    source = run.parent / f"{run.name}.yml"
    source.write_text(yaml.safe_dump({"topology": "sno", "stack": "ipv4", **profile}))
    plan, changes = rundir.prepare(run, str(source), PROFILES, cluster)
    rundir.write(changes)
    return plan


def kept(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run / "secrets.json").read_text())
    return found


def test_they_are_random_and_made_once(tmp_path: Path) -> None:
    plan = make(tmp_path / "one", {})
    found = kept(tmp_path / "one")
    assert make(tmp_path / "one", {}) == plan and kept(tmp_path / "one") == found
    assert make(tmp_path / "two", {}) == plan, "the plan is a function of profile and cluster name"
    others = kept(tmp_path / "two")
    values = [one[name] for one in (found, others) for name in ("bmc", "registry", "registry_http")]
    assert len(set(values)) == 6 and all(len(value) >= 24 for value in values)
    assert stat.S_IMODE((tmp_path / "one/secrets.json").stat().st_mode) == 0o600


def test_those_of_the_profile_count_and_are_not_passed_on(tmp_path: Path) -> None:
    """The defaults of dev-scripts can still be set."""
    services = {"bmc": {"password": "password"}, "registry": {"username": "ocp-user", "password": "ocp-pass"}}
    plan = make(tmp_path / "run", {"services": services, "nodes": {"master-0": {"bmc": {"password": "of-its-own"}}}})
    assert "of-its-own" not in json.dumps(plan) and "ocp-pass" not in json.dumps(plan)
    found = kept(tmp_path / "run")
    assert (found["bmc"], found["registry"], found["nodes"]) == ("password", "ocp-pass", {"master-0": "of-its-own"})
    whole = secrets.with_passwords(plan, secrets.ensure(plan, tmp_path / "run"))
    assert whole["nodes"][0]["bmc"]["password"] == "of-its-own"
    assert whole["services"]["bmc"]["password"] == "password"


def test_nodes_of_a_plan_without_passwords_keep_theirs(tmp_path: Path) -> None:
    """`configure` is handed the plan without passwords: it must not drop those of single nodes."""
    plan = make(tmp_path / "run", {"nodes": {"master-0": {"bmc": {"password": "of-its-own"}}}})
    before = kept(tmp_path / "run")
    rundir.write(inputs.prepare(plan, tmp_path / "run"))
    assert kept(tmp_path / "run") == before
    rundir.write(rundir.prepare(tmp_path / "run", None, PROFILES, "ostest")[1])  # a later stage, which reads the plan
    assert kept(tmp_path / "run") == before


def test_nodes_of_another_profile_leave_none(tmp_path: Path) -> None:
    """A lab's own BMC of the same name would be asked with the password of an existing machine."""
    make(tmp_path / "run", {"nodes": {"master-0": {"bmc": {"password": "of-its-own"}}}})
    bmc = kept(tmp_path / "run")["bmc"]
    plan = make(tmp_path / "run", {})
    assert kept(tmp_path / "run")["nodes"] == {}
    assert (
        secrets.with_passwords(plan, secrets.passwords_of(plan, tmp_path / "run"))["nodes"][0]["bmc"]["password"] == bmc
    )


def test_check_mode_writes_none(tmp_path: Path) -> None:
    plan = make(tmp_path / "run", {})
    (tmp_path / "run/secrets.json").unlink()
    assert inputs.prepare(plan, tmp_path / "run", check=True)
    assert not (tmp_path / "run/secrets.json").exists()


@pytest.mark.parametrize("text", ["[1]", '{"bmc": 1}', "{", "null", '{"nodes": 1}'])
def test_a_damaged_file_is_named(tmp_path: Path, text: str) -> None:
    make(tmp_path / "run", {})
    (tmp_path / "run/secrets.json").write_text(text)
    with pytest.raises(ValueError, match=r"secrets\.json"):
        make(tmp_path / "run", {})
