"""What is written in one place only: a format, a protocol or a policy that a second file would write differently one day."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LIBRARIES = "plugins/module_utils"
FILES = [
    path for top in ("plugins", "payload", "ci") for path in (ROOT / top).rglob("*.py") if "/files/" not in str(path)
]
IGNITION = {f"{LIBRARIES}/ignition/config.py", f"{LIBRARIES}/ignition/rules.py"}
# What only its own places may have in their code.
PLACES = {
    "descriptors of the OCI image specification": (
        r"class Descriptor\b(?!\(content)",
        {f"{LIBRARIES}/release/content.py"},
    ),
    "data URLs in base64 (resources of Ignition)": (r"data:[^\s\"]*;base64,", {f"{LIBRARIES}/ignition/resources.py"}),
    "members of newc cpio archives": (r"b\"070701\" \+", {f"{LIBRARIES}/coreos/cpio.py"}),
    "tokens of the assisted service": (r"\"typ\": ?\"JWT\"", {f"{LIBRARIES}/installer/credentials.py"}),
    # node_agent/rest.py is what the payload's programs use; the others can't import it, or read content by digest: see
    # docs/architecture/own-code.md.
    "requests of urllib": (
        r"urllib\.request\.Request\(",
        {
            "payload/node_agent/rest.py",
            "payload/cluster/machine_config_daemon.py",
            f"{LIBRARIES}/release/registry.py",
            f"{LIBRARIES}/sandbox/faultd.py",
            f"{LIBRARIES}/sandbox/lifecycle.py",
            "ci/verbs.py",
            "payload/ipi/ironic.py",
        },
    ),
    "names of the files that machines boot from": (
        r"\"boot-artifacts\"|f?\"(?:agent|node)\.[{*]",
        {f"{LIBRARIES}/vocabulary.py"},
    ),
    "files of a run directory (`RunFile`)": (
        r"""["'](?:run/)?(?:tls/ca\.|ssh/id_ecdsa|auth/kube|lab-payload\.|logs/[\w-]+\.(?:jsonl?|log)\b)|["'](?:tls|ssh|auth)["'] ?/ ?["']""",
        {f"{LIBRARIES}/vocabulary.py"},
    ),
    "directories of a hypervisor, which a plan has as fields": (
        r"(?:process|pool|console|services)_dir\([^)]*\[",
        {f"{LIBRARIES}/plan/hypervisors.py"},
    ),
    "variable of the only token of release 4.17": (r"AGENT_AUTH_TOKEN", {f"{LIBRARIES}/releases/model.py"}),
    "name of the web console": (r"console-openshift-console\.", {f"{LIBRARIES}/vocabulary.py"}),
    # The service has names of its own, a mix of the two.
    "names of CPU architectures": (
        r"[\"'](?:amd64|arm64|aarch64)[\"']: ?[(\"']",
        {f"{LIBRARIES}/vocabulary.py", "payload/api_server/releases.py"},
    ),
    # The cases of conformance/ have expectations of their own; the others are examples of manifests.
    "API group of the machine-config operator": (
        r"(?<!\.)machineconfiguration\.openshift\.io",
        {
            f"{LIBRARIES}/vocabulary.py",
            f"{LIBRARIES}/plan/manifests.py",
            *(f"{LIBRARIES}/conformance/{name}.py" for name in ("configuration", "discovery", "identities")),
        },
    ),
    "account with which new nodes request their certificates": (
        r"openshift-machine-config-operator:node-bootstrapper",
        {"payload/cluster/api/access.py", f"{LIBRARIES}/conformance/model.py"},
    ),
    "letters of a kubeadmin password": (r"abcdefghijkmnopqrstuvwxyz", {f"{LIBRARIES}/installer/credentials.py"}),
    "JSON patch (RFC 6902)": (r"import jsonpatch", {"payload/cluster/patch.py"}),
    # rules.py is what the specification allows. noop.py answers with what an agent leaves of a config that it fetched, and
    # verbs_of_tools.py gives a command one to wrap: neither is a config of ours.
    "Ignition configs: their version": (
        r"[\"']ignition[\"']: ?\{\s*[\"']version[\"']",
        {*IGNITION, "payload/node_agent/swarm/noop.py", "ci/verbs_of_tools.py"},
    ),
    "Ignition configs: their users": (
        r"[\"']passwd[\"']\]?(?:: ?| = )\{\s*[\"']users[\"']|[\"']sshAuthorizedKeys[\"']: ",
        IGNITION,
    ),
    "Ignition configs: what they point to, and whom they trust": (
        r"[\"']config[\"']\]?(?:: ?| = )\{\s*[\"']merge[\"']|[\"']certificateAuthorities[\"']: ",
        IGNITION,
    ),
}


@pytest.mark.parametrize("what", PLACES)
def test_one_place(what: str) -> None:
    pattern, places = PLACES[what]
    found = {str(path.relative_to(ROOT)) for path in FILES if re.search(pattern, path.read_text(encoding="utf-8"))}
    assert found == places, f"{what}: import them"
