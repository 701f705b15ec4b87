"""Plans that were edited to what cannot be: each value of the right type that contradicts another part is refused by its field."""

from __future__ import annotations

import copy
import functools
import ipaddress
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import (
    build,
    hypervisors,
    model,
    profile,
    shapes,
    stored,
)
from ansible_collections.agentlab.ocp.plugins.module_utils.snapshot import copies
from hypothesis import given, settings
from hypothesis import strategies as st

GOLDEN = Path(__file__).parent / "golden"
NAMES = sorted(path.name for path in GOLDEN.iterdir())
Place = tuple[Any, ...]
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@functools.cache
def golden(name: str) -> Any:
    return yaml.load((GOLDEN / name / "plan.yaml").read_text(), LOADER)


def at(plan: Any, place: Place) -> Any:
    for key in place:
        plan = plan[key]
    return plan


def edited(name: str, edits: dict[str, Any]) -> Any:
    plan = copy.deepcopy(golden(name))
    for where, value in edits.items():
        keys = [int(key) if key.isdigit() else key for key in where.split(".")]
        at(plan, tuple(keys[:-1]))[keys[-1]] = value
    return plan


def lines(plan: Any) -> list[str]:
    with pytest.raises(stored.PlanError) as caught:
        stored.check_plan(plan, "plan.yaml")
    return str(caught.value).splitlines()


@pytest.mark.parametrize("name", NAMES)
def test_every_golden_plan_is_valid_in_every_view(name: str) -> None:
    assert [stored.findings(one) for one in hypervisors.views(golden(name)).values()] == [[]] * (
        1 + len(golden(name).get("hypervisors") or [])
    )


