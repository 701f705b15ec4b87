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
extends_documentation_fragment: [agentlab.ocp.module, agentlab.ocp.lab.plan, agentlab.ocp.lab.owner]
requirements:
  - PyYAML
"""

EXAMPLES = r"""
- name: Join the networks
  agentlab.ocp.lab_tunnels:
    plan: "{{ agentlab_plan }}"
    owner: "{{ agentlab_owner }}"
  delegate_to: localhost
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
from ansible_collections.agentlab.ocp.plugins.module_utils._ansible import OWNER, PLAN, changed, run
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import given
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import tunnels
from ansible_collections.agentlab.ocp.plugins.module_utils.state import owner


def main() -> None:
    module = AnsibleModule(
        argument_spec={**PLAN, **OWNER},
        supports_check_mode=True,
    )

    def join() -> dict[str, Any]:
        plan = given.plan_of(module.params, module.no_log_values.update)
        found = owner.of_cluster(module.params, check=module.check_mode)
        return changed(tunnels.ensure(plan, found.mark, check=module.check_mode))

    run(module, join)


if __name__ == "__main__":
    main()
