"""`agentlab swarm --agent --installer --controller`: the parts of an installation after the agent's are programs, too."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.payload.node_agent.swarm import installer_programs, main, page, report
from ansible_collections.agentlab.ocp.payload.node_agent.swarm.settings import Settings, SwarmError
from ansible_collections.agentlab.ocp.payload.node_agent.swarm.stats import CONTROLLER, INSTALLER
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import overrides
from ansible_collections.agentlab.ocp.plugins.module_utils.vocabulary import Component
from ansible_collections.agentlab.ocp.tests.integration.api_server.served import Served
from ansible_collections.agentlab.ocp.tests.unit.node_agent import installer_scripts as scripts
from ansible_collections.agentlab.ocp.tests.unit.node_agent.fake_assisted import FakeAssisted
from ansible_collections.agentlab.ocp.tests.unit.node_agent.fake_hub import FakeHub
from ansible_collections.agentlab.ocp.tests.unit.node_agent.test_swarm import FAST
from ansible_collections.agentlab.ocp.tests.unit.node_agent.test_swarm_programs import PACKAGE, run, running, until

BY_CONTROLLER = {"finalizing stage", "operators", "operator", "ingress certificate", "complete"}


def namespaces() -> str:
    """Return why this machine has no mount namespaces for the programs; empty if it has."""
    try:
        installer_programs.namespace()
    except SwarmError as error:
        return str(error)
    return ""


pytestmark = pytest.mark.skipif(bool(namespaces()), reason=namespaces())


@pytest.fixture
def ours(programs: Path, tmp_path: Path) -> dict[str, Any]:
    """Settings with programs: our agent, and scripts that are upstream's installer and controller to the service."""
    return {
        "agent": programs / "agent",
        "installer": scripts.write(tmp_path, "installer", scripts.INSTALLER),
        "controller": scripts.write(tmp_path, "controller", scripts.CONTROLLER),
    }


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where swarms make their directories."""
    found = tmp_path_factory.mktemp("swarm")
    monkeypatch.setenv("TMPDIR", str(found))
    monkeypatch.setattr("tempfile.tempdir", None)
    return found


def whys(result: dict[str, Any]) -> str:
    """Why clusters were not installed."""
    return "; ".join(main.reason(cluster) for cluster in result["failed"])


@pytest.mark.parametrize(
    ("topology", "share", "hosts"),
    [("sno", 1.0, 1), ("compact", 1.0, 3), ("compact", 0.5, 3), ("ha", 1.0, 5), ("tna", 1.0, 3)],
)
def test_clusters_are_installed_by_programs(
    service: FakeAssisted, ours: dict[str, Any], folder: Path, topology: str, share: float, hosts: int
) -> None:
    """All but the bootstrap host of several, whose installer needs a Kubernetes API, which the dry-run mode lacks."""
    service.keep = True
    settings = Settings(service.url, topology={topology: 1}, share=share, **ours, **FAST | {"stall": 30.0})
    result = run(settings)
    assert result["ends"] == {"installed": 1} and not result["errors"], whys(result)
    assert service.errors == ["finalizing stage in installed"]  # not an error when a controller gets it
    kinds, with_program = result["kinds"], round(hosts * share + 0.01)
    assert kinds["program"] == with_program and kinds.get("simulated", 0) == hosts - with_program
    installers = kinds["installers"]
    # Of a share of the hosts, the one that registers first may be another.
    assert kinds["controllers"] == 1 and with_program - installers in {(hosts > 1), (share == 1 and hosts > 1)}
    # The controller is the program alone; installers of both kinds report their progress.
    assert set(result["program_controller_operations"]) >= {*BY_CONTROLLER, "progress", "controller logs"}
    assert not BY_CONTROLLER & set(result["operations"]) and not result["controller_operations"]
    reports = 8 + (topology == "sno") + 2 * (topology == "ha")  # two of the write
    assert result["program_operations"]["progress"]["count"] <= installers * reports
    assert result["program_time_to_reply"][INSTALLER]["count"] == installers
    assert result["program_time_to_reply"][CONTROLLER]["count"] == 1
    # Each host has sent its logs once, the swarm's archive; the controller its own.
    assert len(service.uploads) == hosts + 1
    # Nothing is left: no process, no directory, and nothing where the programs wrote.
    assert not running(str(folder)) and not list(folder.glob("*"))
    assert not any((Path(place) / "written-by-a-program").exists() for place in installer_programs.PLACES)


def test_the_report_compares_both_kinds(service: FakeAssisted, ours: dict[str, Any], tmp_path: Path) -> None:
    settings = Settings(service.url, clusters=2, topology={"compact": 1}, share=0.34, **ours, **FAST)
    result = run(settings)
    assert result["ends"] == {"installed": 2} and not result["errors"], result["failed"]
    whole = {"settings": settings.public(), "stopped": False, "left": [], **result}
    text = page.page(whole)
    assert f"{ours['installer']} runs on" in text and f"{ours['controller']} runs for" in text
    assert "controllers that are programs" in text and "v2CompleteInstallation" in text and INSTALLER in text
    again = report.merge_reports([whole, whole])
    assert again["kinds"]["controllers"] == 2 * result["kinds"]["controllers"]
    count = result["program_controller_operations"]["complete"]["count"]
    assert again["program_controller_operations"]["complete"]["count"] == 2 * count


def test_an_installer_without_a_controller(service: FakeAssisted, ours: dict[str, Any]) -> None:
    del ours["controller"]
    result = run(Settings(service.url, topology={"compact": 1}, share=1.0, **ours, **FAST))
    assert result["ends"] == {"installed": 1} and not result["errors"]
    assert result["kinds"] == {"program": 3, "installers": 2} and not result["program_controller_operations"]
    assert set(result["controller_operations"]) >= BY_CONTROLLER


def test_a_controller_without_an_installer(service: FakeAssisted, ours: dict[str, Any]) -> None:
    del ours["installer"]
    result = run(Settings(service.url, topology={"compact": 1}, share=0.3, **ours, **FAST))
    assert result["ends"] == {"installed": 1} and not result["errors"]
    assert result["kinds"] == {"program": 1, "simulated": 2, "controllers": 1}
    assert set(result["program_controller_operations"]) >= BY_CONTROLLER


def test_clusters_of_a_hub(service: FakeAssisted, ours: dict[str, Any], tmp_path: Path) -> None:
    """Their programs have the token of the InfraEnv, and use REST as agents do."""
    service.keep = True
    hub = FakeHub(service)
    hub.start()
    try:
        (tmp_path / "kubeconfig").write_text(hub.kubeconfig())
        result = run(Settings(kubeconfig=tmp_path / "kubeconfig", topology={"compact": 1}, share=1.0, **ours, **FAST))
    finally:
        hub.stop()
    assert result["ends"] == {"installed": 1} and not result["errors"] and not hub.refused, whys(result)
    assert result["kinds"] == {"program": 3, "installers": 2, "controllers": 1}
    assert {headers.get("x-secret-key") for headers in service.headers} == {"token-ie-swarm-0"}


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ("installer", "the installer program of swarm-0-0 ended with exit code 3: no such flag"),
        ("controller", "the controller program of swarm-0 ended with exit code 3: no such flag"),
    ],
)
def test_a_program_that_ends_too_early_is_reported(
    service: FakeAssisted, ours: dict[str, Any], tmp_path: Path, broken: str, message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    ours[broken] = scripts.write(tmp_path, "broken", "#!/bin/sh\necho first\necho no such flag >&2\nexit 3\n")
    settings = Settings(service.url, topology={"sno": 1}, share=1.0, **ours, **FAST | {"stall": 300.0})
    result = run(settings)
    assert result["ends"] == {"broken": 1}
    assert [one["program"] for one in result["failed"]] == [message]
    whole = {"settings": settings.public(), "stopped": False, "left": [], **result}
    assert message in page.page(whole) and main.conclude(whole) == 1
    assert f"agentlab swarm: swarm-0: broken, installing: {message}" in capsys.readouterr().err


def test_an_installer_without_a_reboot_is_reported(service: FakeAssisted, ours: dict[str, Any], tmp_path: Path) -> None:
    ours["installer"] = scripts.write(tmp_path, "idle", "#!/bin/sh\necho nothing to do\n")
    result = run(Settings(service.url, topology={"compact": 1}, share=1.0, **ours, **FAST | {"stall": 300.0}))
    assert result["ends"] == {"broken": 1}
    assert result["failed"][0]["program"].endswith("ended with exit code 0: nothing to do")


@pytest.fixture
def no_root(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The swarm takes itself for another user's; skips where these have no mount namespaces."""
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    installer_programs.namespace.cache_clear()
    problem = namespaces()
    if not problem:
        yield
    installer_programs.namespace.cache_clear()
    if problem:
        pytest.skip(problem)


