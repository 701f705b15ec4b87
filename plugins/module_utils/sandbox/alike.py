"""Whether the hypervisors of one lab are alike: the same QEMU, and KVM on all or on none, so that its machines behave as one cluster's do."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import TypedDict

from ..errors import LabError
from ..plan.hypervisors import name_of
from ..plan.model import Plan
from . import kvm

QEMU = "qemu-system-x86_64"
_LIMIT = 30


class Facts(TypedDict):
    """What is compared of a hypervisor: version of QEMU (`7.2`), domain type of its machines, and why it is that one."""

    qemu: str
    domain_type: str
    reason: str


def measure(plan: Plan, cache: Path | None = None) -> Facts:
    """Return the facts of this host for the machines of `plan`, a plan or a view. cache: as of `kvm.usable`.

    Raises `LabError`, which names the hypervisor, without QEMU, and for `domain_type: kvm` where no guest boots on it.
    """
    name, wanted = name_of(plan["hypervisor"]), plan["hypervisor"]["domain_type"]
    try:
        output = subprocess.run([QEMU, "--version"], capture_output=True, text=True, timeout=_LIMIT, check=True).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise LabError(
            f"hypervisor {name}: {QEMU} does not run: {error}: install QEMU there (agentlab setup)"
        ) from None
    found = re.search(r"version (\d+\.\d+)", output)
    if wanted == "qemu":
        return {"qemu": found[1] if found else output.strip(), "domain_type": wanted, "reason": "as in the profile"}
    answer = kvm.usable(cache)
    if wanted == "kvm" and not answer["usable"]:
        raise LabError(
            f"hypervisor {name}: domain_type is 'kvm', and no guest boots on KVM there ({answer['reason']}): must be qemu or auto"
        )
    return {
        "qemu": found[1] if found else output.strip(),
        "domain_type": "kvm" if answer["usable"] else "qemu",
        "reason": answer["reason"],
    }


def compare(name: str, here: Facts, first: Facts) -> None:
    """Raise `LabError` if the hypervisor `name` differs from the first one; the message has both values and the remedy."""
    if here["qemu"] != first["qemu"]:
        raise LabError(
            f"hypervisor {name} has QEMU {here['qemu']}, and the first one {first['qemu']}: install the same version on both"
        )
    if here["domain_type"] != first["domain_type"]:
        slow = f"hypervisor {name}" if first["domain_type"] == "kvm" else "the first hypervisor"
        reason = here["reason"] if first["domain_type"] == "kvm" else first["reason"]
        other = "the first one" if first["domain_type"] == "kvm" else f"hypervisor {name}"
        raise LabError(
            f"{slow} has no KVM ({reason}), and {other} has: make KVM available, or set domain_type: qemu for both"
        )
