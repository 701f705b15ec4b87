"""`agentlab ci run`: the table of jobs, and jobs that go as far as needs no machine."""

from __future__ import annotations

import datetime
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import yaml
from ansible_collections.agentlab.ocp.ci import results
from ansible_collections.agentlab.ocp.plugins.module_utils import cli
from ansible_collections.agentlab.ocp.plugins.module_utils.ci import jobs, outcome, records, shared
from ansible_collections.agentlab.ocp.plugins.module_utils.cli import ci
from ansible_collections.agentlab.ocp.plugins.module_utils.cli.ci import runner as stages
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, files, profile, rundir
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.problems import ProfileError
from junitparser import JUnitXml

ROOT = Path(__file__).resolve().parents[3]
# What has begun in its name is in the host's state directory, where the processes of a test run meet.
CLUSTER = f"utjob{os.environ.get('PYTEST_XDIST_WORKER', '')}"
TABLE = ROOT / "ci/jobs.yml"
Run = Callable[..., int]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Calls `agentlab ci` with directories of its own: out, shared, runs."""
    monkeypatch.setenv("AGENTLAB_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "shared").mkdir()

    def call(command: str, *arguments: str, shared: Path | None = None) -> int:
        places = ["--artifacts", str(tmp_path / "out"), "--shared", str(shared or tmp_path / "shared")]
        return cli.main(["ci", command, "--cluster", CLUSTER, *places, *arguments])

    return call


def cases(path: Path) -> dict[str, list[str]]:
    return {
        case.name: [type(one).__name__ for one in case.result]
        for suite in JUnitXml.fromfile(str(path))
        for case in suite
    }


def test_installations_are_combined_in_at_most_25_jobs() -> None:
    assert sum(name.startswith("e2e-") for name in jobs.names(TABLE)) <= 25


def test_every_job_can_be_planned(tmp_path: Path) -> None:
    for name in jobs.names(TABLE):
        job = jobs.load(name, TABLE)
        assert not job["programs"] or isinstance(job["profile"], str)
        folder = tmp_path / name
        folder.mkdir()
        runner = stages.Runner(job, "ci", shared.Place("artifacts", folder))
        assert build.build(profile.load(runner.profile, ROOT / "config_examples"), "ci")["nodes"]
        # Its page compares a run with former ones of the same profile: "profile" was that of all jobs.
        assert isinstance(job["profile"], str) or Path(runner.profile).stem == name


def test_a_job_with_real_programs_takes_them_from_variables(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("AGENTLAB_REAL_SERVICE", raising=False)
    assert run("run", "real-service") == outcome.Class.CONFIGURATION
    assert "AGENTLAB_REAL_SERVICE not set: each must be the checkout" in capsys.readouterr().err
    assert "real-service" in results.left_out()
    monkeypatch.setenv("AGENTLAB_REAL_SERVICE", str(tmp_path / "nowhere"))
    assert "real-service" not in results.left_out()
    assert run("run", "real-service") == outcome.Class.CONFIGURATION
    assert f"{tmp_path}/nowhere': there is no such directory" in capsys.readouterr().err


def test_wrong_jobs_are_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"jobs\.yml: no job 'nope'; there are: e2e-agent-4control-ipv4, "):
        jobs.load("nope", TABLE)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("[]", ":1:1: must be a mapping"),
        ("a: {}", ":1:1: a: unknown field; there are `every_change`, `jobs`"),
        ("a: {}", ": jobs: is missing: must be a mapping"),
        ("jobs: {a: [x]}", ":1:8: jobs.a is ['x']: must be a mapping"),
        ("jobs: {a: {profil: x}}", ":1:12: jobs.a.profil: unknown field; did you mean `profile`?"),
        ("jobs: {a: {stages: wait}}", ":1:12: jobs.a.stages is 'wait': must be a list"),
        ("jobs: {a: {stages: [prepar]}}", ":1:21: jobs.a.stages.0 is 'prepar': did you mean prepare? must be one of prepare, "),
        ("jobs: {a: {programs: {x: [y]}}}", ":1:23: jobs.a.programs.x is ['y']: must be one line of printable characters"),
        ("jobs: {a: {again: 'no'}}", ":1:12: jobs.a.again is 'no': must be true or false"),
        ("jobs: {a: {expect: {exit_code: 5, cause: x}}}", ": jobs.a.expect.log: is missing: must be a list"),
        ("jobs: {a: {expect: {stage: x}}}", ":1:21: jobs.a.expect.stage is 'x': must be one of prepare, "),
        ("jobs: {a: {idle_minutes: ten}}", ":1:12: jobs.a.idle_minutes is 'ten': must be a number"),
        ("jobs: {a: {profile: [sno_ipv4]}}", ":1:12: jobs.a.profile is ['sno_ipv4']: must be a name or a mapping"),
        ("jobs: {a: {profile: {topology: x}}}", ":1:22: jobs.a.profile.topology is 'x': must be one of sno, "),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_table_is_named(tmp_path: Path, text: str, wanted: str) -> None:
    """With file, line, field, value, and the valid values, as of a profile."""
    (tmp_path / "jobs.yml").write_text(text)
    for read in (jobs.names, partial(jobs.load, "a")):
        with pytest.raises(ProfileError) as refused:
            read(tmp_path / "jobs.yml")
        assert any(str(one).startswith(f"{tmp_path}/jobs.yml{wanted}") for one in refused.value.problems), refused.value


def test_a_job_that_expects_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTLAB_RUNS", str(tmp_path / "runs"))
    runner = stages.Runner(jobs.load("fault-registry-down", TABLE), CLUSTER, shared.Place("artifacts", tmp_path))
    (runner.run_dir / "logs").mkdir(parents=True)
    (runner.run_dir / "report").mkdir()
    (runner.run_dir / "logs/wait-for.log").write_text(
        "level=info msg=Waiting for cluster install to initialize. Sleeping for 30 seconds\n"
    )
    summary = runner.run_dir / "report/summary.txt"
    summary.write_text(
        "First cause: the lab's registry does not answer: 192.168.111.1 port 5000: Connection refused\n     Next: x\n"
    )
    failed = stages.Stage("wait", 1.0, "Wait: gave up", 5)
    assert runner.check_result(failed).error == ""
    assert runner.ended(failed) == outcome.Class.BOOTSTRAP
    assert runner.cause(failed).splitlines()[0].startswith("First cause: the lab's registry")
    assert runner.check_result(failed._replace(error="")).error == "nothing failed"
    assert runner.check_result(failed._replace(exit_code=6)).error == "exit code 6, expected 5; Wait: gave up"
    summary.write_text("First cause: VM x is shut off\n")
    assert runner.check_result(failed).error.startswith(
        "'First cause: VM x is shut off', expected \"the lab's registry"
    )


def test_a_mirrored_job_reads_the_mirrors_that_a_program_leaves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTLAB_RUNS", str(tmp_path / "runs"))
    for name, given in (("e2e-agent-sno-usb", None), ("named", "sno_ipv4")):
        job = (
            jobs.load(name, TABLE)
            if given is None
            else jobs.Job(**{**jobs.DEFAULTS, "profile": given, "mirrored": True})
        )
        assert jobs.cases(job)[:3] == ["prepare", "mirrored", "configure"]
        place = shared.Place("artifacts", tmp_path / name)
        place.folder.mkdir()
        runner = stages.Runner(job, CLUSTER, place)
        installer = profile.load(runner.profile, ROOT / "config_examples")["installer"]
        assert installer["mirrors_file"] == str(tmp_path / name / "idms-oc-mirror.yaml")
        assert files.mirror_sources(installer["mirrors_file"])[0]["source"] == "none.invalid"


def test_a_job_that_expects_another_stage_to_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The class is that of the installation, since these stages have no exit code; the cause is in the error."""
    monkeypatch.setenv("AGENTLAB_RUNS", str(tmp_path / "runs"))
    runner = stages.Runner(jobs.load("fault-install-config", TABLE), CLUSTER, shared.Place("artifacts", tmp_path))
    printed = "Create the manifests and the image: invalid install-config configuration: FeatureSet: Unsupported value"
    failed = stages.Stage("image", 1.0, printed)
    assert runner.check_result(failed).error == ""
    assert runner.check_result(failed._replace(name="prepare")).error.startswith(
        "ended with prepare, expected image; exit code 4, expected 3; "
    )
    assert runner.check_result(failed._replace(error="no space left")).error.startswith(
        "exit code 4, expected 3; 'no space"
    )
    runner = stages.Runner(jobs.load("fault-validation", TABLE), CLUSTER, shared.Place("artifacts", tmp_path))
    failed = stages.Stage("validate", 1.0, "Fail when a check failed: 1 of 19 checks failed:\n...")
    assert runner.check_result(failed).error == "" and runner.ended(failed) == outcome.Class.OPERATORS


