"""Several hypervisors: where machines are placed, the plan as each of them sees it, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.errors import LabError
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import (
    build,
    certificates,
    created,
    hypervisors,
    profile,
    rundir,
    stored,
)
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.machines import own_machines, virtual
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import alike, services
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.plan.refused import problem

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
TWO = "topology: ha\nstack: dualstack\nhypervisors:\n  - {name: second}\n"
APART = (
    "topology: compact\nhypervisor: {address: 192.0.2.1}\n"
    "hypervisors:\n  - {name: second, kind: ssh, host: lab2.example.com, user: root, address: 192.0.2.2}\n"
)


def planned(tmp_path: Path, text: str, cluster: str = "ostest") -> Any:
    (tmp_path / "p.yml").write_text(text)
    return build.build(profile.load(tmp_path / "p.yml", None, cluster), cluster)


SIZES = st.lists(st.integers(512, 65536), min_size=1, max_size=12)


@given(sizes=SIZES, memory=st.lists(st.integers(0, 1 << 20), min_size=2, max_size=5))
def test_machines_go_where_most_memory_is_left(sizes: list[int], memory: list[int]) -> None:
    names = {f"h{number}": size for number, size in enumerate(memory)}
    machines = [(f"n{number}", size, None) for number, size in enumerate(sizes)]
    placed = hypervisors.place(machines, names)
    assert list(placed) == [name for name, __, __ in machines] and placed == hypervisors.place(machines, names)
    left = {
        name: size - sum(sizes[int(one[1:])] for one in placed if placed[one] == name) for name, size in names.items()
    }
    # One that got a machine had, before its last and smallest one, at least as much left as any other has now.
    for name in {*placed.values()}:
        least = min(sizes[int(one[1:])] for one in placed if placed[one] == name)
        assert left[name] + least >= max(left.values())


@given(sizes=SIZES, count=st.integers(2, 5))
def test_without_memory_they_are_spread(sizes: list[int], count: int) -> None:
    placed = hypervisors.place(
        [(f"n{number}", size, None) for number, size in enumerate(sizes)], {f"h{n}": None for n in range(count)}
    )
    used = [sum(size for number, size in enumerate(sizes) if placed[f"n{number}"] == f"h{n}") for n in range(count)]
    assert max(used) - min(used) <= max(sizes)


@given(sizes=SIZES, chosen=st.lists(st.sampled_from(["a", "b", None]), min_size=12, max_size=12))
def test_a_named_hypervisor_wins(sizes: list[int], chosen: list[str | None]) -> None:
    machines = [(f"n{number}", size, chosen[number]) for number, size in enumerate(sizes)]
    placed = hypervisors.place(machines, {"a": 4096, "b": 4096})
    assert all(named in (None, placed[name]) for name, __, named in machines)


def test_each_hypervisor_sees_a_plan_of_its_own(tmp_path: Path) -> None:
    plan = planned(tmp_path, TWO + "  - {name: third}\nextra_networks: [{name: storage0, ipv4: 192.168.221.0/24}]\n")
    assert stored.findings(plan) == []
    seen = hypervisors.views(plan)
    assert list(seen) == ["hypervisor", "second", "third"] and seen["hypervisor"] is plan
    assert all(stored.findings(one) == [] for one in seen.values())
    there = [node["name"] for one in seen.values() for node in own_machines(one["nodes"])]
    assert sorted(there) == [node["name"] for node in plan["nodes"]]
    assert {len(virtual(one["nodes"])) for one in seen.values()} == {5}
    # Nothing has the address or the MAC of another.
    for networks in zip(*(one["networks"] for one in seen.values()), strict=True):
        assert len({network["name"] for network in networks}) == 1
        assert len({network["bridge_mac"] for network in networks}) == 3
        assert len({subnet["gateway"] for network in networks for subnet in network["subnets"]}) == 3 * len(
            networks[0]["subnets"]
        )
    for name in ("second", "third"):
        one = seen[name]
        assert services.names_of(one) == ("bmc",) and not any(
            n["dns"]["hosts"] or n["reservations"] for n in one["networks"]
        )
        assert {node["console"].startswith(one["hypervisor"]["state_dir"]) for node in own_machines(one["nodes"])} == {
            True
        }
        assert one["services"]["process_dir"] == f"{one['hypervisor']['state_dir']}/processes"
        kinds = [item["kind"] for item in created.items(one, name)]
        assert kinds == [
            "sandbox",
            "state_dir",
            "network",
            "network",
            "pool",
            *["domain"] * len(own_machines(one["nodes"])),
            "service",
        ]
    # All BMCs have one address for the cluster, and the one behind it knows whose they are.
    assert len({node["bmc"]["address"].rpartition("/")[0] for node in plan["nodes"]}) == 1
    elsewhere = {node["uuid"]: node["hypervisor"] for node in plan["nodes"] if node.get("hypervisor")}
    assert {uuid: name for uuid, (name, __) in hypervisors.bmcs(plan).items()} == elsewhere
    names = certificates.served_names(plan)
    assert {"192.168.111.1", "192.168.111.2", "192.168.111.3"} < {*names} and len(names) == 7
    with pytest.raises(LabError, match="no hypervisor 'fourth'; there are hypervisor, second, third"):
        hypervisors.view(plan, "fourth")


def test_the_ends_of_a_tunnel_meet(tmp_path: Path) -> None:
    seen = hypervisors.views(planned(tmp_path, TWO + "  - {name: third}\n"))
    first = {end.number: end for end in hypervisors.ends(seen["hypervisor"])}
    others = [end for name in ("second", "third") for end in hypervisors.ends(seen[name])]
    assert len(first) == len(others) == 2
    for end in others:
        assert (end.local, end.remote) == (first[end.number].remote, first[end.number].local)
        assert end.mtu == first[end.number].mtu == 1500 and len(end.link) <= 15
    apart = hypervisors.views(planned(tmp_path, APART))
    [end] = hypervisors.ends(apart["second"])
    assert (end.local, end.remote) == ("192.0.2.2", "192.0.2.1") and not hypervisors.is_paired(apart["second"], end)
    # Clusters that share hosts have other numbers.
    assert end.number != hypervisors.ends(planned(tmp_path, APART, "other"))[0].number
    assert ("tunnel", end.link) in [(item["kind"], item["name"]) for item in created.items(apart["second"], "second")]
    assert "tunnel" not in {item["kind"] for item in created.items(apart["hypervisor"], "hypervisor")}


def test_the_inventory_has_a_host_for_each(tmp_path: Path) -> None:
    groups = rundir.inventory(planned(tmp_path, APART), tmp_path)["all"]["children"]
    assert list(groups["hypervisors"]["hosts"]) == ["hypervisor", "second"]
    assert "agentlab_hypervisor" not in groups["hypervisors"]["hosts"]["hypervisor"]
    second = groups["hypervisors"]["hosts"]["second"]
    assert (second["agentlab_hypervisor"], second["ansible_host"], second["ansible_user"]) == (
        "second",
        "lab2.example.com",
        "root",
    )
    assert groups["observers"]["hosts"] == {"hypervisor": None}


def test_a_plan_with_contradictions_is_refused(tmp_path: Path) -> None:
    plan = planned(tmp_path, TWO)
    plan["nodes"][1]["hypervisor"] = "nowhere"
    plan["hypervisors"][0]["pool_dir"] = "/srv/pool"
    assert [(".".join(map(str, path)), remedy) for path, __, remedy in stored.findings(plan)] == [
        ("hypervisors.0.pool_dir", "must be in state_dir, which is removed with the cluster"),
        ("nodes.1.hypervisor", "must be one of second, or null for the first"),
    ]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("hypervisors: [{name: hypervisor}]", "hypervisors.0.name is 'hypervisor': must not be one of hypervisor, observer, localhost"),
        ("hypervisors: [{name: b}, {name: b}]", "hypervisors.1.name is 'b': is already used by hypervisors.0.name; each must be unique"),
        ("hypervisors: [{name: b, kind: ssh, address: 192.0.2.2}]\nhypervisor: {address: 192.0.2.1}",
         "hypervisors.0.host: a hypervisor of `kind: ssh` requires its name or address"),
        ("hypervisors: [{name: b, host: h}]", "hypervisors.0.host is 'h': requires `kind: ssh`, not sandbox"),
        ("hypervisors: [{name: b, kind: ssh, host: h, address: 192.0.2.2}]",
         "hypervisor.address: is missing: it is the end of the VXLAN to b, on the host of the first"),
        ("hypervisors: [{name: b, kind: ssh, host: h}]\nhypervisor: {address: 192.0.2.1}",
         "hypervisors.0.address: is missing: it is the end of the VXLAN from the first hypervisor"),
        ("hypervisors: [{name: b, kind: ssh, host: h, address: 192.0.2.1}]\nhypervisor: {address: 192.0.2.1}",
         "hypervisors.0.address is '192.0.2.1': is already used by hypervisor.address; each must be unique"),
        ("hypervisors: [{name: b, kind: ssh, host: h, address: 192.0.2.2}, {name: c, kind: ssh, host: h, address: 192.0.2.3}]\n"
         "hypervisor: {address: 192.0.2.1}", "hypervisors.1.host is 'h': is already used by hypervisors.0.host; each must be unique"),
        ("hypervisors: [{name: b, kind: ssh, host: h, address: '2001:DB8:0::1'}]\nhypervisor: {address: '2001:db8::1'}",
         "hypervisors.0.address is '2001:db8::1': is already used by hypervisor.address; each must be unique"),
        ("hypervisors: [{name: b, kind: ssh, host: h, address: 192.0.2.2}, {name: c, kind: ssh, host: H, address: 192.0.2.3}]\n"
         "hypervisor: {address: 192.0.2.1}", "hypervisors.1.host is 'h': is already used by hypervisors.0.host; each must be unique"),
        ("hypervisors: [{name: b, kind: ssh, host: h, address: '2001:db8::2'}]\nhypervisor: {address: 192.0.2.1}",
         "hypervisors.0.address is '2001:db8::2': must be of the family of hypervisor.address, ipv4"),
        ("hypervisors: [{name: b, address: 192.0.2.2}]", "hypervisors.0.address is '192.0.2.2': is not needed by a sandbox of this host; remove it"),
        ("hypervisors: [{name: b, kind: local, address: 192.0.2.2}]\nhypervisor: {address: 192.0.2.1}",
         "hypervisors.0.kind is 'local': is the host of the first hypervisor: must be sandbox or ssh"),
        ("hypervisors: [{name: b}]\nhypervisor: {kind: local}",
         "hypervisors.0.kind is 'sandbox': requires `hypervisor: {kind: sandbox}`, not local: sandboxes are joined on this host"),
        ("hypervisors: [{name: b, memory_mib: 9000}]", "hypervisor.memory_mib: is missing: give it for all hypervisors, or for none"),
        ("hypervisors: [{name: b, memory_mib: 6000}]\nhypervisor: {memory_mib: 6000}\ntopology: compact\nmaster: {memory_mib: 3500}",
         "hypervisor.memory_mib is 6000: master-0, master-2 need 7000 MiB: give it more, use smaller machines, or place them by nodes.NAME.hypervisor"),
        ("hypervisor: {memory_mib: 6000}", "hypervisor.memory_mib is 6000: requires `hypervisors`: it is about several"),
        ("hypervisors: [{name: b}]\nnodes: {master-0: {hypervisor: c}}", "nodes.master-0.hypervisor is 'c': must be one of hypervisor, b"),
        ("hypervisors: [{name: b}]\nboot: {mode: cdrom}",
         "boot.mode is 'cdrom': must be one of redfish, minimal with several hypervisors: their machines are booted by BMCs"),
        ("hypervisors: [{name: b}]\nsnapshots: [ready]", "snapshots is ['ready']: requires one hypervisor: only one sandbox is saved"),
        ("hypervisors: [{name: b}]\ntopology: compact\nfaults: [{kind: power_off, node: master-1, when: Installing}]",
         "faults.0.node is 'master-1': is on hypervisor b, where the lab cannot do power_off: choose a node of the first, or place it there"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(text: str, wanted: str, tmp_path: Path) -> None:
    reported = problem(text + "\n", tmp_path)
    assert reported.partition(": ")[2] == wanted


def test_hypervisors_are_alike() -> None:
    facts: alike.Facts = {"qemu": "7.2", "domain_type": "kvm", "reason": "a guest booted"}
    alike.compare("second", facts, {**facts})
    with pytest.raises(LabError, match=r"^hypervisor second has QEMU 8\.1, and the first one 7\.2: install the same"):
        alike.compare("second", {**facts, "qemu": "8.1"}, facts)
    slow: alike.Facts = {**facts, "domain_type": "qemu", "reason": "/dev/kvm is missing or not accessible"}
    with pytest.raises(
        LabError, match=r"^hypervisor second has no KVM \(/dev/kvm is missing .*\), and the first one has"
    ):
        alike.compare("second", slow, facts)
    with pytest.raises(LabError, match=r"^the first hypervisor has no KVM \(/dev/kvm .*\), and hypervisor second has"):
        alike.compare("second", facts, slow)


def test_what_a_hypervisor_lacks_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = hypervisors.view(planned(tmp_path, TWO), "second")
    (tmp_path / "kvm.json").write_text(
        json.dumps({"boot_id": BOOT_ID.read_text().strip(), "usable": False, "reason": "slow", "seconds": 1.0})
    )
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LabError, match=r"^hypervisor second: qemu-system-x86_64 does not run: .*: install QEMU there"):
        alike.measure(plan, tmp_path)
    program = tmp_path / alike.QEMU
    program.write_text("#!/bin/sh\necho QEMU emulator version 8.1.2\n")
    program.chmod(0o755)
    assert alike.measure(plan, tmp_path) == {"qemu": "8.1", "domain_type": "qemu", "reason": "slow"}
    plan["hypervisor"]["domain_type"] = "kvm"
    with pytest.raises(
        LabError, match=r"^hypervisor second: domain_type is 'kvm', and no guest boots on KVM there \(slow\)"
    ):
        alike.measure(plan, tmp_path)


def test_the_table_shows_which_nodes_are_where(tmp_path: Path) -> None:
    plan = planned(tmp_path, TWO)
    reported = "second: sandbox agentlab-ostest-second, master-1, worker-0, worker-1"
    assert hypervisors.hypervisor_line(plan, plan["hypervisors"][0]) == reported