MAC, BOND = "00:36:6b:47:86:4f", "sno_bond_vlan"
CASES: list[tuple[str, str, Any, str]] = [
    # names
    ("sno_ipv4", "hypervisor.netns", "agentlab-other", "must be agentlab-ostest: what removes the cluster finds it by the cluster's name"),
    ("sno_ipv4", "hypervisor.pool", "agentlab-other", "must be agentlab-ostest"),
    ("sno_ipv4", "cluster.domain", "ostest.example.com", "must be ostest.test.metalkube.org: name and base_domain"),
    ("sno_ipv4", "services.host", "virthost.example.com", "must be virthost.ostest.test.metalkube.org"),
    ("ha_two_hypervisors", "hypervisors.0.netns", "agentlab-ostest", "must be agentlab-ostest-second"),
    ("ha_two_hypervisors", "hypervisors.0.pool", "agentlab-other", "must be agentlab-ostest"),
    ("ha_two_hypervisors", "hypervisors.0.uplink.link", "al-other", "must be al-ostest"),
    ("sno_ipv4", "endpoints.api.host", "api.example.com", "must be api.ostest.test.metalkube.org"),
    # what only one machine has
    ("compact_ipv4", "nodes.1.name", "master-0", "is already used by nodes.0.name; each must be unique"),
    ("compact_ipv4", "nodes.1.domain", "ostest_master_0", "is already used by nodes.0.domain; each must be unique"),
    ("compact_ipv4", "nodes.1.uuid", "F60BD97A-1342-5328-B93A-23B6084D1CF6", "is already used by nodes.0.uuid; each must be unique"),
    ("compact_ipv4", "nodes.1.nics.0.mac", MAC.upper(), "is already used by nodes.0.nics.0.mac; each must be unique"),
    ("compact_ipv4", "nodes.1.console", "/var/lib/agentlab/ostest/console/ostest_master_0.log", "is already used by nodes.0.console"),
    ("compact_ipv4", "nodes.1.disks.0.name", "ostest_master_0", "is already used by nodes.0.disks.0.name"),
    ("compact_ipv4", "networks.0.bridge_mac", MAC, "is already used by nodes.0.nics.0.mac"),
    ("compact_ipv4", "services.http.port", 8000, "is already used by services.bmc.port"),
    ("compact_ipv4", "services.registry.port", 53, "is that of the lab's DNS"),
    ("compact_ipi", "installer.bootstrap.mac", MAC, "is already used by nodes.0.nics.0.mac"),
    ("compact_ipi", "installer.bootstrap.domain", "ostest_master_0", "is already used by nodes.0.domain"),
    (BOND, "nodes.0.nics.1.port", "n0-eth0", "is already used by nodes.0.nics.0.port"),
    (BOND, "nodes.0.nics.1.name", "eth0", "is already used by nodes.0.nics.0.name"),
    # networks
    ("sno_ipv4", "networks.0.mtu", 70000, "must be from 1280 to 9216"),
    ("sno_ipv4", "networks.0.subnets.0.prefix", 0, "must be from 1 to 128"),
    ("sno_ipv4", "networks.0.subnets.0.prefix", 25, "must be 24, as in 192.168.111.0/24"),
    ("sno_ipv4", "networks.0.subnets.0.family", "ipv6", "must be ipv4, the family of 192.168.111.0/24"),
    ("sno_ipv4", "networks.0.subnets.0.gateway", "10.9.9.9", "is outside of its network, 192.168.111.0/24"),
    ("sno_ipv4", "networks.0.subnets.0.gateway", "192.168.111.255", "is the broadcast address of its network"),
    ("sno_ipv4", "networks.0.subnets.0.gateway", "ffff::1", "must be an address in 192.168.111.0/24"),
    ("sno_ipv4", "networks.0.subnets.0.dhcp.start", "ffff::1", "must be an address in 192.168.111.0/24"),
    ("sno_ipv4", "networks.0.subnets.0.dhcp.start", "192.168.111.61", "must not be greater than dhcp.end, 192.168.111.60"),
    ("sno_ipv4", "networks.0.subnets.0.dhcp.end", "192.168.112.60", "is outside of its network, 192.168.111.0/24"),
    ("sno_ipv4", "networks.0.reservations.0.ip", "ffff::1", "must be an address in 192.168.111.0/24"),
    ("sno_ipv4", "networks.0.reservations.0.ip", "192.168.111.21", "must be an address of master-0: 192.168.111.20"),
    ("sno_ipv4", "networks.0.reservations.0.mac", "00:00:00:00:00:02", f"must be the MAC of a NIC of master-0: {MAC}"),
    ("sno_ipv4", "networks.0.reservations.0.mac", None, "must be the MAC of a NIC: a lease of an IPv4 address is by MAC"),
    ("sno_ipv4", "networks.0.reservations.0.duid", f"00:03:00:01:{MAC}", "must be null: a lease of an IPv4 address is by MAC"),
    ("sno_ipv6", "networks.0.reservations.0.duid", "00:03:00:01:00:00:00:00:00:02", f"must be the DUID of a NIC of master-0: 00:03:00:01:{MAC}"),
    ("sno_ipv4", "networks.0.dns.hosts.0.ip", "ffff::1", "must be an address in 192.168.111.0/24"),
    ("sno_ipv4", "networks.0.dns.hosts.0.ip", "10.9.9.9", "is outside of its network, 192.168.111.0/24"),
    ("sno_ipv4", "networks.0.dns.wildcards.0.ip", "10.9.9.9", "is outside of its network, 192.168.111.0/24"),
    ("sno_ipv4", "networks.0.purpose", "extra", "must be machine: the first network is the machine network"),
    ("sno_ipv4", "services.address", "ffff::1", "must be 192.168.111.1, the gateway of ostestbm"),
    ("sno_iscsi", "services.iscsi.address", "10.9.9.9", "must be a gateway: one of 192.168.111.1, 192.168.145.1"),
    ("sno_ipv4", "nodes.0.nics.0.addresses.0.prefix", 25, "must be 24, as in 192.168.111.0/24"),
    ("sno_ipv4", "nodes.0.nics.0.addresses.0.family", "ipv6", "must be ipv4, the family of 192.168.111.20"),
    ("sno_ipv4", "nodes.0.nics.0.addresses.0.ip", "ffff::1", "must be an address in 192.168.111.0/24"),
    ("compact_ipv4", "nodes.1.nics.0.addresses.0.ip", "192.168.111.20", "is already used by nodes.0.nics.0.addresses.0.ip"),
    ("compact_ipv4", "nodes.1.nics.0.addresses.0.ip", "192.168.111.1", "is already used by networks.0.subnets.0.gateway"),
    ("compact_ipv4", "vips.api", ["10.9.9.9"], "is outside of its network, 192.168.111.0/24"),
    ("compact_ipv4", "vips.api", ["192.168.111.21"], "is an address of nodes.1; choose another"),
    ("compact_ipv4", "vips.ingress", ["192.168.111.1"], "is an address of the gateway; choose another"),
    ("ha_two_hypervisors", "hypervisors.0.further.addresses.ostestbm", ["10.9.9.9"], "is outside of its network, 192.168.111.0/24"),
    ("sno_ipv4", "installer.machine_network", ["10.9.9.0/24"], "must be one of 192.168.111.0/24"),
    ("compact_ipi", "installer.bootstrap.provisioning_ip", "10.9.9.9", "is outside of its network, 192.168.111.0/24"),
    ("compact_ipi", "installer.bootstrap.addresses", ["10.9.9.9"], "is outside of its network, 192.168.111.0/24"),
    (BOND, "nodes.0.links.0.mac", "00:00:00:00:00:02", "the MAC of its first NIC"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "field", "value", "wanted"), CASES, ids=[f"{one[1]}-{one[2]}" for one in CASES])
