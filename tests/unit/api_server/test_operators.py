"""OLM operators, bundles, support levels: the tables, and a cluster with operators on its way to installed."""

from __future__ import annotations

import base64
import gzip
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.agentlab.ocp.payload.api_server import features, operators, validations, versions
from ansible_collections.agentlab.ocp.plugins.module_utils.releases import LATEST, OLDEST, RELEASES

from .description import Description
from .lab import DESCRIPTIONS, SSH_KEY, Lab
from .test_install import VIPS
from .test_validations import machine, of, view

CLUSTER = {"id": "c", "openshift_version": "4.22.0", "control_plane_count": 3, "cpu_architecture": "x86_64"}


def chosen(*names: str, **fields: Any) -> list[dict[str, Any]]:
    return operators.choose({**CLUSTER, **fields}, [{"name": name} for name in names], [])


def cluster_with(*names: str, **fields: Any) -> dict[str, Any]:
    return {"openshift_version": "4.22.0", **fields, "monitored_operators": chosen(*names, **fields)}


def test_dependencies_come_along() -> None:
    found = {op["name"]: op.get("dependency_only", False) for op in chosen("cluster-observability", "odf")}
    assert found == {
        "cluster-observability": False,
        "odf": False,
        "openshift-logging": True,
        "lso": True,
        "loki": True,
    }
    assert [op["name"] for op in chosen("openshift-ai", control_plane_count=1)] == ["openshift-ai", "lvm"]
    assert [op["name"] for op in chosen("ocs")] == ["odf", "lso"]
    assert chosen("lvm", openshift_version="4.11.3")[0]["subscription_name"] == "odf-lvm-operator"
    with pytest.raises(ValueError, match="operator nothing isn't supported"):
        chosen("nothing")


def test_bundles_name_the_source_of_operators() -> None:
    found = operators.choose(
        CLUSTER,
        [{"name": "cnv"}],
        [{"id": "virtualization"}, {"id": "openshift-ai", "optional_operators": ["amd-gpu"]}],
    )
    by_name = {op["name"]: op for op in found}
    assert "source_bundles" not in by_name["cnv"], "who requests an operator by itself has it by itself"
    assert by_name["amd-gpu"]["source_bundles"] == ["openshift-ai"]
    assert by_name["kmm"]["dependency_only"] is True
    assert operators.chosen_bundles({"monitored_operators": found})[1] == {
        "id": "openshift-ai",
        "optional_operators": ["amd-gpu"],
    }
    with pytest.raises(ValueError, match="operator 'cnv' is not a valid optional operator for bundle 'openshift-ai'"):
        operators.choose(CLUSTER, [], [{"id": "openshift-ai", "optional_operators": ["cnv"]}])
    assert "odf" not in operators.bundle("openshift-ai", ["SNO"])["operators"]
    assert "lvm" in operators.bundle("openshift-ai", ["SNO"])["operators"]
    # Its operators want several nodes.
    assert [found["id"] for found in operators.bundles(features.Filters("4.22"), ["SNO"])] == ["openshift-ai"]
    assert operators.bundles(features.Filters("4.22", "s390x")) == []


@pytest.mark.parametrize(
    ("names", "fields", "text"),
    [
        (
            ("lvm", "cnv"),
            {"openshift_version": "4.11.0"},
            "can not install Logical Volume Manager operator at the same",
        ),
        (("lvm", "cnv"), {"openshift_version": "4.13.0"}, "highly available openshift with version 4.15.0 or above"),
        (
            ("lvm", "odf"),
            {},
            "cannot use Logical Volume Management because it's not compatible with OpenShift Data Foundation",
        ),
        (("odf",), {"control_plane_count": 1}, "it's not compatible with Single Node OpenShift"),
        (("cnv",), {"platform": {"type": "vsphere"}}, "it's not compatible with vSphere Platform Integration"),
        (("loki",), {"openshift_version": "4.16.0"}, "on version 4.16.0 of OpenShift"),
    ],
)
def test_what_does_not_go_together(names: tuple[str, ...], fields: dict[str, Any], text: str) -> None:
    cluster = {**CLUSTER, **fields}
    with pytest.raises(ValueError, match=text):
        operators.check(cluster, chosen(*names, **fields), "x86_64")


