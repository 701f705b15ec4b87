"""One definition of profile and plan: the JSON schemas, Ansible's options and the validation that are made of it agree."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.agentlab.ocp.plugins.module_utils.documents import PROFILE, load_yaml
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import arguments, model, schema, stored, tests
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.machines import Network, Node
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.options import Profile
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.shapes import mismatches

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = sorted((ROOT / "config_examples").glob("*.yml"))
PLANS = sorted((Path(__file__).parent / "golden").glob("*/plan.yaml"))
SCHEMAS = {"profile": schema.profile(), "plan": schema.plan()}
TYPES: dict[str, Any] = {"profile": Profile, "plan": model.Plan}
VALUES: list[Any] = [None, 3, -1, 10**30, 3.5, True, "", "x", "a\nb", "30s", [], [None], {}, {"x": "y"}]


def fields(rule: Any, place: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, part in rule.get("properties", {}).items():
        yield f"{place}.{name}", part
        yield from fields(part, f"{place}.{name}")
    for name in ("items", "additionalProperties", "then"):
        if isinstance(rule.get(name), dict):
            yield from fields(rule[name], place)
    for part in rule.get("allOf", []):
        yield from fields(part["then"], f"{place}/{part['then']['properties']['kind']['const']}")


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_is_one_and_describes_every_field(name: str) -> None:
    found = SCHEMAS[name]
    jsonschema.Draft202012Validator.check_schema(found)
    assert found["$schema"] == schema.DRAFT and found["$id"].endswith(name)
    described = dict(fields(found))
    assert len(described) > 100
    assert [place for place, part in described.items() if not part.get("description") and "const" not in part] == []


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield from leaves(value[key], (*path, key))


WHOLE: dict[str, Any] = {
    "profile": {
        "topology": "ha", "stack": "dualstack", "platform": "none", "release": {"profile": "4.20", "payload_overrides": {"cli": "/x"}},
        "network": {"mtu": 1500, "nat": None, "offsets": {"api": 7}}, "extra_networks": [{"name": "more", "ipv4": "10.9.0.0/24"}],
        "worker": {"count": 3, "extra_disks": [{"size_gib": 5, "bus": "virtio"}], "tpm": True, "firmware": "bios"},
        "nodes": {"master-0": {"nics": {"eth0": {"addresses": ["192.168.111.9"]}}, "bmc": {"password": "x"}, "network_config": {"a": 1}}},
        "vips": {"api": ["192.168.111.5"]}, "services": {"ntp": {"port": 123}, "registry": {"port": 5001, "password": "x"}},
        "installer": {"image_digest_sources": [{"source": "a/b", "mirrors": ["c/d"]}], "fips": False, "ntp_sources": None},
        "settings": {"REBOOT_DELAY_SECONDS": 5, "HOST_MONITOR_INTERVAL": "2s"},
        "faults": [{"kind": "mtu", "node": "master-0", "mtu": 1400, "when": "boot", "seconds": 3}, {"kind": "extra_host"}],
        "tests": [{"name": "a", "on": "lab", "run": ["x", 1], "expect": {"status": 3, "output": "x"}, "timeout": 5},
                  {"name": "b", "on": "api", "http": "/x"}, {"name": "c", "on": "master-0", "console": "x"}],
    },
    "plan": yaml.safe_load((Path(__file__).parent / "golden/ha_dualstack_static/plan.yaml").read_text()) | {
        "tests": [tests.complete({"name": "a", "on": "lab", "run": ["x", "y"]})]
    },
}  # fmt: skip


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name == "plan" else name for name in SCHEMAS]
)
def test_the_schema_refuses_what_the_validation_refuses(name: str) -> None:
    """But formats that have no pattern, which only the validation knows."""
    validator = jsonschema.Draft202012Validator(SCHEMAS[name])
    assert not list(validator.iter_errors(WHOLE[name])) and not list(mismatches(WHOLE[name], TYPES[name]))
    seen = set()
    for path in leaves(WHOLE[name]):
        kind = tuple(0 if isinstance(key, int) else key for key in path)
        if kind in seen:
            continue
        seen.add(kind)
        for value in VALUES:
            whole = copy.deepcopy(WHOLE[name])
            holder = whole
            for key in path[:-1]:
                holder = holder[key]
            holder[path[-1]] = value
            refused = {found.path[: len(path)] for found in mismatches(whole, TYPES[name])}
            allowed = not list(validator.iter_errors(whole))
            assert allowed or refused, (path, value)
            assert isinstance(value, str) or allowed is not bool(refused), (path, value)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_schema_takes_every_example(path: Path) -> None:
    jsonschema.Draft202012Validator(SCHEMAS["profile"]).validate(load_yaml(path.read_text(), name="", schema=PROFILE))


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.parent.name)
def test_schema_and_options_take_every_plan(path: Path) -> None:
    plan = yaml.safe_load(path.read_text())
    jsonschema.Draft202012Validator(SCHEMAS["plan"]).validate(plan)
    result = ArgumentSpecValidator(arguments.arguments(model.Plan)).validate(plan)
    assert result.error_messages == []
    # Ansible makes null of a field that is missing, but changes none that is there.
    assert (
        stored.findings(
            {key: value for key, value in result.validated_parameters.items() if key != "faults"}
            | {"faults": plan["faults"]}
        )
        == []
    )
    assert as_given(result.validated_parameters["nodes"], plan["nodes"]) == plan["nodes"]


def as_given(found: Any, given: Any) -> Any:
    """Return `found` without the nulls of fields that `given` does not have."""
    if isinstance(given, dict):
        return {
            key: as_given(value, given.get(key)) for key, value in found.items() if value is not None or key in given
        }
    if isinstance(given, list):
        return [as_given(*pair) for pair in zip(found, given, strict=True)]
    return found


def test_options_of_a_part() -> None:
    found = arguments.arguments(Network)
    assert found["mtu"] == {"type": "int", "required": True}
    assert found["domain"] == {"type": "str"}
    assert found["purpose"] == {"type": "str", "required": True, "choices": ["machine", "extra", "segment", "outside"]}
    assert found["subnets"]["elements"] == "dict" and found["subnets"]["options"]["family"]["choices"] == [
        "ipv4",
        "ipv6",
    ]
    assert arguments.arguments(Node)["bmc"]["options"]["password"]["no_log"] is True
    shown = arguments.argument(list[Network], "The networks.", documented=True)
    assert shown["description"] == ["The networks."] and shown["options"]["mtu"]["description"][0] == "MTU in bytes."
    assert stored.part([{"name": "x"}], list[Network])[0][0] == (0, "bridge")


def test_options_are_documented() -> None:
    def walk(options: Any) -> Iterator[tuple[str, Any]]:
        for name, option in options.items():
            yield name, option
            yield from walk(option.get("options", {}))

    for record in (Profile, model.Plan):
        for name, option in walk(arguments.arguments(record, documented=True)):
            assert option["description"] and all(option["description"]) and "A value." not in option["description"], (
                name
            )
            assert "no_log" not in option
