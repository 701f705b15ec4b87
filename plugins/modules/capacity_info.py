#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Check that a host has the resources for a plan; see DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
module: capacity_info
short_description: Check that a hypervisor has the resources for a plan
version_added: 1.0.0
description:
  - Compares memory, processors and disk space of the host with what the plan's machines need, and fails with all that is missing.
  - Does not check a cluster that has a state directory already, because its own machines use these resources.
extends_documentation_fragment: [agentlab.ocp.module.reads]
requirements:
  - PyYAML
options:
  plan:
    description: The plan, as M(agentlab.ocp.plan) returns it.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Check that the hypervisor has the resources for the machines
  agentlab.ocp.capacity_info:
    plan: "{{ agentlab_plan }}"
"""

RETURN = r"""
facts:
  description: Resources of the host.
  returned: success
  type: dict
  sample: {memory_mib: 22000, cpus: 8, disk_free_gib: 200}
"""

import platform
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.agentlab.ocp.plugins.module_utils._ansible import run
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import capacity
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.problems import Problem, ProfileError
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.stored import checked


def main() -> None:
    module = AnsibleModule(argument_spec={"plan": {"type": "dict", "required": True}}, supports_check_mode=True)

    def compare() -> dict[str, Any]:
        plan = checked(module.params["plan"])
        directory = plan["hypervisor"]["pool_dir"]
        facts = capacity.measure(Path(directory))
        made = Path(plan["hypervisor"]["state_dir"]).exists()
        lacking = [] if made else capacity.check(plan["nodes"], plan["release"]["payload"], directory, facts)
        if lacking:
            raise ProfileError([Problem.of(platform.node(), *finding) for finding in lacking])
        return {"changed": False, "facts": facts}

    run(module, compare)


if __name__ == "__main__":
    main()
