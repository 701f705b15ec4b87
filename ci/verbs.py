"""Drives every verb of the command line on an installed single-node cluster: `ci/verbs.py CLUSTER [VERB ...]`.

`CASES` has a case for each verb; a unit test fails when one is missing. A case leaves the cluster as it was, so that jobs run them
between their last stage and `destroy`. Verbs that change a whole lab run with --check: the job itself has run them.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import jsonschema
import pexpect
import yaml
from ansible_collections.agentlab.ocp.ci import verbs_of_tools as tools
from ansible_collections.agentlab.ocp.ci.calls import LIMIT, Verbs, expect
from ansible_collections.agentlab.ocp.payload.images import code
from ansible_collections.agentlab.ocp.payload.images.components import COMPONENTS
from ansible_collections.agentlab.ocp.plugins.module_utils.cli.places import ROOT
from ansible_collections.agentlab.ocp.plugins.module_utils.cli.verbs import VERBS
from ansible_collections.agentlab.ocp.plugins.module_utils.vocabulary import Component, Exit

NODE = "master-0"
CLOCK_SECONDS = 5
PCAP = (0xA1B2C3D4).to_bytes(4, sys.byteorder)


def _checked(verb: str, verbs: Verbs) -> None:
    verbs.call(verb, "--check")


def _validate(verbs: Verbs) -> None:
    _checked("validate", verbs)
    found = verbs.json("validate")
    expect(found and all(check["ok"] for check in found), found)


def _plan(verbs: Verbs) -> None:
    expect(verbs.json("plan")["cluster"]["name"] == verbs.cluster, "plan")


def _setup(verbs: Verbs) -> None:
    expect("already installed" in verbs.call("setup"), "setup installed something")


def _list(verbs: Verbs) -> None:
    row = next(row for row in verbs.json("list") if row["name"] == verbs.cluster)
    expect(row["owner"] and row["nodes"] == 1, row)


def _status(verbs: Verbs) -> None:
    found = verbs.json("status")
    jsonschema.validate(found, json.loads((ROOT / "docs/status.schema.json").read_text()))
    expect(found["hosts"][0]["power"] == "on" and not found["first_cause"], found)
    expect(NODE in verbs.call("status"), "status")
    with verbs.running("status", "--watch") as process:
        expect(process.stdout and verbs.cluster in process.stdout.readline(), "status --watch")


def _ssh(verbs: Verbs) -> None:
    expect(verbs.call("ssh", NODE, "--", "hostname").strip().partition(".")[0] == NODE, "ssh")
    verbs.call("ssh", NODE, "--", "exit", "7", status=7)
    expect("has no node 'worker-9'" in verbs.call("ssh", "worker-9", status=Exit.FAILED), "an unknown node")


def _console(verbs: Verbs) -> None:
    expect("BdsDxe" in verbs.call("console", NODE) or verbs.call("console", NODE).strip(), "console")
    with verbs.running("console", NODE, "-f") as process:
        expect(process.stdout and process.stdout.readline(), "console -f")
    child = pexpect.spawn(
        sys.executable,
        verbs.command("console", NODE, "-i")[1:],
        env={**os.environ, "CLUSTER": verbs.cluster},
        timeout=60,
    )
    child.expect("Escape character is")
    child.send("\r")
    child.expect("login:")
    child.send("\x1d")
    child.expect(pexpect.EOF)


def _power(verbs: Verbs) -> None:
    expect(verbs.json("power", NODE) == {"node": NODE, "power": "on"}, "power")
    verbs.call("power", NODE, "on")


def _logs(verbs: Verbs) -> None:
    lines = [json.loads(line) for line in verbs.call("logs", "-n", "20", "-o", "json").splitlines()]
    expect({NODE, f"{NODE}/console", "bmc", "ntp"} <= {line["source"] for line in lines}, lines)
    expect([line["time"] for line in lines] == sorted(line["time"] for line in lines), "the order of logs")
    rows = yaml.safe_load(verbs.call("logs", "--node", NODE, "-n", "5", "-o", "yaml"))
    expect(rows and set(rows[0]) == {"time", "source", "text"}, rows)
    units = verbs.call("logs", "--node", NODE, "--unit", "sshd", "--unit", "ssh", "-n", "5").splitlines()
    expect(units and all(f" {NODE} " in line for line in units), units)
    without = verbs.call("logs", "--unit", "kubelett", status=Exit.FAILED)
    expect(f"unit kubelett has no entries on {NODE}" in without, without)
    with verbs.running("logs", "-f") as process:
        wanted, seen = {NODE, f"{NODE}/console"}, set[str]()
        end = time.monotonic() + 60
        while not wanted <= seen and process.stdout:
            seen.add(process.stdout.readline().split()[1])
            expect(time.monotonic() < end, seen)


def _fault(verbs: Verbs) -> None:
    state = ("--", "virsh", "domstate", f"{verbs.cluster.replace('-', '_')}_master_0")
    verbs.call("fault", NODE, "pause")
    try:
        expect("paused" in verbs.call("exec", *state), "pause")
        expect([row["kind"] for row in verbs.json("fault")] == ["pause"], "the list of faults")
        expect("was injected before" in verbs.call("fault", NODE, "pause", status=Exit.FAILED), "twice")
    finally:
        verbs.call("fault", NODE, "pause", "--undo")
    expect("running" in verbs.call("exec", *state), "undo")
    verbs.call("fault", NODE, "link_down", "--seconds", "1")
    verbs.call("fault", NODE, "mtu", "--mtu", "1300", "--seconds", "1")
    verbs.call("fault", "ntp", "service_down", "--seconds", "2")
    expect(verbs.json("fault") == [], "faults are left")


def _capture(verbs: Verbs) -> None:
    path = verbs.folder / "packets.pcap"
    with verbs.running("capture", NODE, "-w", str(path), "-c", "4", "port", "22") as process:
        end = time.monotonic() + 60
        while process.poll() is None:
            verbs.call("ssh", NODE, "--", "true")
            expect(time.monotonic() < end, "capture got no packet")
        process.communicate()
    expect(path.read_bytes()[:4] == PCAP and path.stat().st_mode & 0o777 == 0o600, path.read_bytes()[:24])


def _kubectl(verbs: Verbs) -> None:
    expect(NODE in verbs.call("kubectl", "get", "nodes"), "kubectl")


def _oc(verbs: Verbs) -> None:
    """Debian has no oc: then it is a message."""
    there = subprocess.run(["sh", "-c", "command -v oc"], capture_output=True, check=False).returncode == 0
    shown = verbs.call("oc", "get", "nodes", status=Exit.OK if there else Exit.NOT_FOUND)
    expect(NODE in shown or "oc is not installed" in shown, shown)


def _page(url: str, *, host: str = "", proxies: dict[str, str] | None = None) -> str:
    """Return a page of the cluster, whose certificate is its own. Raises `HTTPError` unless the answer is a success.

    host: the name that is requested, instead of that of the URL; proxies: as of `ProxyHandler`, by default none.
    """
    tls = urllib.request.HTTPSHandler(context=ssl._create_unverified_context())
    opener = urllib.request.build_opener(urllib.request.ProxyHandler(proxies or {}), tls)
    request = urllib.request.Request(url, headers={"Host": host} if host else {})
    with opener.open(request, timeout=30) as answer:
        return str(answer.read(), "utf-8")


def _forward(verbs: Verbs) -> None:
    """With kubeconfig, which needs one; the port is taken meanwhile, and free afterwards.

    The console's router answers by its name alone, with 200; to others it answers 503.
    """
    name = verbs.json("plan")["endpoints"]["console"]["host"]
    expect("is not forwarded" in verbs.call("kubeconfig", status=Exit.FAILED), "kubeconfig without forward")
    with verbs.running("forward", "-o", "yaml") as process:
        assert process.stdout
        ports = yaml.safe_load("".join(process.stdout.readline() for __ in ("api", "console", "service")))
        port = int(ports["api"].rpartition(":")[2])
        expect(str(port) in verbs.call("forward", f"api={port}", status=Exit.FAILED), "a port that is taken")
        config = verbs.json("kubeconfig")
        target = config["clusters"][0]["cluster"]
        expect(target["server"] == f"https://127.0.0.1:{port}", target)
        # As the browser of the command that is printed: by the console's name.
        expect("console" in _page(f"https://{ports['console']}/", host=name), "the console")
        merged = verbs.folder / "merged"
        verbs.call("kubeconfig", "--merge", KUBECONFIG=str(merged))
        done = subprocess.run(
            ["kubectl", "--kubeconfig", merged, "get", "nodes"], capture_output=True, text=True, timeout=60, check=False
        )
        expect(NODE in done.stdout, done.stderr)
    with verbs.running("forward", "proxy", "-o", "yaml") as process:
        assert process.stdout
        here = yaml.safe_load(process.stdout.readline())["proxy"]
        expect("console" in _page(f"https://{name}/", proxies={"https": f"http://{here}"}), "the console, by the proxy")


def _doctor(verbs: Verbs) -> None:
    """Memory may not suffice for another cluster in addition to this one."""
    found = subprocess.run(verbs.command("doctor", "-o", "json"), capture_output=True, text=True, check=False)
    checks = {one["check"]: one["result"] for one in json.loads(found.stdout)}
    expect(checks["packages"] == checks["network namespaces"] == "ok", checks)


def _prune(verbs: Verbs) -> None:
    expect(verbs.cluster not in verbs.call("prune", "--check"), "prune would remove a running lab")


def _exec(verbs: Verbs) -> None:
    expect(verbs.cluster in verbs.call("exec", "--", "virsh", "-q", "list", "--name"), "exec")


def _matrix(verbs: Verbs) -> None:
    known = str(Path(__file__).with_name("results.jsonl"))
    expect("usually" in verbs.call("matrix", "history", known), "matrix history")
    expect(verbs.json("matrix", "history", known)[0]["runs"], "matrix history -o json")


def _version(verbs: Verbs) -> None:
    expect(verbs.json("version")["agentlab"], "version")


def _reproduce(verbs: Verbs) -> None:
    """The profile of a run is found in its run directory."""
    expect("topology: sno" in verbs.call("reproduce", str(verbs.run_dir)), "reproduce")


def _open(verbs: Verbs) -> None:
    expect(Path(verbs.json("open")["page"]).exists(), "the run page's path")
    with verbs.running("open", "--live") as process:
        found = process.stdout and re.search(r"http://127\S+", process.stdout.readline())
        assert found, "open prints no address"
        with urllib.request.urlopen(found[0], timeout=LIMIT) as page:
            expect(b"<html" in page.read(), "the run page")


def _snapshot(verbs: Verbs) -> None:
    """The cluster resumes from where it was saved: from a file, and after its node was reset and switched off."""
    path = verbs.folder / "verbs.snapshot"
    verbs.call("snapshot", "save", "verbs")
    try:
        verbs.call("snapshot", "export", "verbs", str(path))
        verbs.call("snapshot", "delete", "verbs")
        verbs.call("snapshot", "import", str(path))
    finally:
        path.unlink(missing_ok=True)
    for action, state in (("reset", "on"), ("off", "off")):
        expect(verbs.json("power", NODE, action) == {"node": NODE, "power": state}, f"power {action}")
    verbs.call("snapshot", "restore", "verbs")
    expect(verbs.json("power", NODE)["power"] == "on", "the node after a restore")
    clock = float(verbs.call("ssh", NODE, "--", "date", "+%s"))
    expect(abs(time.time() - clock) < CLOCK_SECONDS, "the clock of the node after a restore")
    expect(verbs.json("snapshot", "list")[0]["name"] == "verbs", "snapshot list")
    verbs.call("snapshot", "delete", "verbs")


def _reload(verbs: Verbs) -> None:
    """API and kubelet of another image, and back; the service does not run any more."""
    tree = verbs.folder / "hyperkube"
    for path, node in code.executables(COMPONENTS[Component.HYPERKUBE]).items():
        assert isinstance(node.data, bytes)
        (tree / path).parent.mkdir(parents=True)
        (tree / path).write_bytes(node.data + b"# another one\n")
        (tree / path).chmod(node.mode)
    expect("reloaded in" in verbs.call("reload", "hyperkube", "--from", str(tree)), "reload --from")
    expect(NODE in verbs.call("kubectl", "get", "nodes"), "the API after a reload")
    expect("reloaded in" in verbs.call("reload", "hyperkube"), "reload")
    expect("no change" in verbs.call("reload", "hyperkube"), "reload without a change")
    refused = verbs.call("reload", "agent-installer-api-server", status=Exit.FAILED)
    expect("runs nowhere in cluster" in refused, refused)


def _serve(verbs: Verbs) -> None:
    with verbs.running("serve", "assisted-service", "--listen", "127.0.0.1:0", "--data", "service") as process:
        expect(process.stdout and re.search(r"listens on http://127", process.stdout.readline()), "serve")


def _conformance(verbs: Verbs) -> None:
    """All cases, on a cluster that real kubelets have joined."""
    shown = verbs.call("conformance", "--junit", str(verbs.folder))
    expect(" 0 failed, " in shown and (verbs.folder / "junit_conformance.xml").exists(), shown)


def _ci(verbs: Verbs) -> None:
    """The steps of OpenShift CI that leave the cluster as it is."""
    artifacts = verbs.folder / "artifacts"
    shown = verbs.call("ci", "validate", "--artifacts", str(artifacts))
    expect("ok    validate" in shown and (artifacts / "junit_agentlab.xml").exists(), shown)
    script = 'kubectl get nodes > "$JUNIT_DIR/nodes"'
    verbs.call("ci", "exec", "--artifacts", str(artifacts), "--", "sh", "-c", script)
    expect(NODE in (artifacts / "junit/nodes").read_text(), "ci exec")


def _swarm(verbs: Verbs) -> None:
    """The executable starts without the checkout."""
    path = verbs.folder / "swarm"
    verbs.call("swarm", "pack", str(path))
    done = subprocess.run(
        [sys.executable, path, "--help"], capture_output=True, text=True, timeout=60, check=False, cwd=verbs.folder
    )
    expect("usage: agentlab swarm" in done.stdout, done.stderr)


def _drift(verbs: Verbs) -> None:
    """Jobs have no checkouts of upstream projects."""
    refused = verbs.call("drift", "--checkout", "another=/nonexistent", status=Exit.FAILED)
    expect("sources are installer, " in refused, refused)


def _completion(verbs: Verbs) -> None:
    expect("complete " in verbs.call("completion", "bash"), "completion")


CASES: dict[str, Callable[[Verbs], None]] = {
    "plan": _plan,
    "setup": _setup,
    **{name: partial(_checked, name) for name in ("prepare", "configure", "image", "boot", "wait", "gather")},
    "validate": _validate,
    **{name: partial(_checked, name) for name in ("deploy", "destroy")},
    "version": _version,
    "list": _list,
    "status": _status,
    "ssh": _ssh,
    "console": _console,
    "power": _power,
    "logs": _logs,
    "fault": _fault,
    "capture": _capture,
    "kubectl": _kubectl,
    "oc": _oc,
    "kubeconfig": _forward,
    "forward": _forward,
    "doctor": _doctor,
    "prune": _prune,
    "exec": _exec,
    "shell": lambda verbs: expect(not verbs.call("shell", SHELL="/bin/true"), "shell"),
    "graph": lambda verbs: expect("digraph" in verbs.call("graph"), "graph"),
    **tools.CASES,
    "swarm": _swarm,
    "serve": _serve,
    "ci": _ci,
    "matrix": _matrix,
    "open": _open,
    "snapshot": _snapshot,
    "reload": _reload,
    "reproduce": _reproduce,
    "conformance": _conformance,
    "drift": _drift,
    "completion": _completion,
    "payload": lambda verbs: expect(verbs.json("payload", "show")["release"], "payload"),
}


def drive(cluster: str, names: Sequence[str] = ()) -> Iterator[tuple[str, float, str]]:
    """Yield each verb that was driven, how long that took, and what was wrong.

    names: the verbs, all by default. The error is empty when it is right; a case that serves two verbs runs once.
    """
    done: set[Callable[[Verbs], None]] = set()
    with tempfile.TemporaryDirectory(prefix="agentlab-verbs-") as folder:
        for name in names or VERBS:
            case, begin, error = CASES[name], time.monotonic(), ""
            if case in done:  # one case for two verbs
                continue
            done.add(case)
            try:
                case(Verbs(cluster, Path(folder)))
            except (
                AssertionError,
                OSError,
                ValueError,
                LookupError,
                subprocess.SubprocessError,
                pexpect.ExceptionPexpect,
            ) as failure:
                error = f"{name}: {type(failure).__name__}: {failure}"
            yield name, time.monotonic() - begin, error


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="ci/verbs.py", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("cluster")
    parser.add_argument("verbs", nargs="*", choices=[*CASES, []], metavar="VERB")
    args = parser.parse_args(argv)
    failed = 0
    for name, seconds, error in drive(args.cluster, args.verbs):
        failed += bool(error)
        print(f"{'FAIL' if error else 'ok  '}  {name:<12} {seconds:6.1f} s  {error}", flush=True)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
