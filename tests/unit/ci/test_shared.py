"""What later steps of OpenShift CI read, from recorded run directories."""

from __future__ import annotations

import errno
import subprocess
import tarfile
from pathlib import Path

import pytest
import yaml
from ansible_collections.agentlab.ocp.plugins.module_utils.ci import outcome, shared
from ansible_collections.agentlab.ocp.plugins.module_utils.ci.outcome import Class
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, profile
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.model import Plan

ROOT = Path(__file__).resolve().parents[3]
KUBECONFIG = {
    "apiVersion": "v1",
    "kind": "Config",
    "clusters": [{"name": "ostest", "cluster": {"server": "https://api.ostest.test.metalkube.org:6443"}}],
    "contexts": [{"name": "admin", "context": {"cluster": "ostest", "user": "admin"}}],
    "users": [{"name": "admin", "user": {"client-key-data": "a2V5"}}],
    "current-context": "admin",
}
PROXY = "http://192.0.2.2:8213/"


@pytest.fixture
def plan() -> Plan:
    return build.build(profile.load("sno_dualstack", ROOT / "config_examples"), "ostest")


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    """What an installation has left."""
    path = tmp_path / "runs/o's test"
    for folder in ("auth", "inputs", "report/hosts/master-0/etc", "report/console", "report/libvirt"):
        (path / folder).mkdir(parents=True)
    (path / "auth/kubeconfig").write_text(yaml.safe_dump(KUBECONFIG))
    (path / "auth/kubeadmin-password").write_text("abcde-fghij-klmno-pqrst")
    (path / "inputs/install-config.yaml").write_text(yaml.safe_dump({"pullSecret": '{"auths":{}}'}))
    (path / "report/hosts/master-0/etc/issue").write_text("x")
    (path / "report/console/ostest_master_0.log").write_text("login:")
    (path / "report/libvirt/ostest_master_0.xml").write_text("<domain/>")
    return path


def leave(result: shared.Result, tmp_path: Path, plan: Plan, run_dir: Path) -> tuple[Path, Path]:
    here, there = tmp_path / "shared", tmp_path / "artifacts"
    for folder in (here, there):
        folder.mkdir(exist_ok=True)
    places = shared.Place("SHARED_DIR", here), shared.Place("artifacts", there)
    shared.write_pull_secret(run_dir)
    shared.leave(result, *places, plan, run_dir, proxy=PROXY, link="https://ci.example/1")
    assert not any(place.problem for place in places)
    return here, there


def test_an_installed_cluster_that_stays_can_be_reached(tmp_path: Path, plan: Plan, run_dir: Path) -> None:
    here, there = leave(shared.Result(Class.INSTALLED, "", True), tmp_path, plan, run_dir)
    [cluster] = yaml.safe_load((here / "kubeconfig").read_text())["clusters"]
    assert cluster["cluster"] == {**KUBECONFIG["clusters"][0]["cluster"], "proxy-url": PROXY}
    assert "    proxy-url: http" in (here / "kubeconfig").read_text()
    assert (here / "kubeadmin-password").read_text() == "abcde-fghij-klmno-pqrst"
    assert (here / "console.url").read_text() == "https://console-openshift-console.apps.ostest.test.metalkube.org"
    assert (here / outcome.STATUS).read_text() == "0\n"
    assert not (here / outcome.INFRASTRUCTURE_LOG).exists()
    assert (
        here / shared.LINKS
    ).read_text() == '<p><a target="_blank" href="https://ci.example/1">agentlab</a>: installed</p>\n'
    script = f". '{here}/ds-vars.conf'; . '{here}/proxy-conf.sh'; cat \"$DS_WORKING_DIR/pull_secret.json\"; echo; env"
    done = subprocess.run(
        ["sh", "-euc", script], capture_output=True, text=True, check=True, env={"PATH": "/usr/bin:/bin"}
    )
    secret, *settings = done.stdout.splitlines()
    assert secret == '{"auths":{}}'
    assert {
        "DS_IP_STACK=v4v6",
        "DS_REGISTRY=virthost.ostest.test.metalkube.org:5000",
        f"DS_OPENSHIFT_VERSION={plan['release']['profile']}",
        "PROXYPORT=8213",
        f"HTTPS_PROXY={PROXY}",
        f"https_proxy={PROXY}",
    } <= set(settings)
    # Artifacts are published.
    assert not {"kubeconfig", "kubeadmin-password", "proxy-conf.sh"} & {path.name for path in there.iterdir()}
    # SHARED_DIR becomes a Secret: flat, and at most 1 MiB.
    assert all(path.is_file() and path.stat().st_mode & 0o777 == 0o600 for path in here.iterdir())
    assert sum(path.stat().st_size for path in here.iterdir()) < 1 << 20


