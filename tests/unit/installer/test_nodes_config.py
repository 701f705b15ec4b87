"""nodes-config.yaml, with the installer's texts."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from ansible_collections.agentlab.ocp.plugins.module_utils.installer.errors import InstallerError
from ansible_collections.agentlab.ocp.plugins.module_utils.installer.nodes_config import (
    addresses_of,
    load_nodes_config,
)
from ansible_collections.agentlab.ocp.plugins.module_utils.log import Log
from ansible_collections.agentlab.ocp.plugins.module_utils.releases import RELEASES

from .conftest import KEY, host


def load(document: Any, log: Log | None = None) -> Any:
    return load_nodes_config(yaml.safe_dump(document), RELEASES["4.22"], log or Log(None))


def test_all_fields() -> None:
    given = {
        "cpuArchitecture": "arm64",
        "sshKey": KEY,
        "bootArtifactsBaseURL": "http://192.0.2.1",
        "hosts": [host("a", 1)],
    }
    assert load(given) == given


def test_addresses() -> None:
    assert addresses_of(load({"hosts": [host("a", 1, static=True), host("b", 2, static=True)]})) == [
        "192.168.111.21",
        "192.168.111.22",
    ]
    with pytest.raises(
        InstallerError, match=r"hosts\[1\] b has no static address in its networkConfig; give the addresses"
    ):
        addresses_of(load({"hosts": [host("a", 1, static=True), host("b", 2)]}))


def test_unknown_fields_are_warnings() -> None:
    log = Log(None)
    load({"hosts": [host("a", 1)], "rendezvousIP": "192.0.2.1"}, log)
    [text] = [text for level, text in log.lines if level == "warning"]
    assert text.startswith('nodes-config.yaml: unknown field "rendezvousIP"')


WRONG: dict[str, tuple[Any, str]] = {
    "empty": (None, "hosts: Required value: at least one host must be defined"),
    "no hosts": ({"hosts": []}, "hosts: Required value: at least one host must be defined"),
    "ssh key": ({"hosts": [host("a", 1)], "sshKey": "not a key"}, 'sshKey: Invalid value: "not a key": ssh: no key found'),
    "no nic": (
        {"hosts": [{"hostname": "a"}]},
        "invalid Hosts configuration: hosts[0].interfaces: Required value: at least one interface must be defined for each node",
    ),
    "mac": (
        {"hosts": [{"interfaces": [{"name": "eth0"}]}]},
        "invalid Hosts configuration: hosts[0].interfaces[0].macAddress: Required value: each interface must have a MAC address defined",
    ),
    "two hosts with one mac": (
        {"hosts": [host("a", 1), host("b", 1)]},
        'invalid Hosts configuration: hosts[1].interfaces[0].macAddress: Invalid value: "52:54:00:aa:bb:01": duplicate MAC address found',
    ),
    "type": (
        {"hosts": {}},
        "failed to unmarshal nodes-config.yaml: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal object into "
        "Go struct field Config.hosts of type []agent.Host (hosts, line 1, column 1)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong(name: str) -> None:
    document, message = WRONG[name]
    with pytest.raises(InstallerError) as error:
        load(document)
    assert str(error.value) == message
