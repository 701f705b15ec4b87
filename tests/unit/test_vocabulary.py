"""What several parts must spell alike is spelled in one place, and the parts that are not Python agree with it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ansible_collections.agentlab.ocp.payload.api_server import state
from ansible_collections.agentlab.ocp.payload.images import components
from ansible_collections.agentlab.ocp.plugins.module_utils import vocabulary
from ansible_collections.agentlab.ocp.plugins.module_utils.releases import LATEST
from ansible_collections.agentlab.ocp.plugins.module_utils.reload import on_node
from ansible_collections.agentlab.ocp.plugins.module_utils.vocabulary import (
    ClusterStatus,
    Component,
    FinalizingStage,
    HostStatus,
    Port,
    Stage,
    Status,
)

ROOT = Path(__file__).resolve().parents[2]
FILES = [
    path
    for top in ("plugins", "payload")
    for path in sorted((ROOT / top).rglob("*.py"))
    if "machine_os/files" not in str(path)
]
# Texts that are nothing else: a word such as "Done" or "cli" has other meanings.
TEXTS = {
    text for owner in (Stage, FinalizingStage) for name, text in vars(owner).items() if name[0] != "_" and " " in text
}
TEXTS |= {text for name, text in vars(Component).items() if name[0] != "_" and text.startswith("agent-installer-")} | {
    vocabulary.LAB_VERSION
}
# Statuses; "error", "installed", "known", "ready" and "disconnected" have other meanings.
TEXTS |= set(vocabulary.STATUSES) - {
    Status.ERROR, Status.INSTALLED, Status.KNOWN, Status.READY, Status.DISCONNECTED,
}  # fmt: skip
TEXTS |= {ClusterStatus.ADDING_HOSTS.value, HostStatus.ADDED.value}
TEXTS |= {vocabulary.INSTALL_CONFIG_OVERRIDES, vocabulary.HARDWARE_REQUIREMENTS, vocabulary.FAILED_WITH_CLUSTER}
# A program that runs on nodes, without the collection; `test_a_program_alone_has_the_same_words` compares it.
ALONE = "plugins/module_utils/reload/on_node.py"
PORTS = re.compile(
    rf"(?<![\d.]):?({Port.ASSISTED_SERVICE}|{Port.MACHINE_CONFIG}|{Port.MACHINE_CONFIG_INSECURE}|{Port.API}|{Port.KUBELET})(?![\d.])"
)


def literals(path: Path) -> Iterator[tuple[int, str]]:
    """Texts and numbers of the code, without docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documentation = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and id(node) not in documentation:
            yield node.lineno, str(node.value)


# A text that shows what an address looks like.
EXAMPLE = re.compile(r"192\.168\.111\.20:|HOST:PORT")


def spelled(text: str) -> bool:
    """Return whether a literal is one of the texts, or has one of the ports; documentation of modules may name them."""
    return text in TEXTS or ("\n" not in text and not EXAMPLE.search(text) and PORTS.search(text) is not None)


def test_they_are_not_spelled_elsewhere() -> None:
    found = []
    for path in FILES:
        name = str(path.relative_to(ROOT))
        if name in ("plugins/module_utils/vocabulary.py", ALONE):
            continue
        for line, text in literals(path):
            if spelled(text):
                found.append(f"{name}:{line}: {text!r} is in module_utils/vocabulary.py")
    assert not found, "\n".join(found)


def test_a_program_alone_has_the_same_words() -> None:
    components = {Component.API_SERVER, Component.NODE_AGENT, Component.ORCHESTRATOR, Component.CSR_APPROVER}
    assert set(on_node.VARIABLES) == components
    words = {text for __, text in literals(ROOT / ALONE) if spelled(text)}
    assert words <= components | {str(Port.ASSISTED_SERVICE), str(Port.API), str(Port.KUBELET)}


def test_rules_use_all_statuses() -> None:
    """But those of features that the simulator does not have."""
    absent = {HostStatus.DISABLED, HostStatus.DISABLED_UNBOUND, HostStatus.RECLAIMING, HostStatus.RECLAIMING_REBOOTING}
    assert _used(state.HOST_RULES) == set(HostStatus) - absent
    assert _used(state.CLUSTER_RULES) == set(ClusterStatus)
    assert set(vocabulary.STATUSES) <= {*HostStatus, *ClusterStatus}


def _used(rules: Iterable[state.Rule[Any, Any, Any, Any]]) -> set[Any]:
    return {status for rule in rules for status in (*rule.sources, rule.dest)} - {state.SAME}


def test_components() -> None:
    """The table that makes them, and the list that profiles are checked with."""
    assert {*vocabulary.COMPONENTS} == {*components.COMPONENTS, *vocabulary.PLACEHOLDERS}
    assert len(vocabulary.COMPONENTS) == len({*vocabulary.COMPONENTS})


def test_lists_are_complete() -> None:
    for owner, listed in ((Stage, vocabulary.STAGES), (FinalizingStage, vocabulary.FINALIZING_STAGES)):
        assert sorted(text for name, text in vars(owner).items() if name[0] != "_") == sorted(listed)


def test_stages_of_a_run() -> None:
    assert f"STAGES := {' '.join(vocabulary.RUN_STAGES)}\n" in (ROOT / "Makefile").read_text()
    assert all((ROOT / f"playbooks/{stage}.yml").exists() for stage in vocabulary.RUN_STAGES)


def test_the_rule() -> None:
    assert all(
        map(
            spelled,
            (
                "Writing image to disk",
                "agent-installer-utils",
                "4.22.0-lab",
                ":8090/",
                "8090",
                "https://localhost:6443",
            ),
        )
    )
    assert not any(map(spelled, ("Done", "18090", "4.22.0", "like http://192.168.111.20:8090/", "hyperkube")))


def test_port_of_the_service_in_texts() -> None:
    """A template of the live system cannot import it."""
    assert (
        f":{Port.ASSISTED_SERVICE}/"
        in (ROOT / "roles/agent_image/files/live/files/etc/assisted/rendezvous-host.env.template.j2").read_text()
    )


def test_the_lab_is_of_the_newest_release() -> None:
    assert vocabulary.LAB_VERSION.rpartition(".")[0] == LATEST.name


def test_the_program_of_nodes_has_the_ports_of_openshift() -> None:
    assert on_node.SERVICE_PORT == Port.ASSISTED_SERVICE
    assert {unit: port for unit, (port, __) in on_node.ControlPlane.checks.items()} == {
        on_node.API: Port.API,
        on_node.KUBELET: Port.KUBELET,
    }
