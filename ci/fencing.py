"""Freezes a node of an installed cluster of two that fence each other: `ci/fencing.py CLUSTER`.

The other node must have it switched off and on through its BMC; until then the OpenShift API does not answer. While a node with
the fault `fence_fails` is frozen, it must not answer at all. At the end both nodes are online again.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
import time
from pathlib import Path

from ansible_collections.agentlab.ocp.ci.calls import VerbFailed, Verbs, exit_status_of, wait_until
from ansible_collections.agentlab.ocp.plugins.module_utils.cluster import fencing
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import faults, names
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.model import Plan
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.rundir import load_plan

# Longest silence of the API while a node is fenced, in seconds.
OUTAGE = 60.0
# Longest wait for anything else.
LIMIT = 300.0
# How long the API is watched when it must not answer: several times what fencing takes.
SILENT = 100.0


class Api(threading.Thread):
    """Writes to the API every second from inside the lab's network; `answers` has the times of those that were answered."""

    def __init__(self, verbs: Verbs) -> None:
        super().__init__(daemon=True)
        write = (
            "while :; do kubectl --kubeconfig auth/kubeconfig --request-timeout=3s annotate namespace default "
            "agentlab-fencing=$(date +%s) --overwrite >/dev/null 2>&1 && { echo answer 2>/dev/null || exit; }; sleep 1; done"
        )
        command = verbs.command("exec", "--", "sh", "-c", f"cd {verbs.run_dir} && {write}")
        self.process = subprocess.Popen(
            [*command[:4], "--cluster", verbs.cluster, *command[4:]], stdout=subprocess.PIPE, text=True
        )
        self.answers: list[float] = []

    def run(self) -> None:
        for __ in self.process.stdout or ():
            self.answers.append(time.monotonic())

    def end(self) -> None:
        self.process.terminate()
        self.process.wait(30)


def report(verbs: Verbs, node: str) -> fencing.Report:
    """Return Pacemaker's report on a node; an empty one while there is none."""
    done = subprocess.run(
        [*verbs.command("ssh", node, "--cluster", verbs.cluster, "--", fencing.COMMAND)],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    try:
        return fencing.read(done.stdout)
    except ValueError:
        return fencing.Report([], set(), set())


def ready(verbs: Verbs) -> set[str]:
    """Return the nodes that are Ready; none while the API does not answer."""
    done = subprocess.run(
        verbs.command("kubectl", "--cluster", verbs.cluster, "get", "nodes", "-o", "json"),
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    try:
        items = json.loads(done.stdout)["items"]
    except ValueError:
        return set()
    return {
        item["metadata"]["name"]
        for item in items
        if any(c["type"] == "Ready" and c["status"] == "True" for c in item["status"]["conditions"])
    }


def freeze(verbs: Verbs) -> None:
    """Freeze the node that cannot be fenced, or else the one that leads, and check what follows. Raises Failed."""
    plan = load_plan(verbs.run_dir)
    nodes = [node["name"] for node in plan["nodes"] if node["role"] == "master"]
    unfenced = [fault["node"] for fault in faults.of_kind(plan, "fence_fails")]
    wait_until(
        "both nodes are online", lambda: all(report(verbs, node).online == sorted(nodes) for node in nodes), LIMIT
    )
    vip = plan["vips"]["api"][0]
    has = {node: vip in verbs.call("ssh", node, "--", "ip -brief address") for node in nodes}
    victim = next(node for node in nodes if (node in unfenced if unfenced else has[node]))
    (other,) = set(nodes) - {victim}
    api = Api(verbs)
    api.start()
    try:
        wait_until("the API answers", lambda: api.answers, LIMIT)
        before, logged = len(api.answers), len(bmc_log(plan))
        verbs.call("fault", victim, "pause")
        freeze_time = time.monotonic()
        leads = ", which leads," if has[victim] else ""
        print(f"ok   {victim}{leads} is frozen; {before} writes were answered", flush=True)
        if unfenced:
            time.sleep(SILENT)
            late = [moment for moment in api.answers if moment > freeze_time + 5]
            if late:
                raise VerbFailed(
                    f"the API answered {late[0] - freeze_time:.0f} s after {victim} froze, which was not fenced"
                )
            wait_until(
                "Pacemaker reports that the node was not fenced", lambda: victim in report(verbs, other).failed, LIMIT
            )
            print(f"ok   no answer for {SILENT:.0f} s, as {other} cannot fence {victim}", flush=True)
            verbs.call("fault", victim, "pause", "--undo")
            wait_until("the API answers again", lambda: api.answers[-1] > freeze_time + SILENT, LIMIT)
        else:
            wait_until(
                "the API answers again", lambda: len(api.answers) > before and api.answers[-1] > freeze_time + 5, LIMIT
            )
            first = next(moment for moment in api.answers if moment > freeze_time + 5)
            last = max(moment for moment in api.answers if moment < first)
            if first - last > OUTAGE:
                raise VerbFailed(
                    f"the API did not answer for {first - last:.1f} s; at most {OUTAGE:.0f} s are expected"
                )
            print(f"ok   the API did not answer for {first - last:.1f} s", flush=True)
            system = next(node["uuid"] for node in plan["nodes"] if node["name"] == victim)
            since = bmc_log(plan)[logged:]
            forced = [line for line in since if "ForceOff" in line and system in line]
            if not forced:
                raise VerbFailed(f"the BMCs' log has no ForceOff of {victim}, system {system}, since it froze")
            print(f"ok   BMC: {forced[-1].strip()}", flush=True)  # which ended the fault, too
    finally:
        api.end()
    wait_until("both nodes are Ready", lambda: ready(verbs) >= set(nodes), 2 * LIMIT)
    wait_until("both are online", lambda: all(report(verbs, node).online == sorted(nodes) for node in nodes), LIMIT)
    print("ok   both nodes are online again", flush=True)


def bmc_log(plan: Plan) -> list[str]:
    """Return the lines of the BMCs' log."""
    return Path(names.service_log(plan["services"]["directory"], "bmc")).read_text("utf-8", "replace").splitlines()


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="ci/fencing.py", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("cluster")
    args = parser.parse_args(argv)
    return exit_status_of(lambda: freeze(Verbs(args.cluster, Path.cwd())))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
