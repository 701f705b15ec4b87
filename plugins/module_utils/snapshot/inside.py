"""Start networks, pool and services of a restored lab: a program that runs inside its sandbox.

    python -m ...snapshot.inside networks|services RUN_DIR < OWNER

OWNER is the lab's owner as in `owner.json`. The error message is written to standard error.
"""

from __future__ import annotations

import sys
from pathlib import Path

from ..errors import AgentlabError
from ..libvirt import storage
from ..libvirt.connection import connect
from ..plan import rundir, secrets
from ..plan.model import Plan
from ..sandbox import lifecycle, services
from ..sandbox import networks as lab_networks
from ..state import owner
from ..vocabulary import RunFile


def networks(plan: Plan, found: owner.Owner) -> None:
    """Start the networks, with the leases that they had, and the pool.

    found: the owner, whose mark the networks and the pool get. Raises `LabError` as `network.apply` and `storage.pool`.
    """
    hypervisor = plan["hypervisor"]
    with connect() as connection:
        lab_networks.ensure(connection, plan, found)
        storage.pool(connection, hypervisor["pool"], hypervisor["pool_dir"], found.mark)


def serve(plan: Plan, run_dir: Path) -> None:
    """Start the services.

    Files are rendered as the role does, so that a later prepare restarts nothing. Raises `LabError` for a service that
    does not answer, and `OSError` when certificates of the run directory are missing.
    """
    known = secrets.passwords_of(plan, run_dir)
    # Without the end of the last line, as Ansible's lookup gives it to `lab_services`: other files would mean a restart.
    tls = {
        name: (run_dir / file).read_text().rstrip()
        for name, file in (("ca", RunFile.CA), ("certificate", RunFile.CERTIFICATE), ("key", RunFile.CERTIFICATE_KEY))
    }
    wanted = services.render(secrets.with_passwords(plan, known), tls, private=True, http_secret=known["registry_http"])
    lifecycle.ensure(wanted, Path(plan["services"]["process_dir"]))


def main(what: str, directory: str) -> int:
    """Start what the argument names; return the exit status.

    what: `networks` or `services`; directory: the run directory. The result is 0, or 1 with the message on stderr.
    """
    run_dir = Path(directory)
    try:
        plan = rundir.load_plan(run_dir)
        if what == "networks":
            networks(plan, owner.parse(sys.stdin.buffer.read(), Path(owner.FILE)))
        else:
            serve(plan, run_dir)
    except (AgentlabError, OSError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
