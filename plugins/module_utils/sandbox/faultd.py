"""Injects a plan's faults at their triggers: a separate program that needs libvirt's virsh, `python3 faultd.py CONFIG`.

CONFIG is JSON: `{"faults": [{"kind", "when", "seconds", ...}], "nodes": {NAME: {"domain", "nics": {NAME: MAC}}}, "api":
{"url", "headers"}, "processes": directory of the lab's process files, "repository": directory of the payload's
repository in the registry's storage, "relay": the program `relay`, "state": file}`. A trigger is `boot` (at once, or as
soon as the machine runs), a status of the node (without a node: of any host, or of the cluster), or a stage that it has
reached. Failed attempts are retried. `state` records injected faults, so that each happens once.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

PAUSE = 2.0
LIMIT = 64 << 20  # bytes of a reply; more is refused as cut
GRACE = 10.0
STICK = "sdx"
Fault = dict[str, Any]


class FaultError(Exception):
    """A fault cannot be injected now; the message has the reason.

    It is tried again at the next turn; by hand it is an error. The text is the output of the command that failed.
    """


class Lab:
    """The lab: its methods begin and end the kinds of faults, and note what the end needs; see `kinds`."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config

    def domain(self, fault: Fault) -> str:
        return str(self.config["nodes"][fault["node"]]["domain"])

    def mac(self, node: str, nic: str = "eth0") -> str:
        return str(self.config["nodes"][node]["nics"][nic])

    def power_off(self, fault: Fault, __: object) -> None:
        run("virsh", "destroy", self.domain(fault))

    def power_on(self, fault: Fault, __: object) -> None:
        run("virsh", "start", self.domain(fault))

    def pause(self, fault: Fault, __: object) -> None:
        run("virsh", "suspend", self.domain(fault))

    def resume(self, fault: Fault, __: object) -> None:
        run("virsh", "resume", self.domain(fault))

    def link(self, fault: Fault, state: str) -> None:
        self.device(fault)  # raises if the machine is not running
        run("virsh", "domif-setlink", self.domain(fault), self.mac(fault["node"], fault["nic"]), state)

    def link_down(self, fault: Fault, __: object) -> None:
        self.link(fault, "down")

    def link_up(self, fault: Fault, __: object) -> None:
        self.link(fault, "up")

    def device(self, fault: Fault) -> str:
        """The hypervisor's end of a node's network card.

        fault: with `node` and `nic`. The result is the name of a tap, such as `vnet3`. Raises `FaultError` when the
        machine is off.
        """
        wanted = self.mac(fault["node"], fault["nic"])
        for line in run("virsh", "domiflist", self.domain(fault)).splitlines():
            fields = line.split()
            if len(fields) == 5 and fields[4] == wanted and fields[0] != "-":
                return fields[0]
        raise FaultError(f"{self.domain(fault)} is not running")

    def mtu_now(self, fault: Fault) -> int:
        return int(Path(f"/sys/class/net/{self.device(fault)}/mtu").read_text())

    def mtu(self, fault: Fault, __: object) -> None:
        self.set_mtu(fault, fault["mtu"])

    def set_mtu(self, fault: Fault, value: int) -> None:
        run("ip", "link", "set", "dev", self.device(fault), "mtu", str(value))

    def line(self, device: str, field: str, value: int) -> None:
        """Make the line of a network card worse, in addition to what it is; see `relay`. device: as `device` returns it."""
        run(sys.executable, "-I", self.config["relay"], "set", self.directory(), device, field, str(value))

    def line_back(self, device: str, field: str) -> None:
        run(sys.executable, "-I", self.config["relay"], "unset", self.directory(), device, field)

    def directory(self) -> str:
        return str(Path(self.config["relay"]).parent)

    def arp_one_way(self, fault: Fault, __: object) -> None:
        between = f"ether saddr {self.mac(fault['peer'])} ether daddr {self.mac(fault['node'])}"
        rules = [
            f"table bridge {self.table(fault)} {{",
            "chain forward {",
            "type filter hook forward priority 0",
            f"{between} arp operation reply drop",
            f"{between} icmpv6 type nd-neighbor-advert drop",
            "}",
            "}",
            "",
        ]
        run("nft", "-f", "-", given="\n".join(rules))

    def arp_both_ways(self, fault: Fault, __: object) -> None:
        run("nft", "delete", "table", "bridge", self.table(fault))

    @staticmethod
    def table(fault: Fault) -> str:
        return f"agentlab-{fault['peer']}-{fault['node']}"

    def medium(self, fault: Fault) -> list[str]:
        """Return target and source of the running machine's medium, as `virsh domblklist` prints them. Raises `FaultError` without one."""
        if found := self._medium(fault):
            return found
        raise FaultError(f"{self.domain(fault)} has no medium")

    def eject(self, fault: Fault, __: object) -> None:
        """Also remove it from the definition, so that it does not come back after a power cycle."""
        for change, *which in (("--config", "--inactive"), ("--live",)):
            if found := self._medium(fault, *which):
                run("virsh", "change-media", self.domain(fault), found[0], "--eject", "--force", change)

    def _medium(self, fault: Fault, *which: str) -> list[str]:
        for line in run("virsh", "domblklist", "--details", *which, self.domain(fault)).splitlines():
            fields = line.split(maxsplit=3)
            if len(fields) == 4 and fields[1] == "cdrom" and fields[3] != "-":
                return fields[2:]
        return []

    def insert(self, fault: Fault, medium: list[str]) -> None:
        run("virsh", "change-media", self.domain(fault), *medium, "--insert", "--force", "--live", "--config")

    def slow_media(self, fault: Fault, __: object) -> None:
        self.media_rate(fault, fault["bytes_per_second"])

    def fast_media(self, fault: Fault, __: object) -> None:
        self.media_rate(fault, 0)

    def media_rate(self, fault: Fault, rate: int) -> None:
        """Limit what the running machine reads of its CD or USB stick, which is the target sdx (`libvirt.domain.set_media`).

        rate: in bytes per second, 0 for no limit. Raises `FaultError` without a medium.
        """
        for line in run("virsh", "domblklist", "--details", self.domain(fault)).splitlines():
            fields = line.split(maxsplit=3)
            if len(fields) == 4 and (fields[1] == "cdrom" or fields[2] == STICK) and fields[3] != "-":
                run("virsh", "blkdeviotune", self.domain(fault), fields[2], "--read-bytes-sec", str(rate), "--live")
                return
        raise FaultError(f"{self.domain(fault)} has no medium")

    def disk_lost(self, fault: Fault, __: object) -> None:
        for line in run("virsh", "domblklist", "--details", self.domain(fault)).splitlines():
            fields = line.split(maxsplit=3)
            if len(fields) == 4 and fields[1] == "disk":
                run("virsh", "detach-disk", self.domain(fault), fields[2], "--live")
                return
        raise FaultError(f"{self.domain(fault)} has no disk")

    def service(self, fault: Fault) -> dict[str, Any]:
        """Return the running process of a service, and how it was started. Raises `FaultError` when it is not running."""
        noted = self._process(fault)
        if not noted:
            raise FaultError(f"{fault['service']} is not running")
        there = Path(f"/proc/{noted['pid']}")
        try:
            variables = (there / "environ").read_bytes().decode().split("\0")
            return {
                **noted,
                "argv": (there / "cmdline").read_bytes().decode().split("\0")[:-1],
                "environment": dict(entry.split("=", 1) for entry in variables if "=" in entry),
                "log": os.readlink(there / "fd/1"),
            }
        except (FileNotFoundError, ProcessLookupError):
            raise FaultError(f"{fault['service']} is not running") from None

    def _process(self, fault: Fault) -> dict[str, Any] | None:
        """Return the file of a service's process (`processes`); None when it is not running."""
        try:
            noted: dict[str, Any] = json.loads(self._file(fault).read_text())
        except FileNotFoundError:
            return None
        pid, start = noted["pid"], noted["start"]
        return (
            noted if isinstance(pid, int) and isinstance(start, int) and pid > 1 and start_time(pid) == start else None
        )

    def _file(self, fault: Fault) -> Path:
        return Path(self.config["processes"]) / f"{fault['service']}.json"

    def service_down(self, fault: Fault, program: dict[str, Any]) -> None:
        for number in (signal.SIGTERM, signal.SIGKILL):
            end = time.monotonic() + GRACE
            with contextlib.suppress(ProcessLookupError):
                os.kill(program["pid"], number)
            while time.monotonic() < end:
                if start_time(program["pid"]) != program["start"]:
                    return
                time.sleep(0.1)
        raise FaultError(f"{fault['service']} does not stop")

    def service_up(self, fault: Fault, program: dict[str, Any]) -> None:
        if self._process(fault):  # it had not ended, or was started by other means
            return
        with open(program["log"], "ab") as log:
            pid = subprocess.Popen(program["argv"], env=program["environment"], cwd="/", stdin=subprocess.DEVNULL, stdout=log,
                                   stderr=log, start_new_session=True).pid  # fmt: skip
        save(self._file(fault), {"pid": pid, "start": start_time(pid), "digest": program["digest"]})

    def image(self, fault: Fault) -> str:
        """Return the file by which the registry finds the manifest of a component's image. Raises `FaultError` without one."""
        manifests = Path(self.config["repository"]) / "_manifests"
        tag = manifests / "tags" / fault["component"] / "current/link"
        if not tag.exists():
            raise FaultError(f"the registry has no image {fault['component']}")
        return str(manifests / "revisions" / tag.read_text().replace(":", "/") / "link")

    def image_missing(self, __: Fault, link: str) -> None:
        Path(link).rename(Path(link).with_name("missing"))

    def image_back(self, __: Fault, link: str) -> None:
        with contextlib.suppress(FileNotFoundError):  # it was not removed
            Path(link).with_name("missing").rename(link)