@pytest.mark.usefixtures("no_root")
def test_root_is_not_needed(service: FakeAssisted, ours: dict[str, Any]) -> None:
    """The mount namespace is in one of users then."""
    assert "--map-root-user" in installer_programs.namespace()
    result = run(Settings(service.url, topology={"sno": 1}, share=1.0, **ours, **FAST))
    assert result["ends"] == {"installed": 1} and not result["errors"], whys(result)


@pytest.mark.usefixtures("no_root")
def test_programs_of_others_end_with_the_swarm(
    service: FakeAssisted, ours: dict[str, Any], folder: Path, tmp_path: Path
) -> None:
    """A change of credentials resets the signal that they get when the swarm is killed."""
    ending(service, ours | {"installer": scripts.write(tmp_path, "endless", ENDLESS)}, folder, signal.SIGKILL)


@pytest.mark.parametrize(("number", "name"), [(signal.SIGTERM, "installer"), (signal.SIGKILL, "controller")])
def test_programs_end_with_the_swarm(
    service: FakeAssisted, ours: dict[str, Any], folder: Path, tmp_path: Path, number: signal.Signals, name: str
) -> None:
    ending(service, ours | {name: scripts.write(tmp_path, "endless", ENDLESS)}, folder, number)


ENDLESS = "#!/bin/sh\necho started > /opt/swarm/started\nexec sleep 7531\n"


