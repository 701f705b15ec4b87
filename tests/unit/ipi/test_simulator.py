"""The simulator of `openshift-install` for IPI: its configs, its masters, its command line. Machines are up to e2e jobs."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from ansible_collections.agentlab.ocp.payload.ipi import __main__ as program
from ansible_collections.agentlab.ocp.payload.ipi import configs, lab, masters
from ansible_collections.agentlab.ocp.payload.ipi.ironic import Ironic
from ansible_collections.agentlab.ocp.plugins.module_utils.ignition.config import files_of
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import inputs, rundir
from ansible_collections.agentlab.ocp.plugins.module_utils.vocabulary import COMPONENTS, Exit

PROFILES = Path(__file__).resolve().parents[3] / "config_examples"
IMAGES = {name: {"pullspec": f"registry.agentlab.test/lab/payload@sha256:{number:064d}"} for number, name in enumerate(COMPONENTS)}  # fmt: skip


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    plan, changes = rundir.prepare(tmp_path, "compact_ipi", PROFILES, "ostest", refuse=False)
    rundir.write([*changes, *inputs.prepare(plan, tmp_path)])
    payload = {
        "version": "4.22.0-lab",
        "images": IMAGES,
        "iso": "/iso",
        "ironic": "/ironic",
        "ironic_images": "/images",
    }
    (tmp_path / lab.PAYLOAD).write_text(json.dumps(payload))
    return tmp_path


def test_the_bootstrap_machine_starts_the_cluster_and_masters_get_a_pointer(run_dir: Path) -> None:
    program.main(["create", "manifests", "--dir", str(run_dir)])
    (run_dir / "openshift/extra.yaml").write_text(
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: extra, namespace: default}}"
    )
    made = configs.make(lab.load(run_dir))
    files = files_of(made["bootstrap.ign"])
    assert [unit["name"] for unit in made["bootstrap.ign"]["systemd"]["units"] if unit.get("enabled")] == [
        "bootkube.service"
    ]
    assert "virthost.ostest.test.metalkube.org:5000/lab/payload" in files["/etc/containers/registries.conf"].decode()
    facts = json.loads(files["/etc/kubernetes/cluster.json"])
    assert [host["name"] for host in facts["hosts"]] == ["master-0", "master-1", "master-2"]
    assert not any(host["bootstrap"] for host in facts["hosts"]) and facts["api_vips"] == ["192.168.111.5"]
    assert facts["hosts"][0]["addresses"] == ["192.168.111.20"]
    assert (
        "agent-installer-csr-approver" not in facts["images"]
    )  # the assisted-installer-controller, which has no part in this flow
    assert any(one["metadata"]["name"] == "extra" for one in json.loads(files["/opt/openshift/manifests.json"]))
    pointer = json.loads(files_of(made["master.ign"])["/etc/kubernetes/machine-config.json"])
    assert pointer["url"] == "https://api-int.ostest.test.metalkube.org:22623/config/master"
    kubeconfig = yaml.safe_load((run_dir / "auth/kubeconfig").read_text())
    assert kubeconfig["clusters"][0]["cluster"]["server"] == "https://api.ostest.test.metalkube.org:6443"
    assert (run_dir / "auth/kubeadmin-password").stat().st_mode & 0o777 == 0o600
    assert not (run_dir / "install-config.yaml").exists()


class Requests:
    """What an Ironic is asked for, in order; it fails for the node `broken`."""

    def __init__(self, broken: str = "") -> None:
        self.broken, self.seen, self._lock = broken, cast("dict[str, list[Any]]", {}), threading.Lock()

    def enrol(self, node: Any, ca: Path, **more: object) -> None:
        self._note(node["name"], ("enrol", ca.name, more))

    def provision(self, name: str, verb: str, wanted: str, more: dict[str, Any] | None = None) -> None:
        self._note(name, (verb, wanted))
        if name == self.broken and verb == "active":
            raise ValueError("active: deploy failed: no disk")
        if more:
            self._note(name, more)

    def _note(self, name: str, what: object) -> None:
        with self._lock:
            self.seen.setdefault(name, []).append(what)


def provisioned(run_dir: Path, ironic: Requests) -> tuple[masters.Masters, list[str]]:
    reported: list[str] = []
    nodes = masters.Masters(lab.load(run_dir), {"ignition": {}}, lambda level, text: reported.append(text))
    nodes.start(cast(Ironic, ironic))
    end = time.monotonic() + 10
    while len(nodes.unwritten) > bool(nodes.failure):
        assert time.monotonic() < end
        time.sleep(0.01)
    return nodes, reported


def test_a_master_is_enrolled_inspected_and_deployed_with_its_config(run_dir: Path) -> None:
    ironic = Requests()
    nodes, reported = provisioned(run_dir, ironic)
    assert nodes.unwritten == [] and nodes.failure == ""
    assert sorted(ironic.seen) == ["master-0", "master-1", "master-2"]
    enrol, *requests = ironic.seen["master-1"]
    assert enrol == ("enrol", "ca.crt", {"deploy_interface": "custom-agent", "inspect_interface": "agent"})
    step = {"interface": "deploy", "step": "install_coreos", "priority": 80, "args": {}}
    assert requests == [
        ("inspect", "manageable"),
        ("provide", "available"),
        ("active", "active"),
        {
            "configdrive": {"user_data": {"ignition": {}}, "meta_data": {"name": "master-1"}},
            "deploy_steps": [step],
        },
    ]
    states = [text.split(": ")[1] for text in reported if "master-1" in text]
    assert states == ["registering", "inspecting", "available", "provisioning", "provisioned"]


def test_after_a_failure_only_what_is_left_is_provisioned(run_dir: Path) -> None:
    nodes, __ = provisioned(run_dir, Requests(broken="master-2"))
    assert nodes.failure == "master-2: active: deploy failed: no disk"
    assert [node["name"] for node in nodes.unwritten] == ["master-2"]
    again = Requests()
    assert provisioned(run_dir, again)[0].unwritten == [] and [*again.seen] == ["master-2"]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["create", "bootstrap"], "create bootstrap is not one of create manifests, create cluster, wait-for"),
        (["destroy", "cluster"], "destroy cluster is not one of"),
    ],
)
def test_wrong_words(run_dir: Path, words: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        program.main([*words, "--dir", str(run_dir)])
    assert text in capsys.readouterr().err


def test_a_directory_without_a_payload(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (run_dir / lab.PAYLOAD).unlink()
    assert program.main(["create", "cluster", "--dir", str(run_dir)]) == Exit.FAILED
    assert "lab-payload.json is missing: run the stage image first" in capsys.readouterr().err


def test_a_cluster_is_created_before_it_is_waited_for(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main(["wait-for", "bootstrap-complete", "--dir", str(run_dir)]) == Exit.FAILED
    assert "has no cluster: create it first" in capsys.readouterr().err


def test_an_install_config_that_lacks_its_name_is_refused(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (run_dir / "install-config.yaml").write_text("{}")
    assert program.main(["create", "cluster", "--dir", str(run_dir)]) == Exit.INSTALL_CONFIG
    assert "failed to create install config: " in capsys.readouterr().err
