"""A build of openshift-install in place of the built-in installer. The program is a fake that writes the real one's files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils import waitfor
from ansible_collections.agentlab.ocp.plugins.module_utils.cli import lab as cli
from ansible_collections.agentlab.ocp.plugins.module_utils.installer import binary, task
from ansible_collections.agentlab.ocp.plugins.module_utils.installer.errors import InstallerError
from ansible_collections.agentlab.ocp.plugins.module_utils.installer.task import create_by_binary
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import openshift_install, profile
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.problems import ProfileError
from ansible_collections.agentlab.ocp.plugins.module_utils.waitfor import Outcome

ROOT = Path(__file__).resolve().parents[3]
RELEASE = "registry.agentlab.test/lab/release@sha256:" + "1" * 64
FAKE = """#!{python}
import json, os, pathlib, shutil, subprocess, sys, time
words = sys.argv[1:]
if words == ["version"]:
    print(sys.argv[0], "{version}")
    sys.exit()
here = pathlib.Path(words[words.index("--dir") + 1])
found = sorted(str(path.relative_to(here)) for path in here.rglob("*") if path.is_file())
with open("{calls}", "a") as calls:
    calls.write(json.dumps({{"words": words, "files": found}}) + "\\n")
def report(level, text):
    print(f'level={{level}} msg={{json.dumps(text)}}', file=sys.stderr, flush=True)
{body}
"""
CREATE = """
def write(name, text):
    path = here / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
write(".openshift_install.log", f"debug of {words[2]}\\n")
report("info", f'Consuming "Install Config" from target directory')
report("warning", "not advised")
(here / "install-config.yaml").unlink(missing_ok=True)
if words[2] == "cluster-manifests":
    write("cluster-manifests/infraenv.yaml", "kind: InfraEnv\\n")
else:
    shutil.rmtree(here / "cluster-manifests")
    write("agent.x86_64.iso", "ISO")
    write("auth/kubeconfig", "kubeconfig")
    write("rendezvousIP", "192.168.111.20")
write(".openshift_install_state.json", "{}")
"""


def fake(path: Path, body: str, version: str = "4.22.0") -> Path:
    """Write a program that records its calls in `calls` next to it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(FAKE.format(python=sys.executable, version=version, calls=path.parent / "calls", body=body))
    path.chmod(0o755)
    return path


def calls(program: Path) -> list[dict[str, list[str]]]:
    return [json.loads(line) for line in (program.parent / "calls").read_text().splitlines()]


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    path = tmp_path / "run"
    (path / "openshift").mkdir(parents=True)
    (path / "install-config.yaml").write_text('{"additionalTrustBundle": "THE-CA"}')
    (path / "agent-config.yaml").write_text("{}")
    (path / "openshift/extra.yaml").write_text("{}")
    return path


def created(program: Path, run_dir: Path, *, check: bool = False) -> dict[str, object]:
    given = {
        "binary": str(program),
        "directory": str(run_dir),
        "collection": str(ROOT),
        "cache": str(run_dir.parent / "cache"),
        "release_image": RELEASE,
        "release_version": "4.22.0-lab",
        "os_image": None,
    }
    return create_by_binary(given, ["cluster-manifests", "image"], check=check)


