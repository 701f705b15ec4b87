"""Older forms of install-config.yaml, the warnings about them, and what upstream refuses of them."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.installer.conversion import upconvert
from ansible_collections.agentlab.ocp.plugins.module_utils.installer.errors import InstallerError
from ansible_collections.agentlab.ocp.plugins.module_utils.installer.install_config import platform_name
from ansible_collections.agentlab.ocp.plugins.module_utils.log import Log

GENERATED = {"name": "generated-failure-domain", "region": "generated-region", "zone": "generated-zone"}
LEGACY = {
    "vCenter": "vc", "username": "u", "password": "p", "datacenter": "dc", "defaultDatastore": "ds", "cluster": "c", "network": "n"
}  # fmt: skip
VCENTER = {"server": "vc", "user": "u", "password": "p", "datacenters": ["dc"]}


def converted(change: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The converted config, and the warnings."""
    config = {"apiVersion": "v1", **copy.deepcopy(change)}
    log = Log(None, emit=lambda _line: None)
    upconvert(config, platform_name(config), log)
    return config, [text for __, text in log.lines]


def vsphere(**section: Any) -> tuple[dict[str, Any], list[str]]:
    config, warnings = converted({"platform": {"vsphere": section}})
    found: dict[str, Any] = config["platform"]["vsphere"]
    return found, warnings


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"apiVersion": "v2"}, 'apiVersion: Invalid value: "v2": cannot upconvert from version v2'),
        ({"apiVersion": ""}, "apiVersion: Required value: no version was provided"),
        ({"platform": {"baremetal": {"apiVIP": "::9", "apiVIPs": ["::5"]}}},
         'platform.baremetal.apiVIPs: Invalid value: "::9": apiVIPs is deprecated; only apiVIP needs to be specified'),
        ({"platform": {"nutanix": {"ingressVIP": "::9", "ingressVIPs": ["::5"]}}},
         'platform.nutanix.ingressVIPs: Invalid value: "::9": ingressVIPs is deprecated; only ingressVIP needs to be specified'),
        ({"platform": {"baremetal": {"provisioningHostIP": "::9", "clusterProvisioningIP": "::5"}}},
         'platform.baremetal.provisioningHostIP: Invalid value: "::9": provisioningHostIP is deprecated; only '
         "clusterProvisioningIP needs to be specified"),
    ],
)  # fmt: skip
def test_refused(change: dict[str, Any], error: str) -> None:
    with pytest.raises(InstallerError) as caught:
        converted(change)
    assert str(caught.value) == f"failed to create install config: failed to upconvert install config: {error}"


def test_network_types_in_any_case() -> None:
    assert converted({"networking": {"type": "ovnKUBERNETES"}})[0]["networking"] == {"networkType": "OVNKubernetes"}
    assert converted({"networking": {"networkType": "Calico"}})[0]["networking"] == {"networkType": "Calico"}


def test_provisioning_network() -> None:
    config, __ = converted({"platform": {"baremetal": {"provisioningDHCPExternal": True, "provisioningHostIP": "::9"}}})
    assert config["platform"]["baremetal"] == {"provisioningNetwork": "Unmanaged", "clusterProvisioningIP": "::9"}


def test_vsphere_of_before_vcenters() -> None:
    section, warnings = vsphere(**LEGACY, folder="f")
    assert section["vcenters"] == [{**VCENTER, "port": 443}]
    assert section["failureDomains"] == [
        {
            **GENERATED, "server": "vc",
            "topology": {
                "datacenter": "dc", "computeCluster": "/dc/host/c", "networks": ["n"], "datastore": "/dc/datastore/ds", "folder": "/dc/vm/f",
            },
        }
    ]  # fmt: skip
    assert section["deprecatedFields"]
    assert warnings == [
        "vsphere authentication fields are now deprecated; please use vcenters",
        "vsphere topology fields are now deprecated; please use failureDomains",
        "computeCluster as a non-path is now deprecated; please use the joined form: /dc/host/c",
        "datastore as a non-path is now deprecated; please use the joined form: /dc/datastore/ds",
        "folder as a non-path is now deprecated; please use the joined form: /dc/vm/f",
    ]


def test_vcenters_without_failure_domains_get_one() -> None:
    section, warnings = vsphere(vcenters=[VCENTER])
    assert section["failureDomains"][0] | {"topology": None} == {**GENERATED, "server": "vc", "topology": None}
    assert not section["deprecatedFields"]
    assert warnings == ["vsphere topology fields are now deprecated; please use failureDomains"]


def test_relative_paths_of_failure_domains_are_joined() -> None:
    topology = {"datacenter": "dc", "computeCluster": "c", "datastore": "/dc/datastore/ds", "folder": "a/b"}
    section, warnings = vsphere(
        vcenters=[VCENTER], failureDomains=[{"name": "fd", "server": "vc", "topology": topology}]
    )
    assert section["failureDomains"][0]["topology"] == {
        "datacenter": "dc", "computeCluster": "/dc/host/c", "datastore": "/dc/datastore/ds", "folder": "/dc/vm/a/b"
    }  # fmt: skip
    assert len(warnings) == 2


def test_failure_domains_without_vcenters_take_their_datacenters() -> None:
    section, __ = vsphere(vCenter="vc", failureDomains=[{"topology": {"datacenter": "d2"}}, {"server": "v2"}])
    assert section["vcenters"] == [{"server": "vc", "port": 443, "user": "", "password": "", "datacenters": ["d2"]}]
    assert [domain["server"] for domain in section["failureDomains"]] == ["vc", "v2"]


def test_both_forms_at_once_are_warned_of() -> None:
    __, warnings = vsphere(vCenter="vc", cluster="c", vcenters=[VCENTER], failureDomains=[{"server": "other"}])
    assert warnings == [
        "vcenter field is deprecated please avoid using both vcenter and vcenters fields together",
        "unable to find finder for vCenter other in order to do upconvert",
        "vsphere topology fields are now deprecated; please avoid using failureDomains and the vsphere topology fields together",
    ]
