"""Inputs that are accepted, or were, and do not do what was meant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.installer.errors import InstallerError


def manifests(directory: Any) -> list[str]:
    directory.create("cluster-manifests")
    found: list[str] = directory.reported("warning")
    return found


def test_two_hosts_of_one_name_keep_both_configurations(sno: Any, make: Any) -> None:
    config = make.install_config(controlPlane={"name": "master", "replicas": 3})
    sno.write("install-config.yaml", config)
    hosts = [make.host("twin", 0, "master"), make.host("twin", 1, "master"), make.host("-bad_host", 2, "master")]
    sno.write("agent-config.yaml", make.agent_config(hosts=hosts))
    sno.create("image")
    warnings = sno.reported("warning")
    assert 'hosts[1].hostname: "twin" duplicates hosts[0]' in warnings
    assert any(text.startswith('hosts[2].hostname: "-bad_host" is not a valid host name: ') for text in warnings)
    files = sno.files()
    for folder, number in (("twin", 0), ("twin-1", 1)):
        assert files[f"/etc/assisted/hostconfig/{folder}/role"] == "master"
        assert files[f"/etc/assisted/hostconfig/{folder}/mac_addresses"] == f"52:54:00:aa:bb:0{number}\n"


@pytest.mark.parametrize("name", ["../../x", "a/b", "..", "a\nb", "a\x00b"])
def test_a_host_name_that_leaves_its_folder_is_refused(sno: Any, make: Any, name: str) -> None:
    sno.write("agent-config.yaml", make.agent_config(hosts=[make.host("x", 0, "master") | {"hostname": name}]))
    with pytest.raises(InstallerError, match=r"hosts\[0\]\.hostname: Invalid value|unacceptable|not allowed|control"):
        sno.create("cluster-manifests")


def test_addresses_that_cannot_work(sno: Any, make: Any) -> None:
    sno.write("install-config.yaml", make.install_config(controlPlane={"name": "master", "replicas": 3}))
    hosts = [make.host(f"master-{index}", index, "master", static=True) for index in range(3)]
    hosts[1]["networkConfig"] = hosts[0]["networkConfig"]
    sno.write("agent-config.yaml", make.agent_config(rendezvousIP="192.168.111.99", kind="Foo", hosts=hosts))
    warnings = manifests(sno)
    assert 'agent-config.yaml: kind is "Foo", not AgentConfig' in warnings
    assert any(
        text.startswith("hosts[1].networkConfig: 192.168.111.2") and text.endswith("duplicates an address of hosts[0]")
        for text in warnings
    )
    assert "rendezvousIP: no host has the address 192.168.111.99" in warnings


def test_a_rendezvous_host_that_is_not_listed_may_exist(sno: Any, make: Any) -> None:
    sno.write("install-config.yaml", make.install_config(controlPlane={"name": "master", "replicas": 3}))
    hosts = [make.host("master-0", 0, "master", static=True)]
    sno.write("agent-config.yaml", make.agent_config(rendezvousIP="192.168.111.99", hosts=hosts))
    assert not [text for text in manifests(sno) if text.startswith("rendezvousIP")]


def test_auth_that_is_not_base64(sno: Any, make: Any) -> None:
    sno.write("install-config.yaml", make.install_config(pullSecret='{"auths": {"r.example": {"auth": "%%%secret"}}}'))
    warnings = manifests(sno)
    assert "pullSecret: the auth of r.example is not base64" in warnings and "secret" not in "".join(warnings)


@pytest.mark.parametrize(
    ("file", "field", "text"),
    [
        ("agent-config.yaml", {"hosts": [None]}, r"hosts\[0\]\.interfaces: Required value"),
        ("agent-config.yaml", {"additionalNTPSources": [None]}, 'additionalNTPSources: Invalid value: ""'),
        ("install-config.yaml", {"networking": {"serviceNetwork": [None]}}, "networking.serviceNetwork"),
        ("install-config.yaml", {"networking": {"machineNetwork": [None]}}, "networking.machineNetwork"),
        ("install-config.yaml", {"networking": {"clusterNetwork": [None]}}, "networking.clusterNetwork"),
        ("install-config.yaml", {"compute": [None]}, "compute"),
        ("install-config.yaml", {"imageDigestSources": [None]}, r"imageDigestSources\[0\]"),
    ],
)
def test_nulls_in_lists_are_empty_elements(sno: Any, make: Any, file: str, field: dict[str, Any], text: str) -> None:
    sno.write(file, (make.agent_config if file.startswith("agent") else make.install_config)(**field))
    with pytest.raises(InstallerError, match=text):
        sno.create("cluster-manifests")


def test_missing_inputs_are_named(directory: Any) -> None:
    directory.path.mkdir()
    with pytest.raises(
        InstallerError,
        match=r"missing configuration or manifest file: .*run has no install-config\.yaml, and .*cluster-manifests has",
    ):
        directory.create("cluster-manifests")
    (directory.path / "install-config.yaml").symlink_to("nowhere.yaml")
    with pytest.raises(InstallerError, match=r"install-config\.yaml is a link to nowhere\.yaml, which does not exist"):
        directory.create("cluster-manifests")


def test_a_folder_as_os_image(sno: Any, tmp_path: Path) -> None:
    with pytest.raises(InstallerError, match="is a directory, not an ISO image"):
        sno.create("image", os_image={"": str(tmp_path)})


def test_a_folder_in_the_place_of_the_image(sno: Any) -> None:
    (sno.path / "agent.x86_64.iso").mkdir(parents=True)
    with pytest.raises(OSError, match=r"Is a directory: '.*/agent\.x86_64\.iso'"):
        sno.create("image")
