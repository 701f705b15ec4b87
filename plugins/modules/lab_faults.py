#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Inject the faults of a plan; see DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
module: lab_faults
short_description: Inject the faults defined in a plan
version_added: 1.0.0
description:
  - Starts a process on the hypervisor that injects those faults of the plan that affect machines, cables, media and services, each
    at its trigger during the installation. It is one of the lab's processes, and ends with the lab.
  - Does nothing if the plan has no such faults.
  - Without a plan, those of O(faults), in the machines that are O(nodes).
extends_documentation_fragment:
  - agentlab.ocp.module
  - agentlab.ocp.lab.standalone
  - agentlab.ocp.lab.owner
  - agentlab.ocp.short.nodes
  - agentlab.ocp.short.faults
requirements:
  - PyYAML
  - requests
options:
  dir:
    description: Assets directory of the installation, with the address and credentials of the assisted service.
    type: path
    required: true
"""

EXAMPLES = r"""
- name: Start fault injection
  agentlab.ocp.lab_faults:
    plan: "{{ agentlab_plan }}"
    owner: "{{ agentlab_owner }}"
    dir: "{{ agentlab_run_dir }}"

- name: Power a machine of M(agentlab.ocp.lab_nodes) off when it writes its image, without a cluster
  agentlab.ocp.lab_faults:
    cluster: mine
    nodes: "{{ mine_nodes }}"
    faults:
      - {kind: power_off, node: node-0, when: Writing image to disk}
    dir: /srv/assets
"""

RETURN = r"""
changes:
  description: Names of the started processes.
  returned: success
  type: list
  elements: str
"""

from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.agentlab.ocp.plugins.module_utils._ansible import change_result, run
from ansible_collections.agentlab.ocp.plugins.module_utils.assisted.client import HEADERS, AssistedClient
from ansible_collections.agentlab.ocp.plugins.module_utils.errors import LabError
from ansible_collections.agentlab.ocp.plugins.module_utils.installer.state import StateError, load_wait_for
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import given, short
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.arguments import argument
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.faults import Fault
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import faults, standalone


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            **standalone.OPTIONS,
            "nodes": argument(list[short.ShortNode]),
            "faults": argument(list[Fault]),
            "dir": {"type": "path", "required": True},
        },
        required_one_of=[("plan", "faults")],
        mutually_exclusive=[("plan", name) for name in ("faults", "nodes", "cluster")],
        required_by={"plan": "owner", "faults": ("cluster", "nodes")},
        supports_check_mode=True,
    )

    def start() -> dict[str, Any]:
        plan = given.plan_of(module.params, module.no_log_values.update)
        standalone.owner_of(module.params, plan, check=module.check_mode, services=[faults.NAME])
        try:
            known = load_wait_for(Path(module.params["dir"]))
        except StateError as error:
            if not module.check_mode:
                raise LabError(str(error)) from error
            return {"changed": True, "changes": [faults.NAME]}
        url = AssistedClient(known.rendezvous_ip, known.token, known.scheme).base
        headers = {HEADERS[known.scheme]: known.token} if known.token else {}
        return change_result(faults.ensure(plan, url, headers, check=module.check_mode))

    run(module, start)


if __name__ == "__main__":
    main()
