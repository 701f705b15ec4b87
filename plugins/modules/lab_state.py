#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Record the objects of a cluster; see DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
module: lab_state
short_description: Record created objects and issue certificates
version_added: 1.0.0
description:
  - Records everything that the next stages create in C(state.json) of the run directory, before it is created, with its owner.
  - Creates the lab's certificate authority and server certificate in C(tls/) of the run directory.
extends_documentation_fragment: [agentlab.ocp.module, agentlab.ocp.lab.owner]
requirements:
  - PyYAML
options:
  plan:
    description: The plan of the cluster, C(agentlab_plan). Required to write.
    type: dict
  owner:
    description: The caller's identity, C(agentlab_owner). Required to write.
  run_dir:
    description: The run directory.
    type: path
    required: true
  host:
    description: Inventory name of the hypervisor. Required to write.
    type: str
  state:
    description:
      - V(present) records the objects.
      - V(absent) removes C(state.json) and the certificates, after M(agentlab.ocp.lab_destroy).
    type: str
    choices: [present, absent]
    default: present
"""

EXAMPLES = r"""
- name: Record the objects before they are created
  agentlab.ocp.lab_state:
    plan: "{{ agentlab_plan }}"
    owner: "{{ agentlab_owner }}"
    run_dir: "{{ agentlab_run_dir }}"
    host: "{{ inventory_hostname }}"
  delegate_to: localhost
"""

RETURN = r"""
created:
  description: The added entries.
  returned: when it writes
  type: list
  elements: dict
  contains:
    kind: {description: "What it is, such as a network.", type: str, sample: domain}
    name: {description: Its name., type: str, sample: ostest_master_0}
    host: {description: O(host)., type: str, sample: hypervisor}
owner:
  description: The option O(owner) with the mark of the cluster's objects.
  returned: when it writes
  type: dict
"""

from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.agentlab.ocp.plugins.module_utils._ansible import run
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import given
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.arguments import argument
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import recorded
from ansible_collections.agentlab.ocp.plugins.module_utils.state import owner


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "plan": {"type": "dict"},
            "owner": argument(owner.Caller),
            "run_dir": {"type": "path", "required": True},
            "host": {"type": "str"},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        },
        required_if=[("state", "present", ("plan", "owner", "host"))],
        supports_check_mode=True,
    )

    run_dir, check = Path(module.params["run_dir"]), module.check_mode

    def write() -> dict[str, Any]:
        plan = given.plan_of(module.params, module.no_log_values.update)
        who = owner.from_fact(module.params["owner"])
        found = recorded.record(plan, run_dir, module.params["host"], who, check=check)
        added = [f"{item['kind']} {item['name']}\n" for item in found.created]
        added += ["certificates in tls/\n"] if found.certified else []
        return {
            "changed": bool(added),
            "created": found.created,
            "owner": found.who.fact(),
            "diff": {"before": "", "after": "".join(added)},
        }

    def remove_state() -> dict[str, Any]:
        there = recorded.discard(run_dir, check=check)
        return {"changed": bool(there), "diff": {"before": "".join(f"{path}\n" for path in there), "after": ""}}

    run(module, write if module.params["state"] == "present" else remove_state)


if __name__ == "__main__":
    main()
