"""Modules without a plan: a few lines of YAML are enough, and what is wrong with them is named before anything is made."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.report import gather
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import processes

MODULES = "ansible_collections.agentlab.ocp.plugins.modules"
NETWORKS = [{"name": "mine0", "subnets": [{"cidr": "127.78.0.0/24"}]}]
NODES = [{"name": "one", "nics": [{"network": "mine0"}]}, {"name": "two"}]
# As nft(8) does: a table that was loaded is there, and is listed as it was loaded.
NFT = """#!/bin/sh
case $1 in -f) cat >"$0.loaded" ;; list) cat "$0.loaded" ;; delete) rm "$0.loaded" ;; esac
"""


@pytest.fixture(autouse=True)
def nft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/nft").write_text(NFT)
    (tmp_path / "bin/nft").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")


def run(module: str, /, *, check: bool = False, **arguments: Any) -> dict[str, Any]:
    given = arguments | {"_ansible_check_mode": check, "_ansible_diff": True, "_ansible_remote_tmp": "/tmp"}
    done = subprocess.run(
        [sys.executable, "-c", f"import {MODULES}.{module} as m; m.main()"],
        input=json.dumps({"ANSIBLE_MODULE_ARGS": given}), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout, done.stderr
    return dict(json.loads(done.stdout))


def test_services(tmp_path: Path) -> None:
    state_dir = tmp_path / "lab" / "mine"
    given: dict[str, Any] = {
        "cluster": "mine",
        "state_dir": str(state_dir),
        "networks": NETWORKS,
        "services": {"http": {"port": 48089}},
    }
    planned = run("lab_services", check=True, **given)
    assert planned["changes"] == ["agentlab-mine", "http"] and not state_dir.exists(), planned
    try:
        assert run("lab_services", **given)["changes"] == planned["changes"]
        with urllib.request.urlopen("http://127.78.0.1:48089/", timeout=10) as answer:
            assert answer.status == 200
        assert run("lab_services", **given)["changed"] is False
        listed = json.loads((state_dir / "state.json").read_text())["created"]
        assert [item["kind"] for item in listed] == ["uplink", "state_dir", "service"]
        assert (state_dir / "secrets.json").stat().st_mode & 0o777 == 0o600
        assert (state_dir / "tls/ca.crt").exists()
        removed = run("lab_destroy", cluster="mine", state_dir=str(state_dir))["removed"]
        assert {item["kind"] for item in removed} == {"uplink", "state_dir", "service"}
        assert not state_dir.exists()
    finally:
        processes.stop(state_dir / "processes", "http")


@pytest.mark.parametrize(
    ("services", "message"),
    [
        ({"http": {"port": 0}}, "services: http.port is 0: must be from 1 to 65535"),
        ({"web": {}}, "Supported parameters include: bmc, http, ntp, registry"),
        ({"bmc": {"password": "a\nb"}}, "services: bmc.password"),
    ],
)
def test_wrong_services(tmp_path: Path, services: dict[str, Any], message: str) -> None:
    done = run("lab_services", cluster="mine", state_dir=str(tmp_path / "lab"), networks=NETWORKS, services=services)
    assert done["failed"] and message in done["msg"], done
    assert not (tmp_path / "lab").exists()


def test_a_password_is_not_printed(tmp_path: Path) -> None:
    given = {"cluster": "mine", "state_dir": str(tmp_path / "lab"), "networks": NETWORKS}
    done = run("lab_services", check=True, services={"http": {}, "bmc": {"password": "canary-password"}}, **given)
    assert "canary-password" not in json.dumps(done), done


def test_faults(tmp_path: Path) -> None:
    given: dict[str, Any] = {
        "cluster": "mine",
        "state_dir": str(tmp_path / "lab"),
        "nodes": NODES,
        "dir": str(tmp_path),
    }
    wanted = [{"kind": "power_off", "node": "two", "when": "Rebooting"}]
    assert run("lab_faults", check=True, faults=wanted, **given)["changes"] == ["faults"]
    for fault, message in (
        ({"kind": "power_off", "node": "three"}, "faults: 0.node is 'three': must be one of one, two"),
        (
            {"kind": "clock", "node": "one", "offset": 3},
            "faults: 0.kind is 'clock': requires a plan; without one: power_off",
        ),
        ({"kind": "powr_off", "node": "one"}, "faults: 0.kind is 'powr_off': did you mean power_off?"),
        ({"kind": "power_off"}, "faults: 0.node: is missing"),
    ):
        assert message in run("lab_faults", check=True, faults=[fault], **given)["msg"]


def test_sandbox(tmp_path: Path) -> None:
    given = {"cluster": "mine", "state_dir": str(tmp_path / "lab"), "networks": NETWORKS}
    assert run("sandbox", check=True, **given)["changes"] == ["agentlab-mine"]
    assert not (tmp_path / "lab").exists()


def test_capacity(tmp_path: Path) -> None:
    assert run("capacity_info", nodes=[{"name": "one", "memory_mib": 1}], directory=str(tmp_path), payload="lab")[
        "facts"
    ]["cpus"]
    refused = run("capacity_info", nodes=[{"name": "one", "memory_mib": 1 << 30}], directory=str(tmp_path))
    assert "MiB of memory are required for 1 nodes" in refused["msg"]


@pytest.mark.parametrize("name", ["lab_boot", "lab_faults", "lab_networks", "lab_nodes", "lab_services", "sandbox"])
def test_either_a_plan_or_own_options(name: str) -> None:
    needed = {"lab_boot": {"image": "/x"}, "lab_faults": {"dir": "/x"}}.get(name, {})
    assert "one of the following is required: plan, " in run(name, **needed)["msg"]
    assert "mutually exclusive" in run(name, plan={}, cluster="mine", owner={}, **needed)["msg"]


def test_gather_of_any_installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither libvirt nor services of a lab are looked for, and no cause is named."""
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets/rendezvousIP").write_text("192.0.2.10")
    asked: list[str] = []

    def answer(command: Any, **how: Any) -> subprocess.CompletedProcess[bytes]:
        asked.extend(command)
        how["stdout"].write(b"a journal\n")
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(gather.subprocess, "run", answer)
    monkeypatch.setattr(gather.Gatherer, "_service", lambda self: self._json("assisted/cluster.json", {}))
    of = gather.ExternalCluster({"master-0": "192.0.2.10"}, "192.0.2.10", Path("/keys/mine"))
    found = gather.Gatherer(of, tmp_path / "assets", tmp_path / "report", (None, "user")).run()
    assert set(found.missing) == {"OpenShift API"} and found.causes == []
    assert "hosts/master-0/journal.log" in found.files and "/keys/mine" in asked and "core@192.0.2.10" in asked
    assert (tmp_path / "report/summary.txt").read_text().startswith("Causes are determined with a plan only.\n")


def test_gather_needs_the_state_of_the_installer(tmp_path: Path) -> None:
    refused = run("gather", run_dir=str(tmp_path), dest=str(tmp_path / "report"))
    assert "has no rendezvous IP" in refused["msg"] and not (tmp_path / "report").exists()
