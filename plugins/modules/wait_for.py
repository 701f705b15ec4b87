#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Wait for an installation; see DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
module: wait_for
short_description: Wait for an agent-based installation
version_added: 1.0.0
description:
  - Follows the assisted service on the rendezvous host, then the OpenShift API, as C(openshift-install agent wait-for) does, with its
    intervals and messages.
  - The messages are appended to O(log), so that they can be followed while the module waits.
extends_documentation_fragment: [agentlab.ocp.module.no_diff]
requirements:
  - bcrypt
  - cryptography
  - kubernetes
  - libvirt-python
  - PyYAML
  - requests
options:
  dir:
    description: Directory of the installation's assets.
    type: path
    required: true
  event:
    description: What to wait for.
    type: str
    choices: [bootstrap-complete, install-complete]
    default: install-complete
  log:
    description: File that the messages are appended to, with time stamps.
    type: path
    required: true
  record:
    description: Directory for the last seen cluster and events, as JSON, for C(events.jsonl), the events of the run, and for
      C(recording.jsonl), what both APIs answered.
    type: path
    required: true
  binary:
    description:
      - A build of C(openshift-install), whose C(agent wait-for) waits, too. Messages and exit code are its own. Requires O(collection).
      - The module watches as without it, for the record, and ends a wait that cannot succeed.
    type: path
  collection:
    description: The root directory of this collection, from which O(binary) gets the programs that it calls.
    type: path
  stall_minutes:
    description: Give up when nothing changes for so long. V(0) keeps to upstream's limits alone.
    type: float
    default: 0
  plan:
    description:
      - The plan of the cluster, C(agentlab_plan). With it machines, services of the lab and the units of the rendezvous host are looked at
        too, and nothing is waited for that cannot come any more, such as a machine that is off. The failure names the cause.
      - The installation is complete only when the Job C(assisted-installer-controller) is, which upstream does not check.
      - With O(stall_minutes=0) nothing else is looked at.
    type: dict
  owner:
    description:
      - The caller's identity, C(agentlab_owner). With it the snapshots that the plan asks for (C(snapshots)) are saved in C(snapshots) of
        the cluster's state directory, when all hosts are ready and when the cluster is installed.
      - One that exists is kept. One that cannot be saved ends the module with an error, after the installation.
    type: dict
"""

EXAMPLES = r"""
- name: Wait until the cluster is installed
  agentlab.ocp.wait_for:
    dir: runs/ostest
    log: runs/ostest/logs/wait-for.log
    record: runs/ostest/logs
    stall_minutes: 15
    plan: "{{ agentlab_plan }}"
"""

RETURN = r"""
exit_code:
  description: What C(openshift-install agent wait-for) would exit with.
  returned: always
  type: int
console:
  description: URL of the web console.
  returned: when the cluster has one
  type: str
seconds:
  description: How long it took.
  returned: always
  type: float