def test_create(tmp_path: Path, run_dir: Path) -> None:
    program = fake(tmp_path / "src/openshift-install", CREATE)
    assert created(program, run_dir, check=True)["changed"]
    assert not (program.parent / "calls").exists()
    result = created(program, run_dir)
    assert result["changed_files"] == [
        "agent.x86_64.iso", "auth/kubeconfig", "cluster-manifests/infraenv.yaml", "rendezvousIP", ".openshift_install_state.json",
    ]  # fmt: skip
    assert (result["rendezvous_ip"], result["warnings"]) == ("192.168.111.20", ["not advised", "not advised"])
    assert (run_dir / "install-config.yaml").is_file(), "inputs are kept"
    assert (run_dir / ".openshift_install.log").read_text() == "debug of cluster-manifests\ndebug of image\n"
    modes = {
        name: (run_dir / name).stat().st_mode & 0o777
        for name in ("agent.x86_64.iso", "auth/kubeconfig", "rendezvousIP")
    }
    assert modes == {"agent.x86_64.iso": 0o600, "auth/kubeconfig": 0o600, "rendezvousIP": 0o644}
    first, second = calls(program)
    assert first["files"] == ["agent-config.yaml", "install-config.yaml", "openshift/extra.yaml"]
    assert second["words"][:3] == ["agent", "create", "image"]
    assert not [path for path in run_dir.iterdir() if path.name.startswith(".agentlab")], "no work directory is left"

    assert not created(program, run_dir)["changed"], "nothing changes with the same input"
    (run_dir / ".openshift_install_state.json").write_text('{"other": 1}')
    assert created(program, run_dir)["changed"], "what another installer wrote is replaced"
    (run_dir / "agent-config.yaml").write_text("{a: b}")
    assert created(program, run_dir)["changed"]


def test_manifests_of_another_run_do_not_stay(tmp_path: Path, run_dir: Path) -> None:
    (run_dir / "cluster-manifests").mkdir()
    (run_dir / "cluster-manifests/nmstateconfig.yaml").write_text("kind: NMStateConfig")
    created(fake(tmp_path / "src/openshift-install", CREATE), run_dir)
    assert [path.name for path in (run_dir / "cluster-manifests").iterdir()] == ["infraenv.yaml"]


