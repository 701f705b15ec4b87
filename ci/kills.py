"""Kills runs of the lab at random times; the next run must resume to the end, or destroy must leave no trace.

What is killed: the command line, Ansible, one of its workers, all of these, one process of the sandbox, or everything at once as a reboot
does; by SIGKILL, SIGTERM or SIGHUP. Several kills hit one cluster before it is brought to its end. Each adds a line to the file
`--record` (kills.jsonl, which is committed): commit, seed, until, stage, what, signal, seconds into the run, outcome. The outcome is
`resumed`, `destroyed`, or what went wrong. Needs root. `--until validate` needs a virtual machine, and minutes for each cluster.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from ansible_collections.agentlab.ocp.plugins.module_utils import state
from ansible_collections.agentlab.ocp.plugins.module_utils.cli import orphans
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import names
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import host, namespaces, processes
from ansible_collections.agentlab.ocp.plugins.module_utils.vocabulary import RunFile

ROOT = Path(__file__).resolve().parents[1]
RECORD = Path(__file__).with_name("kills.jsonl")
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP)
CONTROLLER = ("command line", "ansible", "worker", "process group", "controller")
# Processes of the sandbox that may be killed; a machine that loses its power is a fault of its own.
DAEMONS = ("libvirtd", "virtlogd", "dnsmasq", "docker-registry", "chronyd", "python3", "agentlab")
LIMITS = {"image": 900.0, "validate": 3600.0}
# Maximum time before a run is killed, on an idle machine, on which `agentlab plan` takes QUIET_SECONDS.
LONGEST = {"image": 18.0, "validate": 30.0}
QUIET_SECONDS = 0.5
MACHINES = ("boot", "wait", "validate")  # the stages that are killed up to `validate`


class BrokenGuarantee(Exception):
    """A guarantee was violated after a kill.

    The text is the outcome in the record: what failed, with the end of the verb's output.
    """


@dataclass
class Kill:
    """One kill: in which stage, what, by which signal, how long after the start of the run.

    seconds: since the start of the run; signal: its name; what: as in the heading of this file. A line of the record
    has these fields.
    """

    stage: str
    what: str
    signal: str
    seconds: float


class Lab:
    """A cluster with directories of its own, so that leftovers can be found."""

    def __init__(self, base: Path, cluster: str, profile: str, until: str) -> None:
        self.base, self.cluster, self.until = base, cluster, until
        for name in ("tmp", "runs"):
            (base / name).mkdir()
        source = yaml.safe_load((ROOT / "config_examples" / f"{profile}.yml").read_text())
        self.profile = base / "profile.yml"
        self.profile.write_text(yaml.safe_dump(source | {"hypervisor": {"state_dir": str(base / "state")}}))
        self.run_dir = base / "runs" / cluster
        self.state_dir = base / "state" / cluster
        self.log = base / "log"
        self.environment = {
            **os.environ,
            "AGENTLAB_RUNS": str(base / "runs"),
            "TMPDIR": str(base / "tmp"),
            "ANSIBLE_HOME": str(base / "ansible"),
        }

    def start(self, verb: str, until: str = "") -> subprocess.Popen[bytes]:
        until = until or self.until
        stop = ["--no-gather", *([] if until == "validate" else ["--stop-after", until])] if verb == "deploy" else []
        command = [str(ROOT / "bin/agentlab"), verb, str(self.profile), "--cluster", self.cluster, *stop]
        with self.log.open("wb") as log:
            return subprocess.Popen(
                command, env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    def finish(self, verb: str, until: str = "") -> str:
        """Run a verb; return its output. Raises `BrokenGuarantee` if it fails.

        until: the last stage of a deploy, `self.until` by default. The limit is `LIMITS[self.until]` seconds.
        """
        process = self.start(verb, until)
        try:
            status = process.wait(LIMITS[self.until])
        except subprocess.TimeoutExpired:
            self.end(process)
            raise BrokenGuarantee(f"{verb} did not end in {LIMITS[self.until]:.0f} s: {self.tail()}") from None
        if status:
            raise BrokenGuarantee(f"{verb} failed ({status}): {self.tail()}")
        return self.log.read_text(errors="replace")

    def tail(self) -> str:
        return " | ".join(self.log.read_text(errors="replace").splitlines()[-12:])

    def end(self, process: subprocess.Popen[bytes]) -> None:
        """Kill a run with all its processes.

        process: of `start`. Returns when it has ended; workers in sessions of their own are killed, too.
        """
        for pid in self.controllers(process):
            send(pid, signal.SIGKILL)
        process.wait()

    def stage(self, since: str) -> str:
        """Return the current stage, from state.json, of a run that started at `since`; earlier ones were killed.

        since: ISO 8601 in UTC. `plan` before the first stage, and for a state that cannot be read.
        """
        with contextlib.suppress(state.StateError):
            stages = state.load(self.run_dir)["stages"].items()
            running = [
                (stage["start"], name) for name, stage in stages if stage["end"] is None and stage["start"] >= since
            ]
            return max(running)[1] if running else "plan"
        return "plan"

    def controllers(self, process: subprocess.Popen[bytes]) -> list[int]:
        """Return the processes of the run: the command line, Ansible, workers, modules.

        The first is that of the command line. Others are known by the mark of the run in their environment.
        """
        marked = [
            pid for pid in pids() if processes.environment_of(pid).get(orphans.RUN, "").startswith(f"{self.run_dir}:")
        ]
        return [process.pid, *(pid for pid in marked if pid != process.pid)]

    def sandbox_processes(self) -> dict[int, str]:
        """Return {pid: name} of the sandbox's processes, without machines.

        Empty without a running sandbox. Processes of a run that is in the sandbox are left out.
        """
        running = namespaces.find(self.state_dir)
        if running is None:
            return {}
        space = os.readlink(f"/proc/{running.pid}/ns/pid")
        found = {}
        for pid in pids():
            with contextlib.suppress(OSError):
                name = Path(f"/proc/{pid}/comm").read_text().strip()
                if (
                    os.readlink(f"/proc/{pid}/ns/pid") == space
                    and name.startswith(DAEMONS)
                    and not processes.environment_of(pid).get(orphans.RUN)
                ):
                    found[pid] = name
        return found

    def traces(self) -> Iterator[str]:
        """Yield what is left of the cluster.

        Each is a text for the outcome: namespace, path, process or mount. Nothing must be yielded after a destroy.
        """
        if (host.NETNS_DIR / names.netns(self.cluster)).exists():
            yield f"network namespace {names.netns(self.cluster)}"
        given = (self.base / "state", self.run_dir / RunFile.STATE, self.run_dir / "tls")
        for path in (*given, *self.base.glob(".state*")):
            if path.exists():
                yield str(path)
        for folder in (self.base / "tmp", self.base / "ansible" / "tmp"):
            if folder.is_dir():
                yield from (str(path) for path in folder.iterdir())
        for pid in pids():
            words = Path(f"/proc/{pid}")
            with contextlib.suppress(OSError):
                if (
                    str(self.base).encode() in (words / "cmdline").read_bytes() + (words / "environ").read_bytes()
                    and pid != os.getpid()
                ):
                    yield f"process {pid}: {(words / 'cmdline').read_bytes().replace(bytes(1), b' ').decode(errors='replace')[:120]}"
        yield from (
            line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines() if str(self.base) in line
        )


def pids() -> list[int]:
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]


def send(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def strike(lab: Lab, process: subprocess.Popen[bytes], chance: random.Random, last: bool) -> tuple[str, signal.Signals]:
    """Kill a part of a run; return which, and the signal. last: the machines may be killed, too.

    process: of `start`; chance: the source of all choices. What is killed, and the signal, are in the words of the
    record.
    """
    number = chance.choice(SIGNALS)
    controllers, inside = lab.controllers(process), lab.sandbox_processes()
    whole = lab.until == "image" or last
    what = chance.choice(
        [*CONTROLLER, *(["sandbox"] * 3 if inside else []), *(["reboot"] * 2 if inside and whole else [])]
    )
    if what == "command line":
        send(process.pid, number)
    elif what == "ansible":
        ansible = [pid for pid in controllers[1:] if b"ansible-playbook" in cmdline(pid)]
        send(min(ansible, default=process.pid), number)
    elif what == "worker":
        send(chance.choice(controllers[1:] or [process.pid]), number)
    elif what == "process group":
        os.killpg(process.pid, number)
    elif what == "controller":
        for pid in controllers:
            send(pid, number)
    elif what == "sandbox":
        keeper = namespaces.find(lab.state_dir)
        pid = chance.choice([pid for pid in inside if whole or keeper is None or pid != keeper.pid])
        what = f"sandbox: {inside[pid]}"
        send(pid, number)
    else:
        number = signal.SIGKILL
        keeper = namespaces.find(lab.state_dir)
        for pid in [*controllers, *([keeper.pid] if keeper else [])]:
            send(pid, number)
        # What is in /run does not survive, either.
        subprocess.run(["ip", "netns", "delete", names.netns(lab.cluster)], capture_output=True, check=False)
    return what, number


def cmdline(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def interrupt(lab: Lab, verb: str, chance: random.Random, longest: float, last: bool) -> Kill | None:
    """Start a verb and kill it; None when it ended before.

    longest: seconds, at most, before the kill, or from the first of `MACHINES` to it. Raises `BrokenGuarantee` if the verb failed.
    """
    since = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    process, begin = lab.start(verb), time.monotonic()
    delay = chance.uniform(0.3, longest)
    if lab.until == "validate":
        while (
            process.poll() is None and lab.stage(since) not in MACHINES and time.monotonic() < begin + LIMITS["image"]
        ):
            time.sleep(0.2)
    try:
        status = process.wait(delay)
    except subprocess.TimeoutExpired:
        pass
    else:
        if status and verb != "validate":  # it fails before there is a cluster
            raise BrokenGuarantee(f"{verb} failed ({status}): {lab.tail()}")
        return None
    stage = verb if verb == "destroy" else lab.stage(since)
    what, number = strike(lab, process, chance, last)
    kill = Kill(stage, what, number.name, round(time.monotonic() - begin, 1))
    # The rest of the run ends by itself; one that waits for an hour is stopped.
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(60)
    if process.poll() is None:
        lab.end(process)
    return kill


def verbs(lab: Lab, chance: random.Random) -> Iterator[str]:
    """Yield verbs to kill, without end. With machines, those that involve them: which depends on whether they were booted."""
    while True:
        if lab.until == "image":
            yield "destroy" if chance.random() < 0.15 else "deploy"
        else:
            yield (
                "boot"
                if not (lab.state_dir / "boot.json").exists()
                else chance.choice(["boot", "wait", "wait", "wait", "validate", "deploy"])
            )


def torment(lab: Lab, number: int, chance: random.Random, longest: float) -> tuple[list[Kill], str]:
    """Kill runs of one cluster `number` times, then bring it to an end; return the kills and the outcome.

    longest: as of `interrupt`. The outcome is `resumed`, `destroyed` or the text of `BrokenGuarantee`, which is not raised.
    """
    kills: list[Kill] = []
    outcome = "resumed"
    try:
        if lab.until == "validate":
            lab.finish("deploy", "image")
        for verb, __ in zip(verbs(lab, chance), range(4 * number), strict=False):  # some end before the kill
            if kills and kills[-1].what.startswith("sandbox"):
                lab.finish("prepare")  # only prepare restarts killed services
            kill = interrupt(lab, verb, chance, longest / 4 if verb == "destroy" else longest, len(kills) == number - 1)
            if kill:
                print(f"  {kill.seconds:6.1f} s  {kill.stage:<10} {kill.what} {kill.signal}", flush=True)
                kills.append(kill)
                if len(kills) == number:
                    break
            elif verb == "deploy" and lab.until == "image":
                lab.finish("destroy")
        lost = bool(kills) and lab.until == "validate" and (kills[-1].what == "reboot" or "agentlab" in kills[-1].what)
        if chance.random() < 0.6 and not lost:
            lab.finish("deploy")
            if "nothing changed" not in lab.finish("deploy"):
                raise BrokenGuarantee(f"a finished deploy changed something: {lab.tail()}")
        else:
            outcome = "destroyed"
        lab.finish("destroy")
        if left := list(lab.traces()):
            raise BrokenGuarantee(f"left by destroy: {', '.join(left)}")
    except BrokenGuarantee as error:
        outcome = str(error)
    return kills, outcome


def clean(lab: Lab) -> None:
    """Remove leftovers after a violation."""
    with contextlib.suppress(BrokenGuarantee):
        lab.finish("destroy")
    for pid in pids():
        if str(lab.base) in processes.environment_of(pid).get(processes.MARK, ""):
            send(pid, signal.SIGKILL)
    subprocess.run(["ip", "netns", "delete", names.netns(lab.cluster)], capture_output=True, check=False)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="ci/kills", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=10, metavar="N", help="number of kills (default: %(default)s)")
    parser.add_argument(
        "--until",
        choices=("image", "validate"),
        default="image",
        help="kill deploys up to this stage (default: %(default)s)",
    )
    parser.add_argument("--each", type=int, metavar="N", help="kills of each cluster (default: 5, up to validate 15)")
    parser.add_argument(
        "--seed",
        default=str(random.SystemRandom().randrange(10**6)),
        help="seed of the random choices, to repeat a run",
    )
    parser.add_argument("--profile", default="sno_ipv4")
    parser.add_argument("--cluster", default="kills", metavar="NAME")
    parser.add_argument(
        "--longest", type=float, metavar="SECONDS", help="maximum time before a kill (default: by the machine's speed)"
    )
    parser.add_argument("--record", type=Path, metavar="FILE", help=f"add a line for each kill (as {RECORD.name})")
    args = parser.parse_args(argv)
    chance = random.Random(args.seed)
    each = args.each or (5 if args.until == "image" else 15)
    commit = subprocess.run(
        ["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    begin = time.monotonic()
    subprocess.run([ROOT / "bin/agentlab", "plan", args.profile], stdout=subprocess.DEVNULL, check=True)
    longest = args.longest or LONGEST[args.until] * max(1.0, (time.monotonic() - begin) / QUIET_SECONDS)
    done, broken = 0, 0
    while done < args.kills:
        # QEMU's user must reach the disks.
        base = Path(tempfile.mkdtemp(prefix="agentlab-kills-", dir="/var/tmp"))
        base.chmod(0o755)
        lab = Lab(base, args.cluster, args.profile, args.until)
        kills, outcome = torment(lab, min(each, args.kills - done), chance, longest)
        print(f"{outcome} after {len(kills)} kills", flush=True)
        lines: list[dict[str, Any]] = [
            {"commit": commit, "seed": args.seed, "until": args.until, **kill.__dict__, "outcome": outcome}
            for kill in kills
        ]
        if args.record:
            with args.record.open("a", encoding="utf-8") as stream:
                stream.writelines(json.dumps(line) + "\n" for line in lines)
        done += len(kills)
        if outcome not in ("resumed", "destroyed"):
            broken += 1
            clean(lab)
        shutil.rmtree(base, ignore_errors=True)
    print(f"{done} kills, {broken} clusters broken; seed {args.seed}")
    return int(broken > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