def test_a_value_that_cannot_be(name: str, field: str, value: Any, wanted: str) -> None:
    plan = edited(name, {field: value})
    shown = value[0] if isinstance(value, list) else value
    place = f"{field}.0" if isinstance(value, list) else field
    texts = {repr(shown), repr(str(shown).lower())}
    starts = [f"plan.yaml: {place} is {text}: " for text in texts] + ([f"plan.yaml: {place}: "] * (value is None))
    found = [line for line in lines(plan) if line.startswith(tuple(starts))]
    assert any(wanted in line for line in found), "\n".join(lines(plan))


def test_networks_that_overlap() -> None:
    plan = edited("sno_iscsi", {"networks.1.subnets.0.cidr": "192.168.111.0/25"})
    wanted = "plan.yaml: networks.1.subnets.0.cidr is '192.168.111.0/25': overlaps with networks.0.subnets.0.cidr"
    assert any(line.startswith(wanted) for line in lines(plan))


def test_networks_and_bridges_have_names_of_their_own() -> None:
    plan = edited("sno_iscsi", {"networks.1.name": "ostestbm", "networks.1.bridge": "ostestbm"})
    for field in ("name", "bridge"):
        remedy = f"is already used by networks.0.{field}; each must be unique"
        assert f"plan.yaml: networks.1.{field} is 'ostestbm': {remedy}" in lines(plan)


def test_a_plan_without_networks_has_one_finding() -> None:
    assert lines(edited("ha_ipv4", {"networks": []})) == ["plan.yaml: networks: must not be empty"]


def test_a_network_without_subnets_has_one_finding() -> None:
    plan = edited("ha_ipv4", {"networks.0.subnets": []})
    assert lines(plan) == ["plan.yaml: networks.0.subnets: must not be empty"]


def test_a_node_in_no_machine_network() -> None:
    plan = edited("sno_iscsi", {"nodes.0.nics.0.network": "iscsi"})
    assert (
        "plan.yaml: nodes.0.nics: must have one with an address in the machine network or a segment of it: ostestbm"
        in lines(plan)
    )


def test_routes_lead_through_their_network() -> None:
    for hop, wanted in (
        ("10.9.9.9", "is outside of its network, 192.168.111.0/24"),
        ("ffff::1", "must be of the family of 10.0.0.0/8, ipv4"),
    ):
        plan = edited("sno_ipv4", {"networks.0.routes": [{"destination": "10.0.0.0/8", "next_hop": hop}]})
        assert lines(plan) == [f"plan.yaml: networks.0.routes.0.next_hop is '{hop}': {wanted}"]