def test_the_built_in_installer_takes_nothing_of_a_build(
    tmp_path: Path, run_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its manifests would count as input, and name the release of that run."""
    found: list[str] = []

    def create(*__: object, **___: object) -> SimpleNamespace:
        found.extend(str(path.relative_to(run_dir)) for path in run_dir.rglob("*") if path.is_file())
        return SimpleNamespace(changed=[], rendezvous_ip="", release_image="", version="", diffs=[])

    monkeypatch.setattr(task.run, "create", create)
    given = dict.fromkeys(("release_image", "release_version", "release_profile", "cache", "consume"))
    created(fake(tmp_path / "src/openshift-install", CREATE), run_dir)
    task.create({**given, "directory": str(run_dir)}, ["image"], check=True)
    assert "cluster-manifests/infraenv.yaml" in found and ".openshift_install_state.json" in found
    found.clear()
    task.create({**given, "directory": str(run_dir)}, ["image"], check=False)
    assert not [name for name in found if name.startswith(("cluster-manifests/", ".openshift_install_"))]
    assert {"install-config.yaml", "agent-config.yaml", "openshift/extra.yaml"} <= set(found)


def test_what_replaced_a_build_is_kept(run_dir: Path) -> None:
    (run_dir / binary.RECORD).write_text('["x", "y"]')
    (run_dir / ".openshift_install_state.json").write_text("{}")
    binary.discard(run_dir)
    assert (run_dir / ".openshift_install_state.json").exists()


def test_environment(tmp_path: Path, run_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    given = binary.InstallerBuild(Path("x"), run_dir, ROOT, tmp_path / "cache", RELEASE, "file:///base.iso")
    work = tmp_path / "work"
    work.mkdir()
    found = binary.prepare(given, work)
    assert found["HOME"].startswith(str(work)), "nothing of the user's is touched"
    assert found["XDG_CACHE_HOME"] == str(tmp_path / "cache")
    assert found["OPENSHIFT_INSTALL_RELEASE_IMAGE_OVERRIDE"] == RELEASE
    assert found["OPENSHIFT_INSTALL_OS_IMAGE_OVERRIDE"] == "file:///base.iso"
    assert "THE-CA" in Path(found["SSL_CERT_FILE"]).read_text()
    assert sorted(os.listdir(work / "tools")) == ["nmstatectl", "oc"]
    for words, text in (
        (["oc", "image", "extract", "--help"], "--filter-by-os"),
        (["nmstatectl", "gc", "--help"], "FILE"),
    ):
        environment = {**found, "PATH": f"{work / 'tools'}:{os.defpath}"}
        done = subprocess.run(
            [work / "tools" / words[0], *words[1:]], env=environment, capture_output=True, text=True, check=False
        )
        assert text in done.stdout, done.stderr


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (
            'report("fatal", "failed to fetch \\"x\\": no")\nsys.exit(3)',
            'image ended with exit code 3: failed to fetch "x": no',
        ),
        ("sys.exit(1)", "ended with exit code 1: it gave no reason"),
        ("os.kill(os.getpid(), 9)", "ended with exit code 137"),
        ("pass", "wrote no .openshift_install_state.json"),
    ],
)
def test_a_failed_create_leaves_nothing(tmp_path: Path, run_dir: Path, body: str, text: str) -> None:
    before = sorted(run_dir.rglob("*"))
    given = binary.InstallerBuild(fake(tmp_path / "src/x", body), run_dir, ROOT, tmp_path / "cache", RELEASE)
    with pytest.raises(InstallerError) as error:
        binary.create(given, ["image"], lambda level, text: None)
    assert text in str(error.value)
    assert sorted(run_dir.rglob("*")) == before


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ('level=info msg="a \\"b\\"\\nc"', ("info", 'a "b"\nc')),
        ('time="2026-01-01T00:00:00Z" level=warn msg=plain', ("warning", "plain")),
        ("level=odd msg=x", ("info", "x")),
        # As openshift-install writes them where there is no terminal: without quotes.
        ("level=info msg=Image created in: DIR", ("info", "Image created in: DIR")),
        ('level=info msg="a" is b', ("info", '"a" is b')),
        ("level=debug msg=", ("debug", "")),
        ("panic: oh", ("info", "panic: oh")),
    ],
)
def test_messages(line: str, wanted: tuple[str, str]) -> None:
    assert binary.message(line) == wanted


def wait(
    program: Path, directory: Path, own: object, monkeypatch: pytest.MonkeyPatch
) -> tuple[Outcome, list[tuple[str, str]]]:
    reported: list[tuple[str, str]] = []
    monkeypatch.setattr(waitfor, "wait_for", own)
    outcome = waitfor.wait_for_by(program, ROOT)(
        "install-complete",
        directory,
        lambda level, text: reported.append((level, text)),
        lambda __, ___: None,
        skip_password=True,
    )
    return outcome, reported


def test_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = 'report("info", "Install complete!")\nreport("info", "Login to the console with user: \\"kubeadmin\\", and password: \\"S\\"")'
    program = fake(tmp_path / "src/x", body)
    outcome, reported = wait(program, tmp_path, lambda *_, **__: Outcome(0, console="https://console"), monkeypatch)
    assert outcome == Outcome(0, console="https://console")
    assert reported == [("info", "Install complete!"), ("info", 'Login to the console with user: "kubeadmin"')]
    *words, left, option, level = calls(program)[0]["words"]
    assert words == ["agent", "wait-for", "install-complete", "--dir"] and (option, level) == ("--log-level", "debug")
    assert left != str(tmp_path) and not Path(left).exists()


def test_a_build_waits_with_its_own_state_alone(tmp_path: Path, run_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its input, which it deletes and the run directory keeps, would make it discard that; messages name the run directory."""
    for name in (
        "auth/kubeconfig",
        ".openshift_install_state.json",
        "cluster-manifests/infraenv.yaml",
        "agent.x86_64.iso",
    ):
        (run_dir / name).parent.mkdir(exist_ok=True)
        (run_dir / name).write_text("{}")
    program = fake(tmp_path / "src/x", 'report("info", f"export KUBECONFIG={here}/auth/kubeconfig")')
    outcome, reported = wait(program, run_dir, lambda *_, **__: Outcome(0), monkeypatch)
    assert outcome == Outcome(0)
    assert reported == [("info", f"export KUBECONFIG={run_dir}/auth/kubeconfig")]
    assert calls(program)[0]["files"] == [".openshift_install_state.json", "auth/kubeconfig"]


def test_wait_for_another_release(tmp_path: Path, run_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It reads the manifests, and refuses those of another release than its own; it finds the programs that it starts."""
    program = fake(
        tmp_path / "src/x",
        'report("info", os.environ.get("OPENSHIFT_INSTALL_RELEASE_IMAGE_OVERRIDE", ""))\nreport("info", shutil.which("nmstatectl") or "")',
    )
    for manifest, wanted in ((f"spec: {{releaseImage: {RELEASE}}}", RELEASE), ("spec: 1", ""), ("", "")):
        (run_dir / "cluster-manifests").mkdir(exist_ok=True)
        (run_dir / "cluster-manifests/cluster-image-set.yaml").write_text(manifest)
        outcome, reported = wait(program, run_dir, lambda *_, **__: Outcome(0), monkeypatch)
        assert outcome == Outcome(0)
        assert reported[0] == ("info", wanted)
        assert reported[1][1].endswith("/nmstatectl")


def test_its_failure_ends_the_wait_with_its_exit_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def own(*_: object, clock: waitfor.Clock, **__: object) -> Outcome:
        clock.sleep(60)
        raise AssertionError("the wait did not end with the program")

    program = fake(tmp_path / "src/x", 'report("error", "Cluster initialization failed")\nsys.exit(6)')
    outcome, _reported = wait(program, tmp_path, own, monkeypatch)
    assert outcome.exit_code == 6
    assert outcome.error.endswith("ended with exit code 6: Cluster initialization failed")


def test_a_known_cause_ends_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = fake(tmp_path / "src/x", "subprocess.run(['sleep', '60'])")
    outcome, reported = wait(program, tmp_path, lambda *_, **__: Outcome(5, "master-0 is off"), monkeypatch)
    assert outcome == Outcome(5, "master-0 is off")
    assert reported == [("error", "master-0 is off")]


def test_what_a_build_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTLAB_RUNS", str(tmp_path / "runs"))
    good = fake(tmp_path / "src/good", "")
    other = fake(tmp_path / "src/other", "", "4.21.3")
    plain, elf, failing = (tmp_path / name for name in ("plain", "elf", "failing"))
    plain.write_text("")
    elf.write_bytes(b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\x00" + (22).to_bytes(2, "little"))
    failing.write_text("#!/bin/sh\nexit 4\n")
    elf.chmod(0o755)
    failing.chmod(0o755)
    for path, text in (
        (tmp_path / "none", "there is no such file"),
        (tmp_path, "is not a file"),
        (plain, "is not executable"),
        (elf, "is an ELF file for s390x; this host is"),
        (failing, "cannot print its version: exit code 4"),
        (other, "is version 4.21, the release is 4.22.0-lab: must be a build of 4.22"),
    ):
        named = tmp_path / "p.yml"
        named.write_text(f"topology: sno\nrelease: {{installer: {{binary: {path}}}}}\n")
        with pytest.raises(ProfileError) as error:
            cli.inputs("deploy", "one", str(named))
        assert f"release.installer.binary is '{path}': {text}" in str(error.value).replace('"', "'")
    assert not (tmp_path / "runs").exists(), "before anything is created"
    openshift_install.check(str(good), "4.22.0-lab")
    openshift_install.check(str(fake(tmp_path / "src/dev", "", "unreleased-master-1-g0")), "4.22.0-lab")


def test_the_path_is_the_user_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/user")
    found = profile.complete({"release": {"installer": {"binary": "~/bin/openshift-install"}}})
    assert found["release"]["installer"]["binary"] == "/home/user/bin/openshift-install"
    assert profile.complete({})["release"]["installer"]["binary"] is None