def test_architecture() -> None:
    with pytest.raises(ValueError, match="OpenShift Data Foundation, Local Storage Operator is not available when"):
        operators.check({**CLUSTER, "cpu_architecture": "arm64"}, chosen("odf"), "arm64")
    operators.check(CLUSTER, chosen("cnv", "mtv", "nmstate"), "x86_64")


HOST_CASES: list[tuple[str, dict[str, Any], dict[str, Any], str, str]] = [
    ("lso", {}, {}, "success", ""),
    ("cnv", {}, {}, "failure", "CPU does not have virtualization support"),
    ("cnv", {}, {"cpu": {"count": 4, "flags": ["vmx"]}, "memory": {"usable_bytes": 2**34}}, "success", ""),
    (
        "lvm",
        {},
        {},
        "failure",
        "Logical Volume Manager requires at least one non-installation HDD/SSD disk on the host",
    ),
    ("mce", {}, {}, "failure", "Insufficient memory to deploy multicluster engine. Required memory is 16384 MiB"),
    ("mtv", {}, {"cpu": {"count": 0}}, "failure", "Insufficient CPU to deploy OpenShift Migration Toolkit for"),
    (
        "odf",
        {},
        {},
        "failure",
        "Insufficient disks, ODF requires at least one non-installation SSD or HDD disk on each host",
    ),
    (
        "odf",
        {},
        {"disks": [{"id": "b", "drive_type": "SSD", "size_bytes": 10**10}]},
        "failure",
        "Insufficient resources to deploy ODF in compact mode. ODF requires a minimum of 3 hosts. Each host must have at least "
        "1 additional disk of 25 GB minimum and an installation disk.",
    ),
    ("odf", {}, {"disks": [{"id": "b", "drive_type": "SSD", "size_bytes": 10**11}]}, "success", ""),
    (
        "nvidia-gpu",
        {},
        {"gpus": [{"vendor_id": "10de"}], "boot": {"secure_boot_state": "Enabled"}},
        "failure",
        "Secure boot is enabled, but it needs to be disabled in order to load NVIDIA GPU drivers",
    ),
]


@pytest.mark.parametrize(("name", "cluster", "inventory", "status", "text"), HOST_CASES)
def test_host_validation(name: str, cluster: dict[str, Any], inventory: dict[str, Any], status: str, text: str) -> None:
    made = view(3, cluster_with(name, **cluster), h0={"inventory": {**machine(0), **inventory}, "role": "master"})
    for host in made.hosts.values():
        host["installation_disk_id"] = "/dev/disk/by-path/pci-0"
        host["role"] = "master"
    __, found, message = of(made)[f"{name}-requirements-satisfied"]
    assert (found, message[: len(text)]) == (status, text)
    assert of(view(3))[f"{name}-requirements-satisfied"][1:] == ("success", f"{name} is disabled")


def test_cluster_validations() -> None:
    def evaluated(name: str, **fields: Any) -> tuple[str, str]:
        results = validations.evaluate(validations.CLUSTER, view(3, cluster_with(name, **fields)))
        return results[f"{name}-requirements-satisfied"][1:]

    assert evaluated("openshift-ai") == (
        "failure",
        "OpenShift AI requires at least 2 worker nodes, but the cluster has 0.",
    )
    assert evaluated("nvidia-gpu")[1].startswith("The NVIDIA GPU operator requires at least one supported NVIDIA GPU")
    assert evaluated("mtv", openshift_version="4.13.0") == (
        "failure",
        "OpenShift Migration Toolkit for Virtualization is only supported for openshift versions 4.14.0 and above",
    )
    assert evaluated("lvm", openshift_version="4.14.9")[1].endswith(
        "highly available openshift with version 4.15.0 or above"
    )
    assert evaluated("odf") == ("success", "ODF Requirements for Compact Deployment are satisfied.")
    assert evaluated("metallb") == ("success", "")