def test_a_fault_that_was_never_injected_fails_its_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTLAB_RUNS", str(tmp_path / "runs"))
    runner = stages.Runner(jobs.load("fault-power-off", TABLE), CLUSTER, shared.Place("artifacts", tmp_path))
    last = stages.Stage("wait", 1.0, "")
    assert ci._struck(runner, last) == last  # there is no plan
    runner.run_dir.mkdir(parents=True)
    plan = build.build(profile.load(runner.profile, None, CLUSTER), CLUSTER)
    (runner.run_dir / rundir.PLAN).write_text(rundir.dump(plan))
    assert ci._struck(runner, last).error == "never injected: power_off of master-0 (Installing)"
    assert ci._struck(runner, last._replace(name="prepare")).error == ""


@pytest.mark.slow
@pytest.mark.parametrize(("job", "status"), [("fault-install-config", "3\n"), ("fault-no-way-out", "4\n")])
def test_a_fault_job_shows_its_class(run: Run, tmp_path: Path, job: str, status: str) -> None:
    """Those that need no machine; the job itself passes."""
    assert run("run", job) == 0
    assert (tmp_path / "shared" / outcome.STATUS).read_text() == status
    failed = {name for name, result in cases(tmp_path / "out" / job / outcome.JUNIT).items() if result}
    shown = {"3\n": "configuration", "4\n": "infrastructure"}[status]
    assert failed == {f"install should succeed: {shown}", "install should succeed: overall"}


