"""What a machine outside of the cluster boots with: its Ignition config, and on the load balancer its haproxy."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.errors import LabError
from ansible_collections.agentlab.ocp.plugins.module_utils.ignition.config import check
from ansible_collections.agentlab.ocp.plugins.module_utils.ignition.resources import read_data_url
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, profile
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import balancer, outside, services

HAPROXY = shutil.which("haproxy", path="/usr/sbin:/usr/bin")
MACHINES = """
topology: compact
stack: {stack}
machines:
  - {{name: lb, load_balancer: true}}
  - name: client
    files: {{/etc/motd: "hello\\n"}}
    units: {{client.service: "[Service]\\nExecStart=true\\n[Install]\\nWantedBy=multi-user.target\\n"}}
"""


def _plan(folder: Path, stack: str = "ipv4") -> Any:
    path = folder / "p.yml"
    path.write_text(MACHINES.format(stack=stack))
    return build.build(profile.load(path), "ostest")


def _files(config: dict[str, Any]) -> dict[str, tuple[str, int]]:
    return {
        file["path"]: (read_data_url(file["contents"]["source"]).decode(), file["mode"])
        for file in config["storage"]["files"]
    }


def test_a_client(tmp_path: Path) -> None:
    plan = _plan(tmp_path)
    config = outside.ignition(plan, plan["machines"][1], ["ssh-ed25519 AAAA"], "PEM\n")
    check(config)
    files = _files(config)
    assert files["/etc/hostname"] == ("client\n", 0o644)
    assert files["/etc/motd"] == ("hello\n", 0o644)
    assert files["/etc/pki/ca-trust/source/anchors/agentlab.crt"] == ("PEM\n", 0o644)
    keyfile, mode = files["/etc/NetworkManager/system-connections/eth0.nmconnection"]
    assert mode == 0o600 and "address0=192.168.111.71/24" in keyfile and "interface-name" not in keyfile
    assert "/etc/haproxy/haproxy.cfg" not in files
    assert config["passwd"]["users"] == [{"name": "core", "sshAuthorizedKeys": ["ssh-ed25519 AAAA"]}]
    assert [unit["name"] for unit in config["systemd"]["units"]] == ["client.service"]


@pytest.mark.skipif(not HAPROXY, reason="haproxy is not installed")
@pytest.mark.parametrize("stack", ["ipv4", "dualstack", "ipv6"])
def test_the_load_balancer(tmp_path: Path, stack: str) -> None:
    plan = _plan(tmp_path, stack)
    config = outside.ignition(plan, plan["machines"][0], [], "")
    check(config)
    assert config["systemd"]["units"] == [{"name": "haproxy.service", "enabled": True}]
    text, __ = _files(config)["/etc/haproxy/haproxy.cfg"]
    (tmp_path / "haproxy.cfg").write_text(text)
    for ip in (*plan["vips"]["api"], *plan["vips"]["ingress"]):
        assert f"bind {f'[{ip}]' if ':' in ip else ip}:6443" in text
    assert ":9000 level user" in text
    done = subprocess.run(
        [str(HAPROXY), "-c", "-f", str(tmp_path / "haproxy.cfg")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_sandbox_has_no_load_balancer_then(tmp_path: Path) -> None:
    plan = _plan(tmp_path)
    assert "balancer" not in services.names_of(plan)
    with pytest.raises(LabError, match="the sandbox of this plan has no load balancer"):
        balancer.render(plan, tmp_path, "/usr/sbin/haproxy")


def test_images_need_the_keys_of_the_run(tmp_path: Path) -> None:
    plan = _plan(tmp_path)
    with pytest.raises(
        LabError, match=r"id_ecdsa\.pub: the run has no SSH key yet; run: agentlab configure --cluster ostest"
    ):
        outside.write_images(plan, tmp_path, tmp_path / "base.iso")
    changes = outside.write_images(plan, tmp_path, None, check=True)
    assert [change["name"] for change in changes] == ["lb", "client"]
    assert not (tmp_path / outside.DIRECTORY).exists()