class Kind(NamedTuple):
    """How a fault begins and ends, and what its end needs of the time before: begin(fault, note), end(fault, note), note(fault) -> note.

    The note is JSON, and is kept until the end. `end` does no harm to a fault that has not begun. Without `end` it cannot be undone.
    """

    begin: Callable[[Fault, Any], None]
    end: Callable[[Fault, Any], None] | None = None
    note: Callable[[Fault], Any] = lambda __: None


def kinds(lab: Lab) -> dict[str, Kind]:
    """Return the functions that start and end each kind.

    Keys are the names of kinds in profiles (docs/faults.md), of those that this program injects.
    """
    return {
        "power_off": Kind(lab.power_off, lab.power_on),
        "pause": Kind(lab.pause, lab.resume),
        "link_down": Kind(lab.link_down, lab.link_up),
        "mtu": Kind(lab.mtu, lab.set_mtu, lab.mtu_now),
        "delay": Kind(
            lambda fault, device: lab.line(device, "delay", fault["milliseconds"]),
            lambda __, device: lab.line_back(device, "delay"),
            lab.device,
        ),
        "loss": Kind(
            lambda fault, device: lab.line(device, "loss", fault["percent"]),
            lambda __, device: lab.line_back(device, "loss"),
            lab.device,
        ),
        "rate": Kind(
            lambda fault, device: lab.line(device, "rate", fault["kbits"]),
            lambda __, device: lab.line_back(device, "rate"),
            lab.device,
        ),
        "arp_one_way": Kind(lab.arp_one_way, lab.arp_both_ways),
        "eject": Kind(lab.eject, lab.insert, lab.medium),
        "slow_media": Kind(lab.slow_media, lab.fast_media),
        "disk_lost": Kind(lab.disk_lost),
        "service_down": Kind(lab.service_down, lab.service_up, lab.service),
        "image_missing": Kind(lab.image_missing, lab.image_back, lab.image),
    }


