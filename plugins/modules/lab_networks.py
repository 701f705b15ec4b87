#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Create the networks of a cluster; see DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
module: lab_networks
short_description: Create the networks of a cluster in libvirt
version_added: 1.0.0
description:
  - Defines and starts the networks of a plan, with its DHCP, router advertisements and DNS.
  - Without a plan, those of O(networks).
  - If the nodes have bonds or VLANs, also makes the switch and its ports.
  - Compares them with existing ones; a network that running machines use is not changed.
extends_documentation_fragment: [agentlab.ocp.module, agentlab.ocp.lab.standalone, agentlab.ocp.lab.owner, agentlab.ocp.short.networks]
requirements:
  - libvirt-python
  - PyYAML
"""

EXAMPLES = r"""
- name: Create the networks
  agentlab.ocp.lab_networks:
    plan: "{{ agentlab_plan }}"
    owner: "{{ agentlab_owner }}"

- name: Make one network, without a cluster
  agentlab.ocp.lab_networks:
    cluster: mine
    networks:
      - name: mine0
        subnets:
          - cidr: 192.168.150.0/24
            dhcp: {start: 192.168.150.10, end: 192.168.150.99, lease_minutes: 60}
"""

RETURN = r"""
changes:
  description: Names of the created or changed objects.
  returned: success
  type: list
  elements: str
"""

from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.agentlab.ocp.plugins.module_utils._ansible import change_result, run
from ansible_collections.agentlab.ocp.plugins.module_utils.libvirt.connection import connect
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import short
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.arguments import argument
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import host, networks, standalone, switch
from ansible_collections.agentlab.ocp.plugins.module_utils.state import owner


def main() -> None:
    module = AnsibleModule(
        argument_spec={**standalone.OPTIONS, "networks": argument(list[short.ShortNetwork])},
        required_one_of=[("plan", "networks")],
        mutually_exclusive=[("plan", "networks"), ("plan", "cluster")],
        required_by={"plan": "owner", "networks": "cluster"},
        supports_check_mode=True,
    )

    def make() -> dict[str, Any]:
        plan = standalone.plan_of(module.params, module.no_log_values.update)
        if module.params["plan"] and not module.check_mode:
            host.claim(Path(plan["hypervisor"]["state_dir"]), owner.from_fact(module.params["owner"]))
        found = standalone.owner_of(module.params, plan, check=module.check_mode)
        with connect() as connection:
            changes = networks.ensure(connection, plan, found, check=module.check_mode)
        changes += switch.ensure(switch.of_plan(plan), check=module.check_mode)
        return change_result(changes)

    run(module, make)


if __name__ == "__main__":
    main()