def test_output_of_a_console_can_be_a_failure(tmp_path: Path) -> None:
    path = tmp_path / "junit.xml"
    (tmp_path / "wait.log").write_text("before\n\x1b[31mlast\x07\n")
    failed = stages.Stage("wait", 1.0, "\x1b[31mnot as configured:\x1b[0m\x07")
    path.write_text(stages.junit.text(stages.cases("job", [failed], tmp_path, None)))
    [suite] = JUnitXml.fromfile(str(path))
    assert [result.message for case in suite for result in case.result] == ["not as configured:"]
    assert [case.system_out for case in suite] == ["before\nlast"]


@pytest.mark.slow
def test_a_job_leaves_its_artifacts(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`configure` with a secret, then a stage that fails: `image`, since nothing was prepared."""
    release = {"payload": "ocp", "image": "registry.invalid/ocp/release@sha256:" + "0" * 64}
    values = {
        "topology": "sno",
        "stack": "ipv4",
        "release": release,
        "installer": {"pull_secret_file": str(tmp_path / "pull")},
    }
    (tmp_path / "pull").write_text(json.dumps({"auths": {"quay.example": {"auth": "c2VjcmV0OnNlY3JldA=="}}}))
    (tmp_path / "p.yml").write_text(yaml.safe_dump(values))
    table = tmp_path / "jobs.yml"
    job = {"profile": str(tmp_path / "p.yml"), "stages": ["configure", "image"], "idle_minutes": 5}
    table.write_text(yaml.safe_dump({"jobs": {"a": job}}))
    monkeypatch.setattr(ci, "TABLE", table)
    assert run("run", "a", "--results", str(tmp_path / "results.jsonl")) == outcome.Class.INFRASTRUCTURE
    [record] = records.load(tmp_path / "results.jsonl")
    assert (record["job"], record["result"], list(record["stages"]), record["nodes"]) == (
        "a",
        "failed",
        ["configure", "image", "destroy"],
        1,
    )
    assert "checks" not in record and "shown" not in record
    out = tmp_path / "out/a"
    printed = capsys.readouterr().out
    assert "ok    configure " in printed
    assert "FAIL  image " in printed
    assert "ok    destroy " in printed
    assert cases(out / "junit.xml") == {
        "configure": [],
        "image": ["Failure"],
        "destroy": [],
        "host master-0 reaches Done": ["Skipped"],
    }
    assert not (out / "report/junit.xml").exists() and "image failed" in (out / "report/run.json").read_text()
    assert cases(out / outcome.JUNIT) == {
        "install should succeed: other": [],
        "install should succeed: configuration": [],
        "install should succeed: infrastructure": ["Failure"],
        "install should succeed: overall": ["Failure"],
    }
    assert {"configure.log", "image.log", "events.jsonl"} <= {path.name for path in out.iterdir()}
    assert (out / "run/install-config.yaml").exists()
    assert not any("c2VjcmV0OnNlY3JldA" in path.read_text(errors="ignore") for path in out.rglob("*") if path.is_file())
    assert {path.stat().st_mode & 0o777 for path in out.rglob("*") if path.is_file()} == {0o600}
    assert (tmp_path / "shared" / outcome.STATUS).read_text() == "4\n"
    assert {path.name for path in (tmp_path / "shared").iterdir()} == {
        outcome.STATUS,
        outcome.INFRASTRUCTURE_LOG,
        "custom-links.txt",
    }


def test_a_record_has_what_validate_and_fencing_showed() -> None:
    job = jobs.Job(**{**jobs.DEFAULTS, "stages": ["prepare"]})
    checks = ({"name": "nodes", "ok": True, "found": ""}, {"name": "pods", "ok": True, "found": ""})
    outage = "the API did not answer for 33.0 s"
    done = [
        stages.Stage("validate", 18.0, "", checks=checks[:1]),
        stages.Stage("validate-day2", 20.0, "", checks=checks),
        stages.Stage("fencing", 154.0, "", shown=(outage,)),
        stages.Stage("verbs", 212.0, "", shown=("list",)),
    ]
    record = ci._record("a", job, done, datetime.datetime.now(datetime.UTC), 400.0, None)
    assert (record["checks"], record["shown"], "nodes" in record) == (2, [outage], False)


def test_output_of_the_verbs_is_redacted_before_it_is_an_artifact(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While they run, the artifacts have nothing of it; binary files of the run directory, which cannot be redacted, stay there."""
    monkeypatch.setenv("AGENTLAB_RUNS", str(tmp_path / "runs"))
    out, root = tmp_path / "out", tmp_path / "root"
    out.mkdir()
    (root / "ci").mkdir(parents=True)
    (root / "ci/verbs.py").write_text(
        f"import pathlib\nprint('password: opaquehunter', flush=True)\nprint([p.name for p in pathlib.Path({str(out)!r}).iterdir()])"
    )
    monkeypatch.setattr(stages, "ROOT", root)
    job = {**jobs.load("e2e-agent-sno-ipv4", TABLE), "profile": "sno_ipv4"}
    runner = stages.Runner(job, CLUSTER, shared.Place("artifacts", out))
    assert not runner.program("verbs").error
    assert (out / "verbs.log").read_text() == "password: REDACTED\n[]\n"
    for name, data in (
        ("report/hosts/a.gz", b"\xff\0"),
        ("packets.pcap", b"\xd4\xc3opaquehunter"),
        ("logs/a.log", b"token: opaquehunter"),
    ):
        (runner.run_dir / name).parent.mkdir(parents=True, exist_ok=True)
        (runner.run_dir / name).write_bytes(data)
    runner.collect()
    found = {str(path.relative_to(out)): path for path in out.rglob("*") if path.is_file()}
    assert {"report/hosts/a.gz", "hosts/a.gz"} & set(found) and "run/logs/a.log" in found
    assert not any(b"opaquehunter" in path.read_bytes() for path in found.values())
    assert {path.stat().st_mode & 0o777 for path in found.values()} == {0o600}


def test_a_bad_profile_is_a_failure_of_the_configuration(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bad.yml").write_text("topology: sno\nmaster: {vcpu: 2}\n")
    for target in (str(tmp_path / "bad.yml"), "no_such_profile"):
        assert run("run", target) == outcome.Class.CONFIGURATION
    assert "did you mean `vcpus`?" in capsys.readouterr().err
    assert (tmp_path / "shared" / outcome.STATUS).read_text() == "3\n3\n"
    assert "did you mean" in (tmp_path / "out/bad" / outcome.INFRASTRUCTURE_LOG).read_text()
    assert cases(tmp_path / "out/bad" / outcome.JUNIT) == {
        "install should succeed: other": [],
        "install should succeed: configuration": ["Failure"],
        "install should succeed: overall": ["Failure"],
    }


@pytest.mark.slow
def test_a_sandbox_that_cannot_be_made_is_a_failure_of_the_infrastructure(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = run("run", "sno_ipv4", "--stages", "prepare", "--set", f"hypervisor.state_dir={tmp_path}/file")
    assert done == outcome.Class.INFRASTRUCTURE
    assert (tmp_path / "shared" / outcome.STATUS).read_text() == "4\n"


@pytest.mark.parametrize("shared", ["/proc", "missing", "file"])
def test_a_shared_dir_that_cannot_be_written_keeps_the_exit_class(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str], shared: str
) -> None:
    (tmp_path / "file").write_text("")
    assert run("run", "no_such_profile", shared=tmp_path / shared) == outcome.Class.CONFIGURATION
    [message] = [line for line in capsys.readouterr().err.splitlines() if "SHARED_DIR" in line]
    assert (
        f"SHARED_DIR {tmp_path / shared}: cannot write custom-links.txt, install-status.txt" in message
        or shared == "file"
    )
    assert message.endswith("the result of the installation is 3")
    assert (tmp_path / "out/no_such_profile" / outcome.STATUS).read_text() == "3\n"


def test_wrong_assignments_are_named(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    for text, printed in {
        "topology": "--set 'topology': is not of the form field.field=value",
        "stack.a=1": "--set 'stack.a': stack is not a mapping in the profile",
        "release.payload={": "--set release.payload:2:1: ",
    }.items():
        assert run("run", "sno_ipv4", "--set", text) == outcome.Class.CONFIGURATION
        assert printed in capsys.readouterr().err


def test_a_job_ends_as_it_should_when_its_output_is_not_read(run: Run, tmp_path: Path) -> None:
    unread, output = os.pipe()
    os.close(unread)
    command = [
        sys.executable,
        "-m",
        "ansible_collections.agentlab.ocp.plugins.module_utils.cli",
        "ci",
        "run",
        "sno_ipv4",
    ]
    places = ["--artifacts", str(tmp_path / "out"), "--cluster", CLUSTER]
    done = subprocess.run(
        [*command, *places, "--stages", "configure"], stdout=output, stderr=output, timeout=300, check=False
    )
    os.close(output)
    assert done.returncode == 0
    assert list(cases(tmp_path / "out/sno_ipv4/junit.xml"))[:2] == ["configure", "destroy"]


def test_an_interrupted_job_has_a_class_and_artifacts(run: Run, tmp_path: Path) -> None:
    """As `timeout` in a step does it: SIGTERM while a playbook runs."""
    command = [
        sys.executable,
        "-m",
        "ansible_collections.agentlab.ocp.plugins.module_utils.cli",
        "ci",
        "run",
        "ha_ipv4",
    ]
    places = ["--artifacts", str(tmp_path / "out"), "--shared", str(tmp_path / "shared"), "--cluster", CLUSTER]
    with subprocess.Popen(
        [*command, *places, "--stages", "configure"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as job:
        events, deadline = tmp_path / "out/ha_ipv4/events.jsonl", time.monotonic() + 60
        while not (events.exists() and b"playbook_on_start" in events.read_bytes()) and time.monotonic() < deadline:
            time.sleep(0.05)
        job.send_signal(signal.SIGTERM)
        printed, __ = job.communicate(timeout=120)
    assert job.returncode == outcome.Class.INFRASTRUCTURE, printed
    assert "FAIL  configure" in printed and "interrupted by SIGTERM" in printed
    assert "to remove it: " in printed
    assert (tmp_path / "shared" / outcome.STATUS).read_text() == "4\n"
    left = [entry for entry in os.listdir("/proc") if entry.isdigit() and _belongs(entry, tmp_path)]
    assert not left


def _belongs(pid: str, folder: Path) -> bool:
    try:
        return f"AGENTLAB_RUN={folder}".encode() in Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False


def test_a_command_gets_the_kubeconfig_and_a_directory_for_its_junit(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the cluster's network: that of this host, with the host's own libvirt."""
    assert run("exec", "true") == 1
    assert f"there is no cluster '{CLUSTER}'" in capsys.readouterr().err
    local = ["--set", "hypervisor.kind=local", "--set", f"hypervisor.state_dir={tmp_path}/state"]
    run("run", "sno_ipv4", "--stages", "configure", "--keep", *local)
    assert run("exec", "true") == 1
    assert "there is no kubeconfig yet; agentlab image" in capsys.readouterr().err
    (tmp_path / f"runs/{CLUSTER}/auth").mkdir(exist_ok=True)
    (tmp_path / f"runs/{CLUSTER}/auth/kubeconfig").write_text("kind: Config")
    called: list[list[str]] = []
    monkeypatch.setattr(ci, "become", lambda command: called.append(command) or 7)
    assert run("exec", "--", "tests", "--junit-dir", "x") == 7
    out = tmp_path / "out"
    assert called == [
        [
            "env", f"KUBECONFIG={tmp_path}/runs/{CLUSTER}/auth/kubeconfig", f"ARTIFACT_DIR={out}", f"JUNIT_DIR={out}/junit",
            "tests", "--junit-dir", "x",
        ]
    ]  # fmt: skip
    assert (out / "junit").is_dir()


def test_a_job_keeps_the_junit_of_its_command(run: Run, tmp_path: Path) -> None:
    """As of a conformance suite; its output is redacted, and a failure of it is one of the job."""
    local = ["--set", "hypervisor.kind=local", "--set", f"hypervisor.state_dir={tmp_path}/state"]
    run("run", "sno_ipv4", "--stages", "configure", "--keep", *local)
    (tmp_path / f"runs/{CLUSTER}/auth").mkdir(exist_ok=True)
    (tmp_path / f"runs/{CLUSTER}/auth/kubeconfig").write_text("kind: Config")
    (tmp_path / "job").mkdir()
    text = 'cp "$KUBECONFIG" "$JUNIT_DIR/junit_x.xml"; ls bin/agentlab; echo "password: opaquehunter"'
    job = {**jobs.DEFAULTS, "command": text}
    done = stages.Runner(job, CLUSTER, shared.Place("artifacts", tmp_path / "job")).command()
    assert (done.name, done.error) == ("command", "")
    assert (tmp_path / "job/junit/junit_x.xml").read_text() == "kind: Config"
    assert (tmp_path / "job/command.log").read_text() == "bin/agentlab\npassword: REDACTED\n"
    job = {**jobs.DEFAULTS, "command": "echo 3 cases failed; exit 1"}
    assert stages.Runner(job, CLUSTER, shared.Place("artifacts", tmp_path / "job")).command().error == "3 cases failed"


@pytest.mark.slow
def test_a_full_disk_keeps_the_exit_class(tmp_path: Path) -> None:
    """ARTIFACT_DIR and SHARED_DIR on a file system without a free block, in a mount namespace of its own."""
    out, run_dirs = tmp_path / "out", tmp_path / "runs"
    out.mkdir()
    mount = f"mount -t tmpfs -o size=64k none {out} && mkdir {out}/shared && ! cat /dev/zero > {out}/filler"
    call = f"{sys.executable} -m ansible_collections.agentlab.ocp.plugins.module_utils.cli ci run sno_ipv4 --cluster {CLUSTER}"
    places = f"--stages configure --keep --artifacts {out} --shared {out}/shared"
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", f"{{ {mount}; }} 2>/dev/null; exec {call} {places}"],
        env={**os.environ, "AGENTLAB_RUNS": str(run_dirs)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    printed = [line for line in done.stderr.splitlines() if line.startswith("agentlab: ")]
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr[-4000:]
    assert len(printed) == 2, printed
    for line in printed:
        assert "No space left on device" in line and line.endswith("; the result of the installation is 0")
    assert f"SHARED_DIR {out}/shared: cannot write custom-links.txt, ds-vars.conf, install-status.txt" in printed[0]
