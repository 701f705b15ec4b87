"""The verbs that reach into a lab: what they say when there is none, what they start, and kubeconfigs for this host."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.agentlab.ocp.plugins.module_utils import cli, state
from ansible_collections.agentlab.ocp.plugins.module_utils.boot import bmc
from ansible_collections.agentlab.ocp.plugins.module_utils.cli import (
    api,
    capture,
    cluster,
    fault,
    forward,
    lab,
    listing,
    logs,
    node,
    run_page,
    snapshot,
    status,
    version,
)
from ansible_collections.agentlab.ocp.plugins.module_utils.cli import exec as exec_
from ansible_collections.agentlab.ocp.plugins.module_utils.errors import LabError
from ansible_collections.agentlab.ocp.plugins.module_utils.installer.state import OWN, StateError, load_wait_for
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, profile, rundir
from ansible_collections.agentlab.ocp.plugins.module_utils.report import status as report_status
from ansible_collections.agentlab.ocp.plugins.module_utils.report.page.server import Server
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import namespaces, processes
from ansible_collections.agentlab.ocp.plugins.module_utils.state import owner
from ansible_collections.agentlab.ocp.plugins.module_utils.vocabulary import Exit

PROFILES = Path(__file__).resolve().parents[3] / "config_examples"
KUBECONFIG = {
    "clusters": [
        {
            "name": "lab",
            "cluster": {"server": "https://api.lab.test.metalkube.org:6443", "certificate-authority-data": "Q0E="},
        }
    ],
    "users": [{"name": "admin", "user": {"client-certificate-data": "Q0VSVA==", "client-key-data": "S0VZ"}}],
    "contexts": [{"name": "admin", "context": {"cluster": "lab", "user": "admin"}}],
    "current-context": "admin",
}


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run directory of cluster `lab`, which does not run."""
    monkeypatch.setenv("AGENTLAB_RUNS", str(tmp_path))
    chosen = profile.load("compact_dualstack", PROFILES)
    chosen["hypervisor"]["state_dir"] = str(tmp_path / "state")
    plan = build.build(chosen, "lab")
    (tmp_path / "lab/auth").mkdir(parents=True)
    (tmp_path / "lab/ssh").mkdir()
    (tmp_path / "lab/ssh/id_ecdsa").write_text("key")
    (tmp_path / "lab" / rundir.PLAN).write_text(rundir.dump(plan))
    (tmp_path / "lab/auth/kubeconfig").write_text(yaml.safe_dump(KUBECONFIG))
    return tmp_path


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands that verbs become, where the sandbox is one process that does not matter."""
    commands: list[list[str]] = []
    monkeypatch.setattr(os, "execvp", lambda __, command: commands.append(command) or os._exit)
    monkeypatch.setattr(cluster.Cluster, "enter", lambda *__, **___: ["inside"])
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return commands


def test_a_cluster_that_is_not_there(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert node.ssh(["master-0", "--cluster", "other"]) == 1
    assert (
        capsys.readouterr().err
        == f"agentlab: there is no cluster 'other' in {runs}; `agentlab list` prints those that exist\n"
    )


@pytest.mark.parametrize(
    "argv",
    [
        ["ssh", "worker-0"], ["console", "worker-0"], ["console", "worker-0", "--screen"], ["power", "worker-0", "off"],
        ["fault", "worker-0", "pause"], ["capture", "worker-0"], ["logs", "--node", "worker-0"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_a_node_that_is_not_there(
    runs: Path, started: list[list[str]], capsys: pytest.CaptureFixture[str], argv: list[str]
) -> None:
    assert cli.main([*argv, "--cluster", "lab"]) == 1
    shown = capsys.readouterr().err
    assert shown.startswith("agentlab: cluster lab has no node 'worker-0'; its nodes are master-0, master-1, master-2")
    assert shown.count("\n") == 1 and not started


def test_a_sandbox_that_does_not_run(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert node.ssh(["master-0", "--cluster", "lab"]) == 1
    assert "cluster lab has no running sandbox" in capsys.readouterr().err


def test_ssh_takes_a_command(runs: Path, started: list[list[str]]) -> None:
    node.ssh(["master-1", "--cluster", "lab", "--", "journalctl", "-u", "agent"])
    assert started[0][:2] == ["inside", "ssh"]
    assert started[0][-4:] == ["core@192.168.111.21", "journalctl", "-u", "agent"]
    assert "BatchMode=yes" not in started[0]


def test_console_is_printed_followed_or_attached(runs: Path, started: list[list[str]]) -> None:
    log = str(runs / "state/lab/console/lab_master_0.log")
    Path(log).parent.mkdir(parents=True)
    Path(log).touch()
    for option in ([], ["-f"], ["-i"]):
        node.console(["master-0", *option, "--cluster", "lab"])
    assert started == [
        ["tail", "--bytes=65536", log],
        ["tail", "--bytes=65536", "--follow=name", log],
        ["inside", "virsh", "-c", "qemu:///system", "console", "lab_master_0"],
    ]


def test_an_existing_machine_has_no_console_and_no_faults(
    runs: Path, started: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    path = runs / "lab" / rundir.PLAN
    plan = yaml.safe_load(path.read_text())
    plan["nodes"][0]["bare_metal"] = True
    path.write_text(yaml.safe_dump(plan))
    for option in ([], ["-f"], ["-i"], ["-s"]):
        assert node.console(["master-0", *option, "--cluster", "lab"]) == 1
        assert "master-0: an existing machine has no console here: use the one of its BMC" in capsys.readouterr().err
    assert fault.main(["master-0", "power_off", "--cluster", "lab"]) == 1
    assert (
        capsys.readouterr().err == "agentlab: master-0: is an existing machine, to which the lab cannot do power_off\n"
    )
    assert not started


def test_kubectl_gets_the_kubeconfig_and_all_its_own_options(
    runs: Path, started: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda name: f"/bin/{name}")
    monkeypatch.setenv("KUBECONFIG", "mine")
    api.kubectl(["--cluster", "lab", "get", "nodes", "--cluster", "theirs", "-o", "wide"])
    assert started == [["inside", "kubectl", "get", "nodes", "--cluster", "theirs", "-o", "wide"]]
    assert os.environ["KUBECONFIG"] == str(runs / "lab/auth/kubeconfig")


def test_a_client_that_is_not_installed(
    runs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda _name: None)
    assert api.oc(["--cluster=lab", "whoami"]) == 127
    assert capsys.readouterr().err == (
        "agentlab: oc is not installed; Debian has no package of it: unpack "
        "https://mirror.openshift.com/pub/openshift-v4/clients/ocp/stable/openshift-client-linux.tar.gz, "
        "or use agentlab kubectl\n"
    )
    assert api.kubectl(["--cluster=lab", "get", "nodes"]) == 127
    assert (
        capsys.readouterr().err
        == "agentlab: kubectl is not installed; install the package kubernetes-client or kubectl\n"
    )


def test_a_kubeconfig_needs_a_forward(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert api.kubeconfig(["--cluster", "lab"]) == 1
    assert "agentlab forward --cluster lab" in capsys.readouterr().err


def test_a_kubeconfig_leads_through_the_forward(
    runs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    own = {"pid": os.getpid(), "start": processes.start_time(os.getpid()), "ports": {"api": 40123}}
    (runs / "lab" / forward.FILE).write_text(json.dumps([own]))
    assert api.kubeconfig(["--cluster", "lab"]) == 0
    config = yaml.safe_load(capsys.readouterr().out)
    assert config["clusters"][0]["cluster"] == {
        "server": "https://127.0.0.1:40123",
        "tls-server-name": "api.lab.test.metalkube.org",
        "certificate-authority-data": "Q0E=",
    }
    target = runs / "merged"
    target.write_text(
        yaml.safe_dump(
            {"clusters": [{"name": "prod"}], "users": [], "contexts": [{"name": "prod"}], "current-context": "prod"}
        )
    )
    monkeypatch.setenv("KUBECONFIG", str(target))
    assert api.kubeconfig(["--cluster", "lab", "--merge"]) == api.kubeconfig(["--cluster", "lab", "--merge"]) == 0
    found = yaml.safe_load(target.read_text())
    assert [entry["name"] for entry in found["clusters"]] == ["prod", "agentlab-lab"]
    assert found["current-context"] == "agentlab-lab"
    assert target.stat().st_mode & 0o777 == 0o600
    link = runs / "config"
    link.symlink_to("merged")
    target.write_text(yaml.safe_dump({"clusters": [{"name": "prod"}]}))
    monkeypatch.setenv("KUBECONFIG", str(link))
    assert api.kubeconfig(["--cluster", "lab", "--merge"]) == 0
    assert link.is_symlink(), "it was replaced by a file"
    assert [entry["name"] for entry in yaml.safe_load(target.read_text())["clusters"]] == ["prod", "agentlab-lab"]


def test_a_kubeconfig_is_printed_or_merged(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--merge ignored -o."""
    with pytest.raises(SystemExit) as end:
        api.kubeconfig(["--merge", "-o", "json", "--cluster", "lab"])
    assert end.value.code == 2
    assert "not allowed with argument --merge" in capsys.readouterr().err


