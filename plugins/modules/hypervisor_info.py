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
extends_documentation_fragment: [agentlab.ocp.module.reads, agentlab.ocp.lab.plan]
requirements:
  - PyYAML
options:
  first:
    description: The facts of the first hypervisor, to compare with.
    type: dict
"""

EXAMPLES = r"""
- name: Measure the hypervisors
  agentlab.ocp.hypervisor_info:
    plan: "{{ agentlab_plan }}"
  become: true
  register: measured
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

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.agentlab.ocp.plugins.module_utils._ansible import PLAN, run
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import given
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.hypervisors import name_of
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import alike


def main() -> None:
    module = AnsibleModule(
        argument_spec={**PLAN, "first": {"type": "dict"}},
        supports_check_mode=True,
    )

    def check() -> dict[str, Any]:
        plan = given.plan_of(module.params, module.no_log_values.update)
        here = alike.measure(plan)
        if module.params["first"]:
            alike.compare(name_of(plan["hypervisor"]), here, module.params["first"])
        return {"changed": False, "facts": here}

    run(module, check)


if __name__ == "__main__":
    main()