def ending(service: FakeAssisted, programs: dict[str, Any], folder: Path, number: signal.Signals) -> None:
    """Start a swarm as this user, end it by a signal when a program has started, and wait for the program's end."""
    options = [f"--{key}={value}" for key, value in programs.items()]
    fast = ["--think-time=0", "--watch=0.1", "--controller-poll=0.1", "--installer-poll=0.1", "--write-reports=1"]
    words = ["--url", service.url, "--topology", "sno", "--share", "1", *options, *fast]
    user = f"os.geteuid = lambda: {os.geteuid()}"
    script = f"import os, sys; {user}; from {PACKAGE}.main import main; sys.exit(main())"
    process = subprocess.Popen(
        [sys.executable, "-c", script, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    until(lambda: list(folder.glob("agentlab-swarm-*/started")))
    process.send_signal(number)
    process.wait(20)
    until(lambda: not running("sleep 7531"))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--installer", sys.executable], "--installer: requires --agent, whose hosts it installs"),
        (["--controller", sys.executable], "--controller: requires --agent, whose hosts it installs"),
        (["--agent", sys.executable, "--installer", "/nowhere/x"], "--installer /nowhere/x: no such file"),
        (["--agent", sys.executable, "--controller", "/etc/passwd"], "--controller /etc/passwd: is not executable"),
        (
            ["--agent", sys.executable, "--controller", sys.executable, "--operators", "lso"],
            "--operators: cannot be used with --controller, whose dry-run mode has no OLM operators",
        ),
    ],
)
def test_bad_options(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["--url", "http://127.0.0.1:1", *words]) == 2
    assert capsys.readouterr().err == f"agentlab swarm: {message}\n"