def test_a_browser_gets_the_token_of_the_run(runs: Path) -> None:
    """The page asked for a token, and nothing said where it is."""
    lab, url = cluster.find("lab"), "http://127.0.0.1:40123"
    assert forward.page(lab, url) == f"{url}/"
    state: dict[str, Any] = {
        "*image.Ignition": {"RendezvousIP": "192.168.111.20"},
        "*gencrypto.AuthConfig": {"WatcherAuthToken": "a.b-c"},
    }
    for name, shown in (("4.22", f"{url}/#token=a.b-c"), ("4.14", f"{url}/")):
        (lab.directory / ".openshift_install_state.json").write_text(json.dumps({**state, OWN: {"profile": name}}))
        assert forward.page(lab, url) == shown


@pytest.mark.parametrize(
    ("target", "option"),
    [
        ("console", "--host-resolver-rules=MAP *.apps.lab.test.metalkube.org 127.0.0.1:{port}"),
        ("proxy", "--proxy-server=http://127.0.0.1:{port}"),
    ],
)
def test_a_browser_reaches_the_console_by_its_name(
    runs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, target: str, option: str
) -> None:
    """`https://127.0.0.1:PORT` was printed, to which its router answers 503."""
    path = runs / "lab" / rundir.PLAN
    plan = yaml.safe_load(path.read_text())
    plan["hypervisor"]["kind"] = "local"
    path.write_text(yaml.safe_dump(plan))

    async def serve(*__: object) -> None:
        pass

    monkeypatch.setattr(forward.forward, "serve", serve)
    assert forward.main([target, "--cluster", "lab"]) == 0
    shown = capsys.readouterr().out.splitlines()
    port = shown[0].split()[0].rpartition(":")[2]
    assert "https://127.0.0.1" not in shown[0]
    label, __, command = shown[1].partition(": ")
    assert label == "for the console in a browser"
    program, data, given, url = shlex.split(command)
    assert (program, data) == ("chromium", "--user-data-dir=$(mktemp -d)")
    assert given == option.format(port=port)
    assert url == "https://console-openshift-console.apps.lab.test.metalkube.org"


