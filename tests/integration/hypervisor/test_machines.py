"""Machines outside of the cluster: a landing zone from an image, a client without one, and the load balancer, which boots."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.agentlab.ocp.payload import build
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import rundir
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.outside_checks import disk_image
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import outside

sys.path.insert(0, str(Path(__file__).parent))
import guest

pytestmark = pytest.mark.slow

BOOT_SECONDS = 300
CLI = "ansible_collections.agentlab.ocp.plugins.module_utils.cli"
FINDINGS = """
import pathlib, sys
from ansible_collections.agentlab.ocp.plugins.module_utils.cluster import outside
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import rundir
for one in outside.findings(rundir.load_plan(pathlib.Path(sys.argv[1]))):
    print(one.ok, one.found)
"""
PLAY = """
- hosts: hypervisors
  gather_facts: false
  roles:
    - role: agentlab.ocp.plan
  tasks:
    - agentlab.ocp.lab_machines:
        plan: "{{ agentlab_plan }}"
        owner: "{{ agentlab_owner }}"
        directory: "{{ agentlab_run_dir }}"
"""


def _profile(image: Path) -> dict[str, Any]:
    landing = {"networks": [{"name": "machine"}, {"name": "outside0"}], "image": str(image), "disk_gib": 1}
    return {
        "topology": "compact",
        "addressing": "static",
        "master": {"vcpus": 1},  # two processors are enough for all machines
        "outside_networks": [{"name": "outside0", "ipv4": "192.168.230.0/24"}],
        "machines": [
            {"name": "landing", **landing},
            {"name": "client", "image": None, "disk_gib": 1, "networks": [{"name": "outside0"}]},
            {"name": "lb", "load_balancer": True, "files": {"/etc/motd": "hello\n"}},
        ],
    }


def _eventually(check: Any, seconds: float) -> Any:
    end = time.monotonic() + seconds
    while True:
        try:
            return check()
        except (AssertionError, subprocess.CalledProcessError):
            if time.monotonic() > end:
                raise
            time.sleep(2)


def test_machines(lab: Any, base: Path, traces: Any) -> None:
    before, image = traces(), base / "landing.img"
    image.write_bytes(guest.disk("landing zone"))
    assert disk_image(str(image))[0] == "raw"
    content = image.read_bytes()
    one = lab("agtest", _profile(image))
    assert one.play("prepare", "--check")[0] >= 2
    assert traces() == before
    assert one.play("prepare")[0] >= 5
    assert one.play("prepare")[0] == 0
    assert one.play("prepare", "--check", "--diff")[0] == 0

    virsh = ["virsh", "-c", "qemu:///system"]
    assert {*one.enter(*virsh, "list", "--name").split()} == {"agtest_landing", "agtest_client"}
    console = one.state_dir / "console/agtest_landing.log"
    _eventually(lambda: _shows(console, "landing zone"), 60)
    nics = one.enter(*virsh, "domiflist", "agtest_landing")
    assert "agtestbm" in nics and "outside0" in nics
    assert one.enter(sys.executable, "-c", FINDINGS, str(one.run_dir)).splitlines()[:2] == [
        f"True running; agtestbm; outside0; disk over {image}",
        "True running; outside0",
    ]
    environment = {**one.environment(), "AGENTLAB_RUNS": str(one.run_dir.parent)}

    def verb(*words: str) -> str:
        command = [sys.executable, "-m", CLI, words[0], "--cluster", "agtest", *words[1:]]
        inside = [*one.inside()[: len(one.inside()) // 2], *command]
        return subprocess.run(inside, env=environment, capture_output=True, text=True, check=True).stdout

    assert verb("power", "client", "off") == "client: off\n"
    assert one.play("prepare")[0] == 1  # it is switched on again
    hosts = {host["name"]: host for host in json.loads(verb("status", "-o", "json"))["hosts"]}
    assert (hosts["client"]["role"], hosts["client"]["power"]) == ("outside", "on")
    assert image.read_bytes() == content

    _load_balancer(one, base, verb)
    assert one.play("destroy")[0] == 2
    assert traces() == before


def _shows(console: Path, text: str) -> None:
    assert text in console.read_text(errors="replace")


def _load_balancer(one: Any, base: Path, verb: Any) -> None:
    """The machine with haproxy boots, in 512 MiB."""
    payload = build.cache_root() / "payload/current/coreos-x86_64.iso"
    if not payload.exists():
        pytest.skip("needs the lab payload")
    one.play("configure")
    plan = rundir.load_plan(one.run_dir)
    assert outside.write_images(plan, one.run_dir, payload, check=True)
    assert [change["name"] for change in outside.write_images(plan, one.run_dir, payload)] == ["lb"]
    assert not outside.write_images(plan, one.run_dir, payload)
    assert not outside.write_images(plan, one.run_dir, payload, check=True)
    play = base / "play.yml"
    play.write_text(PLAY)

    def run(*options: str) -> str:
        command = [*one.command("boot", *options)[:-1], str(play)]
        done = subprocess.run(command, env=one.environment(), capture_output=True, text=True, check=False, timeout=600)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert "changed=1" in run("--check", "--diff")
    assert "changed=1" in run()
    assert "changed=0" in run()
    begin = time.monotonic()
    printed = _eventually(
        lambda: verb("ssh", "lb", "--", "hostname; cat /etc/motd; free -m; ip -br -4 a"), BOOT_SECONDS
    )
    print(f"ssh after {time.monotonic() - begin:.0f} s\n{printed}")
    assert printed.startswith("lb\nhello\n")
    assert all(f"{ip}/24" in printed for ip in ("192.168.111.72", "192.168.111.5", "192.168.111.4"))
    stats = "exec 3<>/dev/tcp/192.168.111.5/9000; echo show stat >&3; cat <&3"
    _eventually(lambda: one.enter("bash", "-c", stats), 60)
    rows = one.enter("bash", "-c", stats)
    assert {"api,master-0", "machine-config,master-2", "ingress,master-1"} <= {
        ",".join(row.split(",")[:2]) for row in rows.splitlines()
    }
    assert one.enter("getent", "ahosts", "api.agtest.test.metalkube.org").split()[0] == "192.168.111.5"
    assert one.enter("getent", "ahosts", "lb.agtest.test.metalkube.org").split()[0] == "192.168.111.72"
    assert verb("power", "lb") == "lb: on\n"
    assert (
        one.enter(sys.executable, "-c", FINDINGS, str(one.run_dir)).splitlines()[2]
        == "True running; agtestbm: 192.168.111.72"
    )
    assert yaml.safe_load((one.run_dir / "install-config.yaml").read_text())["platform"]["baremetal"][
        "loadBalancer"
    ] == {"type": "UserManaged"}
