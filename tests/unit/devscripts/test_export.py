"""A profile whose fields have counterparts survives dev-scripts' configuration; everything else is named.

`AGENTLAB_UPDATE_GOLDEN=1 pytest tests/unit/devscripts` writes the golden files again; read the diff before you commit it.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.devscripts import (
    configuration,
    exporter,
    importer,
    variables,
)
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, checks, profile
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.topologies import TOPOLOGIES
from hypothesis import assume, given, settings
from hypothesis import strategies as st

PROFILES = Path(__file__).resolve().parents[3] / "config_examples"
GOLDEN = Path(__file__).parent / "golden"
EXAMPLES = sorted(path.stem for path in PROFILES.glob("*.yml"))
IMAGE = "quay.io/ocp/release@sha256:" + "0" * 64
KNOWN = {"HOME": "~", "USER": "me"}
# Of every profile with the lab payload.
LAB = configuration.LostField(
    "release.payload", "dev-scripts installs a real release: set OPENSHIFT_RELEASE_IMAGE and CI_TOKEN"
)


def back(text: str) -> importer.Import:
    return importer.read([("config.sh", text)], KNOWN)


def export(raw: dict[str, Any], cluster: str = "ostest") -> configuration.Export:
    complete = profile.complete(raw)
    assert checks.check(complete, cluster) == []
    return exporter.config(complete, cluster)


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples(name: str) -> None:
    complete = profile.load(name, PROFILES)
    made = exporter.config(complete, "ostest")
    path = GOLDEN / f"{name}.txt"
    text = made.text().replace(str(PROFILES), "/config_examples")
    if os.environ.get("AGENTLAB_UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text()
    if name in NO_COUNTERPART:
        assert {lost.field for lost in made.lost} == {LAB.field, *NO_COUNTERPART[name]}
        return
    assert made.lost == ([LAB] if complete["release"]["payload"] == "lab" else [])
    assert build.build(profile.complete(back(made.text()).raw), "ostest") == build.build(complete, "ostest")


_NUTANIX = "installer.install_config.platform.nutanix"
NO_COUNTERPART = {
    "compact_balancer_static": {
        "worker.count",
        "segments.edge0",
        "installer.install_config.platform.baremetal.loadBalancer.type",
        "machines",
        "tests",
    },
    "compact_day2": {"nodes.worker-0", "worker.count"},
    "compact_disks": {"nodes.control-0", "nodes.control-1", "nodes.control-2"},
    "compact_interactive": {"boot.mode"},
    "compact_ipi": {"flow"},
    "compact_segments_static": {
        "worker.count",
        "segments.edge0",
        *(f"extra_networks.{number}.{name}" for number in range(2) for name in ("interface", "roles")),
    },
    "ha_two_hypervisors": {"hypervisors.second", "nodes.master-1", "nodes.master-2", "tests"},
    "sno_bare_metal": {"nodes.master-0"},
    "compact_nutanix": {
        "platform",
        f"{_NUTANIX}.prismElements",
        f"{_NUTANIX}.subnetUUIDs",
        *(f"{_NUTANIX}.prismCentral.{name}" for name in ("endpoint.address", "endpoint.port", "username", "password")),
    },
    "kni22": {
        "installer.manifests",
        "tests",
        "vips.api",
        "vips.ingress",
        *(f"nodes.asus3-vm{number}" for number in range(3)),
    },
    "sno_bond_vlan": {
        "stack",
        "network.vlan",
        "network.mtu",
        "network.routes",
        "extra_networks.0.interface",
        "extra_networks.0.vlan",
        "extra_networks.0.mtu",
        "extra_networks.1.mtu",
    },
    "sno_v6v4_static": {"stack"},
}


SIZES = st.fixed_dictionaries(
    {},
    optional={
        "vcpus": st.integers(1, 64),
        "memory_mib": st.integers(4096, 65536),
        "disk_gib": st.integers(20, 500),
        "name_format": st.integers(0, 99).map(lambda number: f"node{number}-%d"),
    },
)
NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)


@st.composite
def profiles(draw: st.DrawFn) -> dict[str, Any]:
    """Profiles with nothing but what dev-scripts has a variable for."""
    topology = draw(st.sampled_from(sorted(TOPOLOGIES)))
    row = TOPOLOGIES[topology]
    raw: dict[str, Any] = {"topology": topology, "stack": draw(st.sampled_from(["ipv4", "ipv6", "dualstack"]))}
    raw["addressing"] = draw(st.sampled_from(["dhcp", "static"]))
    for role in ("master", "arbiter", "worker"):
        if row.group(role).number:
            raw[role] = draw(SIZES)
    if row.master.number == 2 and draw(st.booleans()):
        raw["worker"] = {"count": draw(st.integers(1, 4)), **draw(SIZES)}
    roles = [role for role in ("master", "arbiter", "worker") if role in raw]
    shared = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "tpm": st.booleans(),
                "root_device": st.sampled_from(["/dev/sda", "/dev/disk/by-id/wwn-0x5"]),
                "extra_disks": st.integers(1, 3).map(lambda count: [{"size_gib": 10, "bus": "virtio"}] * count),
                "firmware": st.sampled_from(["uefi", "bios"]),
            },
        )
    )
    mode = draw(st.sampled_from(["redfish", "minimal", "pxe"]))
    raw["boot"] = {"mode": mode}
    if mode == "pxe":
        shared["firmware"] = "bios"
    for role in roles:
        raw[role] = {**raw[role], **shared}
    if draw(st.booleans()):
        raw["platform"] = draw(
            st.sampled_from(["none", "external"] if row.master.number == 1 else ["none", "baremetal", "external"])
        )
    overlay: dict[str, Any] = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "featureSet": st.sampled_from(["TechPreviewNoUpgrade", "it's"]),
                "featureGates": st.lists(st.sampled_from(["A=true", "B=false"]), min_size=1, max_size=2),
                "osImageStream": st.just("rhel-10"),
                "cpuPartitioningMode": st.just("AllNodes"),
                "capabilities": st.just(
                    {"baselineCapabilitySet": "None", "additionalEnabledCapabilities": ["Console"]}
                ),
            },
        )
    )
    if raw.get("platform") == "external" and draw(st.booleans()):
        raw["external"] = {"platform_name": "oci"}
    installer = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "ssh_key_file": st.sampled_from(["~/.ssh/id_ed25519.pub", "/home/me/key.pub"]),
                "ntp_sources": st.lists(st.sampled_from(["a.example.com", "192.0.2.1"]), min_size=1, max_size=2),
                "fips": st.booleans(),
                "cluster_network": st.just({"ipv4": [{"cidr": "10.200.0.0/16", "host_prefix": 24}]}),
                "service_network": st.just({"ipv6": "fd09::/112"}),
            },
        )
    )
    raw["installer"] = {**installer, **({"install_config": overlay} if overlay else {})}
    if draw(st.booleans()):
        raw["installer"]["hosts_in"] = "install-config"
    if row.fencing and draw(st.booleans()):
        raw["installer"]["fencing_by"] = "macAddress"
    bonded = draw(st.sampled_from([None, "active-backup", "balance-xor", "802.3ad"]))
    if bonded:
        raw["bonds"] = {"bond0": {"mode": bonded, "nics": ["eth0", "eth1"]}}
    raw["network"] = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "bridge": NAMES,
                "ipv4": st.just("192.168.130.0/24"),
                "ipv6": st.just("fd2e::/64"),
                "connection": st.just("proxied"),
                "lease_minutes": st.integers(2, 1440),
            },
        )
    )
    if bonded:
        raw["network"]["interface"] = "bond0"
    raw["services"] = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "registry": st.just({"port": 5001, "username": "a'b$c"}),
                "http": st.just({"port": 8090}),
            },
        )
    )
    raw["extra_networks"] = [
        {"name": name, "ipv4": f"192.168.{200 + index}.0/24"}
        for index, name in enumerate(draw(st.lists(NAMES, max_size=2, unique=True)))
    ]
    raw["hypervisor"] = draw(
        st.fixed_dictionaries({}, optional={"egress": st.booleans(), "state_dir": st.just("/home/lab/agentlab")})
    )
    raw["base_domain"] = draw(st.sampled_from(["test.metalkube.org", "example.com"]))
    if draw(st.booleans()):
        raw["release"] = {"payload": "ocp", "image": IMAGE, "version": draw(st.sampled_from([None, "4.20.3"]))}
        raw["installer"]["pull_secret_file"] = "~/pull-secret.json"
        raw["release"]["installer"] = {"git": draw(st.sampled_from([None, "~/installer"]))}
    elif draw(st.booleans()):
        raw["release"] = {"payload_overrides": {"agent-installer-node-agent": IMAGE}}
    return raw


@settings(max_examples=200, deadline=None)
@given(raw=profiles(), cluster=st.sampled_from(["ostest", "two"]))
def test_there_and_back(raw: dict[str, Any], cluster: str) -> None:
    complete = profile.complete(raw)
    assume(checks.check(complete, cluster) == [])
    made = exporter.config(complete, cluster)
    assert [lost for lost in made.lost if lost != LAB] == []
    found = back(made.text())
    assert found.options.get("cluster", "ostest") == cluster
    assert build.build(profile.complete(found.raw), cluster) == build.build(complete, cluster)


REAL = {"release": {"payload": "ocp", "image": IMAGE}, "installer": {"pull_secret_file": "/x"}}


@pytest.mark.parametrize(
    ("raw", "lost"),
    [
        ({"topology": "ha", "worker": {"count": 3}}, "worker.count: the scenario HA_IPV4_DHCP has 2"),
        ({"network": {"mtu": 9000}}, "network.mtu: dev-scripts has no variable for it"),
        ({"network": {"offsets": {"api": 6}}}, "network.offsets.api: "),
        ({"network": {"nat": False}}, "network.nat: "),
        ({"master": {"disk_bus": "sata"}}, "master.disk_bus: "),
        ({"topology": "ha", "worker": {"tpm": True}}, "master, worker: tpm: dev-scripts has one value for all machines"),
        ({"master": {"extra_disks": [{"size_gib": 5}]}}, "extra_disks: dev-scripts has up to 25 extra disks of one size"),
        ({"nodes": {"master-0": {"vcpus": 4}}}, "nodes.master-0: dev-scripts configures no single node"),
        ({"boot": {"mode": "cdrom"}}, "boot.mode: dev-scripts inserts the ISO into a CD drive"),
        ({"boot": {"mode": "pxe"}}, "firmware: PXE in a scenario of dev-scripts has bios"),
        ({"boot": {"mode": "iscsi"}, "master": {"firmware": "bios"}, "extra_networks": [{"name": "iscsi", "ipv4": "10.9.0.0/25"}]},
         "extra_networks.0.ipv4: dev-scripts has three octets, of a network with 24 bits"),
        ({"hypervisor": {"kind": "local"}}, "hypervisor.kind: "),
        ({"hypervisor": {"state_dir": "/srv/lab"}}, "hypervisor.state_dir: WORKING_DIR is of dev-scripts"),
        ({"services": {"bmc": {"port": 8001}}}, "services.bmc.port: "),
        ({"services": {"registry": {"password": "hush"}}}, "services.registry.password: a secret is not written"),
        ({"vips": {"api": ["192.168.111.9"]}, "topology": "compact"}, "vips.api: "),
        ({"installer": {"agent_config": {"additionalNTPSources": []}}}, "installer.agent_config.additionalNTPSources: "),
        ({"installer": {"install_config": {"proxy": {"httpProxy": "http://x"}}}}, "installer.install_config.proxy.httpProxy: "),
        ({"installer": {"install_config": {"featureGates": ["a,b"]}}}, "installer.install_config.featureGates: "),
        ({"installer": {"install_config": {"capabilities": {"additionalEnabledCapabilities": ["a"]}}}},
         "installer.install_config.capabilities.additionalEnabledCapabilities: "),
        ({"platform": "external", "external": {"platform_name": "x", "cloud_controller_manager": "External"}},
         "external.cloud_controller_manager: dev-scripts has External with the name oci alone"),
        ({"network": {"connection": "connected"}}, "network.connection: dev-scripts has AGENT_ISOLATED_NETWORK"),
        ({"bonds": {"bond1": {"mode": "802.3ad", "nics": ["eth0", "eth1"]}}, "network": {"interface": "bond1"}}, "bonds: "),
        ({"release": {"installer": {"git": "https://git.example.com/installer"}}}, "release.installer.git: dev-scripts builds"),
        ({"installer": {"ntp_sources": []}}, "installer.ntp_sources: "),
        ({"installer": {"image_digest_sources": []}}, "installer.image_digest_sources: "),
        ({"installer": {"pull_secret_file": "/x"}}, "installer.pull_secret_file: it needs a release image"),
        ({"installer": {"ssh_key_file": "/a b.pub"}}, "SSH_PUB_KEY: the path of the key is not letters"),
        ({"installer": {"cluster_network": {"ipv4": [{"cidr": c, "host_prefix": 24} for c in ("10.0.0.0/16", "10.1.0.0/16")]}}},
         "installer.cluster_network.ipv4: dev-scripts has one range of a family"),
        ({"extra_networks": [{"name": "a-b", "ipv4": "192.168.200.0/24"}]}, "extra_networks.0: its name must be that of a variable"),
        ({"extra_networks": [{"name": "ab", "ipv4": "192.168.200.0/24", "mtu": 9000}]}, "extra_networks.0.mtu: "),
        ({"settings": {"STEP_REPEAT_SECONDS": 9}}, "settings.STEP_REPEAT_SECONDS: a setting of the lab payload's programs"),
        ({"faults": [{"kind": "power_off", "node": "master-0", "when": "Installing"}]}, "faults.0: dev-scripts has no fault power_off"),
        ({"release": {"payload_overrides": {"agent-installer-node-agent": "/src/agent"}}},
         "release.payload_overrides.agent-installer-node-agent: dev-scripts takes the pullspec of an image"),
        ({"release": {"profile": "4.18"}}, "release.profile: "),
        ({"release": {"version": "4.22.9-lab"}}, "release.version: "),
        ({"release": {"payload": "okd", "image": IMAGE}}, "release.payload: the tag of OPENSHIFT_RELEASE_IMAGE does not have"),
        (REAL | {"settings": {"STEP_REPEAT_SECONDS": 9}}, "settings: "),
    ],
)  # fmt: skip
def test_what_has_no_counterpart(raw: dict[str, Any], lost: str) -> None:
    made = export(raw)
    found = [str(one) for one in made.lost if one != LAB]
    assert len(found) == 1 and found[0].startswith(lost)
    assert f"# No counterpart: {found[0]}\n" in made.text()
    assert "hush" not in made.text()
    back(made.text())


def test_a_shell_reads_what_is_quoted(tmp_path: Path) -> None:
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh/id.pub").write_text("ssh-ed25519 AAAA me\n")
    made = exporter.config(
        profile.complete(
            {"installer": {"ssh_key_file": "~/.ssh/id.pub"}, "services": {"registry": {"username": "a'b$(id)`x`"}}}
        ),
        "ostest",
        {"CI_TOKEN": 'a "b" $c'},
    )
    file = tmp_path / "config.sh"
    file.write_text(made.text())
    script = '. "$1"; printf "%s\\n" "$REGISTRY_USER" "$CI_TOKEN" "$SSH_PUB_KEY" "$SSH_KEY_FILE"'
    done = subprocess.run(
        ["bash", "-euc", script, "-", file],
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        check=True,
    )
    assert done.stdout.decode().splitlines() == [
        "a'b$(id)`x`", 'a "b" $c', "ssh-ed25519 AAAA me", f"{tmp_path}/.ssh/id.pub",
    ]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), [("A", "x\ny"), ("A", "x\0"), ("A", "x\r"), ("A B", "x"), ("A=$(id)", "x")])
def test_values_that_a_line_cannot_have(name: str, value: str) -> None:
    with pytest.raises(configuration.ExportError):
        exporter.config(profile.complete({}), "ostest", {name: value})


def test_a_line_break_in_a_profile_is_refused() -> None:
    """Only what is laid over install-config.yaml can have one."""
    raw = {"installer": {"install_config": {"featureSet": "A\nexport B=1"}}}
    with pytest.raises(
        configuration.ExportError, match=r"installer.install_config.featureSet: FEATURE_SET must be one line"
    ):
        exporter.config(profile.complete(raw), "ostest")


def test_names_are_variables_of_dev_scripts() -> None:
    """What is exported is mapped when it is read."""
    for name in EXAMPLES:
        for variable in exporter.config(profile.load(name, PROFILES), "two").values:
            found = variables.find(variable)
            assert found and found[1].use == "mapped"
