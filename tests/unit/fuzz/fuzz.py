"""Feeds damaged inputs to everything that reads a file from outside: no traceback, no hang, no memory beyond the bound.

    fuzz.py [--seconds N | --inputs N] [--seed N] [--keep DIR] [--record FILE] [TARGET ...]

Every target gets the same share of the time, or N inputs. An input that raises anything but the library's own error, takes more
than `CPU_LIMIT` seconds, or more memory than `MEMORY_LIMIT`, is a failure; with `--keep` it is saved. The last line has
the figures. What a run does depends on the seed alone, up to where its time ends. Inputs that were failures once are kept in
`seeds/TARGET/`; every run begins with them, and with each document whose fields are in turn null, floats, and of other types.
`--record` adds a line for each target: commit, target, seed, inputs, failures, CPU seconds; `totals.jsonl` is the committed one.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ansible_collections.agentlab.ocp.payload.api_server.models import Invalid
from ansible_collections.agentlab.ocp.plugins.module_utils import nmstate
from ansible_collections.agentlab.ocp.plugins.module_utils.coreos.errors import CoreosError
from ansible_collections.agentlab.ocp.plugins.module_utils.documents import DocumentError
from ansible_collections.agentlab.ocp.plugins.module_utils.ignition.config import IgnitionError
from ansible_collections.agentlab.ocp.plugins.module_utils.installer.errors import InstallerError
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.problems import ProfileError
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.rundir import RunError
from ansible_collections.agentlab.ocp.plugins.module_utils.state import StateError
from damage import dump, replaced
from targets import TARGETS, Target

SEEDS = Path(__file__).with_name("seeds")
CPU_LIMIT = 10.0
MEMORY_LIMIT = 1 << 30
_EXPECTED = (
    InstallerError, CoreosError, nmstate.NmstateError, IgnitionError, DocumentError, ProfileError, RunError, StateError, Invalid,
)  # fmt: skip


def inputs(target: Target, name: str, rng: random.Random) -> Iterator[bytes]:
    """What was a failure once, then every field of the documents replaced, then damage without end."""
    for path in sorted((SEEDS / name).glob("*")) + sorted((SEEDS / "any").glob("*")):
        yield path.read_bytes()
    seeds = target.seeds()
    for seed in seeds:
        if isinstance(seed, dict | list):
            for document in replaced(seed):
                yield json.dumps(document).encode() if rng.random() < 0.5 else dump(document).encode()
    while True:
        yield target.mutate(rng, rng.choice(seeds))


class TooSlowError(BaseException):
    """One input took more than its share of the processor."""


def _too_slow(_signal: int, _frame: Any) -> None:
    raise TooSlowError


def fuzz(name: str, seconds: float, most: int, seed: int, keep: Path | None = None) -> tuple[int, list[str]]:
    """Run one target; returns how many inputs it took, and the failures, one for each place."""
    target, rng = TARGETS[name], random.Random(f"{name}:{seed}")
    failures: list[str] = []
    count, end = 0, time.monotonic() + seconds
    before = signal.signal(signal.SIGPROF, _too_slow)
    try:
        for data in inputs(target, name, rng):
            if time.monotonic() > end or count >= most or len(failures) >= 10:
                break
            count += 1
            try:
                signal.setitimer(signal.ITIMER_PROF, CPU_LIMIT)
                target.run(data)
            except _EXPECTED as error:
                # One clear line; upstream's own texts quote what was given, line ends and all.
                if not str(error).strip():
                    failures.append(f"{name} input {count}: {type(error).__name__} without a text")
            except (Exception, TooSlowError) as error:
                at = traceback.extract_tb(error.__traceback__)[-1]
                text = f"{name}: {type(error).__name__}: {error} at {Path(at.filename).name}:{at.lineno}: {at.line}"
                place = text.partition(" at ")[2]
                if any(place in known for known in failures):
                    continue
                failures.append(f"{text} (input {count} of seed {seed})")
                if keep:
                    keep.mkdir(parents=True, exist_ok=True)
                    (keep / f"{name}-{seed}-{count}").write_bytes(data)
            finally:
                signal.setitimer(signal.ITIMER_PROF, 0)
    finally:
        signal.signal(signal.SIGPROF, before)
    return count, failures


def record(path: Path, name: str, seed: int, count: int, failures: int, seconds: float) -> None:
    """Add a line for what a target took."""
    git = ["git", "-C", str(SEEDS.parent), "describe", "--always", "--dirty", "--exclude=*"]
    commit = subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip()
    line = {
        "commit": commit,
        "target": name,
        "seed": seed,
        "inputs": count,
        "failures": failures,
        "cpu_seconds": round(seconds, 1),
    }
    with path.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(line) + "\n")


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--inputs", type=int, help="of each target, whatever time it takes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--record", type=Path)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    args = parser.parse_args(argv)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))
    names = args.targets or list(TARGETS)
    total, failed = 0, 0
    for name in names:
        seconds = float("inf") if args.inputs else args.seconds / len(names)
        begin = time.process_time()
        count, failures = fuzz(name, seconds, args.inputs or sys.maxsize, args.seed, args.keep)
        if args.record:
            record(args.record, name, args.seed, count, len(failures), time.process_time() - begin)
        total, failed = total + count, failed + len(failures)
        print(f"{name}: {count} inputs, {len(failures)} failures", flush=True)
        for text in failures:
            print(text, flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"{total} inputs, {failed} failures, peak memory {peak} MiB")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