"""

import contextlib
import time
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.agentlab.ocp.plugins.module_utils._ansible import run
from ansible_collections.agentlab.ocp.plugins.module_utils.assisted.client import AssistedClient
from ansible_collections.agentlab.ocp.plugins.module_utils.cluster.watcher import SIMULATED_FOR
from ansible_collections.agentlab.ocp.plugins.module_utils.installer.state import load_wait_for
from ansible_collections.agentlab.ocp.plugins.module_utils.log import Log
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.access import Access
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.model import Plan
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.stored import checked
from ansible_collections.agentlab.ocp.plugins.module_utils.report.changes import WaitEvents
from ansible_collections.agentlab.ocp.plugins.module_utils.report.probe import Probe
from ansible_collections.agentlab.ocp.plugins.module_utils.report.secrets import of_run
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import faults
from ansible_collections.agentlab.ocp.plugins.module_utils.snapshot.lab import Lab
from ansible_collections.agentlab.ocp.plugins.module_utils.snapshot.save_points import SavePoints
from ansible_collections.agentlab.ocp.plugins.module_utils.state import owner, recording
from ansible_collections.agentlab.ocp.plugins.module_utils.state.events import FILE, EventLog
from ansible_collections.agentlab.ocp.plugins.module_utils.version import VERSION
from ansible_collections.agentlab.ocp.plugins.module_utils.waitfor import EVENTS, Recorder, wait_for_by


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "dir": {"type": "path", "required": True},
            "event": {"type": "str", "choices": list(EVENTS), "default": "install-complete"},
            "log": {"type": "path", "required": True},
            "record": {"type": "path", "required": True},
            "binary": {"type": "path"},
            "collection": {"type": "path"},
            "stall_minutes": {"type": "float", "default": 0},
            "plan": {"type": "dict"},
            "owner": {"type": "dict"},
        },
        required_by={"owner": "plan", "binary": "collection"},
        supports_check_mode=True,
    )

    def snapshots(plan: Plan, directory: Path, log: Log) -> SavePoints | None:
        if not plan["snapshots"]:
            return None
        known = load_wait_for(directory)
        service = AssistedClient(known.rendezvous_ip, known.token, known.scheme)
        who = owner.from_fact(module.params["owner"])
        return SavePoints(Lab(plan, directory, who, VERSION), service, log)

    def wait() -> dict[str, Any]:
        if module.check_mode:
            return {"changed": False, "exit_code": 0, "seconds": 0.0}
        params, start = module.params, time.monotonic()
        plan = checked(params["plan"]) if params["plan"] else None
        Path(params["log"]).parent.mkdir(parents=True, exist_ok=True)
        directory = Path(params["dir"])
        log = Log(directory if directory.is_dir() else None, emit=lambda __: None, copy=Path(params["log"]))
        record = Recorder(Path(params["record"]))
        secrets = of_run(directory)
        tape = recording.Recorder(record.directory / Path(recording.FILE).name, secrets)
        watch: dict[str, Any] = {"diagnose": Probe(plan, directory, tape, log.info)} if plan else {}
        if plan and plan["release"]["payload"] == "lab":
            watch["stable_for"] = SIMULATED_FOR
        injected = faults.log(plan) if plan else None
        events = WaitEvents(EventLog(record.directory / Path(FILE).name, secrets), faults=injected)

        def say(level: str, text: str) -> None:
            log(level, text)
            if level != "debug":  # a build of openshift-install writes each poll to its log
                events.say(level, text)

        def show(cluster: dict[str, Any], new: list[dict[str, Any]]) -> None:
            record(cluster, new)
            events.show(cluster, new)

        saver = snapshots(plan, directory, log) if plan and params["owner"] else None
        with saver or contextlib.nullcontext():
            binary = Path(params["binary"]) if params["binary"] else None
            if saver and not binary:  # a build of openshift-install has its own
                watch["clock"] = saver.clock
            outcome = wait_for_by(binary, Path(params["collection"] or "."))(
                params["event"],
                directory,
                say,
                show,
                stall=params["stall_minutes"] * 60,
                controller=plan is not None,
                skip_password=True,
                show_operators=events.show_operators,
                tape=tape,
                **watch,
            )
        if saver and not outcome.exit_code and params["event"] == "install-complete":
            saver.installed()
        if not outcome.exit_code and plan and plan["hypervisor"]["kind"] == "sandbox":
            # Upstream's last lines are for a cluster that the reader's host can reach.
            command = Access(plan, directory).kubectl("get", "nodes")
            log(
                "info",
                f"Names and addresses of the cluster exist in the lab's network only; this enters it:\n    {command}",
            )
        result = {
            "changed": False,
            "exit_code": outcome.exit_code,
            "console": outcome.console,
            "seconds": round(time.monotonic() - start, 1),
        }
        if outcome.exit_code:
            module.fail_json(msg=outcome.error, **result)
        if saver and saver.failures:
            module.fail_json(msg="; ".join(saver.failures), **result)
        return result

    run(module, wait)


if __name__ == "__main__":
    main()