def test_operators_raise_what_a_role_needs() -> None:
    plain, more = view(3), view(3, cluster_with("mce", "mtv", "cnv"))
    host = plain.hosts["h0"]
    needed = validations.total_requirement(plain, host, "master")
    raised = validations.total_requirement(more, host, "master")
    assert (raised["cpu_cores"] - needed["cpu_cores"], raised["ram_mib"] - needed["ram_mib"]) == (
        4 + 1 + 4,
        16384 + 1024 + 150,
    )
    assert of(more)["has-cpu-cores-for-role"][2] == "Require at least 13 CPU cores for master role, found only 4"


def test_manifests() -> None:
    installed, custom = operators.manifests({**CLUSTER, "monitored_operators": chosen("lvm", "authorino")})
    kinds = [document["kind"] for document in installed["50_openshift-lvm.yaml"]]
    assert kinds == ["Namespace", "OperatorGroup", "Subscription"]
    assert [document["kind"] for document in installed["50_openshift-authorino.yaml"]] == ["Subscription"]
    assert yaml.safe_load(base64.b64decode(custom[0]["content"]))["kind"] == "LVMCluster"
    data = installed["olm_operator_manifests.yaml"][0]["data"]
    assert yaml.safe_load(data["lvm.metadata.yaml"])["manifests"] == ["lvm-01.yaml"]
    files = operators.custom_files(custom)
    assert [entry["name"] for entry in json.loads(files["custom_manifests.json"])] == ["lvm", "authorino"]
    assert operators.manifests(CLUSTER) == ({}, [])


@pytest.mark.parametrize(
    ("text", "found"),
    [("4.22.0-lab", (4, 22, 0)), ("4.9", (4, 9, 0)), ("4", (4, 0, 0)), ("x", None), ("4..1", None), ("", None)],
)
def test_versions(text: str, found: tuple[int, ...] | None) -> None:
    assert versions.numbers(text) == found


@pytest.mark.parametrize(
    ("version", "name"),
    [
        ("4.18.0-ec.3", "4.18"),
        ("v4.19", "4.19"),
        ("4.9.1", OLDEST.name),
        ("4", OLDEST.name),
        ("", OLDEST.name),
        ("4.99.0", LATEST.name),
    ],
)
def test_release_of_a_version(version: str, name: str) -> None:
    found = RELEASES[name]
    assert versions.profile(version) is found
    assert versions.at_least(version, "4.15") is not found.openshift_sdn
    assert (max(found.control_planes) == 5) is versions.at_least(version, "4.18")


@pytest.mark.parametrize(
    ("filters", "ident", "level", "reason"),
    [
        (("4.22",), "SNO", "supported", ""),
        (("4.13", "s390x"), "SNO", "dev-preview", ""),
        (("4.12", "s390x"), "SNO", "unavailable", "cpuArchitecture"),
        (("4.22", "x86_64", "vsphere"), "SNO", "unavailable", "platform"),
        (("4.19",), "TNA", "tech-preview", ""),
        (("4.18",), "TNA", "unavailable", "openshiftVersion"),
        (("4.21", "x86_64", "none"), "TNA", "unavailable", "platform"),
        (("4.22", "x86_64", "none"), "TNA", "supported", ""),
        (("4.21",), "TNF", "tech-preview", ""),
        (("4.22", "x86_64", "oci"), "FULL_ISO", "unavailable", "ociExternalIntegrationDisabled"),
        (("4.22", "arm64"), "CNV", "dev-preview", ""),
        (("4.14",), "SDN_NETWORK_TYPE", "supported", ""),
        (("4.15",), "SDN_NETWORK_TYPE", "unavailable", "openshiftVersion"),
        (("4.22", "x86_64", "baremetal"), "PLATFORM_MANAGED_NETWORKING", "unsupported", "platform"),
        (("nonsense",), "LVM", "unavailable", "openshiftVersion"),
    ],
)
def test_support_levels(filters: tuple[str, ...], ident: str, level: str, reason: str) -> None:
    assert features.levels(features.Filters(*filters))[ident][:2] == (level, reason)


