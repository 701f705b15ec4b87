"""The table of ci/verbs.py: every verb is driven on a running cluster."""

from __future__ import annotations

import subprocess
import urllib.error
from pathlib import Path

import pytest
import yaml
from ansible_collections.agentlab.ocp.ci import calls, verbs
from ansible_collections.agentlab.ocp.payload.cluster.router import Router
from ansible_collections.agentlab.ocp.plugins.module_utils.cli.verbs import VERBS

ROOT = Path(__file__).resolve().parents[3]


def test_every_verb_has_a_case() -> None:
    assert set(verbs.CASES) == set(VERBS), "add a case to CASES of ci/verbs.py"


def test_a_job_drives_them() -> None:
    jobs = yaml.safe_load((ROOT / "ci/jobs.yml").read_text())["jobs"].values()
    assert any(job.get("verbs") for job in jobs)


def test_what_a_case_finds_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(__: calls.Verbs) -> None:
        calls.expect(False, "no packet")

    monkeypatch.setattr(verbs, "CASES", {"capture": wrong, "list": lambda __: None})
    assert [(name, error) for name, __, error in verbs.drive("x", ["capture", "list"])] == [
        ("capture", "capture: VerbFailed: no packet"),
        ("list", ""),
    ]


def test_the_console_is_found_by_its_name_alone(tmp_path: Path) -> None:
    """Any answer of the router was taken for the console, also 503."""
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    request = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=other", "-days", "1"]
    subprocess.run([*request, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    name = "console.apps.lab.test"
    route = {"metadata": {"name": "console", "namespace": "openshift-console"}, "spec": {"host": name}}
    router = Router(lambda: [route], "4.20.0", (0, 0))
    router.start(certificate, key)
    try:
        url = f"https://127.0.0.1:{router._servers[0].server_port}/"
        assert "<h1>console</h1>" in verbs._page(url, host=name)
        with pytest.raises(urllib.error.HTTPError, match="503"):
            verbs._page(url)
    finally:
        router.stop()