def test_a_machine_without_namespaces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before anything is registered, and with one message."""
    refusing = scripts.write(
        tmp_path, "unshare", "#!/bin/sh\necho unshare: unshare failed: Operation not permitted >&2\nexit 1\n"
    )
    monkeypatch.setenv("PATH", f"{refusing.parent}:{os.environ['PATH']}")
    installer_programs.namespace.cache_clear()
    try:
        words = ["--url", "http://127.0.0.1:1", "--agent", sys.executable, "--installer", sys.executable]
        assert main.main(words) == 2
    finally:
        installer_programs.namespace.cache_clear()
    assert capsys.readouterr().err == (
        "agentlab swarm: --installer: needs a mount namespace, which this machine refuses: "
        "unshare: unshare failed: Operation not permitted\n"
    )


def test_the_arguments_are_those_of_the_agent() -> None:
    wanted = {
        "role": "master", "infra_env_id": "i", "cluster_id": "c", "host_id": "h", "boot_device": "/dev/vda", "controller_image": "ci",
        "installer_image": "ii", "control_plane_count": 3, "openshift_version": "4.22.0", "check_cvo": True, "installer_args": '["-n"]',
        "disks_to_format": ["/dev/vdb", "/dev/vdc"], "enable_skip_mco_reboot": True, "coreos_image": "x", "mco_image": "",
        "skip_installation_disk_cleanup": False,
    }  # fmt: skip
    assert installer_programs.arguments(wanted, "agent:1", "http://127.0.0.1:1") == [
        "--url", "http://127.0.0.1:1", "--agent-image", "agent:1", "--role", "master", "--infra-env-id", "i", "--cluster-id", "c",
        "--host-id", "h", "--boot-device", "/dev/vda", "--controller-image", "ci", "--control-plane-count", "3",
        "--openshift-version", "4.22.0", "--installer-args", '["-n"]', "--format-disk", "/dev/vdb", "--format-disk", "/dev/vdc",
        "--check-cluster-version",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("method", "path", "query", "expected"),
    [
        ("PUT", "/infra-envs/i/hosts/h/progress", {}, ("h", "progress")),
        ("GET", "/infra-env/i/hosts/h/downloads/ignition", {}, ("h", "host ignition")),
        ("GET", "/clusters/c/hosts", {"role": "master"}, ("c", "masters")),
        ("GET", "/clusters/c/hosts", {}, ("c", "hosts")),
        (
            "GET",
            "/clusters/c/downloads/credentials",
            {"file_name": "kubeconfig-noingress"},
            ("c", "kubeconfig-noingress"),
        ),
        ("POST", "/clusters/c/logs", {"logs_type": "controller"}, ("c", "controller logs")),
        ("DELETE", "/clusters/c", {}, ("", "")),
        ("POST", "/clusters/c/actions/cancel", {}, ("", "")),
    ],
)
def test_requests_have_the_names_of_the_swarms(
    method: str, path: str, query: dict[str, str], expected: tuple[str, str]
) -> None:
    assert installer_programs.call(method, installer_programs.API + path, query) == expected


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Served]:
    served = Served(tmp_path / "data")
    served.start()
    yield served
    served.end(signal.SIGTERM)


def written() -> set[Path]:
    """The files of this machine that dry runs of upstream's programs would write."""
    fixed = {Path("/opt/install-dir"), Path("/root/.ssh"), Path("/tmp/controller_logs.log")}
    return {path for path in fixed if path.exists()} | set(Path("/var/log").glob("assisted-installer-*"))


def given(name: str) -> str:
    """What a variable names, as for the jobs with real programs: a checkout, or a directory with the programs."""
    value = os.environ.get(name, "")
    if not value:
        pytest.skip(f"{name} not set: a build of upstream's program")
    return value


@pytest.mark.parametrize(
    ("topology", "share", "installers"),
    [("sno", 1.0, 1), ("compact", 0.5, 1), ("compact", 1.0, 2), ("tna", 1.0, 2), ("ha", 1.0, 4)],
)
def test_upstreams_programs_install_clusters_from_the_labs_service(
    lab: Served, folder: Path, topology: str, share: float, installers: int
) -> None:
    """Takes minutes: the controller looks once a minute whether the cluster is installed."""
    agent = overrides.contents(Component.NODE_AGENT, given("AGENTLAB_REAL_AGENT"))["usr/bin/agent"]
    found = given("AGENTLAB_REAL_INSTALLER")
    installer = next(iter(overrides.contents(Component.ORCHESTRATOR, found).values()))
    controller = next(iter(overrides.contents(Component.CSR_APPROVER, found).values()))
    started, before = time.monotonic(), written()
    settings = Settings(
        lab.url, topology={topology: 1}, agent=agent, installer=installer, controller=controller, share=share,
        poll_limit=2.0, **FAST | {"stall": 400.0, "watch": 1.0},
    )  # fmt: skip
    result = run(settings, 600)
    assert result["ends"] == {"installed": 1} and not result["errors"], (result["failed"], result["messages"])
    # Of a share of the hosts, the service may take another for the bootstrap.
    assert (
        result["kinds"]["installers"] in {installers, installers + (share < 1)} and result["kinds"]["controllers"] == 1
    )
    assert set(result["program_operations"]) >= {"progress", "logs progress"}
    assert set(result["program_controller_operations"]) >= {*BY_CONTROLLER, "progress", "controller logs"}
    assert not running(str(folder)) and not list(folder.glob("*")) and written() == before
    print(f"\n{topology}, share {share:g}: {time.monotonic() - started:.0f} s, {result['kinds']}")
    for table in ("operations", "program_operations", "program_controller_operations"):
        print(f"  {table}: " + ", ".join(f"{name} {row['count']}" for name, row in result[table].items()))
    for table in ("time_to_reply", "program_time_to_reply"):
        rows = {name: row for name, row in result[table].items() if name in (INSTALLER, CONTROLLER)}
        print(f"  {table}: " + ", ".join(f"{name}: {row['p50_ms'] / 1000:.1f} s" for name, row in rows.items()))
