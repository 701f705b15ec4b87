"""Tests of a profile: what `validate` does in addition to its own checks. docs/tests.md is the guide.

A test has one place (`on`), one action (`run`, `http` or `console`) and what is expected of it. Its texts are data: none is
a template, and a command runs only because the profile has it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, TypedDict, Union, cast, get_args

from .fields import Label, Name, Range
from .problems import Finding, Path, duplicates

Action = Literal["run", "http", "console"]
ACTIONS: tuple[Action, ...] = get_args(Action)
API, HOST, LAB = "api", "host", "lab"
PLACES: dict[str, tuple[Action, ...]] = {API: ("http",), HOST: ("run", "http"), LAB: ("run", "http")}
"""The actions of each place that is not a node."""
ON_NODE: tuple[Action, ...] = ("run", "console")
SECONDS = 60
"""Limit of a test that has none."""
_STATUS: Mapping[Action, int] = {"run": 0, "http": 200}
"""The status that is expected by default; text on a console has none."""
_RANGES: Mapping[Action, tuple[int, int]] = {"run": (0, 255), "http": (100, 599)}

Word = Annotated[Union[int, str], "word"]  # noqa: UP007 (evaluated: sanity refuses `|` there)
Command = Annotated[Union[str, list[Word]], "script"]  # noqa: UP007
Limit = Annotated[int, Range(1, 86400)]
Regex = Annotated[str, "regex"]
Status = Annotated[int, Range(0, 599)]


class ExpectOptions(TypedDict, total=False):
    """What a test expects of its command, or of the response."""

    status: Status
    """Exit status of the command, 0 unless given; or status of the response, 200 unless given."""
    output: Regex
    """What its output (stdout and stderr) or the response's body must match somewhere; `^` and `$` match at each line."""


class _RequiredTest(TypedDict):
    name: Label
    """Its name, which no other test has."""
    on: Name
    """Where it is: the name of a node or of one of `machines`, `lab` (the cluster's network), `host` (this host), or `api` (the OpenShift API)."""


class TestOptions(_RequiredTest, total=False):
    """A test that `validate` executes. It has one of `run`, `http` and `console`."""

    run: Command
    """A command: its words, or text for `sh -c`. On a node as user core, else as the user who runs agentlab."""
    http: Annotated[str, "http"]
    """What is requested by GET: a URL; on `api` a path, with the kubeconfig's credentials."""
    console: Regex
    """What the node's serial console must show: it is read again until a part of it matches, or the time is over."""
    expect: ExpectOptions
    timeout: Limit
    """Limit in seconds, 60 unless given."""


class Expect(TypedDict):
    """What a test expects of its command, or of the response."""

    status: Status | None
    """Exit status of the command or status of the response; null with `console`."""
    output: Regex | None
    """What the output or the body must match somewhere; null: anything."""


class Test(TypedDict):
    """A test that `validate` executes: one of `run`, `http` and `console` is not null."""

    name: Label
    """Its name."""
    on: Name
    """A node's name, `lab`, `host` or `api`."""
    run: Command | None
    """Words of a command, or text for `sh -c`."""
    http: Annotated[str, "http"] | None
    """A URL, or a path of the API."""
    console: Regex | None
    """What a part of the serial console must match."""
    expect: Expect
    timeout: Limit
    """Limit in seconds."""


def action(test: Mapping[str, Any]) -> Action:
    """Return which action a valid test has.

    test: of a profile or of a plan.
    """
    return next(name for name in ACTIONS if test.get(name) is not None)


def complete(test: TestOptions) -> Test:
    """Return a valid test of a profile as a plan has it: with all fields, and numbers in a command as text."""
    run, given = test.get("run"), test.get("expect", {})
    return {
        "name": test["name"],
        "on": test["on"],
        "run": [str(word) for word in run] if isinstance(run, list) else run,
        "http": test.get("http"),
        "console": test.get("console"),
        "expect": {"status": given.get("status", _STATUS.get(action(test))), "output": given.get("output")},
        "timeout": test.get("timeout", SECONDS),
    }


def findings(tests: Sequence[Mapping[str, Any]], nodes: Collection[str]) -> Iterator[Finding]:
    """Yield what is wrong with tests beyond their types: names, places, actions, and what is expected.

    tests: of a profile or of a plan; nodes: the names of the nodes, and of the machines outside of the cluster.
    """
    yield from duplicates((("tests", index, "name"), test["name"]) for index, test in enumerate(tests))
    for index, test in enumerate(tests):
        yield from _of_one(("tests", index), test, nodes)


def _of_one(path: Path, test: Mapping[str, Any], nodes: Collection[str]) -> Iterator[Finding]:
    on, given = test["on"], [name for name in ACTIONS if test.get(name) is not None]
    if on not in PLACES and on not in nodes:
        yield (*path, "on"), on, f"must be {', '.join(PLACES)} or the name of a node: {', '.join(nodes)}"
        return
    allowed = PLACES.get(on, ON_NODE)
    choices = " or ".join(f"`{name}`" for name in allowed)
    if len(given) != 1:
        yield path, ", ".join(given) or None, f"a test has exactly one action; on {on} that is {choices}"
        return
    (name,) = given
    if name not in allowed:
        yield (*path, name), test[name], f"a test on {on} has {choices}"
        return
    if name == "http" and test["http"].startswith("/") is not (on == API):
        wanted = "a path of the API, such as /readyz" if on == API else "a URL, such as http://192.168.111.1:8089/"
        yield (*path, "http"), test["http"], f"must be {wanted}, on {on}"
    yield from _of_expect((*path, "expect"), name, test.get("expect") or {})


def _of_expect(path: Path, name: Action, expect: Mapping[str, Any]) -> Iterator[Finding]:
    if name == "console":
        for field in ("status", "output"):
            if expect.get(field) is not None:
                yield (*path, field), expect[field], "belongs to `run` and `http`: `console` itself is what is expected"
        return
    least, most = _RANGES[name]
    status = expect.get("status")
    if status is not None and not least <= cast(int, status) <= most:
        yield (*path, "status"), status, f"must be from {least} to {most} with `{name}`"