def test_machines_outside_are_machines_too(tmp_path: Path) -> None:
    source = tmp_path / "p.yml"
    source.write_text(
        "outside_networks: [{name: out0, ipv4: 10.1.0.0/24}]\nmachines: [{name: client, networks: [{name: machine}, {name: out0}]}]\n"
    )
    good: Any = build.build(profile.load(str(source)), "ostest")
    node = good["nodes"][0]
    for field, value, wanted in (
        ("name", "master-0", "is already used by nodes.0.name"),
        ("uuid", node["uuid"], "is already used by nodes.0.uuid"),
        ("domain", node["domain"], "is already used by nodes.0.domain"),
    ):
        plan = copy.deepcopy(good)
        plan["machines"][0][field] = value
        assert any(line.startswith(f"plan.yaml: machines.0.{field} is '{value}': {wanted}") for line in lines(plan))
    plan = copy.deepcopy(good)
    plan["machines"][0]["nics"][1] |= {"mac": node["nics"][0]["mac"]}
    assert any("machines.0.nics.1.mac" in line and "nodes.0.nics.0.mac" in line for line in lines(plan))
    plan = copy.deepcopy(good)
    plan["machines"][0]["nics"][1]["addresses"][0]["ip"] = "10.2.0.5"
    assert any(
        "machines.0.nics.1.addresses.0.ip is '10.2.0.5': is outside of its network, 10.1.0.0/24" in line
        for line in lines(plan)
    )
    plan = copy.deepcopy(good)
    plan["machines"][0]["network_config"]["interfaces"][0]["type"] = 17
    assert any(line.startswith("plan.yaml: machines.0.network_config: nmstate refuses it: ") for line in lines(plan))


STATIC = "nodes.0.network_config.interfaces.0"


@pytest.mark.parametrize(
    ("edits", "wanted"),
    [
        ({f"{STATIC}.type": 17}, "nodes.0.network_config: openshift-install refuses it: failed to execute 'nmstatectl gc', error: "),
        ({f"{STATIC}.nmae": "eth0"}, "nodes.0.network_config: openshift-install refuses it: failed to execute 'nmstatectl gc', error: "),
        ({"nodes.0.network_config": {"interfaces": []}}, "nodes.0.network_config: openshift-install refuses it: nmstate generated an empty"),
        ({f"{STATIC}.name": "eth7"}, "nodes.0.network_config.interfaces.0.name is 'eth7': there is no such NIC: master-0 has eth0"),
        ({f"{STATIC}.ipv4.address.0.ip": "192.168.111.81"}, "nodes.0.network_config: gives master-0 neither 192.168.111.80, its address"),
    ],
)  # fmt: skip
def test_nmstate_of_a_node(edits: dict[str, Any], wanted: str) -> None:
    assert at(golden("sno_ipv4_static"), ("nodes", 0, "nics", 0, "addresses", 0, "ip")) == "192.168.111.80"
    (line,) = lines(edited("sno_ipv4_static", edits))
    assert line.startswith(f"plan.yaml: {wanted}")


def test_the_report_has_no_secret_of_nmstate() -> None:
    config = {
        "interfaces": [{"name": "eth0", "type": "ethernet", "802.1x": {"private-key-password": "hush-hush", "nmae": 1}}]
    }
    assert not any("hush-hush" in line for line in lines(edited("sno_ipv4_static", {"nodes.0.network_config": config})))


def test_a_copy_keeps_the_names_inside_of_its_sandbox() -> None:
    made: Any = copies.plan_of_copy(golden("compact_ipv4_static"), "two")
    assert stored.findings(made) == []
    made["hypervisor"]["kind"] = "local"
    assert any("hypervisor.pool is 'agentlab-ostest': must be agentlab-two" in line for line in lines(made))