@pytest.mark.parametrize("description", DESCRIPTIONS)
def test_features_are_those_of_the_description(description: Description) -> None:
    assert set(features.FEATURES) == set(description.definitions["feature-support-level-id"]["enum"])
    assert {found.ident for found in features.ARCHITECTURES.values()} == set(
        description.definitions["architecture-support-level-id"]["enum"]
    )


def test_features_name_others_of_the_tables() -> None:
    for feature in features.FEATURES.values():
        assert {other.name for other in feature.features} <= set(features.FEATURES)
        assert {other.name for other in feature.architectures} <= set(features.ARCHITECTURES)


NETWORK = {
    "network_yaml": "interfaces:\n- {name: nic0, type: ethernet, state: up, ipv4: {enabled: true, dhcp: false, address: "
    "[{ip: 192.168.111.20, prefix-length: 24}]}}",
    "mac_interface_map": [{"mac_address": "52:54:00:00:00:00", "logical_nic_name": "nic0"}],
}


async def test_catalog_and_discovery_files(tmp_path: Path) -> None:
    env = {
        "OS_IMAGES": json.dumps(
            [{"openshift_version": "4.22", "cpu_architecture": "x86_64", "version": "x", "url": "u"}]
        ),
        "IMAGE_SERVICE_BASE_URL": "http://192.168.111.20:8888/",
        "SERVICE_BASE_URL": "http://192.168.111.20:8090/",
    }
    async with Lab(tmp_path, env) as lab:
        cluster = await lab.cluster()
        fields = {
            "static_network_config": [NETWORK],
            "ssh_authorized_key": SSH_KEY,
            "proxy": {"http_proxy": "http://p:1", "no_proxy": "a.test,b.test"},
        }
        infra_env = await lab.infra_env(cluster["id"], **fields)
        plain = await lab.infra_env(cluster["id"], name="plain")
        i, c = f"/infra-envs/{infra_env['id']}/downloads", f"/clusters/{cluster['id']}"
        assert await lab.call("GET", f"{i}/image-url") == {
            "url": f"http://192.168.111.20:8888/byid/{infra_env['id']}/4.22/x86_64/full.iso",
            "expires_at": "0001-01-01T00:00:00.000Z",
        }
        url = (await lab.call("GET", f"{i}/files-presigned", query={"file_name": "discovery.ign"}))["url"]
        assert url.endswith(f"{infra_env['id']}/downloads/files?file_name=discovery.ign")
        config = json.loads(await lab.call("GET", f"{i}/files", query={"file_name": "discovery.ign"}))
        assert config["ignition"]["proxy"] == {"httpProxy": "http://p:1", "noProxy": ["a.test", "b.test"]}
        core = {"name": "core", "groups": ["sudo"], "passwordHash": "!", "sshAuthorizedKeys": [SSH_KEY]}
        assert config["passwd"]["users"] == [core]
        paths = {entry["path"] for entry in config["storage"]["files"]}
        assert {"/root/.docker/config.json", "/etc/assisted/network/host0/nic0.nmconnection"} <= paths
        assert next(unit["name"] for unit in config["systemd"]["units"]) == "agent.service"
        # The same as in an agent ISO: there were two scripts, which named long VLANs and swapped interfaces differently.
        live = Path(__file__).resolve().parents[3] / "roles/agent_image/files/live"
        network = (live / "pre-network-manager-config.sh").read_bytes()
        by_path = {entry["path"]: entry for entry in config["storage"]["files"]}
        source = by_path["/usr/local/bin/pre-network-manager-config.sh"]["contents"]["source"]
        assert base64.b64decode(source.partition(",")[2]) == network
        unit = next(unit for unit in config["systemd"]["units"] if unit["name"] == "pre-network-manager-config.service")
        assert unit["contents"] == (live / "units/pre-network-manager-config.service").read_text()
        script = await lab.call("GET", f"{i}/files", query={"file_name": "ipxe-script"})
        assert script.startswith(b"#!ipxe\ninitrd --name initrd http://192.168.111.20:8888/images/")
        query = {"file_name": "ipxe-script", "ipxe_script_type": "boot-order-control"}
        assert b"&mac=${net0/mac}" in await lab.call("GET", f"{i}/files", query=query)
        await lab.call("GET", f"{i}/files", query={**query, "file_name": "discovery.ign"}, status=400)
        raw = await lab.call("GET", f"{i}/files", query={"file_name": "static-network-config"})
        with tarfile.open(fileobj=io.BytesIO(raw)) as archive:
            assert "/etc/assisted/network/host0/nic0.nmconnection" in archive.getnames()
        code, raw, __ = await lab.raw("GET", f"{i}/minimal-initrd")
        assert (code, raw[:2]) == (200, b"\x1f\x8b")
        assert network in gzip.decompress(raw)
        code, raw, __ = await lab.raw("GET", f"/infra-envs/{plain['id']}/downloads/minimal-initrd")
        assert (code, raw) == (204, b"")
        for path in ("files-presigned?file_name=logs", "credentials-presigned?file_name=kubeconfig"):
            answer = await lab.call("GET", f"{c}/downloads/{path}", status=400)
            assert answer["reason"] == "Failed to generate presigned URL: invalid backend"
        assert "lvm" in await lab.call("GET", "/supported-operators")
        assert await lab.call("GET", "/supported-operators/lvm") == []
        await lab.call("GET", "/supported-operators/nothing", status=404)
        levels = await lab.call("GET", "/support-levels/features", query={"openshift_version": "4.22"})
        assert levels["features"]["SNO"] == "supported"
        detailed = await lab.call("GET", "/support-levels/features/detailed", query={"openshift_version": "4.22"})
        assert next(op for op in detailed["operators"] if op["name"] == "mtv")["dependencies"] == ["CNV"]
        await lab.call("GET", "/support-levels/features/detailed", query={"openshift_version": "x"}, status=400)
        found = await lab.call("GET", "/support-levels/architectures", query={"openshift_version": "4.12"})
        assert found["architectures"]["S390X_ARCHITECTURE"] == "tech-preview"
        assert [entry["id"] for entry in await lab.call("GET", "/operators/bundles")] == [
            "virtualization",
            "openshift-ai",
        ]
        query = {"openshift_version": "4.22", "cpu_architecture": "s390x"}
        assert await lab.call("GET", "/operators/bundles", query=query) == []
        assert "cnv" in (await lab.call("GET", "/operators/bundles/virtualization"))["operators"]
        await lab.call("GET", "/operators/bundles/nothing", status=404)
        made = await lab.call("POST", "/clusters/disconnected", {"name": "d", "openshift_version": "4.22"}, 201)
        assert (made["kind"], made["status"]) == ("DisconnectedCluster", "unmonitored")


