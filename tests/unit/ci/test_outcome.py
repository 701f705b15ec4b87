"""Classes of a failed installation, and the JUnit that OpenShift CI's dashboards read."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.ci import outcome
from ansible_collections.agentlab.ocp.plugins.module_utils.ci.outcome import Class
from junitparser import JUnitXml

CASES = [
    "other",
    "configuration",
    "infrastructure",
    "cluster bootstrap",
    "cluster creation",
    "cluster operator stability",
]


@pytest.mark.parametrize(
    ("stage", "error", "reported", "bootstrapped", "ended"),
    [
        ("prepare", "no space left", None, False, Class.INFRASTRUCTURE),
        ("configure", "cannot be read", None, False, Class.CONFIGURATION),
        ("image", 'failed to create install config: invalid "install-config.yaml" file', 1, False, Class.CONFIGURATION),
        ("image", "invalid Agent Config configuration: spec.hosts[0]", None, False, Class.CONFIGURATION),
        (
            "image",
            "invalid install-config configuration: networking.clusterNetwork[0]",
            None,
            False,
            Class.CONFIGURATION,
        ),
        ("image", "invalid host definition in install-config.yaml: host", None, False, Class.CONFIGURATION),
        ("image", 'failed to generate asset "Platform Provisioning Check": hosts[0]', None, False, Class.CONFIGURATION),
        ("image", "the registry does not answer", None, False, Class.INFRASTRUCTURE),
        ("boot", "virtual media: 500", None, False, Class.INFRASTRUCTURE),
        ("wait", "interrupted by SIGTERM", None, False, Class.BOOTSTRAP),
        ("wait", "interrupted by SIGTERM", None, True, Class.CREATION),
        ("wait", "timeout", 1, False, Class.BOOTSTRAP),
        ("wait", "gave up", 5, True, Class.BOOTSTRAP),
        ("wait", "gave up", 6, True, Class.CREATION),
        ("wait", "unstable", 7, True, Class.OPERATORS),
        ("validate", "2 of 9 checks failed", None, True, Class.OPERATORS),
        ("destroy", "busy", None, True, Class.OTHER),
        ("prepare", "not enough memory", 4, False, Class.INFRASTRUCTURE),
    ],
)
def test_class_of_a_stage(stage: str, error: str, reported: int | None, bootstrapped: bool, ended: Class) -> None:
    assert outcome.classify(stage, error, reported, bootstrapped=bootstrapped) == ended


def suite(history: list[Class], tmp_path: Path, text: str = "VM x is shut off") -> list[tuple[str, bool, str]]:
    path = tmp_path / outcome.JUNIT
    outcome.junit(history, text).write(str(path))
    [found] = JUnitXml.fromfile(str(path))
    assert found.name == "cluster install"
    return [
        (
            case.name.removeprefix("install should succeed: "),
            case.is_passed,
            "".join(one.message or "" for one in case.result),
        )
        for case in found
    ]


def test_an_installed_cluster_passes_every_case(tmp_path: Path) -> None:
    assert suite([Class.INSTALLED], tmp_path) == [(name, True, "") for name in [*CASES, "overall"]]


@pytest.mark.parametrize(("ended", "failing"), list(zip(list(Class)[1:], CASES, strict=True)))
def test_the_failing_case_is_the_last_and_has_the_cause(ended: Class, failing: str, tmp_path: Path) -> None:
    found = suite([ended], tmp_path)
    assert [name for name, *__ in found] == [*CASES[: CASES.index(failing) + 1], "overall"]
    assert [(name, printed) for name, passed, printed in found if not passed] == [
        (failing, "VM x is shut off"),
        ("overall", "the installation failed"),
    ]


def test_an_earlier_attempt_without_infrastructure_is_a_flake(tmp_path: Path) -> None:
    found = suite([Class.INFRASTRUCTURE, Class.INSTALLED], tmp_path)
    assert [passed for name, passed, __ in found if name == "infrastructure"] == [True, False]
    assert found[-1] == ("overall", True, "")
    assert all(passed for name, passed, __ in suite([Class.BOOTSTRAP, Class.INSTALLED], tmp_path))


def test_attempts_are_the_first_words_of_the_lines() -> None:
    assert outcome.attempts("4\n0 done\n\nnonsense\n") == [Class.INFRASTRUCTURE, Class.INSTALLED, Class.OTHER]


def test_a_cause_has_no_secrets_and_no_control_characters(tmp_path: Path) -> None:
    [*__, (name, __, printed), ___] = suite([Class.BOOTSTRAP], tmp_path, "\x1b[31mpassword: hunter2secret\x07")
    assert name == "cluster bootstrap" and "hunter2secret" not in printed and "\x07" not in printed
