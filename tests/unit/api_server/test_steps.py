"""Arguments of steps in which the service differed from the real one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.payload.api_server import steps
from ansible_collections.agentlab.ocp.payload.api_server.engine.instructions import _ntp_sources
from ansible_collections.agentlab.ocp.plugins.module_utils.vocabulary import Component

HOSTS: dict[str, dict[str, Any]] = {
    name: {"id": name, "infra_env_id": "i", "role": "master", "bootstrap": name == "a", "_addresses": [f"{address}/24"]}
    for name, address in (("a", "192.168.111.20"), ("b", "192.168.111.21"), ("c", "192.168.111.22"))
}
NIC = {"name": "eth0", "mac_address": "52:54:00:00:00:01"}


def view(name: str = "a", **more: Any) -> steps.StepView:
    values: dict[str, Any] = {
        "host": HOSTS[name], "cluster": {"id": "c", "machine_networks": [{"cidr": "192.168.111.0/24"}, {"cidr": "fd2e::/64"}]},
        "infra_env": {}, "inventory": {}, "peers": lambda: None, "images": {}, "needed_images": (), "release_host": "", "ntp": "",
        "settings": lambda _name: 0.0, "cluster_hosts": HOSTS,
    }  # fmt: skip
    return steps.StepView(**values | more)


@pytest.mark.parametrize(
    ("nic", "karg"),
    [
        (NIC | {"ipv4_addresses": ["192.168.111.20/24"]}, "ip=52-54-00-00-00-01:dhcp"),
        (NIC | {"ipv6_addresses": ["fd2e::20/64"]}, "ip=52-54-00-00-00-01:dhcp6"),
    ],
)
def test_the_installed_system_finds_its_nic_by_mac_address(nic: dict[str, Any], karg: str) -> None:
    assert steps.installer_args(view(inventory={"interfaces": [nic]})) == ["--append-karg", karg]


def test_disks_of_others_are_not_formatted() -> None:
    """A disk that hosts share may be in use; of a multipath device the paths are not eligible."""
    disks = [
        {"id": kind, "drive_type": kind, "bootable": True, "installation_eligibility": {"eligible": True}}
        for kind in ("HDD", "SSD", "iSCSI", "FC", "LVM", "Multipath")
    ]
    host = {**HOSTS["a"], "id": "h", "infra_env_id": "i", "installation_disk_id": "other"}
    request = steps.install_request(
        view(
            host=host,
            inventory={"disks": disks},
            images={Component.CSR_APPROVER: "a", Component.ORCHESTRATOR: "b"},
            check_cvo=False,
        )
    )
    assert request["disks_to_format"] == ["HDD", "SSD"]


def test_the_release_decides_on_the_os_image() -> None:
    """The lab's has none, whatever version the program has that requested the installation."""
    images = {Component.CSR_APPROVER: "a", Component.ORCHESTRATOR: "b"}
    host = {**HOSTS["a"], "id": "h", "infra_env_id": "i", "installation_disk_id": "other"}
    for release, skip in (("4.22.0-lab", False), ("4.22.0", True)):
        cluster = {"id": "c", "openshift_version": "4.22.1", "_release_version": release}
        request = steps.install_request(view(host=host, cluster=cluster, images=images, check_cvo=False))
        assert request["enable_skip_mco_reboot"] is skip


LUN = {"id": "lun", "drive_type": "iSCSI", "iscsi": {"host_ip_address": "192.168.145.20"}}
OVER = NIC | {"mac_address": "52:54:00:00:00:02", "ipv4_addresses": ["192.168.145.20/24"]}


@pytest.mark.parametrize(
    ("given", "more", "expected"),
    [
        ([], {}, ["rd.iscsi.firmware=1", "ip=52-54-00-00-00-02:dhcp", "ip=52-54-00-00-00-01:dhcp"]),
        (["--append-karg", "ip=eth9:off"], {}, ["ip=eth9:off", "rd.iscsi.firmware=1"]),
        (
            ["--append-karg", "rd.iscsi.firmware=1"],
            {"id": "other"},
            ["rd.iscsi.firmware=1", "ip=52-54-00-00-00-01:dhcp"],
        ),
    ],
)
def test_the_installed_system_finds_its_lun(given: list[str], more: dict[str, Any], expected: list[str]) -> None:
    inventory = {"interfaces": [NIC | {"ipv4_addresses": ["192.168.111.20/24"]}, OVER], "disks": [LUN | more]}
    host = HOSTS["a"] | {"installation_disk_id": "lun", "installer_args": json.dumps(given)}
    assert steps.installer_args(view(host=host, inventory=inventory))[1::2] == expected


def test_a_static_network_is_copied() -> None:
    assert steps.installer_args(view(infra_env={"static_network_config": "[]"})) == ["--copy-network"]


def test_logs_of_other_masters_are_asked_of_the_bootstrap_host_alone() -> None:
    asked = {name: json.loads((steps.PRODUCERS["logs-gather"](view(name)) or [""])[0])["master_ips"] for name in HOSTS}
    assert asked == {"a": ["192.168.111.21", "192.168.111.22"], "b": None, "c": None}


def test_time_sources_of_the_cluster_replace_those_of_the_infra_env() -> None:
    infra_env, cluster = {"additional_ntp_sources": "i.test"}, {"additional_ntp_source": "c.test"}
    assert _ntp_sources("default", infra_env, cluster) == "c.test"
    assert _ntp_sources("default", infra_env, {}) == "i.test"
    assert _ntp_sources("default", {}, {}) == "default"


def test_wildcard_names_are_resolved_with_the_final_dot_first() -> None:
    asked = json.loads(
        steps.PRODUCERS["domain-resolution"](view(cluster={"name": "one", "base_dns_domain": "t.test"}))[0]
    )
    names = [entry["domain_name"] for entry in asked["domains"]]
    assert names[-2:] == ["validateNoWildcardDNS.one.t.test.", "validateNoWildcardDNS.one.t.test"]
