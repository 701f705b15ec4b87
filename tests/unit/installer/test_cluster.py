"""`openshift-install create cluster`, wrapped. The program is a fake, a script that behaves as the test wants; no cluster is created."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.installer import cluster, cluster_record, store
from ansible_collections.agentlab.ocp.plugins.module_utils.installer.binary import InstallerBuild
from ansible_collections.agentlab.ocp.plugins.module_utils.installer.errors import InstallerError
from ansible_collections.agentlab.ocp.plugins.module_utils.vocabulary import Exit

ROOT = Path(__file__).resolve().parents[3]
FAKE = """#!{python}
import json, os, pathlib, sys, time
words = sys.argv[1:]
what = " ".join(words[:2])
here = pathlib.Path(words[words.index("--dir") + 1])
found = sorted(str(path.relative_to(here)) for path in here.rglob("*") if path.is_file())
with open("{calls}", "a") as calls:
    calls.write(json.dumps({{"words": words, "files": found}}) + "\\n")
def report(level, text):
    print(f"level={{level}} msg={{json.dumps(text)}}", file=sys.stderr, flush=True)
def bundle():
    (here / "log-bundle-20261126.tar.gz").write_text("logs")
{body}
"""
CREATED = """
if what == "create manifests":
    (here / "install-config.yaml").unlink()
    (here / "openshift").mkdir()
    (here / "openshift/99_own.yaml").write_text("its own")
(here / ".openshift_install_state.json").write_text("{}")
if what == "create cluster":
    (here / "install-config.yaml").unlink(missing_ok=True)
    (here / "metadata.json").write_text("{}")
    report("info", "Creating infrastructure resources...")
    report("info", 'Login to the console with user: "kubeadmin", and password: "secret"')
"""


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    path = tmp_path / "run"
    path.mkdir()
    (path / "install-config.yaml").write_text("{}")
    return path


def fake(tmp_path: Path, body: str) -> Path:
    path = tmp_path / "openshift-install"
    path.write_text(FAKE.format(python=sys.executable, calls=tmp_path / "calls", body=body))
    path.chmod(0o755)
    return path


def calls(tmp_path: Path) -> list[dict[str, list[str]]]:
    return [json.loads(line) for line in (tmp_path / "calls").read_text().splitlines()]


def create(run_dir: Path, program: Path, *, seconds: float = 60) -> tuple[cluster.Result, list[tuple[str, str]]]:
    reported: list[tuple[str, str]] = []
    given = InstallerBuild(program, run_dir, ROOT, run_dir.parent / "cache", "registry.test/release:1")
    hosts = cluster.Hosts("192.168.111.9", ("192.168.111.20", "192.168.111.21"), run_dir / "ssh/id_ecdsa")
    result = cluster.create(given, hosts, lambda level, text: reported.append((level, text)), seconds=seconds)
    return result, reported


def test_a_cluster_is_created_once_and_its_log_is_followed(tmp_path: Path, run_dir: Path) -> None:
    program = fake(tmp_path, CREATED)
    result, reported = create(run_dir, program)
    assert result == cluster.Result(changed=True)
    assert [call["words"][:2] for call in calls(tmp_path)] == [["create", "cluster"]]
    assert calls(tmp_path)[0]["words"][2:] == ["--dir", str(run_dir), "--log-level", "debug"]
    assert ("info", "Creating infrastructure resources...") in reported
    assert ("info", 'Login to the console with user: "kubeadmin"') in reported  # without the password
    assert create(run_dir, program)[0] == cluster.Result(changed=False)
    assert len(calls(tmp_path)) == 1


def test_what_an_agent_based_installation_made_here_is_gone(tmp_path: Path, run_dir: Path) -> None:
    """A later one took its mirror/registries.conf for the user's, because the program had written a state of its own."""
    (run_dir / "mirror").mkdir()
    (run_dir / "cluster-manifests").mkdir()
    made = {
        "*mirror.RegistriesConf": "mirror/registries.conf",
        "*manifests.InfraEnv": "cluster-manifests/infraenv.yaml",
    }
    for path in made.values():
        (run_dir / path).write_text("made")
    hashes = {key: store._digest({path: b"made"}) for key, path in made.items()}
    state = run_dir / ".openshift_install_state.json"
    state.write_text(json.dumps({"agentlab": {"made": hashes, "hashes": hashes}}))
    (run_dir / "cluster-manifests/infraenv.yaml").write_text("edited")
    create(run_dir, fake(tmp_path, CREATED))
    left = [path for path in calls(tmp_path)[0]["files"] if not path.startswith(".")]
    assert left == ["cluster-manifests/infraenv.yaml", "install-config.yaml"]


def test_manifests_of_the_profile_are_added_to_those_of_the_program(tmp_path: Path, run_dir: Path) -> None:
    (run_dir / "openshift").mkdir()
    (run_dir / "openshift/extra.yaml").write_text("extra")
    create(run_dir, fake(tmp_path, CREATED))
    first, second = calls(tmp_path)
    assert first["words"][:2] == ["create", "manifests"] and "openshift/extra.yaml" not in first["files"]
    assert {"openshift/99_own.yaml", "openshift/extra.yaml"} <= {*second["files"]}


