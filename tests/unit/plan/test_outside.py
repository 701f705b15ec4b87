"""Machines outside of the cluster in a plan, and the contradictions of a profile about them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import (
    build,
    capacity,
    created,
    outside,
    outside_checks,
    profile,
    stored,
)
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.problems import ProfileError
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.plan.refused import problem

PROFILES = Path(__file__).parents[3] / "config_examples"
COMPACT = "topology: compact\n"
LB = "machines: [{name: lb, load_balancer: true}]\n"
LANDING = (
    "outside_networks: [{name: out0, ipv4: 192.168.230.0/24}]\n"
    "machines: [{name: landing, image: /srv/i.qcow2, networks: [{name: out0}, {name: machine, addresses: [192.168.111.9]}]}]\n"
)


def planned(tmp_path: Path, text: str) -> Any:
    path = tmp_path / "p.yml"
    path.write_text(text)
    plan: Any = build.build(profile.load(path), "ostest")
    assert stored.findings(plan) == []
    return plan


def test_a_plan_without_machines_has_no_such_field(tmp_path: Path) -> None:
    plan = planned(tmp_path, COMPACT)
    assert "machines" not in plan and outside.machines(plan) == []


def test_the_cluster_does_not_see_a_machine(tmp_path: Path) -> None:
    without, plan = planned(tmp_path, COMPACT), planned(tmp_path, COMPACT + "machines: [{name: client}]\n")
    assert plan["nodes"] == without["nodes"]
    assert plan["installer"] == without["installer"]
    assert plan["vips"] == without["vips"]


def test_a_landing_zone_is_on_two_networks(tmp_path: Path) -> None:
    plan = planned(tmp_path, COMPACT + LANDING)
    [landing] = plan["machines"]
    assert [nic["network"] for nic in landing["nics"]] == ["out0", "ostestbm"]
    assert [nic["addresses"][0]["ip"] for nic in landing["nics"]] == ["192.168.230.70", "192.168.111.9"]
    assert landing["network_config"] is None and landing["disks"][0]["size_gib"] == outside.DISK_GIB
    networks = {network["name"]: network for network in plan["networks"]}
    assert networks["out0"]["purpose"] == "outside"
    assert [one["ip"] for one in networks["out0"]["reservations"]] == ["192.168.230.70"]
    assert {"mac": landing["nics"][1]["mac"], "duid": None, "ip": "192.168.111.9", "name": "landing"} in networks[
        "ostestbm"
    ]["reservations"]
    assert {"ip": "192.168.111.9", "names": ["landing"]} in networks["ostestbm"]["dns"]["hosts"]
    assert not any(nic["network"] == "out0" for node in plan["nodes"] for nic in node["nics"])
    assert outside.address_of(landing) == "192.168.230.70"


@pytest.mark.parametrize(
    ("stack", "families"), [("ipv4", ["ipv4"]), ("dualstack", ["ipv4", "ipv6"]), ("ipv6", ["ipv6"])]
)
def test_the_load_balancer_has_the_addresses_of_api_and_ingress(
    tmp_path: Path, stack: str, families: list[str]
) -> None:
    plan = planned(tmp_path, f"{COMPACT}stack: {stack}\n{LB}")
    [lb] = plan["machines"]
    assert plan["installer"]["install_config"] == {"platform": {"baremetal": {"loadBalancer": {"type": "UserManaged"}}}}
    balancer = plan["services"]["balancer"]
    assert balancer["machine"] == "lb"
    assert balancer["addresses"] == [*plan["vips"]["api"], *plan["vips"]["ingress"]]
    assert not {*balancer["addresses"]} & {subnet["gateway"] for subnet in plan["networks"][0]["subnets"]}
    [interface] = lb["network_config"]["interfaces"]
    held = {entry["ip"] for family in ("ipv4", "ipv6") for entry in interface[family].get("address", [])}
    assert {*balancer["addresses"]} < held
    assert [address["family"] for address in lb["nics"][0]["addresses"]] == families
    assert interface["identifier"] == "mac-address"
    kinds = [(item["kind"], item["name"]) for item in created.items(plan, "h")]
    assert ("domain", "ostest_lb") in kinds and ("service", "balancer") not in kinds


def test_with_vips_of_the_profile_the_machine_has_these(tmp_path: Path) -> None:
    plan = planned(tmp_path, COMPACT + LB + "vips: {api: [192.168.111.7], ingress: [192.168.111.8]}\n")
    assert plan["services"]["balancer"]["addresses"] == ["192.168.111.7", "192.168.111.8"]


def test_platform_none_with_a_machine_as_load_balancer(tmp_path: Path) -> None:
    """It is a load balancer on hypervisors without a sandbox, too, and install-config.yaml has no field for it."""
    plan = planned(tmp_path, COMPACT + "platform: none\nhypervisor: {kind: local}\n" + LB)
    assert plan["services"]["balancer"]["addresses"] == ["192.168.111.5", "192.168.111.4"]
    assert plan["installer"]["install_config"] == {}


def test_a_client_boots_from_the_network(tmp_path: Path) -> None:
    [client] = planned(tmp_path, "machines: [{name: client, image: null, disk_gib: 3}]\n")["machines"]
    assert client["image"] is None and client["disks"][0]["size_gib"] == 3


def test_machines_count_for_the_capacity(tmp_path: Path) -> None:
    path = tmp_path / "p.yml"
    path.write_text("machines: [{name: a, memory_mib: 1000, vcpus: 3}]\n")
    alone = capacity.needs_of(profile.load("sno_ipv4", PROFILES))
    both = capacity.needs_of(profile.load(path))
    assert (both.memory_mib - alone.memory_mib, both.vcpus - alone.vcpus) == (1150, 3)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("machines: [{name: a, networks: [{name: nope}]}]\n",
         "p.yml:1:34: machines.0.networks.0.name is 'nope': there is no such network; there is machine"),
        ("machines: [{name: a, networks: [{name: machine}, {name: machine}]}]\n",
         "machines.0.networks.1.name is 'machine': is already used by machines.0.networks.0.name"),
        ("machines: [{name: a, networks: []}]\n", "machines.0.networks: must not be empty"),
        ("machines: [{name: master-0}]\n", "p.yml:1:13: machines.0.name is 'master-0': is the name of a node; choose another one"),
        ("machines: [{name: lab}]\n", "machines.0.name is 'lab': has another meaning in the lab; choose another one"),
        ("machines: [{name: a}, {name: a}]\n", "machines.1.name is 'a': is already used by machines.0.name"),
        ("machines: [{name: A}]\n", "machines.0.name is 'A': must be lower-case letters"),
        ("machines: [{name: a, networks: [{name: machine, addresses: [192.168.111.30]}]}]\n",
         "p.yml:1:49: machines.0.networks.0.addresses is '192.168.111.30': is in the DHCP range, 192.168.111.20 to 192.168.111.60; choose one outside"),
        ("machines: [{name: a, networks: [{name: machine, addresses: [10.0.0.9]}]}]\n",
         "machines.0.networks.0.addresses.0 is '10.0.0.9': is outside of its network, 192.168.111.0/24"),
        ("machines: [{name: a, networks: [{name: machine, addresses: ['fd00::1']}]}]\n", "must be one IPv4 address, in this order"),
        ("machines: [{name: a, networks: [{name: machine, addresses: [192.168.111.1]}]}]\n",
         "is '192.168.111.1': is the address of the gateway; choose another"),
        ("addressing: static\nmachines: [{name: a, networks: [{name: machine, addresses: [192.168.111.80]}]}]\n",
         "is '192.168.111.80': is the address of node master-0; choose another"),
        (COMPACT + "machines: [{name: a, networks: [{name: machine, addresses: [192.168.111.5]}]}]\n", "is the address of the API; choose another"),
        ("machines: [{name: a}, {name: b, networks: [{name: machine, addresses: [192.168.111.70]}]}]\n",
         "machines.1.networks.0.addresses is '192.168.111.70': is the address of machine a; choose another"),
        ("outside_networks: [{name: o, ipv4: 10.7.0.0/26}]\nmachines: [{name: a, networks: [{name: o}]}]\n",
         "p.yml:2:12: machines.0: has no address in o, which ends before offset 70"),
        ("network: {offsets: {machines: 80}}\naddressing: static\nmachines: [{name: a}]\n",
         "p.yml:3:12: machines.0 is '192.168.111.80': is the address of node master-0"),
        ("outside_networks: [{name: o}]\n", "outside_networks.0: needs `ipv4`, `ipv6` or both, such as `ipv4: 192.168.230.0/24`"),
        ("outside_networks: [{name: o, ipv4: 192.168.111.0/25}]\n", "is '192.168.111.0/25': overlaps with network.ipv4"),
        ("outside_networks: [{name: ostestbm, ipv4: 10.7.0.0/24}]\n", "outside_networks.0.name is 'ostestbm': is already used by network.bridge"),
        ("machines: [{name: a, image: /srv/i, files: {/etc/a: b}}]\n",
         "machines.0.files: requires `image: lab`: agentlab does not change another image"),
        ("installer: {pull_secret_file: /p}\nrelease: {payload: ocp, image: 'quay.io/a/b@sha256:0'}\nmachines: [{name: a}]\n",
         "machines.0.image is 'lab': requires `release: {payload: lab}`"),
        ("hypervisor: {kind: ssh, host: h}\nmachines: [{name: a}]\n", "machines.0.image is 'lab': requires `hypervisor: {kind: sandbox}`"),
        ("machines: [{name: a, files: {/usr/bin/x: y}}]\n",
         "machines.0.files./usr/bin/x: must be below /etc/, /var/, /opt/, /srv/, /home/, /root/, /usr/local/: the rest of its system is read-only"),
        ("machines: [{name: a, files: {/etc/../x: y}}]\n", "machines.0.files./etc/../x: must be an absolute path"),
        ("machines: [{name: a, memory_mib: 256}]\n", "machines.0.memory_mib is 256: must be at least 512"),
        ("machines: [{name: a, units: {b: c}}]\n", "machines.0.units.b: must be the name of a unit of systemd"),
        ("machines: [{name: a, files: {/etc/a: %s}}]\n" % ("x" * 65537), "has with `units` 65537 bytes, at most 65536 fit into its image"),
        (LB, "machines.0.load_balancer is True: requires several masters: a single node is reached by its own address"),
        (COMPACT + "platform: vsphere\n" + LB, "machines.0.load_balancer is True: requires platform baremetal, none or external, not vsphere"),
        (COMPACT + "release: {version: 4.15.0-lab}\n" + LB, "machines.0.load_balancer is True: requires a release from "),
        (COMPACT + "machines: [{name: a, load_balancer: true}, {name: b, load_balancer: true}]\n",
         "machines.1.load_balancer is True: is a duplicate; a cluster has one load balancer"),
        (COMPACT + "outside_networks: [{name: o, ipv4: 10.7.0.0/24}]\nmachines: [{name: a, load_balancer: true, networks: [{name: o}]}]\n",
         "machines.0.networks: requires the network `machine`, which has the addresses of API and ingress"),
        (COMPACT + "machines: [{name: a, image: null, load_balancer: true}]\n", "machines.0.load_balancer: requires `image: lab`"),
        ("snapshots: [ready]\nmachines: [{name: a}]\n", "requires a profile without `machines`: only nodes are saved"),
        ("addressing: static\nbonds: {bond0: {mode: active-backup, nics: [eth0, eth1]}}\nnetwork: {interface: bond0}\nmachines: [{name: a}]\n",
         "has bonds or VLANs, which machines outside of the cluster do not have"),
    ],
)  # fmt: skip
def test_contradictions(tmp_path: Path, text: str, wanted: str) -> None:
    assert wanted in problem(text, tmp_path)


def _qcow2(size: int, backing: int = 0) -> bytes:
    return b"QFI\xfb" + (3).to_bytes(4) + backing.to_bytes(8) + bytes(8) + size.to_bytes(8) + bytes(480)


def test_an_image_in_the_folder_of_the_profile(tmp_path: Path) -> None:
    path = tmp_path / "p.yml"
    path.write_text("machines: [{name: a, image: disk.qcow2}, {name: b, image: lab}]\n")
    (tmp_path / "disk.qcow2").write_bytes(_qcow2(1 << 30))
    loaded = profile.load(path, files=True)
    assert [one["image"] for one in loaded["machines"]] == [str(tmp_path / "disk.qcow2"), "lab"]
    with pytest.raises(
        ProfileError, match=r"machines.0.image is 'disk.qcow2': must be a path from the root or from home"
    ):
        profile.validated_profile(profile.parse(path.read_text(), "text"), "one")


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"", "is not a disk image in the format qcow2 or raw"),
        (b"#!/bin/sh\n" * 100, "is not a disk image in the format qcow2 or raw"),
        (_qcow2(1 << 30, backing=512), "has a backing file, which may not be there"),
        (_qcow2(11 << 30), "machines.0.disk_gib is 10: must be at least 11, the size of the qcow2 image in GiB"),
    ],
)
def test_wrong_images(tmp_path: Path, content: bytes | None, wanted: str) -> None:
    image, path = tmp_path / "i.img", tmp_path / "p.yml"
    path.write_text(f"machines: [{{name: a, image: {image}}}]\n")
    if content is not None:
        image.write_bytes(content)
    profile.load(path)  # without the files nothing is wrong
    with pytest.raises(ProfileError) as report:
        profile.load(path, files=True)
    assert wanted in str(report.value)


def test_disk_images(tmp_path: Path) -> None:
    image = tmp_path / "i.img"
    image.write_bytes(_qcow2(3 << 30))
    assert outside_checks.disk_image(str(image)) == ("qcow2", 3 << 30)
    image.write_bytes(bytes(510) + b"\x55\xaa" + bytes(512))
    assert outside_checks.disk_image(str(image)) == ("raw", 1024)


@given(
    st.lists(st.integers(0, 2), unique=True, min_size=1),
    st.integers(1, 6),
    st.sampled_from(["ipv4", "dualstack", "v6v4"]),
)
@settings(max_examples=25, deadline=None)
def test_addresses_and_macs_are_unique(chosen: list[int], count: int, stack: str) -> None:
    names = ["machine", "out0", "out1"]
    raw = {
        "topology": "compact",
        "stack": stack,
        "outside_networks": [{"name": f"out{n}", "ipv4": f"10.{n}.0.0/24"} for n in range(2)],
        "machines": [{"name": f"m{n}", "networks": [{"name": names[c]} for c in chosen]} for n in range(count)],
    }
    plan: Any = build.build(profile.complete(raw), "ostest")
    nics = [nic for one in [*plan["nodes"], *plan["machines"]] for nic in one["nics"]]
    macs, ips = [nic["mac"] for nic in nics], [address["ip"] for nic in nics for address in nic["addresses"]]
    assert len({*macs}) == len(macs)
    assert len({*ips}) == len(ips)
    assert stored.findings(plan) == []
