from __future__ import annotations

import base64
import io
import json
import stat
import subprocess
from pathlib import Path
from typing import Any, NoReturn

import pytest
import yaml
from ansible_collections.agentlab.ocp.plugins.module_utils.errors import LabError
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import profile
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.build import build
from ansible_collections.agentlab.ocp.plugins.module_utils.report import gather
from ansible_collections.agentlab.ocp.plugins.module_utils.report.causes import causes
from ansible_collections.agentlab.ocp.plugins.module_utils.report.secrets import of_document, of_run
from ansible_collections.agentlab.ocp.plugins.module_utils.screen import picture

EXAMPLES = Path(__file__).resolve().parents[3] / "config_examples"


@pytest.fixture
def plan(tmp_path: Path) -> dict[str, Any]:
    chosen = profile.load("sno_ipv4", EXAMPLES, "t1")
    chosen["hypervisor"]["state_dir"] = str(tmp_path / "state")
    return dict(build(chosen, "t1"))


@pytest.fixture
def run_dir(plan: dict[str, Any], tmp_path: Path) -> Path:
    """A run with secrets in its own files, and the same ones where programs printed them."""
    run = tmp_path / "run"
    for path, text in {
        "plan.yaml": yaml.safe_dump(plan),
        "install-config.yaml": yaml.safe_dump(
            {"pullSecret": json.dumps({"auths": {"r": {"auth": base64.b64encode(b"me:canary-pull-1").decode()}}})}
        ),
        "auth/kubeadmin-password": "canary-kubeadmin-2\n",
        "openshift/secret.yaml": "apiVersion: v1\nkind: Secret\nstringData: {any: canary-manifest-3}\n",
        "logs/wait-for.log": "said canary-pull-1 and canary-kubeadmin-2\n",
        ".openshift_install.log": "level=debug msg=canary-manifest-3\n",
    }.items():
        (run / path).parent.mkdir(parents=True, exist_ok=True)
        (run / path).write_text(text)
    console = tmp_path / "state/t1/console"
    console.mkdir(parents=True)
    (console / "t1_master_0.log").write_bytes(
        b"\xff login canary-kubeadmin-2\r\nBearer canaryTokenOfTheConsole4\r\n" * 3
    )
    log = tmp_path / "state/t1/services/registry/log"
    log.parent.mkdir(parents=True)
    log.write_text('auth failed for "me:canary-pull-1"\n')
    return run


def test_reports_have_no_secret_and_belong_to_their_owner(
    plan: dict[str, Any], run_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gather, "run", _no_program)
    out = tmp_path / "report"
    out.mkdir(mode=0o755)
    (out / "old").mkdir(mode=0o755)
    gatherer = gather.Gatherer(plan, run_dir, out, (None, "watcher"))
    for job in (gatherer._run_dir, gatherer._services, gatherer._consoles):
        job()
    gatherer._write("deep/in/it.txt", "x")
    files = [path for path in out.rglob("*") if path.is_file()]
    assert {path.name for path in files} >= {
        "t1_master_0.log",
        "registry.log",
        "install-config.yaml",
        "wait-for.log",
        ".openshift_install.log",
        "it.txt",
    }
    for path in files:
        assert "canary" not in path.read_text().replace("/canary", ""), path
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    for folder in (out, out / "run", out / "run/openshift", out / "console", out / "deep", out / "deep/in"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700, folder


def test_pictures_of_screens_are_pictures(plan: dict[str, Any], run_dir: Path, tmp_path: Path) -> None:
    """They are not redacted, so that nothing else may come under such a name."""
    gatherer = gather.Gatherer(plan, run_dir, tmp_path / "report", (None, "watcher"))
    gatherer._copy("screen/t1_master_0.png", io.BytesIO(b"P6 1 1 255 abcScreenshot saved"))
    found = tmp_path / "report/screen/t1_master_0.png"
    assert picture.read(found.read_bytes()) == (1, 1, b"abc") and stat.S_IMODE(found.stat().st_mode) == 0o600
    with pytest.raises(LabError, match="is not a PPM"):
        gatherer._copy("screen/other.png", io.BytesIO(b"canary-manifest-3"))
    assert [path.name for path in found.parent.iterdir()] == [found.name]


def test_units_are_those_of_the_wait_where_the_host_is_too_busy(
    plan: dict[str, Any], run_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wait had found the unit that fails; the report said that the service never answered, and had no log of the host."""

    def busy(*_args: Any) -> NoReturn:
        raise subprocess.TimeoutExpired("ssh", 120)

    gatherer = gather.Gatherer(plan, run_dir, tmp_path / "report", (None, "watcher"))
    logs: list[str] = []
    monkeypatch.setattr(gatherer, "_logs", lambda name, _address: logs.append(name))
    monkeypatch.setattr(gather, "run", lambda *_command, limit: "")
    monkeypatch.setattr(gather, "refusal", busy)
    monkeypatch.setattr(gather, "units", busy)
    failing = {"state": "activating", "restarts": 4, "said": "exits with an error"}
    gatherer.tape("lab", "/units", 200, {"assisted-service.service": failing})
    gatherer._host(plan["nodes"][0])
    assert logs == ["master-0"]
    [cause] = causes(gatherer.facts)
    assert cause.text.endswith("fails repeatedly: exits with an error")
    assert gatherer.out.missing["units of master-0"] == gatherer.out.missing["agent of master-0"]
    assert "120 seconds" in gatherer.out.missing["agent of master-0"]


def _no_program(*command: str, limit: float = 0) -> str:
    raise OSError("no program in this test")


def test_secrets_of_a_run_are_known(run_dir: Path) -> None:
    assert {"canary-pull-1", "canary-kubeadmin-2", "canary-manifest-3"} <= set(of_run(run_dir))


def test_a_damaged_file_has_no_secrets(run_dir: Path) -> None:
    (run_dir / "plan.yaml").write_text("[" * 100_000)
    (run_dir / "agent-config.yaml").write_bytes(b"\xff\xfe\0")
    assert "canary-kubeadmin-2" in of_run(run_dir)


def test_values_of_secret_keys_only() -> None:
    assert list(of_document({"proxy": {"httpProxy": "http://u:x8@h:3128", "noProxy": "a:b"}})) == ["x8"]
    data = {
        "a": "b",
        "bmc": [{"username": "admin", "password": "x9"}],
        "token": None,
        "pull_secret_file": "/p",
        "count": 3,
    }
    assert list(of_document(data)) == ["x9"]
    pem = "-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n"
    encoded = base64.b64encode(pem.encode()).decode()
    assert list(of_document({"users": [{"user": {"client-key-data": encoded}}]})) == [encoded, pem]
    assert list(of_document({"kind": "Secret", "data": {"x": "Y2FuYXJ5IDk="}})) == ["Y2FuYXJ5IDk=", "canary 9"]
