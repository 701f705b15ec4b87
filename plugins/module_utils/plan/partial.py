"""Parts of a plan, of the options of modules that need no more of it: tests, a definition over REST, `create cluster`, a hypervisor.

Where more is made of a few lines: `short`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypedDict, cast

from ..releases import by_version
from . import tests
from .fields import ClusterRole, Directory, Host, Label, Mac
from .model import Plan
from .problems import Finding
from .short import ShortHost, present, refuse
from .stored import part


class TestedHost(ShortHost, total=False):
    """A host on which tests run."""

    console: Directory
    """File that has the output of its serial console. Required by the tests that read it."""


class DefinedHost(TypedDict):
    """A host of a cluster that is defined over REST."""

    name: Label
    """Host name that it gets."""
    role: ClusterRole
    """Its role."""
    macs: list[Mac]
    """MACs of its interfaces, by which it is recognized. One is enough."""


def plan_of_tests(given: Mapping[str, object]) -> Plan:
    """Return what the options `tests` and `hosts` say as the part of a plan that `cluster.tests` reads. Raises `ProfileError` as `plan`."""
    wanted, places = present(given["tests"]), present(given.get("hosts")) or []
    wrong = [("tests", finding) for finding in part(wanted, list[tests.TestOptions])]
    wrong += [("hosts", finding) for finding in part(places, list[TestedHost])]
    refuse(wrong)
    refuse([("tests", finding) for finding in _untestable(wanted, places)])
    found = {
        "tests": [tests.complete(test) for test in wanted],
        "nodes": [],
        "networks": [],
        "machines": [
            {
                "name": place["name"],
                "console": place.get("console"),
                "nics": [{"addresses": [{"ip": place["address"]}]}],
            }
            for place in places
        ],
    }
    return cast(Plan, found)


def plan_of_hosts(given: Sequence[DefinedHost]) -> Plan:
    """Return hosts as the part of a plan that `definition` reads. Raises `ProfileError` as `plan`."""
    refuse([("hosts", finding) for finding in part(given, list[DefinedHost])])
    nodes = [
        {"name": host["name"], "role": host["role"], "nics": [{"mac": mac} for mac in host["macs"]]} for host in given
    ]
    return cast(Plan, {"nodes": nodes})


def plan_of_bootstrap(bootstrap: str, masters: Sequence[ShortHost], version: str) -> Plan:
    """Return the machines of `create cluster` as the part of a plan that `provisioning` reads. Raises `ProfileError` as `plan`.

    bootstrap: address of the bootstrap machine; masters: the control plane; version: of the release, "" for the newest that is known.
    """
    wrong = [("bootstrap", finding) for finding in part(bootstrap, Host)]
    refuse([*wrong, *(("hosts", finding) for finding in part(masters, list[ShortHost]))])
    nodes = [
        {
            "name": host["name"],
            "role": "master",
            "nics": [{"network": "machine", "addresses": [{"ip": host["address"]}]}],
        }
        for host in masters
    ]
    found = {
        "installer": {"bootstrap": {"addresses": [bootstrap]}},
        "networks": [{"name": "machine", "purpose": "machine"}],
        "nodes": nodes,
        "release": {"profile": by_version(version).name, "version": version or None},
    }
    return cast(Plan, found)


def hypervisor(name: str, domain_type: str) -> Plan:
    """Return a host as the part of a plan that `sandbox.alike` reads. name: for messages."""
    return cast(Plan, {"hypervisor": {"further": {"name": name}, "domain_type": domain_type}})


def _untestable(wanted: Sequence[Mapping[str, Any]], places: Sequence[TestedHost]) -> Iterator[Finding]:
    """Yield the tests that contradict themselves or the hosts."""
    for path, value, remedy in tests.findings(wanted, [place["name"] for place in places]):
        yield path[1:], value, remedy
    silent = [place["name"] for place in places if "console" not in place]
    for index, test in enumerate(wanted):
        if "console" in test and test["on"] in silent:
            yield (index, "console"), test["console"], f"requires `console` of {test['on']} in hosts"
