"""Facts that are quick to get during an installation: machines, services of the lab, units of the rendezvous host."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path

from ..cluster.pulled import Contents
from ..plan import names, phases
from ..plan.machines import virtual
from ..plan.model import Plan
from ..sandbox import services
from ..state.recording import Tape, no_tape
from ..vocabulary import RunFile
from ..watch import Diagnosis, WaitState
from . import facts
from .causes import CONTROLS, Cause, causes
from .evidence import Facts, Unit
from .hypervisor_logs import domain_states
from .ssh import LOGIN_SECONDS, run, ssh

PACE = 10.0
# The firmware's message at each boot: console logs contain all boots. A program that it refuses has not been booted.
_BOOTS = re.compile(r"BdsDxe: starting(?! (\w+) .*\s+BdsDxe: failed to start \1 )")
CONSOLE_TAIL = 65536
# systemd's status line of a unit that has started, or of a target that is reached.
_STEP = re.compile(r"^\[ *OK *\] (.+?)\r?$", re.MULTILINE)
# systemd's greeting, and what the rendezvous host shows above its login prompt until its services run.
_GREETING = re.compile(r"^Welcome to (?!GRUB)([^(!\r\n]{1,80}?) *(?:\([^\r\n]*)?!\r?$", re.MULTILINE)
_WAITS = re.compile(r"^Waiting for services:\r?\n((?:  \S{1,80} \(\w{1,20}\)\r?\n){1,10})", re.MULTILINE)
# Units are queried by ssh, which loads the rendezvous host: not while it may be booting or shows progress, and rarely.
UNITS_AFTER, UNITS_PACE = 120.0, 60.0
NODE_ZERO_UNITS = (
    "assisted-service-pod",
    "assisted-service-db",
    "assisted-service",
    "agent-register-cluster",
    "agent-register-infraenv",
    "apply-host-config",
    "start-cluster-installation",
)
# A line per unit: name, state, restarts, and for a stopped one the last error of the program itself, not of systemd and
# podman, and not that it tries again, which follows the reason.
# Few processes: each takes an emulated machine tenths of a second, while it is busy with the installation.
_ASK_UNITS = r"""
report() {
  case $state$restarts in active0 | inactive0) said= ;; *)
    said=$(sudo journalctl -u "$id" -b -n 200 -o cat --no-pager 2>/dev/null |
      grep -v -E "^$id: |^[0-9]{4}-.* m=.* container |trying again$" |
      grep -i -E 'error|fail|cannot|unable' | tail -n 1) ;;
  esac
  echo "$id $state $restarts $said"
}
{ systemctl show -p Id,ActiveState,NRestarts @; echo; } | while IFS== read -r key value; do
  case $key in Id) id=$value ;; ActiveState) state=$value ;; NRestarts) restarts=$value ;; *) [ -z "$id" ] || report; id= ;; esac
