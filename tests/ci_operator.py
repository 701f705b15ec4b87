"""A simulator of ci-operator: runs a workflow of `ci/step-registry` step by step, each as the process that its pod would be.

As in ci-tools (pkg/steps/multi_stage, prow's entrypoint): a step gets its parameters, SHARED_DIR, ARTIFACT_DIR and the names of the
job; SHARED_DIR is kept in a Secret between steps: files only, 1 MiB at most. A timeout is SIGINT to the step's process, the grace
period, then SIGKILL. After a failure in `pre` or `test` only `post` runs, all of it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from tests.ci_registry import PHASES, Registry, seconds

SECRET_BYTES = 1 << 20
PREFIX = "#!/bin/bash\nset -eu\n"
DEFAULT_TIMEOUT, DEFAULT_GRACE = 7200.0, 15.0


class Ended(NamedTuple):
    """How a step ended: its exit status, whether it exceeded its timeout, its output, and whether the job counts a failure."""

    step: str
    status: int
    timed_out: bool
    output: str
    counts: bool

    @property
    def failed(self) -> bool:
        return bool(self.status) or self.timed_out


@dataclass
class Job:
    """A job: `base` gets SHARED_DIR's content and the artifacts; enter: command prefix of its pods' network.

    env: of the job's configuration; elsewhere: commands of refs that are in other registries; expired: for a step, whether its
    timeout has come, in place of the clock.
    """

    registry: Registry
    base: Path
    profile: Path
    source: Path
    enter: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    elsewhere: Mapping[str, str] = field(default_factory=dict)
    expired: Mapping[str, Callable[[], bool]] = field(default_factory=dict)
    secret: dict[str, bytes] = field(default_factory=dict)
    ended: list[Ended] = field(default_factory=list)

    def run(self, workflow: str) -> bool:
        """Run all phases; return whether the job passed."""
        steps = self.registry.workflows[workflow]["steps"]
        self._check_parameters(steps)
        for phase in PHASES:
            if phase == "test" and any(one.counts and one.failed for one in self.ended):
                continue
            for name in self.registry.steps(steps.get(phase) or []):
                ref = self.registry.refs.get(name) or {}
                failed = any(one.counts and one.failed for one in self.ended)
                if ref.get("optional_on_success") and steps.get("allow_skip_on_success") and not failed:
                    continue
                ignored = phase == "post" and ref.get("best_effort") and steps.get("allow_best_effort_post_steps")
                done = self._step(name, ref, steps.get("env") or {})._replace(counts=not ignored)
                self.ended.append(done)
                if done.failed and phase != "post":
                    break
        return not any(one.counts and one.failed for one in self.ended)

    def of(self, step: str) -> Ended:
        return next(one for one in self.ended if one.step == step)

    def artifacts(self, step: str) -> Path:
        return self.base / "artifacts" / step

    def shared(self, name: str) -> str:
        return self.secret[name].decode()

    def _check_parameters(self, steps: Mapping[str, Any]) -> None:
        names = {
            one["name"]
            for phase in PHASES
            for ref in self.registry.steps(steps.get(phase) or [])
            for one in self.registry.refs.get(ref, {}).get("env") or []
        }
        assert self.env.keys() <= names | {"CLUSTERTYPE"}, f"no step has {sorted(self.env.keys() - names)}"

    def _step(self, name: str, ref: Mapping[str, Any], workflow: Mapping[str, str]) -> Ended:
        place, artifacts = self.base / "pods" / name, self.artifacts(name)
        shared = place / "shared"
        shared.mkdir(parents=True)
        artifacts.mkdir(parents=True)
        for file, content in self.secret.items():
            (shared / file).write_bytes(content)
        folder = "/".join(name.split("-"))
        commands = self.elsewhere[name] if not ref else (self.registry.root / folder / ref["commands"]).read_text()
        given = {**workflow, **self.env}
        parameters = {one["name"]: given.get(one["name"], one["default"]) for one in ref.get("env") or []}
        dependencies = {one["env"]: f"registry.build.example/ci/{one['name']}" for one in ref.get("dependencies") or []}
        environment = {
            "PATH": os.environ["PATH"], "HOME": str(place), "SHARED_DIR": str(shared), "ARTIFACT_DIR": str(artifacts),
            "CLUSTER_PROFILE_DIR": str(self.profile), "CLUSTER_TYPE": "packet", "NAMESPACE": "ci-op-1", "UNIQUE_HASH": "abcde",
            "JOB_NAME": "pull-ci-agentlab", "JOB_NAME_SAFE": "agentlab", "BUILD_ID": "1", "KUBECONFIG": f"{shared}/kubeconfig",
            "KUBEADMIN_PASSWORD_FILE": f"{shared}/kubeadmin-password", **parameters, **dependencies,
        }  # fmt: skip
        done = self._process(name, ref, PREFIX + commands, environment)
        problem = self._keep(shared)
        return done._replace(status=done.status or 1, output=f"{done.output}\n{problem}") if problem else done

    def _process(self, name: str, ref: Mapping[str, Any], commands: str, environment: Mapping[str, str]) -> Ended:
        limit = seconds(ref["timeout"]) if "timeout" in ref else DEFAULT_TIMEOUT
        expired, deadline = self.expired.get(name, lambda: False), time.monotonic() + limit
        grace = seconds(ref["grace_period"]) if "grace_period" in ref else DEFAULT_GRACE
        log, timed_out = self.base / f"{name}.log", False
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*self.enter, "/bin/bash", "-c", commands],
                env=dict(environment),
                cwd=self.source,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            while process.poll() is None and not timed_out:
                timed_out = expired() or time.monotonic() > deadline
                time.sleep(0.05)
            if timed_out and process.poll() is None:
                # The process of the step alone; with a prefix, that is a child of it.
                _signal(process.pid, signal.SIGINT)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(grace)
            # The end of a pod ends all of its processes.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return Ended(name, process.returncode, timed_out, log.read_text(errors="replace"), True)

    def _keep(self, shared: Path) -> str:
        """Copy SHARED_DIR back: files of its top alone; return why it could not be kept."""
        found = {path.name: path.read_bytes() for path in shared.iterdir() if path.is_file()}
        if sum(map(len, found.values())) > SECRET_BYTES:
            return f"Secret is too long: must have at most {SECRET_BYTES} bytes"
        self.secret = found
        return ""


def _signal(pid: int, number: int) -> None:
    """Send a signal to the shell of a step: the process itself, or below nsenter(1), which forks, its child."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    program = Path(f"/proc/{pid}/comm").read_text().strip()
    os.kill(int(children[0]) if program == "nsenter" and children else pid, number)
