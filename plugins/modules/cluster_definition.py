#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Define a cluster over REST; see DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_definition
short_description: Define a cluster over REST, and install it
version_added: 1.0.0
description:
  - Does what a user of the web interface on the rendezvous host does. It waits for the assisted service, registers the cluster of the
    manifests in O(dir), binds the hosts of the plan, or O(hosts), which have no cluster yet, gives them their names and roles, and starts the
    installation.
  - The credentials of the cluster, which the rendezvous host has made, are written to C(auth) of O(dir). Where they are, nothing is done.
  - In check mode no request is sent.
extends_documentation_fragment: [agentlab.ocp.module.no_diff, agentlab.ocp.lab.plan]
requirements:
  - bcrypt
  - cryptography
  - PyYAML
  - requests
  - zstandard
options:
  dir:
    description: Directory of the installation's assets, with an image of V(interactive-image) of M(agentlab.ocp.agent_image).
    type: path
    required: true
  hosts:
    description: Without O(plan), the hosts of the cluster.
    type: list
    elements: dict
    suboptions:
      name:
        description: Host name that it gets.
        type: str
        required: true
      role:
        description: Its role.
        type: str
        choices: [master, arbiter, worker]
        required: true
      macs:
        description: MACs of its interfaces, by which it is recognized. One is enough.
        type: list
        elements: str
        required: true
  log:
    description: File that the messages are appended to, with time stamps.
    type: path
    required: true
  timeout:
    description: Limit in seconds, until the installation has started.
    type: float
    default: 3600
seealso:
  - module: agentlab.ocp.node_screen
  - module: agentlab.ocp.wait_for
"""

EXAMPLES = r"""
- name: Define the cluster
  agentlab.ocp.cluster_definition:
    dir: runs/ostest
    plan: "{{ agentlab_plan }}"
    log: runs/ostest/logs/definition.log

- name: Define a cluster of three hosts that booted an image of openshift-install agent
  agentlab.ocp.cluster_definition:
    dir: /srv/assets
    hosts:
      - {name: master-0, role: master, macs: ["52:54:00:00:00:10"]}
      - {name: master-1, role: master, macs: ["52:54:00:00:00:11"]}
      - {name: master-2, role: master, macs: ["52:54:00:00:00:12"]}
    log: /srv/logs/definition.log
"""

RETURN = r"""
messages:
  description: What happened, in order.
  returned: success
  type: list
  elements: str
  sample: [Bound host master-0, Started the installation]
"""

from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.agentlab.ocp.plugins.module_utils import definition
from ansible_collections.agentlab.ocp.plugins.module_utils._ansible import PLAN, run
from ansible_collections.agentlab.ocp.plugins.module_utils.log import Log
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import partial
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.arguments import argument
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.stored import check_plan


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "dir": {"type": "path", "required": True},
            **PLAN,
            "hosts": argument(list[partial.DefinedHost]),
            "log": {"type": "path", "required": True},
            "timeout": {"type": "float", "default": 3600},
        },
        required_one_of=[("plan", "hosts")],
        mutually_exclusive=[("plan", "hosts")],
        supports_check_mode=True,
    )

    def define() -> dict[str, Any]:
        params, messages = module.params, list[str]()
        directory = Path(params["dir"])
        plan = check_plan(params["plan"]) if params["plan"] is not None else partial.plan_of_hosts(params["hosts"])
        if definition.is_defined(directory):
            return {"changed": False, "messages": messages}
        if module.check_mode:
            return {"changed": True, "messages": messages}
        Path(params["log"]).parent.mkdir(parents=True, exist_ok=True)
        log = Log(directory, emit=lambda __: None, copy=Path(params["log"]))

        def report(text: str) -> None:
            log.info(text)
            messages.append(text)

        definition.define(directory, plan, report, seconds=params["timeout"])
        return {"changed": True, "messages": messages}

    run(module, define)


if __name__ == "__main__":
    main()
