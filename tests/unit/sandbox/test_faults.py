"""Faults that are injected by hand: which of them are listed, which exclude each other, and what interrupts one."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.agentlab.ocp.plugins.module_utils.cli import fault as verb
from ansible_collections.agentlab.ocp.plugins.module_utils.errors import LabError
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.faults import Fault
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import faultd, faults

GOLDEN = Path(__file__).parents[1] / "plan/golden"
MTU: Fault = {"kind": "mtu", "node": "master-0", "nic": "eth0", "mtu": 1300}
SLOW: Fault = {"kind": "slow_media", "node": "master-0", "bytes_per_second": 4096}
LOSS: Fault = {"kind": "loss", "node": "master-0", "nic": "eth0", "percent": 20}
ARP: Fault = {"kind": "arp_one_way", "node": "master-0", "peer": "master-1"}
DOWN: Fault = {"kind": "service_down", "service": "registry"}


@pytest.fixture
def plan(tmp_path: Path) -> Any:
    made = yaml.safe_load((GOLDEN / "compact_ipv4/plan.yaml").read_text())
    made["cluster"]["name"] = "lab"
    made["services"]["directory"] = str(tmp_path / "services")
    return made


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A lab in which faults of any kind succeed; returns what was done to it."""
    done: list[str] = []

    def begin(fault: dict[str, Any], note: object) -> None:
        done.append(f"begin {faults.title(fault)}")

    def end(fault: dict[str, Any], note: object) -> None:
        done.append(f"end {faults.title(fault)} {note}")

    kinds = dict.fromkeys(faultd.kinds(faultd.Lab({})), faultd.Kind(begin, end, lambda __: "before"))
    monkeypatch.setattr(faultd, "kinds", lambda __: kinds)
    return done


def listed(plan: Any) -> list[str]:
    return [faults.title(entry["fault"]) for entry in faults.active(plan)]


@pytest.mark.parametrize(
    ("there", "more", "command"),
    [
        (MTU, {"mtu": 1400}, "agentlab fault master-0 mtu --nic eth0 --mtu 1300 --undo --cluster lab"),
        (SLOW, {"bytes_per_second": 9999}, "agentlab fault master-0 slow_media --bytes-per-second 4096 --undo --cluster lab"),
        (LOSS, {"percent": 30}, "agentlab fault master-0 loss --nic eth0 --percent 20 --undo --cluster lab"),
    ],
)  # fmt: skip
def test_another_value_of_the_same_fault_is_refused(
    plan: Any, lab: list[str], there: Fault, more: dict[str, Any], command: str
) -> None:
    """Undoing one of the two would leave its value, or lift both."""
    faults.inject(plan, there)
    other: Any = {**there, **more}
    with pytest.raises(LabError) as refused:
        faults.inject(plan, other)
    assert str(refused.value) == (
        f"{faults.title(other)}: {faults.title(there)} was injected before; undo it first: {command}"
    )
    assert listed(plan) == [faults.title(there)] and len(lab) == 1
    faults.undo(plan, there)
    faults.inject(plan, other)
    assert listed(plan) == [faults.title(other)]
    with pytest.raises(LabError, match="was not injected"):
        faults.undo(plan, there)


def test_the_same_fault_again_is_refused(plan: Any, lab: list[str]) -> None:
    faults.inject(plan, MTU)
    with pytest.raises(LabError, match=r"^mtu master-0 eth0 1300: was injected before; undo it first \(--undo\)$"):
        faults.inject(plan, {**MTU})
    assert len(lab) == 1


@pytest.mark.parametrize(
    ("there", "more"),
    [
        (MTU, {"nic": "eth1"}),
        (MTU, {"node": "master-1"}),
        (ARP, {"peer": "master-2"}),
        (LOSS, {"kind": "rate", "kbits": 100}),
        (DOWN, {"service": "ntp"}),
    ],
)
def test_faults_of_other_nodes_nics_peers_and_kinds_combine(
    plan: Any, lab: list[str], there: Fault, more: dict[str, Any]
) -> None:
    other: Any = {**there, **more}
    faults.inject(plan, there)
    faults.inject(plan, other)
    faults.undo(plan, there)
    assert listed(plan) == [faults.title(other)]


