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
  - Without a plan, its resolver is the gateway of the first of O(networks), which M(agentlab.ocp.lab_networks) creates in it.
extends_documentation_fragment: [agentlab.ocp.module, agentlab.ocp.lab.standalone, agentlab.ocp.lab.owner, agentlab.ocp.short.networks]
requirements:
  - PyYAML
options:
  egress:
    description: Without O(plan), whether it reaches outside networks.
    type: bool
    default: false
  route:
    description: Without O(plan), whether this host reaches the IPv4 addresses in it.
    type: bool
    default: false
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

- name: Create a sandbox for a network, without a cluster
  agentlab.ocp.sandbox:
    cluster: mine
    networks: "{{ mine_networks }}"
  delegate_to: localhost
  become: true

- name: Create the network in it
  agentlab.ocp.lab_networks:
    cluster: mine
    networks: "{{ mine_networks }}"
  vars:
    ansible_connection: agentlab.ocp.sandbox
    agentlab_sandbox: mine
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
from ansible_collections.agentlab.ocp.plugins.module_utils._ansible import change_result, run
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import short
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.arguments import argument
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import kvm, namespaces, standalone, switch, uplink
from ansible_collections.agentlab.ocp.plugins.module_utils.state import owner


def main() -> None:
    flag = {"type": "bool", "default": False}
    module = AnsibleModule(
        argument_spec={
            **standalone.OPTIONS,
            "networks": argument(list[short.ShortNetwork]),
            "egress": flag,
            "route": flag,
        },
        required_one_of=[("plan", "networks")],
        mutually_exclusive=[("plan", "networks"), ("plan", "cluster")],
        required_by={"plan": "owner", "networks": "cluster"},
        supports_check_mode=True,
    )

    def make() -> dict[str, Any]:
        plan = standalone.plan_of(module.params, module.no_log_values.update)
        cluster, hypervisor = plan["cluster"], plan["hypervisor"]
        state_dir = Path(hypervisor["state_dir"])
        if not module.params["plan"]:
            hypervisor["kind"] = "sandbox"
        if module.check_mode or not module.params["plan"]:
            standalone.owner_of(module.params, plan, check=module.check_mode, services=[])
        if module.check_mode:
            new = namespaces.find(state_dir) is None
        else:
            gateways = [subnet["gateway"] for subnet in plan["networks"][0]["subnets"]]
            fact = module.params["owner"]
            new = namespaces.ensure(
                owner.from_fact(fact) if fact else standalone.caller(cluster["name"], state_dir),
                hypervisor["netns"],
                state_dir,
                gateways,
                cluster["domain"],
                lambda: kvm.domain_type(hypervisor["domain_type"]) == "kvm",
                switched=switch.needs_switch(plan),
            )
        running = namespaces.find(state_dir)
        ways = uplink.ensure(running, plan, check=module.check_mode) if running else []
        made = [{"name": hypervisor["netns"], "before": "", "after": "running\n"}] if new else []
        return {**change_result([*made, *ways]), **({"pid": running.pid} if running else {})}

    run(module, make)


if __name__ == "__main__":
    main()
