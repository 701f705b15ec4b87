"""The ISO of hosts whose cluster comes later, with what an appliance adds to the unconfigured Ignition."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.coreos.iso import LiveIso
from ansible_collections.agentlab.ocp.plugins.module_utils.ignition.config import check, files_of
from ansible_collections.agentlab.ocp.plugins.module_utils.installer.errors import InstallerError
from ansible_collections.agentlab.ocp.plugins.module_utils.installer.state import load_wait_for


def live_iso(directory: Any) -> dict[str, bytes]:
    with LiveIso(directory.path / "agent.x86_64.iso") as iso:
        config = json.loads(iso.ignition or b"")
    check(config)
    return files_of(config)


@pytest.mark.parametrize("interactive", [False, True])
def test_iso_of_hosts_without_a_cluster(sno: Any, interactive: bool) -> None:
    """It is the unconfigured Ignition with mirrors and certificates; nothing of it names the cluster's rendezvous host."""
    target = "interactive-image" if interactive else "unconfigured-image"
    sno.create("cluster-manifests", target)
    files = live_iso(sno)
    template = files["/etc/assisted/rendezvous-host.env.template"].decode()
    assert "NODE_ZERO_IP={{.RendezvousIP}}" in template
    assert "/etc/assisted/rendezvous-host.env" not in files
    assert ("/etc/assisted/interactive-ui" in files) is interactive
    assert ("/etc/assisted/no-config-image" in files) is interactive
    assert files["/etc/containers/registries.conf"].decode() == (sno.path / "mirror/registries.conf").read_text()
    assert b"PRIVATE KEY" not in b"".join(files.values())
    assert not any(b"192.168.111.20" in text for text in files.values())
    assert sno.create(target).changed == []
    assert not (sno.path / "auth").exists()
    # wait-for finds the service, and the service takes its token.
    known = load_wait_for(sno.path)
    assert known.rendezvous_ip == "192.168.111.20" and known.token
    token = f"WATCHER_AUTH_TOKEN={known.token}"
    assert token in files["/usr/local/share/assisted-service/assisted-service.env"].decode().splitlines()


def test_config_image_and_the_image_of_its_hosts_agree(sno: Any) -> None:
    sno.create("cluster-manifests", "unconfigured-image", "config-image")
    hosts = live_iso(sno)
    with LiveIso(sno.path / "agentconfig.noarch.iso") as iso:
        config = files_of(json.loads(iso.ignition or b""))
    images = "/etc/assisted/manifests/cluster-image-set.yaml"
    assert hosts[images] == config[images]
    assert sno.create("unconfigured-image", "config-image").changed == []


def test_no_interactive_image_of_an_older_release(sno: Any) -> None:
    with pytest.raises(InstallerError, match="does not ask for the rendezvous host"):
        sno.create("interactive-image", release_profile="4.20")


def test_what_loads_the_config_image(sno: Any) -> None:
    """The root file system is read-only, and /media is in it; NetworkManager resumes what its state has, not the new keyfiles."""
    sno.create("cluster-manifests", "unconfigured-image")
    script = live_iso(sno)["/usr/local/bin/load-config-iso.sh"].decode()
    [place] = re.findall(r"^mount_point=(\S+)", script, re.MULTILINE)
    assert place.startswith("/run/")
    assert script.index("systemctl stop NetworkManager") < script.index("rm -rf /run/NetworkManager/devices")
