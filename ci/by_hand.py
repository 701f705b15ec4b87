"""Boots the machines of a cluster as a person does in boot mode `manual`: `ci/by_hand.py CLUSTER`.

It waits until the lab's file server has the image, inserts it into each machine through its BMC, the rendezvous host first, and
switches the machine on. It runs during the stage `boot`, which waits for the service of the rendezvous host meanwhile.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

import requests
from ansible_collections.agentlab.ocp.ci.calls import VerbFailed, Verbs, exit_status_of
from ansible_collections.agentlab.ocp.plugins.module_utils.boot import bmc, sequence
from ansible_collections.agentlab.ocp.plugins.module_utils.boot.media import published_url
from ansible_collections.agentlab.ocp.plugins.module_utils.cli.places import run_dir
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import secrets
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.rundir import load_plan
from ansible_collections.agentlab.ocp.plugins.module_utils.vocabulary import RunFile

SECONDS = 300.0
"""Until the image is published: the stage that does it has just been started."""


def boot(folder: Path) -> None:
    """Boot the machines of the run in `folder`; this process is in the cluster's network. Raises `VerbFailed` and `LabError`."""
    found = load_plan(folder)
    plan = secrets.with_passwords(found, secrets.passwords_of(found, folder))
    url = published_url(plan, Path(plan["boot"]["image"]))
    deadline = time.monotonic() + SECONDS
    while not _published(url):
        if time.monotonic() > deadline:
            raise VerbFailed(f"{url}: not published in {SECONDS:.0f} s")
        time.sleep(1)
    for node in sequence.order(plan["nodes"], plan["rendezvous"]["node"]):
        machine = bmc.of_node(node, str(folder / RunFile.CA))
        machine.insert(url)
        machine.boot_from_cd()
        machine.power_on()
        print(f"ok   {node['name']} boots from {url}", flush=True)


def _published(url: str) -> bool:
    try:
        return requests.head(url, timeout=10).ok
    except requests.ConnectionError:
        return False


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="ci/by_hand.py", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("cluster")
    parser.add_argument("--inside", action="store_true", help="this process is in the cluster's network already")
    args = parser.parse_args(argv)

    def act() -> None:
        if args.inside:
            os.environ["no_proxy"] = os.environ["NO_PROXY"] = "*"
            boot(run_dir(args.cluster))
        else:
            verbs = Verbs(args.cluster, Path.cwd())
            inside = [sys.executable, __file__, args.cluster, "--inside"]
            print(verbs.call("exec", "--cluster", args.cluster, "--", *inside), end="", flush=True)

    return exit_status_of(act)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
