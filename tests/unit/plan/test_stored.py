"""Plans that were edited: what is not a plan is refused with file, line, field, value and what would be right."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.documents import load_yaml
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, profile, rundir, stored

ROOT = Path(__file__).resolve().parents[3]
PROFILES = sorted(path.stem for path in (ROOT / "config_examples").glob("*.yml"))


def plan(name: str = "sno_ipv4") -> Any:
    return build.build(profile.load(name, ROOT / "config_examples"), "ostest")


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield from leaves(value[key], (*path, key))


def changed(whole: Any, path: tuple[Any, ...], value: Any) -> Any:
    whole = copy.deepcopy(whole)
    holder = whole
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = value
    return whole


@pytest.mark.parametrize("name", PROFILES)
def test_what_is_planned_is_a_plan(name: str) -> None:
    assert stored.findings(load_yaml(rundir.dump(plan(name)), name="plan.yaml")) == []


@pytest.mark.parametrize(
    "value", [None, 3.0, float("nan"), -1, 10**30, True, "", "a\nb", "{{ 1 }}", [], [None], {}, {"": None}]
)
def test_any_field_may_be_anything(value: Any) -> None:
    """What is accepted is of the right type: no reader of a plan fails on it."""
    whole = plan("ha_dualstack_static")
    free = ("installer", "install_config"), ("installer", "agent_config")
    for path in leaves(whole):
        if path[:2] in free or "network_config" in path:
            continue
        found = stored.findings(changed(whole, path, value))
        old: Any = whole
        for key in path:
            old = old[key]
        if not found:
            assert type(value) is type(old) or value is None or old is None, path
        for where, __, remedy in found:
            assert (where and "must" in remedy) or "is missing" in remedy or "field" in remedy or "needed" in remedy, (
                path,
                remedy,
            )


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ("  role: master", "  role: mastr", "nodes.0.role is 'mastr': did you mean master? must be one of master, arbiter, worker, extra"),
        ("  vcpus: 2", "  vcpus: 2.0", "nodes.0.vcpus is 2.0: must be an integer"),
        ("  vcpus: 2", "  vcpus: 0", "nodes.0.vcpus is 0: must be from 1 to 4294967296"),
        ("  vcpus: 2", "  vcpu: 2", "nodes.0.vcpu: unknown field; did you mean `vcpus`?"),
        ("  tpm: false", "  tpm: 'no'", "nodes.0.tpm is 'no': must be true or false"),
        ("cidr: 192.168.111.0/24", "cidr: 192.168.111.0/33", "networks.0.subnets.0.cidr is '192.168.111.0/33': must be a network in CIDR form"),
        ("-0\n  ip: 192.168.111.20", "-0\n  ip: 192.168.111.21", "rendezvous.ip is '192.168.111.21': must be an address of master-0"),
        ("  node: master-0\n  ip", "  node: master-1\n  ip", "rendezvous.node is 'master-1': must be one of master-0"),
        ("link: al-ostest", "link: al-other", "hypervisor.uplink.link is 'al-other': must be al-ostest"),
        ("addresses:\n      - 192.168.111.20\n    port: 8090", "addresses: [192.168.111.2]\n    port: 8090",
         "endpoints.service.addresses is ['192.168.111.2']: must be 192.168.111.20, as rendezvous.ip"),
        ("storage: /var/lib/agentlab/ostest/", "storage: /var/lib/other/", "services.registry.storage is '/var/lib/other/"),
        ("    network: ostestbm", "    network: x", "nodes.0.nics.0.network is 'x': must be one of ostestbm"),
        ("hypervisor:\n  kind: sandbox", "hypervisor: x\nh:\n  kind: sandbox", "hypervisor is 'x': must be a mapping"),
        ("vips:", "vips: !foo", "not valid YAML: unknown tag !foo"),
        ("vips:", "vips:\n  x: &a [*a]", "not valid YAML: anchor 'a' value contains itself"),
    ],
)  # fmt: skip
def test_the_report_names_file_line_field_and_value(tmp_path: Path, old: str, new: str, wanted: str) -> None:
    text = rundir.dump(plan())
    assert old in text
    (tmp_path / "plan.yaml").write_text(text.replace(old, new, 1))
    with pytest.raises(rundir.RunError) as caught:
        rundir.load_plan(tmp_path)
    lines = str(caught.value).splitlines()
    assert lines[-1] == "Correct it, or make it again: agentlab plan PROFILE --write"
    (line,) = (line for line in lines if wanted in line)
    row = int(line.removeprefix(f"{tmp_path}/plan.yaml:").split(":")[0])
    first = text[: text.index(old)].count("\n") + 1
    assert row in range(first, first + len(new.splitlines()))


def test_a_fact_that_is_not_a_plan() -> None:
    with pytest.raises(stored.PlanError) as caught:
        stored.check_plan({"networks": []})
    assert "agentlab_plan: services: is missing: must be a mapping" in str(caught.value)