done
""".replace("@", " ".join(f"{unit}.service" for unit in NODE_ZERO_UNITS))
# Messages of start-agent.sh and the agent before they stop trying.
_ASK_REFUSAL = "sudo journalctl -u agent -b -o cat --no-pager | grep -o -E 'refuses the token of this host.*|Host will stop trying to register.*' | tail -n 1"


def consoles(plan: Plan, directory: Path | None = None) -> dict[str, str]:
    """The last text of each domain's console since it was booted.

    Keys are domains; a node whose console file does not exist is left out. At most the last `CONSOLE_TAIL` bytes are
    read. directory: of the files, if they are not where the plan has them. Raises `OSError`.
    """
    found = {}
    for node in virtual(plan["nodes"]):
        path = directory / Path(node["console"]).name if directory else Path(node["console"])
        if path.exists():
            with path.open("rb") as stream:
                stream.seek(max(0, path.stat().st_size - CONSOLE_TAIL))
                found[node["domain"]] = _BOOTS.split(stream.read().decode(errors="replace"))[-1]
    return found


def reached_steps(texts: Mapping[str, str]) -> frozenset[tuple[str, str]]:
    """Return the steps of their boot that machines have completed: what systemd reports on the console while it starts.

    texts: domain -> text of its console. Numbers are removed: another session of ssh, or the restart of a unit, adds nothing.
    """
    return frozenset(
        (domain, re.sub("[0-9]+", "", step))
        for domain, text in texts.items()
        for step in _STEP.findall(CONTROLS.sub("", text))
    )


def start_progress(text: str) -> str:
    """Return what a machine does while it starts, from its console: "starting SYSTEM", or "waiting for UNIT, UNIT".

    text: of its console since it was booted. Empty before its system starts.
    """
    text = CONTROLS.sub("", text)
    greetings = list(_GREETING.finditer(text))
    if not greetings:
        return ""
    waits = _WAITS.findall(text, greetings[-1].end())
    if waits:
        return f"waiting for {', '.join(line.split()[0] for line in waits[-1].splitlines())}"
    return f"starting {greetings[-1][1]}"


def units(run_dir: Path, address: str, limit: float = 60) -> dict[str, Unit]:
    """The units of the rendezvous host, in the order in which they need each other.

    address: of the rendezvous host; limit: seconds, which a wait has no more of. Keys are unit names without `.service`.
    Raises `subprocess.SubprocessError` when ssh fails or takes longer, and `ValueError` for an answer of another form.
    """
    found = {}
    for line in run(*ssh(run_dir, address), _ASK_UNITS, limit=limit).splitlines():
        name, state, restarts, *message = line.split(maxsplit=3)
        found[name] = Unit(state, int(restarts), message[0] if message else "")
    return found


def refusal(run_dir: Path, address: str) -> str:
    """Return why the assisted service refused a host, according to its agent; empty if it did not.

    The text is the last message of its agent before it stops trying. Raises `subprocess.SubprocessError`, as `ssh.run`.
    """
    return run(*ssh(run_dir, address), _ASK_REFUSAL, limit=LOGIN_SECONDS).strip()


def rendezvous_ip(plan: Plan, run_dir: Path) -> str:
    """Return the rendezvous address of the image: files of the run directory may have been edited after the plan.

    It is in `rendezvousIP` of the run directory; without that file the address of the plan is returned.
    """
    path = run_dir / RunFile.RENDEZVOUS_IP
    return path.read_text().strip() if path.exists() else plan["rendezvous"]["ip"]


class Probe:
    """Returns the current causes and the progress of booting machines, cached for `PACE` seconds.

    Call it with what a wait has seen; it completes that with machines, consoles, services of the lab, and units of the
    rendezvous host. The units are queried from `UNITS_AFTER` seconds on, after `UNITS_PACE` seconds without progress, and
    only while no API answers. Progress are steps of a boot, what machines pulled, and states of units. tape: gets what
    was found, and the causes; report: gets, until an API answers, a line for whatever is new on the console of a machine
    that starts.
    """

    def __init__(
        self, plan: Plan, run_dir: Path, tape: Tape = no_tape, report: Callable[[str], None] = lambda line: None
    ) -> None:
        self.tape, self.whole, self.report = tape, plan, report
        self.shown: dict[str, str] = {}
        self.plan, self.run_dir = phases.present(plan, run_dir), run_dir
        self.address = rendezvous_ip(plan, run_dir)
        self.facts, self.polled = Facts(plan=self.plan, rendezvous_ip=self.address, run_dir=run_dir.absolute()), 0.0
        self.ask_units = time.monotonic() + UNITS_AFTER
        self.pulls = Contents(Path(names.service_log(plan["services"]["directory"], "registry")))
        self.progress = set[Hashable]()

    def __call__(self, seen: WaitState) -> Diagnosis:
        found = Diagnosis(self.causes(seen), self.progress)
        if not (seen.cluster or seen.kube):
            self._show()
        return found

    def _show(self) -> None:
        for node in self.plan["nodes"]:
            now = start_progress(self.facts.consoles.get(node["domain"], ""))
            if now and now != self.shown.get(node["domain"]):
                self.shown[node["domain"]] = now
                self.report(f"Host {node['name']}: {now}")

    def causes(self, seen: WaitState) -> Sequence[Cause]:
        """Return the current causes."""
        if seen.cluster or seen.kube:
            self.facts.node_zero = {}
        if not self.polled or time.monotonic() - self.polled > PACE:
            self.facts.services = services.errors(self.plan)
            try:
                self.facts.consoles = consoles(self.plan)
                # Only the hypervisor has the cluster's libvirt.
                self.facts.domains = None if self.plan["hypervisor"]["kind"] == "ssh" else domain_states(self.plan)
                if not (seen.cluster or seen.kube or seen.refusal) and time.monotonic() > self.ask_units:
                    self.ask_units = time.monotonic() + UNITS_PACE
                    self.facts.node_zero = units(self.run_dir, self.address)
            except (OSError, ValueError, subprocess.SubprocessError):
                self.facts.node_zero = {}
            self.polled = time.monotonic()
            self._progress()
        self.facts.cluster, self.facts.events, self.facts.refusal = seen.cluster, seen.events, seen.refusal
        self.facts.nodes, self.facts.pods = [] if seen.kube else None, seen.pods
        found = causes(self.facts)
        facts.record(self.tape, self.facts, found, self.whole)
        return found

    def _progress(self) -> None:
        now: set[Hashable] = {*reached_steps(self.facts.consoles), *self.pulls.read()}
        now |= {(name, unit.state) for name, unit in self.facts.node_zero.items()}
        if not now <= self.progress:
            self.progress |= now
            self.ask_units = max(self.ask_units, self.polled + UNITS_PACE)
