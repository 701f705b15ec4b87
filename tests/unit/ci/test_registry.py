"""`ci/step-registry` keeps the rules of OpenShift's registry, and the simulator of ci-operator runs steps as ci-operator does."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.ci_operator import Job
from tests.ci_registry import Registry, seconds

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "ci/step-registry"
EXTERNAL = frozenset(
    {"ofcir-acquire", "ofcir-release", "ipi-install-rbac", "rhcos-conf-osstream", "gather", "baremetalds-e2e-test"}
)
Edit = Callable[[str], str]


def test_the_registry_keeps_the_rules() -> None:
    registry = Registry.load(FOLDER, EXTERNAL)
    assert not registry.problems
    assert {"agentlab-setup", "agentlab-gather", "agentlab-validate"} <= registry.refs.keys()
    assert registry.workflows.keys() == {"agentlab-e2e-generic", "agentlab-e2e-generic-conformance", "agentlab-lab"}


def test_a_job_of_dev_scripts_finds_its_parameter() -> None:
    registry = Registry.load(FOLDER, EXTERNAL)
    steps = registry.workflows["agentlab-e2e-generic"]["steps"]
    assert registry.steps(steps["pre"]) == [
        "ofcir-acquire",
        "ipi-install-rbac",
        "rhcos-conf-osstream",
        "agentlab-setup",
    ]
    assert registry.steps(steps["post"]) == ["agentlab-gather", "gather", "ofcir-release"]
    assert "DEVSCRIPTS_CONFIG" in {one["name"] for one in registry.refs["agentlab-setup"]["env"]}


@pytest.mark.parametrize(
    ("file", "old", "new", "problem"),
    [
        ("setup/agentlab-setup-ref.yaml", "as: agentlab-setup", "as: agentlab-set", "the name of the ref should be agentlab-setup"),
        ("setup/agentlab-setup-ref.yaml", "  from: agentlab\n", "", "one of from and from_image is required"),
        ("setup/agentlab-setup-ref.yaml", "from: agentlab", "from: Agent_lab", "is not a valid name"),
        ("setup/agentlab-setup-ref.yaml", "commands: agentlab-setup-commands.sh", "commands: run.sh", "commands should be the file"),
        ("setup/agentlab-setup-ref.yaml", "  grace_period: 10m\n", "", "have a trap, but there is no grace_period"),
        ("setup/agentlab-setup-ref.yaml", "2h45m0s", "165 minutes", "is not a duration"),
        ("setup/agentlab-setup-ref.yaml", 'cpu: "1"', "cpu: 1", "is not a quantity in quotes"),
        ("setup/agentlab-setup-ref.yaml", "env: OPENSHIFT_INSTALL_RELEASE_IMAGE", "env: ''", "needs a name (tag or stream:tag) and an env"),
        ("setup/agentlab-setup-ref.yaml", "    default: 130m\n", "", "AGENTLAB_TIMEOUT: the default should be a string"),
        ("setup/agentlab-setup-ref.yaml", "- name: AGENTLAB_PAYLOAD", "- name: AGENTLAB_PAYLOADS", "commands use AGENTLAB_PAYLOAD, which is not a parameter"),
        ("setup/agentlab-setup-ref.yaml", "documentation: Name of the cluster.", "documentation:", "AGENTLAB_CLUSTER: has no documentation"),
        ("setup/agentlab-setup-ref.yaml", "  resources:", "  credentials: [{name: a, namespace: b, mount_path: c}]\n  resources:", "an absolute mount_path"),
        ("setup/agentlab-setup-ref.yaml", "  resources:", "  surprise: 1\n  resources:", "unknown fields: surprise"),
        ("setup/agentlab-setup-ref.yaml", "  grace_period: 10m", "  grace_period: 10m\n  best_effort: true", "best_effort is only for post"),
        ("gather/agentlab-gather-ref.yaml", "  timeout: 20m\n", "", "best_effort without timeout"),
        ("gather/OWNERS", "approvers", "editors", "has no approvers and reviewers"),
        ("pre/agentlab-pre-chain.yaml", "ref: agentlab-setup", "ref: agentlab-setups", "there is no ref agentlab-setups"),
        ("post/agentlab-post-chain.yaml", "chain: gather", "ref: agentlab-gather", "duplicated names: agentlab-gather"),
        ("e2e/generic/agentlab-e2e-generic-workflow.yaml", "    allow_best_effort_post_steps: true\n", "", "which the workflow does not allow"),
        ("e2e/generic/agentlab-e2e-generic-workflow.yaml", "    pre:", "    env: {NO_SUCH: a}\n    pre:", "no step has the parameters NO_SUCH"),
    ],
)  # fmt: skip
def test_what_breaks_a_rule_is_reported(file: str, old: str, new: str, problem: str, tmp_path: Path) -> None:
    shutil.copytree(FOLDER, tmp_path / "registry")
    path = tmp_path / "registry/agentlab" / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    found = Registry.load(tmp_path / "registry", EXTERNAL).problems
    assert any(problem in one for one in found), found


def test_files_that_belong_to_nothing_are_reported(tmp_path: Path) -> None:
    shutil.copytree(FOLDER, tmp_path / "registry")
    (tmp_path / "registry/agentlab/setup/notes.txt").write_text("")
    (tmp_path / "registry/agentlab/new").mkdir()
    found = Registry.load(tmp_path / "registry", EXTERNAL).problems
    assert "agentlab/setup/notes.txt: the prefix should be agentlab-setup" in found
    assert "agentlab/setup/notes.txt: invalid file name" in found
    assert "agentlab/new: has no OWNERS" in found


def test_durations() -> None:
    assert [seconds(text) for text in ("2h45m0s", "90s", "1h")] == [9900, 90, 3600]


@pytest.fixture
def small(tmp_path: Path) -> Callable[..., Job]:
    """A job with steps of one line each: name -> (commands, more fields)."""

    def make(workflow: str, steps: dict[str, tuple[str, str]], **settings: object) -> Job:
        root = tmp_path / "registry"
        for name, (commands, more) in steps.items():
            folder = root / name
            folder.mkdir(parents=True)
            (folder / f"{name}-commands.sh").write_text(commands)
            text = f"ref:\n  as: {name}\n  from: src\n  commands: {name}-commands.sh\n  resources: {{requests: {{cpu: 1m}}}}\n  documentation: x\n{more}"
            (folder / f"{name}-ref.yaml").write_text(text)
            (folder / "OWNERS").write_text("approvers: [a]\nreviewers: [a]\n")
        (root / "w").mkdir()
        (root / "w/w-workflow.yaml").write_text(f"workflow:\n  as: w\n  documentation: x\n  steps:\n{workflow}")
        for folder in (root, root / "w"):
            (folder / "OWNERS").write_text("approvers: [a]\nreviewers: [a]\n")
        registry = Registry.load(root)
        assert not registry.problems
        return Job(registry, tmp_path / "job", tmp_path, tmp_path, **settings)

    return make


def test_steps_share_flat_files_and_parameters(small: Callable[..., Job]) -> None:
    env = '  env: [{name: WHAT, default: "d", documentation: x}]\n'
    job = small(
        "    env: {WHAT: w}\n    pre: [{ref: a}]\n    test: [{ref: b}]\n",
        {
            "a": ('echo "$WHAT" > "$SHARED_DIR/x"; mkdir "$SHARED_DIR/folder"; echo 1 > "$ARTIFACT_DIR/y"', env),
            "b": ('test ! -e "$SHARED_DIR/folder"; cat "$SHARED_DIR/x"; [[ $CLUSTER_TYPE == packet ]]', ""),
        },
    )
    assert job.run("w")
    assert job.of("b").output == "w\n"
    assert (job.artifacts("a") / "y").exists()


def test_after_a_failure_only_post_runs_and_best_effort_does_not_count(small: Callable[..., Job]) -> None:
    job = small(
        "    allow_best_effort_post_steps: true\n    pre: [{ref: a}]\n    test: [{ref: b}]\n    post: [{ref: c}, {ref: d}]\n",
        {
            "a": ('echo kept > "$SHARED_DIR/x"', ""),
            "b": ("exit 5", ""),
            "c": ("exit 1", "  best_effort: true\n  timeout: 1m\n"),
            "d": ('cat "$SHARED_DIR/x"', ""),
        },
    )
    assert not job.run("w")
    assert [(one.step, one.status, one.counts) for one in job.ended] == [
        ("a", 0, True), ("b", 5, True), ("c", 1, False), ("d", 0, True)
    ]  # fmt: skip


def test_a_timeout_is_an_interrupt_with_a_grace_period(small: Callable[..., Job]) -> None:
    waiting = "trap 'echo asked; exit 3' INT\nsleep 60 & wait\n"
    job = small(
        "    test: [{ref: a}]\n    post: [{ref: b}]\n",
        {
            "a": (waiting, "  grace_period: 10s\n  timeout: 1s\n"),
            "b": ("trap '' INT\nsleep 60", "  grace_period: 1s\n  timeout: 1s\n"),
        },
    )
    assert not job.run("w")
    assert (job.of("a").status, job.of("a").timed_out, job.of("a").output) == (3, True, "asked\n")
    assert job.of("b").timed_out and job.of("b").status < 0


def test_a_shared_dir_beyond_a_secret_fails_the_step(small: Callable[..., Job]) -> None:
    job = small("    test: [{ref: a}]\n", {"a": ('head -c 1100000 /dev/zero > "$SHARED_DIR/x"', "")})
    assert not job.run("w")
    assert "Secret is too long" in job.of("a").output and not job.secret