def test_a_fault_is_listed_with_its_note_before_it_begins(plan: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def begin(*__: object) -> None:
        seen.extend(faults.active(plan))
        raise faultd.FaultError("registry does not stop")

    monkeypatch.setattr(faultd, "kinds", lambda __: {"service_down": faultd.Kind(begin, None, lambda __: {"pid": 7})})
    with pytest.raises(LabError, match=r"^service_down registry: registry does not stop$"):
        faults.inject(plan, DOWN)
    assert [(entry["fault"], entry["note"]) for entry in seen] == [(DOWN, {"pid": 7})] and listed(plan) == []


def test_a_fault_of_which_nothing_can_be_noted_does_not_begin(
    plan: Any, lab: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def note(__: object) -> None:
        raise faultd.FaultError("registry is not running")

    kind = faultd.kinds(faultd.Lab({}))["service_down"]._replace(note=note)
    monkeypatch.setattr(faultd, "kinds", lambda __: {"service_down": kind})
    with pytest.raises(LabError, match=r"^service_down registry: registry is not running$"):
        faults.inject(plan, DOWN)
    assert listed(plan) == [] and lab == []


@pytest.mark.parametrize("error", [None, faultd.FaultError("Domain is already active")], ids=repr)
def test_a_fault_is_listed_until_it_has_ended(
    plan: Any, monkeypatch: pytest.MonkeyPatch, error: Exception | None
) -> None:
    seen = []

    def end(*__: object) -> None:
        seen.append(listed(plan))
        if error:
            raise error

    monkeypatch.setattr(faultd, "kinds", lambda __: {"service_down": faultd.Kind(lambda *__: None, end)})
    faults.inject(plan, DOWN)
    with pytest.raises(LabError, match="already active") if error else contextlib.nullcontext():
        faults.undo(plan, DOWN)
    assert seen == [["service_down registry"]] and listed(plan) == []


@pytest.mark.parametrize("error", [KeyError("pid"), TypeError("x"), subprocess.SubprocessError("x")], ids=repr)
def test_a_fault_that_cannot_begin_is_not_listed(
    plan: Any, lab: list[str], monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def begin(*__: object) -> None:
        raise error

    monkeypatch.setattr(faultd, "kinds", lambda __: {"service_down": faultd.Kind(begin)})
    with pytest.raises(type(error)):
        faults.inject(plan, DOWN)
    assert listed(plan) == []


INJECT = f"""
import json, os, sys
import {faults.__name__} as faults
from {verb.__name__.rpartition(".")[0]} import main
from {verb.__name__.rpartition(".")[0]}.cluster import Cluster
import {verb.__name__} as verb
from pathlib import Path
plan = json.loads(sys.argv[1])
def begin(fault, note):
    faults.faultd.run("sh", "-c", f"echo begins >/proc/{{os.getpid()}}/fd/1; exec sleep 2")
def end(fault, note):
    print("ends", note["argv"][0], flush=True)
faults.faultd.kinds = lambda lab: {{"service_down": faults.faultd.Kind(begin, end, lambda fault: {{"argv": ["registry"]}})}}
cluster = Cluster("lab", Path("/nowhere"), plan)
verb.again_inside = lambda *given, **named: None
verb.attempt = lambda name, act: act(cluster)
sys.exit(main(["fault", "registry", "service_down", "--cluster", "lab", *sys.argv[2:]]))
"""


@pytest.fixture
def interrupted(plan: Any) -> Callable[..., tuple[int, str]]:
    """Send the verb a signal while it injects the fault, as a terminal does; return its exit status and what it printed."""

    def act(number: signal.Signals, *argv: str) -> tuple[int, str]:
        # A test in the background of a shell inherits signals that are ignored.
        command = ["env", "--default-signal=INT,HUP", sys.executable, "-c", INJECT, json.dumps(plan), *argv]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
            assert process.stdout and process.stdout.readline() == "begins\n"
            os.killpg(process.pid, number)  # also to the command that the fault is made with
            return process.wait(30), process.stdout.read()

    return act


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)], ids=str
)
def test_a_verb_that_is_interrupted_leaves_no_fault_that_is_not_listed(
    plan: Any, interrupted: Any, number: signal.Signals, status: int
) -> None:
    assert interrupted(number)[0] == status
    assert [(entry["fault"], entry["note"]) for entry in faults.active(plan)] == [(DOWN, {"argv": ["registry"]})]


def test_a_fault_for_some_seconds_is_undone_at_once_when_its_begin_is_interrupted(plan: Any, interrupted: Any) -> None:
    status, out = interrupted(signal.SIGTERM, "--seconds", "60")
    assert status == 143 and out.splitlines()[0] == "ends registry"
    assert faults.active(plan) == []


def test_a_verb_that_is_killed_leaves_a_fault_that_can_be_undone(plan: Any, interrupted: Any, lab: list[str]) -> None:
    assert interrupted(signal.SIGKILL)[0] == -signal.SIGKILL
    assert listed(plan) == ["service_down registry"]
    faults.undo(plan, DOWN)
    assert listed(plan) == [] and lab == ["end service_down registry {'argv': ['registry']}"]
