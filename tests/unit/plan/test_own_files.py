"""Files that a profile names by paths from its own folder, and what becomes of the mirrors in one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.agentlab.ocp.plugins.module_utils.ci import jobs
from ansible_collections.agentlab.ocp.plugins.module_utils.ci.records import profile_id
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, configs, files, profile, rundir, secrets
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.problems import ProfileError

ROOT = Path(__file__).resolve().parents[3]
TEXT = """installer:
  ssh_key_file: ~/.ssh/id_rsa.pub
  mirrors_file: more/idms.yaml
  manifests_dir: ../manifests
machines_from: nodes.json
release: {installer: {binary: ./openshift-install}}
"""
JOB = "e2e-agent-tna-ipv4"
LAB = "192.168.111.1:5000"


def test_relative_paths_start_from_the_folder_of_the_profile(tmp_path: Path) -> None:
    path = tmp_path / "mine/p.yml"
    path.parent.mkdir()
    path.write_text(TEXT)
    source = profile.read(path)
    found = profile.rooted_source(source).raw
    assert found == {
        "installer": {
            "ssh_key_file": "~/.ssh/id_rsa.pub",
            "mirrors_file": f"{tmp_path}/mine/more/idms.yaml",
            "manifests_dir": f"{tmp_path}/manifests",
        },
        "machines_from": f"{tmp_path}/mine/nodes.json",
        "release": {"installer": {"binary": f"{tmp_path}/mine/openshift-install"}},
    }
    assert source.raw == yaml.safe_load(TEXT), "which is what the records of jobs are about"


def test_plan_and_copy_of_the_profile_have_absolute_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}}
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests/one.yaml").write_text(json.dumps(manifest))
    (tmp_path / "p.yml").write_text("installer: {manifests_dir: manifests}\n")
    monkeypatch.chdir(tmp_path)
    plan, changes = rundir.prepare(tmp_path / "run", "p.yml", None, "one", files=True)
    assert plan["installer"]["manifests_dir"] == str(tmp_path / "manifests")
    [copy] = [change.after for change in changes if change.path.name == rundir.PROFILE]
    assert yaml.safe_load(copy) == {"installer": {"manifests_dir": str(tmp_path / "manifests")}}


def test_a_profile_without_a_file_has_no_relative_paths() -> None:
    with pytest.raises(
        ProfileError, match=r"installer.manifests_dir is 'manifests': must be a path from the root or from home"
    ):
        profile.validated_profile(profile.parse("installer: {manifests_dir: manifests}\n", "text"), "one")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "p.yml").write_text("machines_from: nodes.json\n")
    with pytest.raises(ProfileError, match=f"machines_from is '{tmp_path}/nodes.json': cannot be read: No such file"):
        profile.load(tmp_path / "p.yml")


def test_an_existing_machine_is_read_from_the_inventory_in_that_folder() -> None:
    """Its node is the existing machine of the inventory; the profile has quirks alone."""
    [node] = build.build(profile.load("sno_bare_metal", ROOT / "config_examples"), "one")["nodes"]
    assert node["bare_metal"] and node["nics"][0]["mac"] == "52:54:00:0b:ae:01"
    assert (node["bmc"]["username"], len(node["bmc"]["quirks"])) == ("root", 4)


def job() -> Any:
    """The job whose files are in the folder of the table, and its source."""
    table = ROOT / "ci/jobs.yml"
    found = jobs.load(JOB, table)
    assert found["folder"] == str(table.parent)
    return profile.inline(found["profile"], JOB, found["folder"])


def mirrored(raw: dict[str, Any] | None = None) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The mirrors and the logins of the job's install-config.yaml; raw: other fields of its `installer`."""
    source = job()
    source.raw["installer"] = source.raw["installer"] | (raw or {})
    found = build.build(profile.validated_profile(source, "one", files=True), "one")
    plan = secrets.with_passwords(found, secrets.planned_passwords(found, Path("/nowhere")))
    more = files.mirror_sources(plan["installer"]["mirrors_file"])
    config = configs.install_config(plan, pull_secret={}, ssh_key="", trust_bundle="", more_sources=more)
    return config["imageDigestSources"], json.loads(config["pullSecret"])["auths"]


def test_mirrors_of_profile_and_file_with_a_login_for_each() -> None:
    sources, auths = mirrored()
    assert [(one["source"], one["mirrors"]) for one in sources] == [
        ("registry.agentlab.test/lab/release", [f"{LAB}/lab/release"]),
        ("registry.agentlab.test/lab/payload", [f"{LAB}/lab/payload"]),
        ("quay.example.com/team/payload", [f"{LAB}/lab/payload"]),
    ]
    assert auths.keys() == {"virthost.one.test.metalkube.org:5000", LAB} and len({*map(str, auths.values())}) == 1
    own = [{"source": "a.test/b", "mirrors": ["192.168.111.9:5000/b", "192.168.111.1:5001/b"]}]
    empty = mirrored({"image_digest_sources": own})[1]
    assert LAB in empty, "of the file"
    assert "192.168.111.9:5000" not in empty and "192.168.111.1:5001" not in empty, "not the lab's registry"


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("mirrors_file", "profiles/nothing.yaml", r"ci/profiles/nothing.yaml': cannot be read: No such file"),
        ("mirrors_file", "profiles/manifests/50-masters-folder.yaml", "has a document of the kind 'MachineConfig'"),
        ("manifests_dir", "profiles/none", "profiles/none': cannot be read: No such file"),
        (
            "image_digest_sources",
            [{"source": "a b", "mirrors": []}],
            "image_digest_sources.0.source is 'a b': must be an image",
        ),
    ],
)
def test_files_of_a_job_that_are_wrong(field: str, value: Any, problem: str) -> None:
    with pytest.raises(ProfileError, match=problem):
        mirrored({field: value})


def test_the_record_of_a_job_is_about_the_profile_as_it_is_written() -> None:
    source = job()
    assert profile_id(source) != profile_id(profile.rooted_source(source))
    assert source.raw["installer"]["manifests_dir"] == "profiles/manifests"