async def test_operators_of_a_cluster(tmp_path: Path) -> None:
    async with Lab(tmp_path) as lab:
        cluster = await lab.cluster(**VIPS, olm_operators=[{"name": "mtv"}], operator_bundles=[])
        path = f"/clusters/{cluster['id']}"
        names = [op["name"] for op in cluster["monitored_operators"]]
        assert names == ["console", "mtv", "cnv"]
        changed = await lab.call("PATCH", path, {"olm_operators": [{"name": "lso", "properties": "{}"}]}, 201)
        assert [op["name"] for op in changed["monitored_operators"]] == ["console", "lso"]
        same = await lab.call("PATCH", path, {"name": "other"}, 201)
        assert same["monitored_operators"] == changed["monitored_operators"]
        answer = await lab.call("PATCH", path, {"olm_operators": [{"name": "nothing"}]}, 400)
        assert answer["reason"] == "operator nothing isn't supported"
        made = await lab.call("PATCH", path, {"olm_operators": [], "operator_bundles": [{"id": "virtualization"}]}, 201)
        assert made["operator_bundles"] == [{"id": "virtualization", "optional_operators": []}]
        shown = await lab.call("GET", f"{path}/preflight-requirements")
        assert {entry["operator_name"] for entry in shown["operators"]} == set(operators.OPERATORS)
        files = await lab.call("GET", f"{path}/manifests", query={"include_system_generated": "true"})
        assert {"folder": "openshift", "file_name": "50_openshift-cnv.yaml", "manifest_source": "system"} in files
        assert await lab.call("GET", f"{path}/manifests") == []
