"""The configuration in a checkout, as the module `devscripts_config` writes it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.devscripts import checkout, configuration
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import rundir
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.problems import ProfileError


@pytest.fixture
def given(tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "common.sh").touch()
    return {
        "profile": {"topology": "compact"},
        "cluster": "two",
        "checkout": str(tmp_path),
        "user": "me",
        "variables": {"CI_TOKEN": "sha256~abcdefgh", "INSTALLER_PROXY": True},
        "overwrite": False,
    }


def test_written_once(given: dict[str, Any], tmp_path: Path) -> None:
    made, path, changes = checkout.prepare(given)
    assert path == tmp_path / "config_me.sh" and not path.exists()
    assert "abcdefgh" not in str(changes[0].diff())
    rundir.write(changes)
    assert path.stat().st_mode & 0o777 == 0o600
    assert "export INSTALLER_PROXY=true " in path.read_text() and "CI_TOKEN" in made.values
    assert checkout.prepare(given)[2] == []
    assert checkout.secrets(given["variables"]) == ["sha256~abcdefgh"]


def test_a_scenario(given: dict[str, Any]) -> None:
    assert checkout.prepare(given | {"profile": "SNO_IPV6"})[0].values["AGENT_E2E_TEST_SCENARIO"] == "SNO_IPV6"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"checkout": "/nowhere"}, "/nowhere: is not a checkout of dev-scripts: it has no common.sh"),
        ({"user": "../x"}, "user is '../x': must be the name of a user, such as root"),
        ({"profile": "mine"}, "profile is 'mine': must be a mapping, or a scenario such as HA_IPV4V6_DHCP"),
        ({"profile": ["a"]}, r"profile is \['a'\]: must be a mapping"),
        ({"variables": {"A": "x\ny"}}, "A must be one line of printable characters"),
        ({"variables": {"A;id": "x"}}, "'A;id' is not the name of a variable"),
    ],
)
def test_what_cannot_be_used(given: dict[str, Any], change: dict[str, Any], problem: str) -> None:
    with pytest.raises((checkout.CheckoutError, configuration.ExportError), match=problem):
        checkout.prepare(given | change)


def test_a_profile_that_is_wrong(given: dict[str, Any]) -> None:
    with pytest.raises(ProfileError, match=r"profile: master\.vcpu: unknown field; did you mean `vcpus`"):
        checkout.prepare(given | {"profile": {"master": {"vcpu": 3}}})


def test_a_file_of_the_user_is_kept(given: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "config_me.sh").write_text("export CI_TOKEN=mine\n")
    with pytest.raises(configuration.ExportError, match="was not written by agentlab, and may have settings of yours"):
        checkout.prepare(given)
    assert checkout.prepare(given | {"overwrite": True})[2]


def test_the_module_shows_no_secret(given: dict[str, Any], tmp_path: Path) -> None:
    arguments = given | {"_ansible_check_mode": True, "_ansible_diff": True, "_ansible_remote_tmp": "/tmp"}
    module = "ansible_collections.agentlab.ocp.plugins.modules.devscripts_config"
    done = subprocess.run(
        [sys.executable, "-c", f"import {module} as m; m.main()"],
        input=json.dumps({"ANSIBLE_MODULE_ARGS": arguments}), capture_output=True, text=True, check=False,
    )  # fmt: skip
    found = json.loads(done.stdout)
    assert found["changed"] and found["lost"] and not (tmp_path / "config_me.sh").exists()
    assert "INSTALLER_PROXY=true" in found["diff"][0]["after"]
    assert "abcdefgh" not in done.stdout
