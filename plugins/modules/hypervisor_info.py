#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Check whether the hypervisors of a lab are alike; see DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
module: hypervisor_info
short_description: Check whether the hypervisors of a lab are alike
version_added: 1.0.0
description:
  - Returns what must be the same on several hypervisors (C(hypervisors) in the profile), and fails on one that differs from the first.
  - Whether a guest boots on KVM is tested once for each boot of the host.
  - Runs as root on the host of the hypervisor.
  - Without a plan, for the O(domain_type).
extends_documentation_fragment: [agentlab.ocp.module.reads, agentlab.ocp.lab.plan]
requirements:
  - PyYAML
options:
  first:
    description: The RV(facts) of the first hypervisor, to compare with.
    type: dict
    suboptions:
      qemu:
        description: Version of QEMU.
        type: str
        required: true
      domain_type:
        description: Domain type of its machines.
        type: str
        required: true
      reason:
        description: Why it is that one.
        type: str
        required: true
  name:
    description: Without O(plan), the hypervisor's name in messages. That of the host by default.
    type: str
  domain_type:
    description: Without O(plan), the wanted domain type of the machines. V(kvm) fails where no guest boots on it.
    type: str
    choices: [auto, kvm, qemu]
"""

EXAMPLES = r"""
- name: Measure the hypervisors
  agentlab.ocp.hypervisor_info:
    plan: "{{ agentlab_plan }}"
  become: true
  register: measured

- name: Measure any hosts
  agentlab.ocp.hypervisor_info:
    domain_type: auto
  become: true
  register: measured

- name: Compare them with the first one
  agentlab.ocp.hypervisor_info:
    domain_type: auto
    first: "{{ hostvars[ansible_play_hosts | first].measured.facts }}"
  become: true
"""

RETURN = r"""
facts:
  description: What is compared.
  returned: success
  type: dict
  contains:
    qemu: {description: Version of QEMU., type: str, sample: "7.2"}
    domain_type: {description: Domain type of its machines., type: str, sample: kvm}
    reason: {description: Why it is that one., type: str, sample: a guest booted}
"""

import platform
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.agentlab.ocp.plugins.module_utils._ansible import PLAN, run
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import given, partial
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.arguments import argument
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.hypervisors import name_of
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import alike


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            **PLAN,
            "first": argument(alike.Facts),
            "name": {"type": "str"},
            "domain_type": {"type": "str", "choices": ["auto", "kvm", "qemu"]},
        },
        required_one_of=[("plan", "domain_type")],
        mutually_exclusive=[("plan", "domain_type"), ("plan", "name")],
        supports_check_mode=True,
    )

    def check() -> dict[str, Any]:
        params = module.params
        if params["plan"] is not None:
            plan = given.plan_of(params, module.no_log_values.update)
        else:
            plan = partial.hypervisor(params["name"] or platform.node(), params["domain_type"])
        here = alike.measure(plan)
        if params["first"]:
            alike.compare(name_of(plan["hypervisor"]), here, params["first"])
        return {"changed": False, "facts": here}

    run(module, check)


if __name__ == "__main__":
    main()
