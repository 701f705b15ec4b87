"""A profile and a plan are data: no text in them is evaluated."""

from __future__ import annotations

import copy
import itertools
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, profile, rundir, schema, stored
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.formats import FORMATS, fits
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.problems import ProfileError

ROOT = Path(__file__).parents[3]
PROFILES = ROOT / "config_examples"
Place = tuple[Any, ...]


def payloads(marker: Path) -> list[str]:
    return [
        f"{{{{ lookup('pipe', 'touch {marker}') }}}}",
        f"x{{% set x = lookup('pipe', 'touch {marker}') %}}",
        f"$(touch {marker})",
        f"`touch {marker}`",
        f"x; touch {marker};",
        f"x\ntouch {marker}\n",
        f"x' | touch {marker} #",
        f"-oProxyCommand=touch {marker}",
    ]


def leaves(rule: Mapping[str, Any], place: Place = ()) -> Iterator[Place]:
    """Every place of a profile where the schema allows a text; free mappings get one of their own."""
    types = rule.get("type", [])
    if "string" in types or "enum" in rule:
        yield place
    if "array" in types:
        yield from leaves(rule["items"], (*place, 0))
    if "object" in types:
        properties, more = rule.get("properties"), rule.get("additionalProperties")
        for name, part in (properties or {}).items():
            yield from leaves(part, (*place, name))
        if isinstance(more, dict):
            name = "eth0" if place[-1] == "nics" else "master-0" if place[-1] == "nodes" else "x"
            yield from leaves(more, (*place, name))
        if properties is None and more is None:
            yield (*place, "free")
            yield (*place, "list", 0)
    for number, one in enumerate(rule.get("allOf", [])):
        kind = one["if"]["properties"]["kind"]["const"]
        for leaf in leaves(one["then"], place):
            if leaf[-1] != "kind":
                yield (*place[:-1], f"{place[-1]}/{number}/{kind}", *leaf[len(place) :])


def planted(place: Place, text: str) -> dict[str, Any]:
    """A profile with `text` at `place`, and what the place needs to be checked."""
    made: dict[str, Any] = {}
    node: Any = made
    steps = list(place)
    fault = isinstance(steps[1], str) and steps[1].startswith("0/") if len(steps) > 1 else False
    if fault:
        made["faults"] = [{"kind": str(steps[1]).rsplit("/", maxsplit=1)[-1], steps[2]: text}]
        return made
    for step, following in itertools.pairwise(steps):
        empty: Any = [] if isinstance(following, int) else {}
        if isinstance(node, list):
            node.append(empty)
            node = node[0]
        else:
            node = node.setdefault(step, empty)
    if isinstance(node, list):
        node.append(text)
    else:
        node[steps[-1]] = text
    if place[0] == "extra_networks":
        made["extra_networks"][0].setdefault("name", "storage0")
        made["extra_networks"][0].setdefault("ipv4", "192.168.221.0/24")
    if place[:2] == ("hypervisor", "host") or place[:2] == ("hypervisor", "user"):
        made["hypervisor"] |= {"kind": "ssh"} | ({"host": "lab"} if place[1] == "user" else {})
    return made


PLACES = sorted(set(leaves(schema.profile())), key=str)


def test_all_places_are_found() -> None:
    assert len(PLACES) > 80
    assert ("hypervisor", "state_dir") in PLACES and ("nodes", "master-0", "bmc", "address") in PLACES


@pytest.mark.parametrize("place", PLACES, ids=lambda place: ".".join(map(str, place)))
def test_each_text_is_refused_or_literal(place: Place, tmp_path: Path) -> None:
    marker = tmp_path / "evaluated"
    for text in payloads(marker):
        source = tmp_path / "p.yml"
        source.write_text(yaml.safe_dump(planted(place, text)))
        try:
            plan, changes = rundir.prepare(tmp_path / "run", str(source), PROFILES, "ostest")
        except ProfileError:
            continue
        assert "\n" not in text or "free" in place or "list" in place, "a second line is in no field"
        assert not stored.findings(plan)
        inventory = next(change.after for change in changes if change.path.name == rundir.INVENTORY)
        read = rundir.inventory(plan, tmp_path / "run")
        assert text not in inventory or "!unsafe" in inventory
        assert DataLoader().load(inventory, str(tmp_path / "inventory.yml")) == read
    assert not marker.exists()


EVERY = [
    path.stem
    for path in sorted(PROFILES.glob("*.yml"))
    if any(word in path.read_text() for word in ("manifests:", "tests:", "segments:", "platform: none", "screen:"))
]

ONLY_TEMPLATE = "{{ ansible_playbook_python }}"