def test_a_cluster_that_does_not_stay_leaves_its_result_alone(tmp_path: Path, plan: Plan, run_dir: Path) -> None:
    here, __ = leave(shared.Result(Class.INSTALLED, "", False), tmp_path, plan, run_dir)
    assert {path.name for path in here.iterdir()} == {outcome.STATUS, shared.LINKS}


def test_some_stages_alone_are_not_an_installation(tmp_path: Path, plan: Plan, run_dir: Path) -> None:
    here, there = leave(shared.Result(Class.INSTALLED, "", True, partial=True), tmp_path, plan, run_dir)
    assert not (here / "console.url").exists() and not (there / outcome.JUNIT).exists()
    assert (here / outcome.STATUS).read_text() == "0\n" and "stages" in (here / shared.LINKS).read_text()


def test_a_failed_attempt_has_its_first_cause_everywhere(tmp_path: Path, plan: Plan, run_dir: Path) -> None:
    cause = "First cause: VM <x> is shut off\n     Next: boot\nWait: gave up"
    here, there = leave(shared.Result(Class.BOOTSTRAP, cause, True), tmp_path, plan, run_dir)
    for folder in (here, there):
        assert (folder / outcome.INFRASTRUCTURE_LOG).read_text() == cause + "\n"
        assert (folder / outcome.STATUS).read_text() == "5\n"
    assert (here / shared.LINKS).read_text().endswith(": First cause: VM &lt;x&gt; is shut off</p>\n")
    assert "VM &lt;x&gt; is shut off" in (there / outcome.JUNIT).read_text()
    assert (here / "kubeconfig").exists() and not (here / "console.url").exists()
    leave(shared.Result(Class.INSTALLED, "", True), tmp_path, plan, run_dir)
    assert (here / outcome.STATUS).read_text() == "5\n0\n"
    # A gathering that finds the cause of an interrupted attempt.
    shared.explain("another", place := shared.Place("SHARED_DIR", here))
    assert not place.problem and "another" not in (here / outcome.INFRASTRUCTURE_LOG).read_text()
    leave(shared.Result(Class.CREATION, "interrupted", True), tmp_path, plan, run_dir)
    shared.explain("another", place)
    assert (here / outcome.INFRASTRUCTURE_LOG).read_text() == "another\n"


def test_a_full_disk_is_one_message(tmp_path: Path, plan: Plan, run_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*__: object) -> bool:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(shared, "write_atomic", full)
    (tmp_path / "shared").mkdir()
    place = shared.Place("SHARED_DIR", tmp_path / "shared")
    result = shared.Result(Class.OPERATORS, "x", True)
    shared.leave(result, place, shared.Place("artifacts", None), plan, run_dir)
    assert place.problem == (
        f"SHARED_DIR {tmp_path / 'shared'}: cannot write custom-links.txt, ds-vars.conf, install-status.txt, "
        "install_infrastructure_failure.log, kubeadmin-password, kubeconfig: No space left on device"
    )


def test_a_kubeconfig_that_is_damaged_is_named(tmp_path: Path, plan: Plan, run_dir: Path) -> None:
    (run_dir / "auth/kubeconfig").write_text("clusters: [")
    place = shared.Place("SHARED_DIR", tmp_path)
    shared.leave(shared.Result(Class.OPERATORS, "x", True), place, shared.Place("artifacts", None), plan, run_dir)
    assert "cannot write kubeconfig: " in place.problem


def test_archives_have_the_names_of_others(tmp_path: Path, run_dir: Path) -> None:
    shared.archives(run_dir / "report", tmp_path)
    with tarfile.open(tmp_path / "agent-gather-master-0.tar.xz") as tar:
        assert "agent-gather-master-0/etc/issue" in tar.getnames()
    with tarfile.open(tmp_path / "libvirt-logs.tar.gz") as tar:
        assert tar.getnames() == ["libvirt-logs/ostest-master-0_console.log", "libvirt-logs/ostest_master_0.xml"]
    assert not (tmp_path / "agent-gather-console-screenshots.tar.xz").exists()
    (run_dir / "report/screen").mkdir()
    (run_dir / "report/screen/ostest_master_0.png").write_bytes(b"png")
    shared.archives(run_dir / "report", tmp_path)
    with tarfile.open(tmp_path / "agent-gather-console-screenshots.tar.xz") as tar:
        assert tar.getnames() == ["ostest-master-0_console_screenshot.png"]
    shared.archives(tmp_path / "nothing", tmp_path)
    assert {path.stat().st_mode & 0o777 for path in tmp_path.glob("*.tar.*")} == {0o600}


def test_a_log_that_grows_is_private(tmp_path: Path) -> None:
    place = shared.Place("artifacts", tmp_path)
    place.add("events.jsonl", "a\n")
    place.add("events.jsonl", "b\n")
    assert (tmp_path / "events.jsonl").read_text() == "a\nb\n"
    assert (tmp_path / "events.jsonl").stat().st_mode & 0o777 == 0o600
