"""What install-config asks for: that `validate` notices a cluster without it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.cluster import validate as module
from ansible_collections.agentlab.ocp.plugins.module_utils.cluster.client import ClusterError
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, profile
from ansible_collections.agentlab.ocp.tests.unit.cluster.test_validate import PROFILES, Kube, failed


def planned(name: str, monkeypatch: pytest.MonkeyPatch, **installer: Any) -> Any:
    monkeypatch.setattr(module, "_access", lambda plan: [])
    given: Any = profile.load(name, PROFILES, "one")
    given["installer"] |= installer
    return build.build(given, "one")


def subjects(plan: Any, kube: Kube) -> set[str]:
    return {check.name for check in module.validate(plan, Path("none"), lambda path: kube)}


PODS, SERVICES = (
    "pods 10.128.0.0/14 with /23 for each node, fd01::/48 with /64 for each node",
    "services 172.30.0.0/16, fd02::/112",
)


@pytest.mark.parametrize(
    ("field", "other", "found"),
    [
        ("networkType", "Calico", f"Calico; {PODS}; {SERVICES}"),
        (
            "clusterNetwork",
            [{"cidr": "10.128.0.0/14", "hostPrefix": 24}],
            f"OVNKubernetes; pods 10.128.0.0/14 with /24 for each node; {SERVICES}",
        ),
        ("clusterNetwork", [], f"OVNKubernetes; pods none; {SERVICES}"),
        (
            "serviceNetwork",
            ["fd02::/112", "172.30.0.0/16"],
            f"OVNKubernetes; {PODS}; services fd02::/112, 172.30.0.0/16",
        ),
    ],
)
def test_other_networks(field: str, other: Any, found: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned("ha_dualstack", monkeypatch)
    kube = Kube(plan)
    assert not failed(plan, kube) and "pod and service networks" in subjects(plan, kube)
    kube.networks["serviceNetwork"][1] = "fd02:0::/112"  # the same
    assert not failed(plan, kube)
    kube.networks[field] = other
    [(name, text)] = failed(plan, kube).items()
    assert (name, text.split("; planned: ")[0]) == ("pod and service networks", found)


def test_what_is_laid_over_install_config_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    laid = {"networking": {"serviceNetwork": ["172.31.0.0/16"]}, "fips": True}
    plan = planned("compact_ipv4", monkeypatch, install_config=laid)
    kube = Kube(plan)
    assert failed(plan, kube).keys() == {"pod and service networks", "FIPS mode of pool master"}
    kube.networks["serviceNetwork"], kube.fips = ["172.31.0.0/16"], {"master": True}
    assert not failed(plan, kube)


def test_fips_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned("ha_dualstack", monkeypatch, fips=True)
    kube = Kube(plan)
    assert not failed(plan, kube)
    kube.fips["worker"] = False
    assert failed(plan, kube) == {"FIPS mode of pool worker": "off; planned: on"}
    without = planned("ha_dualstack", monkeypatch)
    assert not any("FIPS" in subject for subject in subjects(without, Kube(without)))


@pytest.mark.parametrize("name", ["compact_disks", "compact_ipi"])
def test_the_bmcs_of_bare_metal_hosts(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned(name, monkeypatch)
    kube = Kube(plan)
    assert not failed(plan, kube) and "BMCs of BareMetalHosts" in subjects(plan, kube)
    first, second, third = kube.bmcs
    kube.bmcs[first] = {"bmc": {"address": "redfish://192.0.2.1/redfish/v1/Systems/1"}}
    kube.bmcs[second] = {}
    del kube.bmcs[third]
    kube.bmcs["stranger"] = {}
    [(subject, found)] = failed(plan, kube).items()
    assert subject == "BMCs of BareMetalHosts"
    assert found.startswith(
        f"{first} redfish://192.0.2.1/redfish/v1/Systems/1, {second} none, {third} is missing, stranger none; planned: {first} redfish-v"
    )


def test_bmcs_that_install_config_does_not_have(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned("compact_ipv4", monkeypatch)
    assert "BMCs of BareMetalHosts" not in subjects(plan, Kube(plan))
    laid = {"platform": {"baremetal": {"hosts": [{"name": "mine"}]}}}
    plan = planned("compact_disks", monkeypatch, install_config=laid)
    assert "BMCs of BareMetalHosts" not in subjects(plan, Kube(plan))


def test_an_api_without_the_objects_is_a_failed_check(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned("compact_disks", monkeypatch)
    kube = Kube(plan)

    def refuse(*__: object) -> Any:
        raise ClusterError("not found")

    for name in ("network", "bare_metal_hosts"):
        monkeypatch.setattr(kube, name, refuse)
    assert failed(plan, kube) == {"pod and service networks": "not found", "BMCs of BareMetalHosts": "not found"}
