"""The first failure of a playbook, with the next step."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from ..documents import load_json, read_file
from ..log import visible
from ..plan.access import Access
from ..terminal import write_line
from ..vocabulary import RunFile
from .places import program

FILE = RunFile.FAILURE
"""Written by the stdout callback, relative to the run directory."""
_SILENT = re.compile(r"Connection refused|No route to host|timed out")
# ssh's messages about a host key that is unknown or has changed.
_UNKNOWN_KEY = re.compile(r"[Hh]ost key (?:is known )?for \[?([^\]\s]+?)\]?(?::\d+)? (?:and|has changed)")

# Where ssh's messages name what it connects to.
_NAMED = re.compile(r"(?:to host|resolve hostname) ([^\s:]+)|(\S+@\S+): Permission denied")


def explain(directory: Path) -> None:
    """Print the failure that the run has recorded, if any, and what to do next; one that was ignored is a warning.

    directory: the run directory. Its `logs/failure.json` is JSON with `task`, `host`, `message`, and perhaps `ignored`
    and `unreachable`.
    """
    from ..plan import hypervisors, rundir

    try:
        failure = load_json(read_file(directory / FILE), name=FILE)
    except (OSError, ValueError):
        return
    kind = "warning" if failure.get("ignored") else "first failure"
    write_line(visible(f"\n{kind}: {failure['task']} [{failure['host']}]: {failure['message']}"), sys.stderr)
    try:
        access = Access(rundir.load_plan(directory), directory, program())
    except ValueError:
        # In check mode there may be no plan.
        access = None
    message, name = failure["message"], failure["host"].partition(" ")[0]
    step, further = None, [hypervisors.name_of(one) for one in (access.plan.get("hypervisors") or [] if access else [])]
    if failure.get("unreachable"):
        seen = Access(hypervisors.view(access.plan, name), directory) if access and name in further else access
        field = f"hypervisors.{further.index(name)}" if name in further else "hypervisor"
        # A sandbox that does not run is lost, too: its message names what makes one.
        if seen is None or seen.plan["hypervisor"]["kind"] == "ssh":
            step = unreachable(message, seen.hypervisor() if seen else None, field)
    if step or (access and (step := _next_step(access, message))):
        write_line(f"     Next: {step}", sys.stderr)


def unreachable(reason: str, target: str | None, field: str = "hypervisor") -> str:
    """Return what to do when ssh does not reach the hypervisor; reason: what ssh printed, target: what it connects to.

    target: None where it is taken from the message; field: of the profile, with what it has of this hypervisor. The text
    names commands to run, and the field of the profile to correct.
    """
    if not target:
        named = _NAMED.search(reason)
        target = (named[1] or named[2]) if named else "the hypervisor"
    if found := _UNKNOWN_KEY.search(reason):
        host = found[1]
        return (
            f"compare the fingerprint of  ssh-keyscan {host} | ssh-keygen -lf -  with the one that {host} ({field}.host) itself "
            f"shows (ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub), then  ssh-keyscan {host} >> ~/.ssh/known_hosts; "
            "ANSIBLE_SSH_COMMON_ARGS='-o UserKnownHostsFile=FILE' names another file"
        )
    if "Could not resolve hostname" in reason:
        return f"correct {field}.host of the profile: this host cannot resolve the name in {target}"
    if "Permission denied" in reason:
        return (
            f"let {target} accept your key (ssh-copy-id {target}), name another key (ANSIBLE_PRIVATE_KEY_FILE=FILE), "
            f"or correct {field}.user of the profile"
        )
    return f"start {target} and its sshd, or correct {field}.host of the profile; it is reached once this works: ssh {target} true"


def _next_step(access: Access, message: str) -> str | None:
    """Return the next step for a failure of the lab's services or their names."""
    plan = access.plan
    services = plan["services"]
    if not any(services[name] in message for name in ("address", "host")):
        return None
    if "does not resolve" in message and plan["hypervisor"]["kind"] != "sandbox":
        # Nothing on the host is changed, including its resolver.
        return f"{access.resolver()}  # lets this host resolve {plan['cluster']['domain']} through the lab's DNS"
    if _SILENT.search(message):
        return f"{access.verb('prepare')}  # starts the lab's stopped services"
    return None