def run(*command: str, given: str = "") -> str:
    """Return the output of a command; FaultError with its error output if it fails.

    given: its standard input. The limit is 60 seconds; virsh uses the system's libvirt. Ctrl-C in the terminal does not reach it.
    """
    environment = {**os.environ, "LIBVIRT_DEFAULT_URI": "qemu:///system", "LC_ALL": "C"}
    try:
        done = subprocess.run(
            command, input=given, capture_output=True, text=True, timeout=60, env=environment, check=False,
            start_new_session=True,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise FaultError(f"{command[0]}: {error}") from error
    if done.returncode:
        raise FaultError(f"{' '.join(command[:2])}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def start_time(pid: int) -> int | None:
    """Start time of a process, in clock ticks since boot (proc(5), /proc/PID/stat, field 22); None when it is gone, or a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def save(path: Path, what: object) -> None:
    """Write JSON atomically.

    what: plain data. The new file is next to the old one before it replaces it. Raises `OSError`.
    """
    part = path.with_name(f".{path.name}.part")
    part.write_text(json.dumps(what))
    part.replace(path)


def parse_response(data: bytes | str) -> Any:
    """Decode a response of the service. This program has only the standard library, without `documents`.

    Raises `ValueError` for anything that is not JSON, or nested too deeply.
    """
    try:
        return json.loads(data)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def ask(api: dict[str, Any]) -> dict[str, Any] | None:
    """Return the cluster with its hosts from the service; None while it does not answer.

    api: `url` (down to `/v2`) and `headers` with the token. The first cluster is meant; an error of any kind counts as
    no answer.
    """
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def get(path: str) -> Any:
        with opener.open(urllib.request.Request(api["url"] + path, headers=api["headers"]), timeout=5) as answer:
            return parse_response(answer.read(LIMIT))

    try:
        clusters = get("/clusters")
        return get(f"/clusters/{clusters[0]['id']}") if clusters else None
    except (OSError, ValueError, KeyError):
        return None


def triggers(cluster: dict[str, Any] | None, node: str | None, macs: set[str]) -> Iterator[str]:
    """Statuses that a node has, and the stages that it has reached; without a node: of any host, and of the cluster.

    cluster: as `ask` returns it; macs: of the node, in lower case, by which its host is known; before its inventory it
    is known by its name.
    """
    for host in (cluster or {}).get("hosts") or []:
        inventory = parse_response(host.get("inventory") or "{}")
        own = {nic.get("mac_address", "").lower() for nic in inventory.get("interfaces") or ()}
        if node is None or (own & macs if own else host.get("requested_hostname") == node):
            yield host["status"]
            stage = (host.get("progress") or {}).get("current_stage")
            stages = host.get("progress_stages") or []
            yield from stages[: stages.index(stage)] if stage in stages else ()
            if stage:
                yield stage
    if node is None and cluster:
        yield cluster["status"]


class Injector:
    """Polls the faults; `done` is the content of the state file: number -> {"at", "note", "over"}.

    config: see the top of this file; report: prints a line of the log. A state file of a former process continues where
    that ended.
    """

    def __init__(self, config: dict[str, Any], report: Callable[[str], None]) -> None:
        self.config, self.report, self.path = config, report, Path(config["state"])
        self.done: dict[str, Any] = json.loads(self.path.read_text()) if self.path.exists() else {}
        self.kinds = kinds(Lab(config))
        self.reported: dict[str, str] = {}

    def turn(self, now: float) -> bool:
        """Inject due faults; return whether any are left.

        now: seconds since 1970. A fault that fails is attempted at the next turn again; its message is printed once.
        """
        faults = list(enumerate(self.config["faults"]))
        waiting = any(str(number) not in self.done and fault["when"] != "boot" for number, fault in faults)
        cluster = ask(self.config["api"]) if waiting else None
        left = False
        for number, fault in faults:
            entry, kind = self.done.get(str(number)), self.kinds[fault["kind"]]
            if entry is None:
                left = True
                if self.due(fault, cluster):
                    self.attempt(number, fault, "begins", lambda: self.begun(fault, kind, now))  # noqa: B023 (called at once)
            elif kind.end and fault["seconds"] and "over" not in entry:
                left = True
                if now >= entry["at"] + fault["seconds"]:
                    self.attempt(number, fault, "ends", lambda: self.ended_entry(fault, kind, entry))  # noqa: B023
        return left

    @staticmethod
    def begun(fault: Fault, kind: Kind, now: float) -> dict[str, Any]:
        note = kind.note(fault)
        kind.begin(fault, note)
        return {"at": now, "note": note}

    @staticmethod
    def ended_entry(fault: Fault, kind: Kind, entry: dict[str, Any]) -> dict[str, Any]:
        if kind.end:
            kind.end(fault, entry["note"])
        return entry | {"over": True}

    def due(self, fault: Fault, cluster: dict[str, Any] | None) -> bool:
        node = fault.get("node")
        macs = set(self.config["nodes"][node]["nics"].values()) if node else set()
        return fault["when"] in {"boot", *triggers(cluster, node, macs)}

    def attempt(self, number: int, fault: Fault, what: str, action: Callable[[], dict[str, Any]]) -> None:
        name = " ".join(str(value) for key, value in fault.items() if key not in ("when", "seconds"))
        try:
            self.done[str(number)] = action()
        except (FaultError, OSError, ValueError) as error:
            if self.reported.get(name) != str(error):
                self.reported[name] = str(error)
                self.report(f"{name} not yet: {error}")
            return
        save(self.path, self.done)
        self.report(f"{name} {what} ({fault['when']})")


def main(path: str) -> None:
    def report(text: str) -> None:
        sys.stdout.write(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {text}\n")
        sys.stdout.flush()

    injector = Injector(json.loads(Path(path).read_text()), report)
    while injector.turn(time.time()):
        time.sleep(PAUSE)
    report("no faults are left")
    signal.pause()  # stay until destroy stops it, as all processes of the lab


if __name__ == "__main__":
    main(sys.argv[1])