def test_the_inventory_has_no_template_but_its_own(tmp_path: Path) -> None:
    plan = rundir.prepare(tmp_path, "sno_ipv4", PROFILES, "ostest")[0]

    def texts(data: Any) -> Iterator[Any]:
        if isinstance(data, dict):
            for value in data.values():
                yield from texts(value)
        elif isinstance(data, str):
            yield data

    constants = {ONLY_TEMPLATE, "local", "agentlab.ocp.sandbox", rundir.SSH_ARGUMENTS}
    for kind in ("sandbox", "local", "ssh"):
        plan["hypervisor"] |= {"kind": kind, "host": "{{ evil }}", "user": "{{ evil }}", "state_dir": "{{ evil }}"}
        found = list(texts(rundir.inventory(plan, tmp_path / "{{ evil }}")))
        assert all(isinstance(text, rundir.Literal) or text in constants for text in found)
        text = rundir.dump(rundir.inventory(plan, tmp_path / "{{ evil }}"))
        assert all("!unsafe" in line for line in text.splitlines() if "evil" in line)


@pytest.mark.parametrize("name", ["compact_ipv6_static", *EVERY])
def test_a_text_of_a_plan_is_validated_too(tmp_path: Path, name: str) -> None:
    """Each text of a plan, replaced by each payload, is refused with file, line and field, or has no effect."""
    good = build.build(profile.load(name, PROFILES), "ostest")
    # Free text: only compared (passwords), or a value of a file that the installer validates; of the newer ones a lab reads none
    # as a template: commands of tests are commands, and what is waited for on a screen or typed is text.
    free = {
        "password", "install_config", "agent_config", "network_config", "payload_overrides", "manifests", "run", "output", "wait",
        "platform_name", "manufacturer",
    }  # fmt: skip

    def walk(data: Any, place: Place = ()) -> Iterator[Place]:
        if isinstance(data, dict):
            for key, value in data.items():
                yield from walk(value, (*place, key))
        elif isinstance(data, list):
            for index, value in enumerate(data):
                yield from walk(value, (*place, index))
        elif isinstance(data, str):
            yield place

    for place in walk(good):
        if free & set(map(str, place)):
            continue
        for text in payloads(tmp_path / "evaluated"):
            plan: Any = copy.deepcopy(good)
            node = plan
            for step in place[:-1]:
                node = node[step]
            node[place[-1]] = text
            assert [path for path, __, __ in stored.findings(plan)] == [place], (place, text)


@pytest.mark.parametrize(
    ("before", "after", "wanted"),
    [
        ("kind: sandbox", "kind: x", r"plan.yaml:\d+:\d+: hypervisor.kind is 'x': must be one of sandbox, local, ssh"),
        ("  mode: redfish", "  mode: ../../evil", r"plan.yaml:\d+:\d+: boot.mode is '../../evil': must be one of"),
        (
            "memory_mib: 4096",
            "memory_mib: lots",
            r"plan.yaml:\d+:\d+: nodes.0.memory_mib is 'lots': must be an integer",
        ),
        (
            "role: master",
            "rol: master",
            r"nodes.0.rol: unknown field; did you mean `role`\?\n.*nodes.0.role: is missing: must be one of master, arbiter",
        ),
        ("netns: agentlab-ostest", "netns: ../ostest", "hypervisor.netns is '../ostest': must be a name of"),
        ("name: ostest\n", "name: other\n", "hypervisor.uplink.link is 'al-ostest': must be al-other"),
        ("faults: []", "faults: [{kind: x}]", "faults.0.kind is 'x': must be one of power_off"),
    ],
)
def test_a_plan_that_was_edited_wrongly(tmp_path: Path, before: str, after: str, wanted: str) -> None:
    rundir.write(rundir.prepare(tmp_path, "sno_ipv4", PROFILES, "ostest")[1])
    path = tmp_path / "plan.yaml"
    assert before in path.read_text()
    path.write_text(path.read_text().replace(before, after, 1))
    with pytest.raises(rundir.RunError, match=wanted):
        rundir.prepare(tmp_path, None, PROFILES, "ostest")


def test_a_plan_of_another_cluster(tmp_path: Path) -> None:
    rundir.write(rundir.prepare(tmp_path, "sno_ipv4", PROFILES, "other")[1])
    with pytest.raises(
        rundir.RunError, match=r"cluster\.name is 'other': this is the run directory of cluster 'ostest'"
    ):
        rundir.prepare(tmp_path, None, PROFILES, "ostest")


