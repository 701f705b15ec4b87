"""Secrets of a run stay where they belong: unique ones are planted, made ones read back, and all that the run shows is searched.

No machine is started. What is searched: the output of every verb with `-vvv`, command lines of all processes while it runs, logs, the
report and its modes, and the world-readable files of a run directory.
"""

from __future__ import annotations

import base64
import json
import os
import re
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.agentlab.ocp.plugins.module_utils.coreos.iso import LiveIso

from tests.canaries import Canaries
from tests.unit.coreos import conftest as live_iso

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
CLUSTER = "agcanary"
#: Files of a run directory that hold secrets, each by design and 0600.
PRIVATE = re.compile(
    r"(auth|tls|ssh|inputs|cluster-manifests|openshift|\.ansible)/|(install-config|agent-config|plan|profile)\.yaml|secrets\.json|.*\.iso"
    r"|\.openshift_install_state\.json"
)


class Watch(threading.Thread):
    """Watches the command lines of all processes until it is stopped."""

    def __init__(self, canaries: Canaries) -> None:
        super().__init__(daemon=True)
        self.canaries, self.seen, self.ended, self.looks = canaries, set[str](), threading.Event(), 0

    def run(self) -> None:
        while not self.ended.wait(0.02):
            self.looks += 1
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    text = path.read_bytes().decode(errors="replace")
                except OSError:
                    continue
                self.seen.update(f"{name}: {text[:80]!r}" for name in self.canaries.found(text))


@pytest.fixture
def canaries() -> Canaries:
    return Canaries()


@pytest.fixture
def agentlab(tmp_path: Path, base: Path, canaries: Canaries) -> Iterator[Any]:
    """Runs a verb with `-vvv`; returns what it printed, and removes the cluster, which is in `base`, in the end."""
    environment = {
        **os.environ,
        "AGENTLAB_RUNS": str(tmp_path / "runs"),
        "AGENTLAB_VENV": str(Path(sys.executable).parents[1]),
        "ANSIBLE_NOCOLOR": "1",
    }

    def run(verb: str, *options: str, ok: bool = True) -> str:
        command = [str(ROOT / "bin/agentlab"), verb, *options, "--cluster", CLUSTER]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=600, check=False, cwd=tmp_path
        )
        assert not ok or done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    yield run
    run("destroy", ok=False)


def profile(tmp_path: Path, state: Path, canaries: Canaries) -> Path:
    """A profile with a secret in every field that may have one."""
    auth = base64.b64encode(f"puller:{canaries.new('pull secret')}".encode()).decode()
    (tmp_path / "pull-secret.json").write_text(json.dumps({"auths": {"registry.example.test": {"auth": auth}}}))
    network = {"interfaces": [{
        "name": "eth0", "type": "ethernet", "state": "up", "ipv4": {"enabled": True, "dhcp": True},
        "802.1x": {"eap-methods": ["peap"], "identity": "lab", "password": canaries.new("802.1x password")},
    }]}  # fmt: skip
    path = tmp_path / "canary.yml"
    path.write_text(yaml.safe_dump({
        "topology": "sno", "stack": "ipv4", "hypervisor": {"state_dir": str(state)},
        "services": {"bmc": {"password": canaries.new("BMC password")}, "registry": {"password": canaries.new("registry password")}},
        "nodes": {"master-0": {"bmc": {"password": canaries.new("BMC password of a node")}, "network_config": network}},
        "installer": {
            "pull_secret_file": str(tmp_path / "pull-secret.json"),
            "install_config": {"proxy": {"httpProxy": f"http://user:{canaries.new('proxy password')}@192.168.111.1:3128"}},
        },
    }))  # fmt: skip
    return path


def image_options(tmp_path: Path) -> list[str]:
    """What lets the verb `image` work without a payload: a base ISO, and a release that it cannot ask."""
    variables = {
        "agentlab_payload_build": False, "agentlab_agent_image_os_image": str(live_iso.build(tmp_path / "base.iso")),
        "agentlab_agent_image_release": "127.0.0.1:9/lab/release@sha256:" + "0" * 64, "agentlab_agent_image_release_version": "4.20.0",
    }  # fmt: skip
    return ["-e", json.dumps(variables)]


def test_no_secret_is_shown(tmp_path: Path, base: Path, canaries: Canaries, agentlab: Any) -> None:
    source, run_dir = str(profile(tmp_path, base / "state", canaries)), tmp_path / "runs" / CLUSTER
    watch = Watch(canaries)
    watch.start()
    printed = {verb: agentlab(verb, source, "-vvv") for verb in ("prepare", "configure")}
    extra = run_dir / "openshift/99-canary.yaml"
    extra.parent.mkdir(exist_ok=True)
    text = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "canary"},
        "stringData": {"key": canaries.new("extra manifest")},
    }
    extra.write_text(yaml.safe_dump(text))
    extra.chmod(0o600)
    canaries.read(run_dir)
    printed["image"] = agentlab("image", "-vvv", *image_options(tmp_path))
    canaries.read(run_dir)
    made = {
        "auth/kubeadmin-password",
        "kubeconfig",
        "ssh/id_ecdsa",
        "tls/ca.key",
        "secrets.json bmc",
        "password of registry.example.test",
    }
    assert made <= set(canaries.known)
    assert any(name.startswith("state ") for name in canaries.known), "tokens of the agents"
    images = list(run_dir.glob("*.iso"))
    assert [stat.S_IMODE(path.stat().st_mode) for path in images] == [0o600]
    with LiveIso(images[0]) as iso:
        embedded = canaries.found((iso.ignition or b"").decode())
    assert {"auth of registry.example.test", "extra manifest"} <= set(embedded), "the image has what it needs"
    printed["image again"] = agentlab("image", "-vvv", "--diff", *image_options(tmp_path))
    (run_dir / "logs").mkdir(exist_ok=True)
    # What programs of a run could have printed, to be gathered: each canary as itself and in the words of its kind.
    lines = [
        f"level=debug msg={value} password={value} https://u:{value}@192.0.2.1/" for value in canaries.known.values()
    ]
    (run_dir / "logs/wait-for.log").write_text("\n".join(lines))
    console = base / "state" / CLUSTER / "console"
    console.mkdir(parents=True, exist_ok=True)
    (console / f"{CLUSTER}_master_0.log").write_text("\r\n".join(lines))
    planted = (run_dir / "logs/wait-for.log").read_text()
    printed["again"] = agentlab("prepare", source, "-vvv", "--check", "--diff")
    printed["gather"] = agentlab("gather", "-vvv")
    printed["destroy"] = agentlab("destroy", "-vvv")
    watch.ended.set()
    watch.join()
    assert watch.looks > 20
    assert canaries.found(planted) == list(canaries.known), "the search finds what it looks for"
    assert {verb: canaries.found(text) for verb, text in printed.items()} == {verb: [] for verb in printed}
    assert watch.seen == set()
    report = [path for path in (run_dir / "report").rglob("*") if path.is_file()]
    assert {path.name for path in report} >= {
        "summary.txt",
        "plan.yaml",
        "install-config.yaml",
        "wait-for.log",
        f"{CLUSTER}_master_0.log",
        "registry.log",
    }
    for path in report:
        assert canaries.found_in(path) == [], path
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    for path in run_dir.rglob("*"):
        inside = str(path.relative_to(run_dir))
        if (
            path.is_file()
            and path != run_dir / "logs/wait-for.log"
            and not inside.startswith("report/")
            and canaries.found(path.read_text(errors="replace"))
        ):
            assert PRIVATE.match(inside), f"{inside} has {canaries.found(path.read_text(errors='replace'))}"
            assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
