#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Create a sandbox; see DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
module: sandbox
short_description: Create an isolated hypervisor on this host
version_added: 1.0.0
description:
  - A sandbox is a network, a mount and a process namespace with their own libvirtd. The host is not changed; the network
    namespace is listed by C(ip netns).
  - With C(hypervisor.egress) it reaches outside networks, with C(hypervisor.route) this host reaches it.
  - Runs on the controller, as root.
extends_documentation_fragment: [agentlab.ocp.module, agentlab.ocp.lab.owned]
requirements:
  - PyYAML
notes:
  - To remove it use M(agentlab.ocp.lab_destroy).
"""

EXAMPLES = r"""
- name: Create the sandbox
  agentlab.ocp.sandbox:
    plan: "{{ agentlab_plan }}"
    owner: "{{ agentlab_owner }}"
  delegate_to: localhost
  become: true
"""

RETURN = r"""
pid:
  description: Process id of the sandbox's first process on the host.
  returned: when it runs
  type: int
"""

from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.agentlab.ocp.plugins.module_utils._ansible import OWNED, changed, run
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import given
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import kvm, namespaces, switch, uplink
from ansible_collections.agentlab.ocp.plugins.module_utils.state import owner


def main() -> None:
    module = AnsibleModule(argument_spec=OWNED, supports_check_mode=True)

    def make() -> dict[str, Any]:
        plan = given.plan_of(module.params, module.no_log_values.update)
        cluster, hypervisor = plan["cluster"], plan["hypervisor"]
        state_dir = Path(hypervisor["state_dir"])
        if module.check_mode:
            owner.of_cluster(module.params, check=module.check_mode)
            new = namespaces.find(state_dir) is None
        else:
            gateways = [subnet["gateway"] for subnet in plan["networks"][0]["subnets"]]
            new = namespaces.ensure(
                owner.from_fact(module.params["owner"]),
                hypervisor["netns"],
                state_dir,
                gateways,
                cluster["domain"],
                lambda: kvm.domain_type(hypervisor["domain_type"]) == "kvm",
                switched=switch.wanted(plan),
            )
        running = namespaces.find(state_dir)
        ways = uplink.ensure(running, plan, check=module.check_mode) if running else []
        made = [{"name": hypervisor["netns"], "before": "", "after": "running\n"}] if new else []
        return {**changed([*made, *ways]), **({"pid": running.pid} if running else {})}

    run(module, make)


if __name__ == "__main__":
    main()
