#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Remove a cluster from a hypervisor; see DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
module: lab_destroy
short_description: Remove what a cluster created on a hypervisor
version_added: 1.0.0
description:
  - Removes exactly what C(state.json) of the run directory lists and what has the mark of the cluster, in any state.
  - A cluster of another user or another run directory is refused, as is a state directory without its marker.
  - For a sandbox it runs on the controller, as root; for other hypervisors, on the hypervisor.
extends_documentation_fragment: [agentlab.ocp.module, agentlab.ocp.lab.owner]
requirements:
  - libvirt-python
  - PyYAML
options:
  created:
    description: The list of C(state.json), or the part of it that is on this host. If it is lost, everything that O(plan) creates.
    type: list
    elements: dict
    suboptions:
      kind:
        description: What it is, which decides how it is removed. An unknown one is refused.
        type: str
        required: true
      name:
        description: Its name; of a state directory its path.
        type: str
        required: true
      host:
        description: The inventory host that it was created on.
        type: str
        required: true
  host:
    description: Only what O(created) has with this host; if that is nothing, everything that O(plan) creates.
    type: str
  plan:
    description: The plan of the cluster, C(agentlab_plan). Required without O(created).
    type: dict
  cluster:
    description: What was created without a plan, such as by O(agentlab.ocp.lab_networks#module:cluster); its list is in the state directory.
    type: str
  state_dir:
    description: State directory of O(cluster). C(/var/lib/agentlab/<cluster>) by default.
    type: path
"""

EXAMPLES = r"""
- name: Remove the cluster
  agentlab.ocp.lab_destroy:
    created: "{{ agentlab_state.created }}"
    owner: "{{ agentlab_owner }}"
  delegate_to: localhost
  become: true

- name: Remove what was created without a plan
  agentlab.ocp.lab_destroy:
    cluster: mine
"""

RETURN = r"""
removed:
  description: The removed objects.
  returned: success
  type: list
  elements: dict
  contains:
    kind: {description: What it was., type: str, sample: network}
    name: {description: Its name., type: str, sample: ostestbm}
    host: {description: The inventory host that it was created on., type: str, sample: hypervisor}
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.agentlab.ocp.plugins.module_utils._ansible import run
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import created as planned
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.arguments import argument
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.stored import check_plan
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import standalone
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox.remove import remove
from ansible_collections.agentlab.ocp.plugins.module_utils.state import Item, owner


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            **standalone.OPTIONS,
            "created": argument(list[Item]),
            "host": {"type": "str"},
        },
        required_one_of=[("created", "plan", "cluster")],
        mutually_exclusive=[("cluster", name) for name in ("created", "host", "plan", "owner")],
        required_by={"created": "owner", "plan": "owner", "state_dir": "cluster"},
        supports_check_mode=True,
    )

    def destroy() -> dict[str, Any]:
        created = planned.on_host(module.params["created"], module.params["host"])
        if module.params["cluster"]:
            created, who = standalone.created_items(module.params)
        else:
            who = owner.from_fact(module.params["owner"])
            if created is None:
                created = planned.items(check_plan(module.params["plan"]), "")
        removed = remove(created, who, check=module.check_mode)
        before = "".join(f"{item['kind']} {item['name']}\n" for item in removed)
        return {"changed": bool(removed), "removed": removed, "diff": {"before": before, "after": ""}}

    run(module, destroy)


if __name__ == "__main__":
    main()
