"""The runner of e2e jobs: its table, and one job that goes as far as needs no machine."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest
import yaml
from ansible_collections.agentlab.ocp.ci import results
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, profile
from junitparser import JUnitXml

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def run_job() -> ModuleType:
    spec = importlib.util.spec_from_file_location("run_job", ROOT / "ci/run_job.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_job_can_be_planned(run_job: ModuleType, tmp_path: Path) -> None:
    for name in yaml.safe_load((ROOT / "ci/jobs.yml").read_text())["jobs"]:
        job = run_job.load_job(name)
        runner = run_job.Runner(job, "ci", tmp_path / name)
        assert build.build(profile.load(runner.profile, ROOT / "config_examples"), "ci")["nodes"]


def test_wrong_jobs_are_named(run_job: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"jobs\.yml: no job 'nope'; there are: e2e-agent-5control-image, "):
        run_job.load_job("nope")
    table = tmp_path / "jobs.yml"
    table.write_text("defaults: {}\njobs: {a: {profile: sno_ipv4, stages: [prepar]}}\n")
    with pytest.raises(ValueError, match=r"jobs\.yml: jobs\.a\.stages has prepar; stages are prepare, configure, "):
        run_job.load_job("a", table)


def test_a_job_that_expects_a_failure(run_job: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTLAB_RUNS", str(tmp_path / "runs"))
    runner = run_job.Runner(run_job.load_job("fault-registry-down"), "utjob", tmp_path / "out")
    (runner.run_dir / "logs").mkdir(parents=True)
    (runner.run_dir / "report").mkdir()
    (runner.run_dir / "logs/wait-for.log").write_text(
        "level=info msg=Waiting for cluster install to initialize. Sleeping for 30 seconds\n"
    )
    summary = runner.run_dir / "report/summary.txt"
    summary.write_text(
        "First cause: the lab's registry does not answer: 192.168.111.1 port 5000: Connection refused\n     Next: x\n"
    )
    failed = run_job.Stage("wait", 1.0, "Wait: gave up", 5)
    assert runner.check_result(failed).error == ""
    assert runner.check_result(failed._replace(error="")).error == "nothing failed"
    assert runner.check_result(failed._replace(exit_code=6)).error == "exit code 6, expected 5; Wait: gave up"
    summary.write_text("First cause: VM x is shut off\n")
    assert runner.check_result(failed).error.startswith(
        "'First cause: VM x is shut off', expected \"the lab's registry"
    )


def test_what_a_console_said_can_be_a_failure(run_job: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "junit.xml"
    run_job.junit("job", [run_job.Stage("wait", 1.0, "\x1b[31mnot as configured:\x1b[0m\x07")]).write(
        str(path), pretty=True
    )
    [suite] = JUnitXml.fromfile(str(path))
    assert [result.message for case in suite for result in case.result] == ["not as configured:"]


def test_a_job_leaves_its_artifacts(
    run_job: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`configure` with a secret, then a stage that fails: `image`, since nothing was prepared."""
    table = tmp_path / "jobs.yml"
    release = {"payload": "ocp", "image": "registry.invalid/ocp/release@sha256:" + "0" * 64}
    values = {
        "topology": "sno",
        "stack": "ipv4",
        "release": release,
        "installer": {"pull_secret_file": str(tmp_path / "pull")},
    }
    (tmp_path / "pull").write_text(json.dumps({"auths": {"quay.example": {"auth": "c2VjcmV0OnNlY3JldA=="}}}))
    (tmp_path / "p.yml").write_text(yaml.safe_dump(values))
    job = {
        "profile": str(tmp_path / "p.yml"),
        "stages": ["configure", "image"],
        "variables": {},
        "idle_minutes": 5,
        "timeout_minutes": 5,
        "again": False,
        "gather": False,
        "expect": None,
    }
    table.write_text(yaml.safe_dump({"defaults": {}, "jobs": {"a": job}}))
    monkeypatch.setattr(run_job, "load_job", lambda name, load=run_job.load_job: load(name, table))
    monkeypatch.setenv("AGENTLAB_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    arguments = [
        "a",
        "--artifacts",
        str(tmp_path / "out"),
        "--cluster",
        "utjob",
        "--results",
        str(tmp_path / "results.jsonl"),
    ]
    assert run_job.main(arguments) == 1
    [record] = results.load(tmp_path / "results.jsonl")
    assert (record["job"], record["result"], list(record["stages"])) == (
        "a",
        "failed",
        ["configure", "image", "destroy"],
    )
    out = tmp_path / "out/a"
    said = capsys.readouterr().out
    assert "ok    configure " in said
    assert "FAIL  image " in said
    assert "ok    destroy " in said
    cases = {
        case.name: [type(result).__name__ for result in case.result]
        for suite in JUnitXml.fromfile(str(out / "junit.xml"))
        for case in suite
    }
    assert cases == {"configure": [], "image": ["Failure"], "destroy": []}
    assert {"configure.log", "image.log", "events.jsonl"} <= {path.name for path in out.iterdir()}
    assert (out / "run/install-config.yaml").exists()
    assert not any("c2VjcmV0OnNlY3JldA" in path.read_text(errors="ignore") for path in out.rglob("*") if path.is_file())