@pytest.mark.parametrize(
    "state",
    [
        {"*image.Ignition": [1]},
        {"*image.Ignition": {"RendezvousIP": [1]}},
        {"*gencrypto.AuthConfig": {"WatcherAuthToken": {"a": 1}}},
        {"*manifests.AgentClusterInstall": {"Config": {"spec": 3}}},
        {OWN: {"profile": ["4.22"]}},
    ],
)
def test_a_browser_gets_the_page_of_a_run_whose_state_is_damaged(runs: Path, state: dict[str, Any]) -> None:
    lab, url = cluster.find("lab"), "http://127.0.0.1:40123"
    good = {"*image.Ignition": {"RendezvousIP": "192.168.111.20"}, OWN: {"profile": "4.22"}}
    (lab.directory / ".openshift_install_state.json").write_text(json.dumps({**good, **state}))
    assert forward.page(lab, url) == f"{url}/"
    with pytest.raises(StateError, match=r"\.openshift_install_state\.json: state\..* is "):
        load_wait_for(lab.directory)


@pytest.mark.parametrize(("number", "ended"), [(signal.SIGINT, 0), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_forward_that_ends_leaves_no_file(tmp_path: Path, number: signal.Signals, ended: int) -> None:
    """Also when its terminal goes away."""
    chosen = profile.load("sno_ipv4", PROFILES)
    chosen["hypervisor"] |= {"kind": "local", "state_dir": str(tmp_path / "state")}
    (tmp_path / "lab").mkdir()
    (tmp_path / "lab" / rundir.PLAN).write_text(rundir.dump(build.build(chosen, "lab")))
    # A test in the background of a shell inherits signals that are ignored.
    command = ["env", "--default-signal=INT,HUP", sys.executable, "-m", cli.__name__, "forward", "--cluster", "lab"]
    environment = {**os.environ, "AGENTLAB_RUNS": str(tmp_path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout
        while "for a kubeconfig" not in process.stdout.readline():
            assert process.poll() is None
        assert (tmp_path / "lab" / forward.FILE).exists()
        time.sleep(0.5)
        process.send_signal(number)
        assert process.wait(30) == ended
    assert not (tmp_path / "lab" / forward.FILE).exists()


def test_a_forward_that_is_over_has_no_ports(runs: Path) -> None:
    path = runs / "lab" / forward.FILE
    lab = cluster.find("lab")
    for text in (
        "",
        "[]",
        "{}",
        '{"pid": 1, "start": -1, "ports": {"api": 1}}',
        '{"pid": null, "start": null, "ports": {}}',
    ):
        path.write_text(text)
        assert forward.ports(lab) == {}


def test_forwards_of_a_cluster_know_of_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second one, of other ports, replaced the file of the first, and removed it at its end."""
    chosen = profile.load("sno_ipv4", PROFILES)
    chosen["hypervisor"] |= {"kind": "local", "state_dir": str(tmp_path / "state")}
    (tmp_path / "lab").mkdir()
    (tmp_path / "lab" / rundir.PLAN).write_text(rundir.dump(build.build(chosen, "lab")))
    monkeypatch.setenv("AGENTLAB_RUNS", str(tmp_path))
    lab = cluster.find("lab")

    def started(*targets: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", cli.__name__, "forward", *targets, "--cluster", "lab"],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert process.stdout and process.stdout.readline()
        return process

    with started("api", "console") as first, started("10.0.0.1:22") as second, started("api", "proxy") as third:
        found = forward.ports(lab)
        assert set(found) == {"api", "console", "10.0.0.1:22", "proxy"}
        second.terminate()
        assert second.wait(30) == 143
        assert set(forward.ports(lab)) == {"api", "console", "proxy"}
        third.kill()
        third.wait(30)
        left = forward.ports(lab)
        assert set(left) == {"api", "console"} and left["api"] != found["api"]
        assert left["console"] == found["console"]
        first.terminate()
        assert first.wait(30) == 143
    with started("api") as last:  # removes what the killed one left
        assert [entry["pid"] for entry in json.loads((tmp_path / "lab" / forward.FILE).read_text())] == [last.pid]
        last.terminate()
    assert not (tmp_path / "lab" / forward.FILE).exists()


def test_a_program_that_a_verb_becomes_ends_by_a_broken_pipe() -> None:
    """Python ignores SIGPIPE, which the program inherited."""
    code = f"from {cluster.__name__} import become; become(['sh', '-c', 'kill -PIPE $$'])"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -signal.SIGPIPE
    assert cluster.become(["nosuch"]) == Exit.NOT_FOUND
    assert signal.getsignal(signal.SIGPIPE) == signal.SIG_IGN


def test_a_forward_ends_with_its_sandbox(
    runs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ended without a word, and with 0."""
    with subprocess.Popen(["sleep", "60"]) as keeper:

        def entered(pid: int) -> None:
            assert pid == keeper.pid
            keeper.kill()

        running = namespaces.RunningSandbox("lab", "lab", keeper.pid, 0, "")
        monkeypatch.setattr(forward.namespaces, "require", lambda *__: running)
        monkeypatch.setattr(forward.forward, "enter", entered)
        monkeypatch.setattr(os, "geteuid", lambda: 0)
        assert forward.main(["api", "--cluster", "lab"]) == Exit.FAILED
    assert capsys.readouterr().err == (
        "agentlab: the sandbox of cluster lab has ended, and these ports with it; when it runs again: "
        "agentlab forward --cluster lab\n"
    )
    assert not (runs / "lab" / forward.FILE).exists()


@pytest.mark.parametrize("text", ["nobody", "api=70000", "host:", "host:99999", "=1", "api=", "a:b:c=x"])
def test_a_wrong_target_is_named(runs: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert forward.main([text, "--cluster", "lab"]) == 1
    assert repr(text) in capsys.readouterr().err


def test_a_cluster_finds_its_kubeconfig(runs: Path) -> None:
    (runs / "lab/auth/kubeconfig").unlink()
    with pytest.raises(LabError, match="agentlab image --cluster lab"):
        str(cluster.find("lab").kubeconfig)


@pytest.mark.parametrize("verb", cli.VERBS)
def test_help_of_each_verb(
    tmp_path: Path, verb: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where there is no cluster."""
    monkeypatch.setenv("AGENTLAB_RUNS", str(tmp_path))
    shown = []
    for argv in ([verb, "--help"], [verb, "-h"], ["help", verb]):
        try:
            status: int | str | None = cli.main(argv)
        except SystemExit as end:
            status = end.code
        printed = capsys.readouterr()
        assert (status or 0, printed.err) == (0, "")
        shown.append(printed.out)
    assert shown[0].lower().startswith(f"usage: agentlab {verb}") and len(set(shown)) == 1


@pytest.mark.parametrize(("form", "marks"), [("yaml", 1), ("json", 0)])
def test_two_looks_are_two_documents(
    runs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, form: str, marks: int
) -> None:
    looks = iter(
        [{"cluster": "lab", "stages": []}, {"cluster": "lab", "stages": []}, {"cluster": "lab", "stages": ["boot"]}]
    )

    def collect(*__: object, **___: object) -> Any:
        if (found := next(looks, None)) is None:
            raise KeyboardInterrupt
        return found

    monkeypatch.setattr(report_status, "collect", collect)
    monkeypatch.setattr(status, "SECONDS", 0)
    monkeypatch.setattr(status, "again_inside", lambda *__: None)
    with pytest.raises(KeyboardInterrupt):
        status.main(["--watch", "-o", form, "--cluster", "lab"])
    printed = capsys.readouterr().out
    assert printed.splitlines().count("---") == marks
    if form == "yaml":
        assert [one["stages"] for one in yaml.safe_load_all(printed)] == [[], ["boot"]]


def test_help_of_the_client_itself(runs: Path, started: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: f"/bin/{name}")
    api.kubectl(["--cluster", "lab", "get", "--help"])
    assert started == [["inside", "kubectl", "get", "--help"]]


def test_a_list_has_clusters_of_this_checkout_and_of_others(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state.begin(runs / "lab", "prepare")
    state.finish(runs / "lab", "prepare", failed=False)
    state.begin(runs / "lab", "boot")
    (runs / "damaged").mkdir()
    (runs / "damaged" / rundir.PLAN).write_text("[")
    other = tmp_path / "states/theirs"
    other.mkdir(parents=True)
    made = owner.Owner("theirs", "/home/ann/runs/theirs", 1000, "ann", "host1", "digest", "mark")
    (other / owner.FILE).write_text(json.dumps(asdict(made)))
    found = {row["name"]: row for row in listing.rows(runs, tmp_path / "states")}
    assert found["lab"] == {
        "name": "lab", "topology": "compact", "stack": "dualstack", "nodes": 3, "machines": 0, "state": "boot running",
        "owner": None, "run_dir": str(runs / "lab"),
    }  # fmt: skip
    assert (found["theirs"]["owner"], found["theirs"]["run_dir"]) == ("ann on host1", "/home/ann/runs/theirs")
    assert "plan.yaml" in found["damaged"]["state"]
    assert listing.main(["-o", "json"]) == 0
    assert "lab" in [row["name"] for row in json.loads(capsys.readouterr().out)]


def test_a_cluster_of_another_is_refused(
    runs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (runs / "state/lab").mkdir(parents=True)
    made = owner.Owner("lab", "/home/ann/runs/lab", 1000, "ann", "host1", "digest", "mark")
    (runs / "state/lab" / owner.FILE).write_text(json.dumps(asdict(made)))
    monkeypatch.setattr("shutil.which", lambda name, **__: f"/bin/{name}")
    monkeypatch.setattr(os, "execvp", lambda *__: pytest.fail("it entered"))
    given = ["--cluster", "lab"]
    for verb, argv in (
        *((verb, ["master-0", *given]) for verb in (node.ssh, node.console, node.power, capture.main)),
        *((verb, given) for verb in (api.kubeconfig, fault.main, forward.main, logs.main, run_page.main, status.main, exec_.shell)),
        *((verb, [*given, "get", "nodes"]) for verb in (api.kubectl, api.oc)),
        *((snapshot.main, argv) for argv in (["list", *given], [*given, "list"])),
        *((snapshot.main, [action, *given, "ready"]) for action in ("save", "restore", "delete")),
        (snapshot.main, ["copy", *given, "ready", "other"]),
        (exec_.main, [*given, "--", "true"]),
    ):  # fmt: skip
        assert verb(argv) == 1, (verb, argv)
        assert "belongs to ann (uid 1000), run directory /home/ann/runs/lab on host1" in capsys.readouterr().err, argv


def test_destroy_all_leaves_clusters_of_others(
    runs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (runs / "lab" / rundir.PLAN).rename(runs / "plan")
    for name in ("mine", "theirs"):
        chosen = profile.load("sno_ipv4", PROFILES)
        chosen["hypervisor"]["state_dir"] = str(runs / "state")
        (runs / name).mkdir()
        (runs / name / rundir.PLAN).write_text(rundir.dump(build.build(chosen, name)))
    (runs / "damaged").mkdir()
    (runs / "damaged" / rundir.PLAN).write_text("[")
    (runs / "state/theirs").mkdir(parents=True)
    made = owner.Owner("theirs", "/home/ann/runs/theirs", 1000, "ann", "host1", "digest", "mark")
    (runs / "state/theirs" / owner.FILE).write_text(json.dumps(asdict(made)))
    started: list[list[str]] = []
    monkeypatch.setattr(lab, "_ansible", lambda command, *__: started.append(command) or 0)
    assert lab.run("destroy", ["--al", "--check"]) == 1
    shown = capsys.readouterr()
    assert shown.out == "destroy mine\n"
    assert "agentlab: theirs stays: " in shown.err and "belongs to ann" in shown.err
    assert "agentlab: damaged stays: " in shown.err
    assert len(started) == 1 and "--check" in started[0]


@pytest.mark.parametrize("given", [["sno_ipv4"], ["--cluster", "x"], ["--cluster=x"], ["--clus", "x"], ["--adopt"]])
def test_destroy_all_is_for_the_callers_clusters_only(given: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert lab.run("destroy", ["--all", *given]) == 2
    assert "takes no profile, --cluster or --adopt" in capsys.readouterr().err


def test_versions_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert version.main(["-o", "json"]) == 0
    assert {"agentlab", "commit", "payload", "releases", "ansible_core", "python"} == set(
        json.loads(capsys.readouterr().out)
    )


def test_power_as_json(runs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    machine = type("Machine", (), {"power": lambda __: "off"})
    monkeypatch.setattr(bmc, "connect", lambda *__: machine())
    monkeypatch.setenv(cluster.INSIDE, "lab")
    assert node.power(["master-0", "-o", "json", "--cluster", "lab"]) == 0
    assert json.loads(capsys.readouterr().out) == {"node": "master-0", "power": "off"}


def test_capture_of_a_network_and_of_a_node(
    runs: Path, started: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = cluster.find("lab").plan
    net, first = plan["networks"][0], plan["nodes"][0]
    monkeypatch.setattr("shutil.which", lambda *__, **___: "/bin/tcpdump")
    monkeypatch.setattr(capture.namespaces, "require", lambda *__: None)
    monkeypatch.setattr(capture.namespaces, "supervised_prefix", lambda *__: ["inside"])
    capture.main([net["name"], "--cluster", "lab"])
    capture.main(["master-0", "-c", "3", "port", "6443", "--cluster", "lab"])
    mac = first["nics"][0]["mac"]
    assert started[0] == ["inside", "tcpdump", "-i", net["bridge"], "-n", "-l"]
    assert started[1][-1].startswith(f"(ether host {mac}") and started[1][-1].endswith(") and (port 6443)")


def test_a_capture_never_overwrites_a_file(
    runs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capture, "_prefix", lambda __: [])
    path = runs / "packets.pcap"
    path.write_text("mine")
    assert capture.main(["master-0", "-w", str(path), "--cluster", "lab"]) == 1
    assert capsys.readouterr().err == f"agentlab: {path}: the file exists; name a new one\n"
    assert path.read_text() == "mine"


@pytest.fixture
def tcpdump(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A program in the place of tcpdump, or of sudo before it: the test writes it."""
    program = tmp_path / "bin/tcpdump"
    program.parent.mkdir()
    program.touch(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setattr(capture, "_prefix", lambda __: [])
    return program


def test_a_capture_that_fails_leaves_no_file(runs: Path, tcpdump: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The corrected command was refused: the file exists. A password that sudo refused did the same."""
    path = runs / "packets.pcap"
    argv = ["master-0", "-w", str(path), "p", "prot", "22", "--cluster", "lab"]
    for script, code in (("exit 1", 1), ("kill -TERM $$", 143), (f"rm {path}; echo mine > {path}; exit 3", 3)):
        tcpdump.write_text(f"#!/bin/sh\n{script}\n")
        assert capture.main(argv) == code
        assert path.exists() == (code == 3), "a file of another owner stays"
    path.unlink()
    tcpdump.write_text("#!/bin/sh\necho packets; exit 1\n")
    assert capture.main(argv) == 1 and path.read_text() == "packets\n"
    assert path.stat().st_mode & 0o777 == 0o600
    path.unlink()
    tcpdump.unlink()
    monkeypatch.setenv("PATH", str(tcpdump.parent))
    assert capture.main(argv) == Exit.NOT_FOUND and not path.exists()


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 5), (signal.SIGHUP, 6)], ids=["INT", "TERM", "HUP"]
)
def test_a_capture_into_a_file_ends_with_the_verb(runs: Path, tcpdump: Path, number: signal.Signals, code: int) -> None:
    """SIGTERM left tcpdump, and the file grew until `destroy`. Ctrl-C reaches the whole group."""
    tcpdump.write_text(
        "#!/bin/sh\ntrap 'echo end; exit 0' INT\ntrap 'exit 5' TERM\ntrap 'exit 6' HUP\necho begin; echo begin >&2\n"
        "while :; do sleep 0.1; done\n"
    )
    path = runs / "packets.pcap"
    code_of = f"import sys; from {capture.__name__} import _write; from pathlib import Path; sys.exit(_write(Path({str(path)!r}), ['tcpdump']))"
    command = ["env", "--default-signal=INT,HUP", sys.executable, "-c", code_of]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stderr and process.stderr.readline() == "begin\n"
        (os.killpg if number == signal.SIGINT else os.kill)(process.pid, number)
        assert process.wait(20) == code
        assert process.stderr.read() == "", "it has ended"
    assert path.read_text() == ("begin\nend\n" if number == signal.SIGINT else "begin\n")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 5), (signal.SIGHUP, 6)])
def test_a_signal_while_a_capture_starts(
    runs: Path, tcpdump: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals, code: int
) -> None:
    """It left tcpdump behind: the verb had not begun to wait for it."""
    tcpdump.write_text(
        "#!/bin/sh\ntrap 'exit 5' TERM\ntrap 'exit 6' HUP\necho begin >&2\nwhile :; do sleep 0.1; done\n"
    )
    start = subprocess.Popen

    def slow(command: list[str], **options: Any) -> subprocess.Popen[str]:
        process = start(command, stderr=subprocess.PIPE, text=True, **options)
        assert process.stderr and process.stderr.readline() == "begin\n"
        os.kill(os.getpid(), number)
        return process

    monkeypatch.setattr(capture.subprocess, "Popen", slow)
    before = signal.signal(number, signal.SIG_DFL)  # tests that nohup started ignore SIGHUP, and their programs do
    try:
        assert capture._write(runs / "packets.pcap", ["tcpdump"]) == code
    finally:
        signal.signal(number, before)


@pytest.mark.parametrize("count", ["0", "-1"])
def test_a_capture_counts_from_1(runs: Path, capsys: pytest.CaptureFixture[str], count: str) -> None:
    """0 was ignored."""
    with pytest.raises(SystemExit) as end:
        capture.main(["master-0", "-c", count, "--cluster", "lab"])
    assert end.value.code == 2
    assert f"argument -c/--count: {count} is not at least 1" in capsys.readouterr().err


def test_a_capture_of_something_unknown(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert capture.main(["master-9", "--cluster", "lab"]) == 1
    shown = capsys.readouterr().err
    assert "has no node 'master-9'; its nodes are master-0" in shown and "; its networks are " in shown


def test_every_verb_that_enters_asks_an_ssh_hypervisor_for_the_owner(
    runs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """ssh, kubectl, oc and forward entered another user's cluster behind an ssh hypervisor."""
    monkeypatch.setattr("shutil.which", lambda name: f"/bin/{name}")
    monkeypatch.setattr(os, "execvp", lambda *__: pytest.fail("it entered"))

    def refuse(self: cluster.Cluster) -> None:
        raise LabError(f"cluster {self.name} belongs to ann")

    monkeypatch.setattr(cluster.Cluster, "check_remote_owner", refuse)
    given = ["--cluster", "lab"]
    for verb, argv in (
        (node.ssh, ["master-0", *given]),
        (api.kubectl, [*given, "get", "nodes"]),
        (api.oc, [*given, "whoami"]),
        (forward.main, given),
        (status.main, given),
        (logs.main, given),
        (capture.main, ["master-0", *given]),
        (node.console, ["master-0", *given]),
        (node.power, ["master-0", *given]),
    ):
        assert verb(argv) == 1
        assert capsys.readouterr().err == "agentlab: cluster lab belongs to ann\n"


def test_a_verb_that_runs_again_inside_keeps_its_cluster(
    runs: Path, started: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """sudo drops the environment: with CLUSTER=lab, `power` of a user other than root was about the cluster ostest."""
    monkeypatch.setenv("CLUSTER", "lab")
    with pytest.raises(SystemExit):
        node.power(["master-0", "off"])
    assert started[0][:5] == ["inside", "env", "AGENTLAB_INSIDE=lab", f"AGENTLAB_RUNS={runs}", "CLUSTER=lab"]


@pytest.mark.parametrize(
    "verb", [["snapshot", "list"], ["forward"], ["prune"], ["console", "master-0"], ["setup"], ["prepare"], ["destroy"]]
)
def test_a_user_without_sudo(
    runs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, verb: list[str]
) -> None:
    """One message, with what to do."""
    monkeypatch.setattr(os, "geteuid", lambda: 4242)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(lab, "missing_packages", lambda: ["qemu-utils"])
    monkeypatch.setenv("CLUSTER", "lab")
    log = runs / "state/lab/console/lab_master_0.log"
    log.parent.mkdir(parents=True)
    log.touch()
    try:
        found = cli.main(verb)
    except SystemExit as end:
        found = int(str(end.code))
    assert found == (Exit.USAGE if verb[0] in ("setup", "prepare", "destroy") else Exit.NOT_FOUND)
    assert capsys.readouterr().err == "agentlab: this needs root: run it as root, or install sudo\n"


def test_setup_installs_what_the_verbs_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """capture never worked: nothing installed tcpdump; README's kubectl needed the packages of the tests."""
    tables = yaml.safe_load((PROFILES.parent / "roles/setup/vars/main.yml").read_text())
    assert all("tcpdump" in names for names in tables["agentlab_setup_packages"].values())
    asked: list[str] = []
    monkeypatch.setattr(lab, "missing", lambda names: asked.extend(names) or [])
    monkeypatch.setattr(lab, "distribution", lambda table: "debian")
    assert not lab.missing_packages() and {"tcpdump", "kubernetes-client | kubectl"} <= {*asked}


EVERYDAY = {
    "ssh": ["master-0"], "console": ["master-0"], "power": ["master-0"], "logs": [], "fault": ["master-0", "pause"], "capture": ["master-0"],
    "kubectl": ["get", "nodes"], "oc": ["whoami"], "kubeconfig": [], "forward": [], "exec": ["--", "true"], "shell": [], "status": [],
    "snapshot": ["restore", "x"], "reload": ["agent-installer-node-agent"], "conformance": [],
}  # fmt: skip


@pytest.mark.parametrize("verb", EVERYDAY)
@pytest.mark.parametrize("how", ["no such cluster", "half-made", "another user's", "a damaged plan"])
def test_a_cluster_that_cannot_be_used(
    runs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, verb: str, how: str
) -> None:
    """Each verb prints one message, and starts nothing."""
    monkeypatch.setattr("shutil.which", lambda name, **__: f"/bin/{name}")
    monkeypatch.setattr(os, "execvp", lambda program, *_: pytest.fail(f"{program} was started"))
    (runs / "state/lab").mkdir(parents=True)
    if how == "another user's":
        made = owner.Owner("lab", "/home/ann/runs/lab", 1000, "ann", "host1", "digest", "mark")
        (runs / "state/lab" / owner.FILE).write_text(json.dumps(asdict(made)))
    elif how == "a damaged plan":
        (runs / "lab" / rundir.PLAN).write_text("[")
    elif how == "half-made":  # killed before it had consoles, keys and a sandbox
        (runs / "lab/ssh/id_ecdsa").unlink()
        (runs / "lab/auth/kubeconfig").unlink()
    name = ["--cluster", "lab" if how != "no such cluster" else "nosuch"]
    argv = [*name, *EVERYDAY[verb]] if verb in ("kubectl", "oc", "exec") else [*EVERYDAY[verb], *name]
    status = cli.main([verb, *argv])
    shown = capsys.readouterr()
    if how == "half-made" and verb == "status":
        assert (status, shown.err) == (0, "")
        return
    assert status == 1
    assert shown.err.startswith("agentlab: ") and shown.err.count("agentlab: ") == 1
    assert shown.err.count("\n") == (2 if how == "a damaged plan" else 1), "the second line is the remedy"
    wanted = {
        "no such cluster": "nosuch",
        "half-made": "agentlab ",
        "another user's": "belongs to ann",
        "a damaged plan": "plan.yaml",
    }
    assert wanted[how] in shown.err


def test_the_page_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(run_page.webbrowser, "open", lambda url: pytest.fail("a browser was opened"))
    monkeypatch.setattr(Server, "serve_forever", lambda self: None)
    assert cli.main(["open", "--dir", str(tmp_path), "-o", "json"]) == 0
    path = tmp_path / "report/index.html"
    assert json.loads(capsys.readouterr().out) == {"page": str(path), "url": path.as_uri()}
    assert cli.main(["open", "--dir", str(tmp_path), "--live", "-o", "yaml"]) == 0
    found = yaml.safe_load(capsys.readouterr().out)
    assert found["page"] is None and found["url"].startswith("http://127.0.0.1:")


def test_the_page_of_any_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Such as `ocp/CLUSTER` of dev-scripts, where the role has recorded the wait: there is no plan."""
    folder = tmp_path / "ocp/two"
    (folder / "logs").mkdir(parents=True)
    (folder / ".openshift_install.log").write_text('time="2026-01-01T00:00:00Z" level=info msg="here"\n')
    assert cli.main(["open", "--dir", str(folder)]) == 0
    assert capsys.readouterr().out.strip() == str(folder / "report/index.html")
    assert "run/.openshift_install.log" in (folder / "report/run.json").read_text()
    assert cli.main(["open", "--dir", str(tmp_path / "none")]) == 1
    assert f"--dir {tmp_path}/none: there is no such directory" in capsys.readouterr().err