@pytest.mark.parametrize(
    ("code", "meaning"),
    [
        (1, ""),
        (3, " (the install-config was refused)"),
        (4, " (the infrastructure failed)"),
        (5, " (the bootstrap did not complete)"),
        (6, " (the cluster did not initialize)"),
        (7, " (cluster operators did not settle)"),
        (8, " (it was interrupted)"),
    ],
)
def test_exit_codes_are_the_programs(tmp_path: Path, run_dir: Path, code: int, meaning: str) -> None:
    program = fake(tmp_path, f'report("error", "it broke"); sys.exit({code} if what == "create cluster" else 0)')
    result, __ = create(run_dir, program)
    assert (result.changed, result.exit_code) == (True, code)
    assert result.error == f"{program} create cluster ended with exit code {code}{meaning}: it broke"
    assert not cluster_record.complete(run_dir) and cluster_record.failure(run_dir) == result.error
    create(run_dir, fake(tmp_path, ""))
    assert cluster_record.complete(run_dir) and cluster_record.failure(run_dir) == ""


def test_after_a_failed_bootstrap_its_logs_are_gathered(tmp_path: Path, run_dir: Path) -> None:
    body = CREATED + 'if what == "gather bootstrap": bundle()\nelse: sys.exit(5)'
    result, __ = create(run_dir, fake(tmp_path, body))
    assert result.exit_code == Exit.BOOTSTRAP and result.bundle == str(run_dir / "log-bundle-20261126.tar.gz")
    masters = ["--master", "192.168.111.20", "--master", "192.168.111.21"]
    wanted = ["--bootstrap", "192.168.111.9", *masters, "--key", str(run_dir / "ssh/id_ecdsa")]
    assert calls(tmp_path)[-1]["words"][6:] == wanted


def test_the_programs_own_bundle_is_enough(tmp_path: Path, run_dir: Path) -> None:
    result, __ = create(run_dir, fake(tmp_path, CREATED + "bundle(); sys.exit(5)"))
    assert result.bundle.endswith("log-bundle-20261126.tar.gz")
    assert len(calls(tmp_path)) == 1


def test_a_gathering_that_fails_hides_nothing(tmp_path: Path, run_dir: Path) -> None:
    body = (
        CREATED
        + 'if what == "gather bootstrap": report("fatal", "no route"); sys.exit(1)\nreport("error", "no API"); sys.exit(5)'
    )
    result, reported = create(run_dir, fake(tmp_path, body))
    assert (result.exit_code, result.bundle) == (Exit.BOOTSTRAP, "") and result.error.endswith(": no API")
    assert ("warning", "the logs of the bootstrap could not be gathered: no route") in reported


def test_an_interrupted_run_is_continued(tmp_path: Path, run_dir: Path) -> None:
    (run_dir / "metadata.json").write_text("{}")
    body = 'if what == "destroy bootstrap": report("fatal", "no such domain"); sys.exit(1)'
    result, reported = create(run_dir, fake(tmp_path, body))
    assert result == cluster.Result(changed=True)
    assert [" ".join(call["words"][:2]) for call in calls(tmp_path)] == [
        "wait-for bootstrap-complete",
        "destroy bootstrap",
        "wait-for install-complete",
    ]
    assert ("warning", "the bootstrap machine was not removed, or is gone already: no such domain") in reported


def test_the_time_is_bounded(tmp_path: Path, run_dir: Path) -> None:
    result, __ = create(run_dir, fake(tmp_path, 'if what == "create cluster": time.sleep(600)'), seconds=1)
    assert result.exit_code == Exit.FAILED and result.error.endswith("create cluster timed out after 0 minutes")


def test_a_program_that_cannot_be_started(tmp_path: Path, run_dir: Path) -> None:
    with pytest.raises(InstallerError, match="openshift-install cannot be started: No such file or directory"):
        create(run_dir, tmp_path / "openshift-install")


def test_sigterm_ends_the_program_with_what_it_started(tmp_path: Path, run_dir: Path) -> None:
    body = f'import subprocess\nchild = subprocess.Popen(["sleep", "600"]); open("{tmp_path}/pid", "w").write(str(child.pid)); child.wait()'
    program = fake(tmp_path, body)
    script = f"""
import pathlib
from ansible_collections.agentlab.ocp.plugins.module_utils import signals
from ansible_collections.agentlab.ocp.plugins.module_utils.installer import binary, cluster
run_dir = pathlib.Path({str(run_dir)!r})
given = binary.InstallerBuild(pathlib.Path({str(program)!r}), run_dir, pathlib.Path({str(ROOT)!r}), run_dir.parent / "cache", "")
with signals.raise_terminated():
    cluster.create(given, cluster.Hosts("", (), run_dir), print, seconds=600)
"""
    process = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.DEVNULL)
    end = time.monotonic() + 30
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        assert time.monotonic() < end
        time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    assert process.wait(30)
    status = Path("/proc", (tmp_path / "pid").read_text(), "stat")
    end = time.monotonic() + 30
    # Killed, but perhaps not reaped yet.
    while status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z":
        assert time.monotonic() < end
        time.sleep(0.1)