def test_no_format_takes_two_lines() -> None:
    good = {
        "cidr": "10.0.0.0/8",
        "ip": "10.0.0.1",
        "mac": "00:1a:2b:3c:4d:5e",
        "duid": "00:03:00:01:00:1a:2b:3c:4d:5e",
        "uuid": "123e4567-e89b-42d3-a456-426614174000",
        "file": "/a",
        "source": "https://h/a",
        "directory": "/a/b",
        "domain": "a.b",
        "label": "a",
        "host": "fd00::1",
        "device": "/dev/sda",
        "bmc": "redfish+https://h/redfish/v1/Systems/1",
        "url": "http://h:1",
        "version": "4.22.0-lab",
        "repository": "[fd00::1]:5000/a@sha256:0",
        "duration": "5s",
        "nic": "eth0",
        "bond": "bond0",
        "parent": "bond0",
        "interface": "bond0.100",
        "http": "/readyz",
        "wwn": "0x5000c50015ea71ac",
        "wwn_hint": "0x60000000000000000e00000000010001",
        "hctl": "0:0:0:1",
        "iqn": "iqn.2024-01.org.example:master-0",
        "name_format": "a-%d",
        "image": "lab",
        "unit": "a.service",
    }
    assert [name for name, rule in FORMATS.items() if rule.lines] == [
        "script",
        "word",
        "typed",
    ]  # of commands, and tabs that are typed
    for name in FORMATS.keys() - {"script", "word"}:
        text = good.get(name, "abc")
        assert fits(name, text), name
        assert not any(
            fits(name, wrong) for wrong in (f"{text}\n", f"{text}\0", f"{text}\u2028x", f"{text}\x1b[31m", "")
        ), name
    assert not any(
        fits("directory", wrong)
        for wrong in ("/", "a/b", "/a/../b", "/a/./b", "/a//b", "/a b", "/a/", "/{{x}}", "/$HOME")
    )
    assert not any(fits("host", wrong) for wrong in ("-oProxyCommand=x", "a b", "a;b", "{{a}}"))


@pytest.mark.slow
def test_whole_runs_evaluate_nothing(tmp_path: Path) -> None:
    """All texts that are free, planted in one profile: `plan`, `prepare --check` and `configure` as users run them."""
    marker = tmp_path / "evaluated"
    text = payloads(marker)[0]
    secret = "{{ lookup('env', 'HOME') }}$(id)`id`; id"
    many = "\n".join(payloads(marker))
    (tmp_path / "{{ lookup('pipe', 'id') }}").mkdir()
    source = tmp_path / "{{ lookup('pipe', 'id') }}" / "p $(id).yml"
    override = tmp_path / "{{ lookup('pipe', 'id') }}" / "`id`; $(id)"
    override.mkdir()
    (override / "installer").touch(0o755)
    source.write_text(
        yaml.safe_dump(
            {
                "services": {"bmc": {"password": secret}, "registry": {"password": secret}},
                "installer": {
                    "install_config": {"metadata": {"annotations": {"a": many}, "managedFields": [text]}},
                    "agent_config": {"metadata": {"annotations": {"d": many}}},
                    "manifests": {
                        "50-a": {"apiVersion": text, "kind": text, "metadata": {"name": text}, "data": {text: many}}
                    },
                },
                "nodes": {
                    "master-0": {
                        "bmc": {"password": secret},
                        "network_config": {
                            "description": text,
                            "interfaces": [
                                {"name": "eth0", "description": text, "ipv4": {"enabled": True, "dhcp": True}}
                            ],
                        },
                        "screen": True,
                        "screen_steps": [{"wait": text}, {"type": secret}],
                    }
                },
                "release": {"payload_overrides": {"agent-installer-orchestrator": str(override)}},
                "tests": [{"name": "a", "on": "host", "run": many}, {"name": "b", "on": "master-0", "run": [many]}],
            }
        )
    )
    env = {
        **os.environ,
        "AGENTLAB_RUNS": str(tmp_path / "{{ runs }}"),
        "AGENTLAB_VENV": str(Path(sys.executable).parents[1]),
    }
    for verb in (["plan"], ["prepare", "--check", "--diff"], ["configure"]):
        done = subprocess.run(
            [ROOT / "bin/agentlab", *verb, source, "--cluster", "agdata"],
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    written = yaml.safe_load((tmp_path / "{{ runs }}/agdata/install-config.yaml").read_text())
    assert (written["metadata"]["annotations"], written["metadata"]["managedFields"]) == ({"a": many}, [text])
    manifest = yaml.safe_load((tmp_path / "{{ runs }}/agdata/openshift/50-a.yaml").read_text())
    assert manifest == {"apiVersion": text, "kind": text, "metadata": {"name": text}, "data": {text: many}}
    assert not marker.exists()


@pytest.mark.parametrize(
    "field",
    [
        {"kind": "ssh", "host": "{{ lookup('pipe', 'touch %s') }}"},
        {"state_dir": "/tmp/st{{lookup('pipe','touch %s')}}"},
    ],
    ids=["host", "state_dir"],
)
def test_an_inventory_of_an_older_version_does_not_run(tmp_path: Path, field: dict[str, str]) -> None:
    marker = tmp_path / "evaluated"
    source = tmp_path / "p.yml"
    source.write_text(
        yaml.safe_dump({"hypervisor": {key: value.replace("%s", str(marker)) for key, value in field.items()}})
    )
    env = {**os.environ, "AGENTLAB_RUNS": str(tmp_path / "runs"), "AGENTLAB_VENV": str(Path(sys.executable).parents[1])}
    done = subprocess.run(
        [ROOT / "bin/agentlab", "prepare", source, "--check", "--cluster", "agdata"],
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2 and f"hypervisor.{list(field)[-1]} is " in done.stderr
    assert not marker.exists()