# One value of a valid plan is replaced by another one of the right type. What a person may choose, and what the plan has no second place of:
FREE = {
    "boot.image", "boot.script", "boot.script_url", "hypervisors.*.further.bmc", "hypervisors.*.further.tunnel.address",
    "hypervisors.*.further.tunnel.peer", "installer.bootstrap.name", "installer.cluster_network.*.cidr", "installer.network_type",
    "installer.ntp_sources.*", "installer.service_network.*", "machines.*.nics.*.name", "networks.*.bridge", "networks.*.dns.hosts.*.names.*",
    "networks.*.dns.wildcards.*.domain", "networks.*.reservations.*.name", "networks.*.routes.*.destination", "nodes.*.bmc.address",
    "nodes.*.disks.*.name", "nodes.*.disks.*.serial", "nodes.*.disks.*.target", "nodes.*.links.*.name", "nodes.*.name", "nodes.*.nics.*.name",
    "nodes.*.nics.*.port", "services.balancer.frontends.*.name", "tests.*.name",
}  # fmt: skip
# Addresses that may be any one of their networks.
CHOSEN = {
    "networks.*.subnets.*.gateway", "networks.*.subnets.*.dhcp.start", "networks.*.subnets.*.dhcp.end", "networks.*.dns.hosts.*.ip",
    "networks.*.dns.wildcards.*.ip",
    "networks.*.routes.*.next_hop", "services.balancer.addresses.*", "services.iscsi.address", "installer.bootstrap.provisioning_ip",
    "installer.bootstrap.cluster_provisioning_ip", "hypervisors.*.further.addresses.ostestbm.*",
}  # fmt: skip
OTHER = {
    "ip": ["10.9.9.9", "ffff::1"], "cidr": ["10.9.9.0/24", "fdff::/64"], "directory": ["/srv/other"], "name": ["other"], "label": ["other"],
    "domain": ["other.example.com"], "bridge": ["other0"], "duid": ["00:03:00:01:02:00:00:00:00:99"], "host": ["other.example.com"],
    "url": ["http://other.example.com:81"], "bmc": ["redfish+https://192.0.2.1/x"],
}  # fmt: skip


