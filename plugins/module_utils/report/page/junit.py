"""JUnit of a run: a case for each stage, each check of validate, each host that is to be installed, and each ClusterOperator.

What CI shows of a failure is in its body: the cause, the next step, and the end of the log. The form is that of the schema which
Jenkins and Prow read: testsuites, testsuite with properties, testcase with failure, skipped and system-out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from xml.etree import ElementTree

from ...state.events import printable
from ...vocabulary import RUN_STAGES, Stage
from .model import Interval, Lane, Run, Source

TAIL = 40
"""Lines of a log in the body of a failure."""
_GOOD_OPERATORS = ("Available", "Progressing")


@dataclass(frozen=True, kw_only=True)
class Case:
    """A test case. failure: why it failed, the first line as its message; skipped: why it did not run; output: its system-out.

    seconds: how long it took. A case with neither `failure` nor `skipped` has passed; `failure` wins over `skipped`.
    """

    name: str
    seconds: float = 0
    failure: str = ""
    skipped: str = ""
    output: str = ""


@dataclass(frozen=True, kw_only=True)
class Suite:
    """Cases with what they have in common.

    properties: name -> value, such as cluster and payload; start: milliseconds since the epoch, None without a time
    stamp.
    """

    name: str
    cases: Sequence[Case]
    properties: Mapping[str, str] = field(default_factory=dict)
    start: int | None = None


def suites(run: Run) -> list[Suite]:
    """Return the suites of a run; those without cases are left out.

    run: the document of the page. They are named `agentlab stages`, `agentlab checks`, `agentlab hosts` and `agentlab
    operators`, and have the facts of the verdict as properties.
    """
    verdict = run["verdict"]
    properties = {
        "cluster": verdict["cluster"], "profile": verdict["profile"], "about": verdict["about"], "payload": verdict["payload"],
        "program": verdict["program"], "result": verdict["result"],
    }  # fmt: skip
    found: dict[str, Iterable[Case]] = {
        "stages": _stages(run),
        "checks": (
            Case(
                name=one["name"],
                seconds=one["seconds"],
                failure="" if one["ok"] else body(run, one["found"], "wait-for"),
                output=one["found"],
            )
            for one in run["checks"]
        ),
        "hosts": _hosts(run),
        "operators": _operators(run),
    }
    made = [
        Suite(name=f"agentlab {name}", cases=list(cases), properties=properties, start=verdict["start"])
        for name, cases in found.items()
    ]
    return [suite for suite in made if suite.cases]


def body(run: Run, message: str, source: str = "") -> str:
    """Return the body of a failure: the message, the first cause with its next step, and the end of a log up to its time.

    message: of the failed part; source: name of a log in the document, empty for none, of which the last
    `TAIL` lines are added. Parts that are unknown are left out.
    """
    verdict = run["verdict"]
    parts = [message]
    if verdict["causes"]:
        cause = verdict["causes"][0]
        parts += [f"First cause: {cause['text']}\nNext: {cause['next']}"]
    if verdict["evidence"]:
        parts += [f"Evidence: report/{verdict['evidence']}"]
    if tail := _tail(next((one for one in run["sources"] if one["name"] == source), None)):
        parts += [f"The end of {source}:\n{tail}"]
    return "\n\n".join(parts)


def text(given: Iterable[Suite]) -> str:
    """Return suites as an XML document.

    given: the suites, in the order of the document. Characters that XML does not allow are replaced; the times are
    seconds.
    """
    root = ElementTree.Element("testsuites")
    for suite in given:
        counts = {
            "tests": len(suite.cases),
            "failures": sum(bool(case.failure) for case in suite.cases),
            "skipped": sum(bool(case.skipped) for case in suite.cases),
        }
        attributes = {"name": suite.name, "errors": "0", "time": f"{sum(case.seconds for case in suite.cases):.1f}"}
        top = ElementTree.SubElement(
            root, "testsuite", {**attributes, **{key: str(value) for key, value in counts.items()}}
        )
        if suite.start is not None:
            top.set("timestamp", datetime.fromtimestamp(suite.start / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S"))
        properties = ElementTree.SubElement(top, "properties")
        for name, value in suite.properties.items():
            ElementTree.SubElement(properties, "property", name=name, value=printable(value))
        for case in suite.cases:
            _case(top, suite.name, case)
    ElementTree.indent(root)
    return f"<?xml version='1.0' encoding='utf-8'?>\n{ElementTree.tostring(root, encoding='unicode')}\n"


def _case(top: ElementTree.Element, suite: str, case: Case) -> None:
    made = ElementTree.SubElement(
        top, "testcase", name=printable(case.name), classname=suite, time=f"{case.seconds:.1f}"
    )
    if case.failure:
        failure = ElementTree.SubElement(made, "failure", message=printable(case.failure.split("\n", 1)[0]))
        failure.text = "\n".join(printable(line) for line in case.failure.split("\n"))
    elif case.skipped:
        ElementTree.SubElement(made, "skipped", message=printable(case.skipped))
    if case.output:
        ElementTree.SubElement(made, "system-out").text = "\n".join(printable(line) for line in case.output.split("\n"))


def _stages(run: Run) -> Iterator[Case]:
    """The last run of each stage."""
    last: dict[str, Interval] = {}
    for lane in run["lanes"]:
        if lane["name"] == "Stages":
            last = {one["state"]: one for one in lane["states"]}
    for name in RUN_STAGES:
        if not (one := last.get(name)):
            continue
        seconds = (one["end"] - one["start"]) / 1000
        steps = [
            step for step in run["steps"] if step["stage"] == name and step["name"] and step["start"] >= one["start"]
        ]
        output = "\n".join(f"{(step['end'] - step['start']) / 1000:7.1f} s  {step['name']}" for step in steps)
        good = one["text"] == "ok"
        yield Case(
            name=name, seconds=seconds, failure="" if good else body(run, one["text"], "wait-for"), output=output
        )


def _hosts(run: Run) -> Iterator[Case]:
    """Each host is done when it reports so, or when the wait for the cluster that it belongs to has succeeded."""
    result = run["verdict"]["result"]
    waited = any(step["stage"] == "wait" for step in run["steps"])
    for lane in (one for one in run["lanes"] if one["group"] == "hosts"):
        name = f"host {lane['name']} reaches Done"
        reached = lane["stages"][-1]["state"] if lane["stages"] else ""
        seconds = (lane["stages"][-1]["end"] - lane["stages"][0]["start"]) / 1000 if lane["stages"] else 0.0
        output = "\n".join(
            f"{_clock(one)} {one['state']} {one['text']}".strip() for one in (*lane["states"], *lane["stages"])
        )
        if result == "installed" or reached == Stage.DONE:
            yield Case(name=name, seconds=seconds, output=output)
        elif not waited or result == "running":
            yield Case(name=name, skipped="the stage wait has not run")
        else:
            yield Case(
                name=name, seconds=seconds, failure=body(run, _reached(lane), f"{lane['name']} journal"), output=output
            )


def _reached(lane: Lane) -> str:
    if not lane["states"]:
        return f"host {lane['name']} never registered"
    status, stage = lane["states"][-1], lane["stages"][-1]["state"] if lane["stages"] else ""
    at = f" at {stage}" if stage else ""
    return f"host {lane['name']} is {status['state']}{at}{': ' if status['text'] else ''}{status['text']}"


def _operators(run: Run) -> Iterator[Case]:
    for lane in (one for one in run["lanes"] if one["group"] == "operators" and one["states"]):
        first, last = lane["states"][0], lane["states"][-1]
        good = last["state"] == "Available" or (
            last["state"] in _GOOD_OPERATORS and run["verdict"]["result"] == "running"
        )
        failure = "" if good else body(run, f"ClusterOperator {lane['name']} is {last['state']}: {last['text']}")
        yield Case(
            name=f"ClusterOperator {lane['name']}",
            seconds=(last["start"] - first["start"]) / 1000,
            failure=failure,
            output=last["text"],
        )


def _tail(source: Source | None) -> str:
    return "\n".join(line["text"] for line in source["lines"][-TAIL:]) if source else ""


def _clock(one: Interval) -> str:
    return datetime.fromtimestamp(one["start"] / 1000, UTC).strftime("%H:%M:%S")
