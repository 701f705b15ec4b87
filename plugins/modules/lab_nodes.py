#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Create the machines of a cluster; see DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
module: lab_nodes
short_description: Create the machines of a cluster in libvirt
version_added: 1.0.0
description:
  - Creates the storage pool, the disks and the domains of a plan's nodes. They stay off.
  - Without a plan, those of O(nodes).
  - Compares them with existing ones; a running machine is not changed, and neither is the size of a disk.
  - With C(auto) in the plan, the domain type is KVM if a test guest boots on it, which is checked once for each boot of the host.
extends_documentation_fragment: [agentlab.ocp.module, agentlab.ocp.lab.standalone, agentlab.ocp.lab.owner, agentlab.ocp.short.nodes]
options:
  domain_type:
    description: Without O(plan), the domain type of the machines. V(auto) by default.
    type: str
    choices: [auto, kvm, qemu]
requirements:
  - cryptography
  - libvirt-python
  - PyYAML
"""

EXAMPLES = r"""
- name: Create the machines
  agentlab.ocp.lab_nodes:
    plan: "{{ agentlab_plan }}"
    owner: "{{ agentlab_owner }}"

- name: Make one machine, without a cluster
  agentlab.ocp.lab_nodes:
    cluster: mine
    nodes:
      - name: node-0
        disks: [{size_gib: 20}]
        nics: [{network: mine0}]
"""

RETURN = r"""
changes:
  description: Names of the created or changed objects.
  returned: success
  type: list
  elements: str
domain_type:
  description: Domain type of the machines, C(kvm) or C(qemu).
  returned: success
  type: str
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.agentlab.ocp.plugins.module_utils._ansible import change_result, run
from ansible_collections.agentlab.ocp.plugins.module_utils.libvirt.connection import connect
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import given, short
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.arguments import argument
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import kvm, machines, standalone


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            **standalone.OPTIONS,
            "nodes": argument(list[short.ShortNode]),
            "domain_type": {"type": "str", "choices": ["auto", "kvm", "qemu"]},
        },
        required_one_of=[("plan", "nodes")],
        mutually_exclusive=[("plan", "nodes"), ("plan", "cluster"), ("plan", "domain_type")],
        required_by={"plan": "owner", "nodes": "cluster"},
        supports_check_mode=True,
    )

    def make() -> dict[str, Any]:
        plan = given.plan_of(module.params, module.no_log_values.update)
        owner = standalone.owner_of(module.params, plan, check=module.check_mode)
        domain_type = kvm.domain_type(plan["hypervisor"]["domain_type"])
        with connect() as connection:
            changes = machines.apply(connection, plan, owner, domain_type, check=module.check_mode)
        return {**change_result(changes), "domain_type": domain_type}

    run(module, make)


if __name__ == "__main__":
    main()
