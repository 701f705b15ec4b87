#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Join the networks of several hypervisors; see DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
module: lab_tunnels
short_description: Join the networks of several hypervisors by VXLAN
version_added: 1.0.0
description:
  - Makes the ends of the VXLANs between the first hypervisor and each other one (C(hypervisors) in the profile), one for each network, on
    one of them.
  - Two sandboxes of one host are joined by a pair of links, too.
  - Runs as root on the host of the hypervisor, outside of a sandbox, after M(agentlab.ocp.lab_networks).
  - Without a plan, the ends on this host of the VXLANs of O(networks), one to each of O(tunnels). Both hosts need the same O(cluster) and
    networks of the same names; only one of them may serve DHCP. A VXLAN adds 50 bytes to a packet, so that C(mtu) of a network is at
    most that of the hosts' link less 50.
extends_documentation_fragment:
  - agentlab.ocp.module
  - agentlab.ocp.lab.standalone
  - agentlab.ocp.lab.owner
  - agentlab.ocp.short.networks
requirements:
  - PyYAML
options:
  tunnels:
    description: Without O(plan), the tunnels of this host.
    type: list
    elements: dict
    suboptions:
      local:
        description: Address of this host.
        type: str
        required: true
      remote:
        description: Address of the other host.
        type: str
        required: true
"""

EXAMPLES = r"""
- name: Join the networks
  agentlab.ocp.lab_tunnels:
    plan: "{{ agentlab_plan }}"
    owner: "{{ agentlab_owner }}"
  delegate_to: localhost
  become: true

- name: Join the network of M(agentlab.ocp.lab_networks) with that of another host, without a cluster
  agentlab.ocp.lab_tunnels:
    cluster: mine
    networks: "{{ mine_networks }}"
    tunnels:
      - {local: 192.0.2.1, remote: 192.0.2.2}
  become: true
"""

RETURN = r"""
changes:
  description: Names of the created or changed links.
  returned: success
  type: list
  elements: str
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.agentlab.ocp.plugins.module_utils._ansible import change_result, run
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import short
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.arguments import argument
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import standalone, tunnels


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            **standalone.OPTIONS,
            "networks": argument(list[short.ShortNetwork]),
            "tunnels": argument(list[short.ShortTunnel]),
        },
        required_one_of=[("plan", "tunnels")],
        mutually_exclusive=[("plan", "tunnels"), ("plan", "networks"), ("plan", "cluster")],
        required_by={"plan": "owner", "tunnels": ("cluster", "networks")},
        supports_check_mode=True,
    )

    def join() -> dict[str, Any]:
        params, check = module.params, module.check_mode
        plan = standalone.plan_of(params, module.no_log_values.update)
        found = standalone.owner_of(params, plan, check=check, services=[])
        return change_result(tunnels.ensure(plan, found.mark, check=check))

    run(module, join)


if __name__ == "__main__":
    main()
