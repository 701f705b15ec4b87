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
  - Of a sandbox, the directories above the disks are checked, too. QEMU must be able to enter them.
  - Without a plan, what O(nodes) need.
extends_documentation_fragment: [agentlab.ocp.module.reads, agentlab.ocp.short.nodes]
requirements:
  - PyYAML
options:
  plan:
    description: The plan, as M(agentlab.ocp.plan) returns it.
    type: dict
  directory:
    description: Without O(plan), where the disks of O(nodes) will be.
    type: path
    default: /var/lib/agentlab
  payload:
    description: Without O(plan), what is installed on O(nodes), V(lab) for the lab payload. It determines how much is written to a disk.
    type: str
    choices: [ocp, okd, lab]
    default: ocp
"""

EXAMPLES = r"""
- name: Check that the hypervisor has the resources for the machines
  agentlab.ocp.capacity_info:
    plan: "{{ agentlab_plan }}"

- name: Check that it has the resources for two machines
  agentlab.ocp.capacity_info:
    nodes:
      - {name: node-0, vcpus: 4, memory_mib: 16384}
      - {name: node-1, vcpus: 4, memory_mib: 16384}
"""

RETURN = r"""
facts:
  description: Resources of the host.
  returned: success
  type: dict
  sample: {memory_mib: 22000, cpus: 8, disk_free_gib: 200}
"""

import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.agentlab.ocp.plugins.module_utils._ansible import run
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import capacity, ipi, short
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.arguments import argument
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.hypervisors import on_this_host
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.model import Plan
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.names import STATE_DIR
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.outside import machines
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.problems import Problem, ProfileError
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.stored import check_plan
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.topologies import PAYLOADS


def _machines(plan: Plan) -> list[Mapping[str, Any]]:
    bootstrap = ipi.bootstrap(plan)
    return [*on_this_host(plan), *machines(plan), *([bootstrap] if bootstrap else [])]


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "plan": {"type": "dict"},
            "nodes": argument(list[short.ShortNode]),
            "directory": {"type": "path", "default": STATE_DIR},
            "payload": {"type": "str", "choices": list(PAYLOADS), "default": "ocp"},
        },
        required_one_of=[("plan", "nodes")],
        mutually_exclusive=[("plan", "nodes")],
        supports_check_mode=True,
    )

    def compare() -> dict[str, Any]:
        params, made = module.params, False
        if params["plan"]:
            plan = check_plan(params["plan"])
            directory, payload = plan["hypervisor"]["pool_dir"], plan["release"]["payload"]
            made = Path(plan["hypervisor"]["state_dir"]).exists()
        else:
            plan = short.plan({"cluster": "capacity", "nodes": params["nodes"]})
            directory, payload = params["directory"], params["payload"]
        facts = capacity.measure(Path(directory))
        found = [] if made else capacity.check(_machines(plan), payload, directory, facts)
        if params["plan"] and plan["hypervisor"]["kind"] == "sandbox":
            found += capacity.closed_directories(Path(plan["hypervisor"]["state_dir"]))
        if found:
            raise ProfileError([Problem.of(platform.node(), *finding) for finding in found])
        return {"changed": False, "facts": facts}

    run(module, compare)


if __name__ == "__main__":
    main()