def typed(value: Any, wanted: Any, place: Place = ()) -> Iterator[tuple[Place, shapes.Shape]]:
    """Each value of a plan with its place and what its type allows."""
    allowed = shapes.shape(wanted)
    if allowed.kind == "any":
        return
    if isinstance(value, dict):
        known = shapes.fields(allowed.record) if allowed.kind == "record" else dict.fromkeys(value, allowed.items)
        for key, item in value.items():
            if key in known and allowed.kind in ("record", "mapping"):
                yield from typed(item, known[key], (*place, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from typed(item, allowed.items, (*place, index))
    elif value is not None:
        yield place, allowed


def kind_of(place: Place) -> str:
    return ".".join("*" if isinstance(key, int) else str(key) for key in place)


def text_of(place: Place) -> str:
    return ".".join(map(str, place))


@functools.cache
def texts(name: str) -> dict[Place, str]:
    """The places of a plan with a text, each with its format."""
    found = typed(golden(name), model.Plan)
    return {
        place: one.format for place, one in found if one.kind == "string" and not one.choices and one.format in OTHER
    }


def places(name: str, wanted: str) -> list[Place]:
    return [place for place, found in texts(name).items() if found == wanted]


def put(name: str, place: Place, value: Any) -> Any:
    plan = copy.deepcopy(golden(name))
    at(plan, place[:-1])[place[-1]] = value
    return plan


def named(found: list[Any], place: Place) -> bool:
    """Whether a finding is about a place, or names it as that of the other value."""
    return any(place[: len(path)] == path or text_of(place) in remedy for path, __, remedy in found)


MOST_KINDS = [
    "compact_balancer_static",
    "compact_ipi",
    "compact_segments_static",
    "ha_two_hypervisors",
    "sno_bond_vlan",
    "sno_iscsi",
    "sno_ipv6",
]


@pytest.mark.parametrize("name", MOST_KINDS)
def test_each_text_is_compared_with_the_rest_of_the_plan(name: str) -> None:
    seen: set[str] = set()
    for place, wanted in texts(name).items():
        kind, old = kind_of(place), at(golden(name), place)
        if kind in FREE or kind in seen:
            continue
        seen.add(kind)
        for value in OTHER[wanted]:
            assert value == old or stored.findings(put(name, place, value)), (place, value)


@pytest.mark.parametrize("name", MOST_KINDS)
def test_each_address_in_no_network_is_named(name: str) -> None:
    """Addresses, ranges are named themselves: those of both families."""
    for place in places(name, "ip"):
        if kind_of(place) in FREE:
            continue
        for value in OTHER["ip"]:
            assert named(stored.findings(put(name, place, value)), place), (place, value)


@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_an_address_of_another_place_is_refused(data: st.DataObject) -> None:
    """Any address in place of any other: one outside of all networks is named, and of those inside a person chooses a few only."""
    name = data.draw(st.sampled_from(NAMES))
    place = data.draw(st.sampled_from([one for one in places(name, "ip") if kind_of(one) not in FREE]))
    value = data.draw(
        st.one_of(st.ip_addresses().map(str), st.sampled_from([at(golden(name), one) for one in places(name, "ip")]))
    )
    if value == at(golden(name), place):
        return
    found = stored.findings(put(name, place, value))
    ranges = [
        ipaddress.ip_network(at(golden(name), one))
        for one in places(name, "cidr")
        if one[0] == "networks" and one[-1] == "cidr"
    ]
    if not any(ipaddress.ip_address(value) in one for one in ranges):
        assert named(found, place), (name, place, value, found)
    elif kind_of(place) not in CHOSEN:
        assert found, (name, place, value)


@given(data=st.data())
@settings(max_examples=100, deadline=None)
def test_what_one_machine_has_no_other_can_have(data: st.DataObject) -> None:
    """MACs and UUIDs, domains and consoles, each in place of that of another machine."""
    name = data.draw(st.sampled_from([one for one in NAMES if len(golden(one)["nodes"]) > 1]))
    nodes = golden(name)["nodes"]
    first, other = data.draw(st.permutations(range(len(nodes))).map(lambda found: found[:2]))
    field = data.draw(
        st.sampled_from([("name",), ("domain",), ("uuid",), ("console",), ("nics", 0, "mac"), ("disks", 0, "name")])
    )
    value = at(nodes[other], field)
    upper = data.draw(st.booleans()) and field[-1] in ("uuid", "mac")
    plan = put(name, ("nodes", first, *field), value.upper() if upper else value)
    assert named(stored.findings(plan), ("nodes", first, *field))


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_numbers_have_bounds(data: st.DataObject) -> None:
    """Each prefix length is that of its range, and each MTU is one that Ethernet and IPv6 have."""
    name = data.draw(st.sampled_from(NAMES))
    numbers = [
        place
        for place, one in typed(golden(name), model.Plan)
        if place[-1] in ("prefix", "mtu") and one.kind == "integer"
    ]
    place = data.draw(st.sampled_from(numbers))
    old = at(golden(name), place)
    value = data.draw(
        st.integers(-1, 200) if place[-1] == "prefix" else st.one_of(st.integers(-1, 1279), st.integers(9217))
    )
    assert value == old or named(stored.findings(put(name, place, value)), place)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=2),
        max_leaves=3,
    ),
    st.data(),
)
@settings(max_examples=80, deadline=None)
def test_nmstate_of_any_value_is_refused_or_taken(value: Any, data: st.DataObject) -> None:
    """No value below `network_config` ends the validation by another error; a wrong type of interface is always found."""
    plan = copy.deepcopy(golden("sno_bond_vlan"))
    interfaces = plan["nodes"][0]["network_config"]["interfaces"]
    one = interfaces[data.draw(st.integers(0, len(interfaces) - 1))]
    one[data.draw(st.sampled_from(sorted(one)))] = value
    assert all(path[:3] == ("nodes", 0, "network_config") for path, __, __ in stored.findings(plan))
