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
extends_documentation_fragment: [agentlab.ocp.module.no_diff, agentlab.ocp.lab.owner]
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
      - A build of C(openshift-install), whose C(agent wait-for) waits, too. Messages and exit code are its own.
      - The module watches as without it, for the record, and ends a wait that cannot succeed.
    type: path
  collection:
    description: The root directory of this collection, from which O(binary) gets the programs that it calls. The one on this host by default.
    type: path
  stall_minutes:
    description: Give up when nothing changes for so long. V(0) keeps to upstream's limits alone.
    type: float
    default: 0
  plan:
    description:
      - The plan of the cluster, C(agentlab_plan). With it machines, services of the lab and the units of the rendezvous host are checked
        too, and nothing is waited for that cannot come any more, such as a machine that is off. The failure names the cause.
      - The installation is complete only when the Job C(assisted-installer-controller) is, which upstream does not check.
      - With O(stall_minutes=0) nothing else is checked.
    type: dict
  owner:
    description:
      - The caller's identity, C(agentlab_owner). With it the snapshots that the plan asks for (C(snapshots)) are saved in C(snapshots) of
        the cluster's state directory, when all hosts are ready and when the cluster is installed.
      - One that exists is kept. One that cannot be saved ends the module with an error, after the installation.
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

import time
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.agentlab.ocp.plugins.module_utils import installation
from ansible_collections.agentlab.ocp.plugins.module_utils._ansible import collection_path, run
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.arguments import argument
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.stored import check_plan
from ansible_collections.agentlab.ocp.plugins.module_utils.state import owner
from ansible_collections.agentlab.ocp.plugins.module_utils.waitfor import EVENTS


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
            "owner": argument(owner.Caller),
        },
        required_by={"owner": "plan"},
        supports_check_mode=True,
    )

    def wait() -> dict[str, Any]:
        if module.check_mode:
            return {"changed": False, "exit_code": 0, "seconds": 0.0}
        params, start = module.params, time.monotonic()
        outcome = installation.wait(
            params["event"],
            Path(params["dir"]),
            check_plan(params["plan"]) if params["plan"] else None,
            owner.from_fact(params["owner"]) if params["owner"] else None,
            copy=Path(params["log"]),
            folder=Path(params["record"]),
            build=Path(params["binary"]) if params["binary"] else None,
            collection=collection_path(params, "collection") if params["binary"] else Path("."),
            stall=params["stall_minutes"] * 60,
        )
        seconds = round(time.monotonic() - start, 1)
        result = {"changed": False, "exit_code": outcome.exit_code, "console": outcome.console, "seconds": seconds}
        if outcome.exit_code or outcome.error:
            module.fail_json(msg=outcome.error, **result)
        return result

    run(module, wait)


if __name__ == "__main__":
    main()
