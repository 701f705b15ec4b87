"""Table from step type to the function that runs it.

Modules are imported when their step is first needed: on an emulated processor imports are slow.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...plugins.module_utils.bounded import load_json
from . import fields, host
from .flags import Dry
from .journal import log
from .protocol import MEDIA_DISCONNECTED, Result

MEDIA = "/run/media/iso"
MOST_ARGUMENT = 2**24
"""Maximum size of a step's argument in characters. 1,000 hosts with 256 addresses each take three quarters of it."""
MOST_ENTRIES = 10_000


@dataclass(slots=True)
class Context:
    """What a step may need from its agent. `url` without a trailing slash, `token` the X-Secret-Key."""

    url: str = ""
    infra_env_id: str = ""
    host_id: str = ""
    agent_version: str = ""
    token: str = field(default="", repr=False)
    cacert: str = ""
    insecure: bool = False
    dry: Dry = field(default_factory=Dry)


Do = Callable[[list[str], Context], Result | Iterator[Result]]


class Step(NamedTuple):
    """`module`.`function`(args, context) -> Result, or an iterator of results that are all posted. `args`: how many."""

    module: str
    function: str = "step"
    args: int = 1
    most_args: int | None = None


STEPS: dict[str, Step] = {
    # Services from mid-2026 on may add size limits (--output-max-size, --disk-min-size).
    "inventory": Step("inventory", most_args=3),
    "connectivity-check": Step("connectivity_check"),
    "free-network-addresses": Step("free_addresses"),
    "verify-vips": Step("vips_verifier"),
    "ntp-synchronizer": Step("ntp_synchronizer"),
    "domain-resolution": Step("domain_resolution"),
    "dhcp-lease-allocate": Step("dhcp_lease_allocate"),
    "installation-disk-speed-check": Step("disk_speed_check", args=2),
    "container-image-availability": Step("container_image_availability"),
    "tang-connectivity-check": Step("tang_connectivity_check"),
    "api-vip-connectivity-check": Step("apivip_check"),
    "install": Step("install", "install"),
    "stop-installation": Step("install", "stop", args=0),
    "logs-gather": Step("logs_sender"),
    "upgrade-agent": Step("upgrade_agent"),
}


def argument(name: str, text: str, *required: str) -> dict[str, Any]:
    """A step's JSON argument, an object. ValueError names what is wrong or missing."""
    value = _decoded(name, text)
    if value is None:
        value = {}
    if not isinstance(value, dict):
        raise ValueError(f"{name}: argument should be an object, got {text[:200]}")
    missing = [key for key in required if value.get(key) in (None, "")]
    if missing:
        raise ValueError(f"{name}: {', '.join(missing)} is required, got {text[:200]}")
    return value


def arguments(name: str, text: str, kind: type, most: int = MOST_ENTRIES) -> list[Any]:
    """A step's JSON argument, a list of `kind`s. ValueError: it is something else, or longer than `most`."""
    return fields.entries(f"{name}: argument", _decoded(name, text), kind, most)


def _decoded(name: str, text: str) -> Any:
    if len(text) > MOST_ARGUMENT:
        raise ValueError(f"{name}: argument has {len(text)} characters, the limit is {MOST_ARGUMENT}")
    try:
        return load_json(text, name="text")
    except ValueError as error:
        raise ValueError(f"{name}: argument is not JSON: {error}") from None


def resolve(step_type: str, args: list[str]) -> Do:
    """Return the function for a step. ValueError: the type is unknown, or the number of arguments is wrong."""
    step = STEPS.get(step_type)
    if step is None:
        raise ValueError(f"failed to find action for step type {step_type}")
    if not step.args <= len(args) <= (step.most_args or step.args):
        raise ValueError(f"{step_type} cmd accepts {step.args} params in args, given args {args}")
    function: Do = getattr(importlib.import_module(f".{step.module}", __package__), step.function)
    return function


def media_error() -> str:
    """Return why the mounted installation medium cannot be read; empty if it can, or if there is none."""
    if not os.path.exists(MEDIA):
        return ""
    source = next((mount.source for mount in host.mounts() if mount.target == MEDIA), "")
    if not source.startswith("/dev"):
        return ""
    try:
        with open(source, "rb", buffering=0) as medium:
            if len(medium.read(2)) == 2:
                return ""
    except OSError as error:
        return f"cannot read from the media (ISO) - media was likely disconnected: {error}"
    return "cannot read from the media (ISO) - media was likely disconnected: it is empty"


def run(step: dict[str, Any], context: Context) -> Iterator[Result]:
    """Run one step; every result that it yields must be posted. Never raises."""
    kind, args = step["step_type"], step.get("args") or []
    if error := "" if context.dry.enabled else media_error():
        log.error("System issue detected before running step %s: %s", step.get("step_id"), error)
        yield Result("", error, MEDIA_DISCONNECTED)
        return
    try:
        if not isinstance(args, list) or not all(isinstance(arg, str) for arg in args):
            raise ValueError(f"{kind}: args should be a list of strings")
        outcome = resolve(kind, args)(args, context)
        for result in (outcome,) if isinstance(outcome, Result) else outcome:
            if result.exit_code:
                log.error(
                    "Step execution failed (exit code %s): <%s>, args: <%s>. Output:\nstdout:\n%s\n\nstderr:\n%s\n",
                    result.exit_code,
                    step.get("step_id"),
                    args,
                    result.output,
                    result.error,
                )
                if not context.dry.enabled and media_error():
                    result = result._replace(exit_code=MEDIA_DISCONNECTED)
            yield result
    except ValueError as problem:
        log.error("Unable to run step <%s>, args <%s>: %s", step.get("step_id"), args, problem)
        yield Result("", str(problem), -1)
    except Exception as problem:  # a step's own failure must not end the agent
        log.exception("Step <%s> failed", step.get("step_id"))
        yield Result("", f"{kind}: {type(problem).__name__}: {problem}", -1)
