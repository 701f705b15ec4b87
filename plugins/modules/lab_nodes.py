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
extends_documentation_fragment: [agentlab.ocp.module, agentlab.ocp.lab.standalone, agentlab.ocp.short.nodes]
options:
  domain_type:
    description: Without O(plan), the domain type of the machines. V(auto) by default.
    type: str
    choices: [auto, kvm, qemu]
requirements:
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

from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.agentlab.ocp.plugins.module_utils._ansible import STANDALONE, changed, run
from ansible_collections.agentlab.ocp.plugins.module_utils.libvirt import domain, storage
from ansible_collections.agentlab.ocp.plugins.module_utils.libvirt.connection import connect
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import faults, given, short
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.arguments import argument
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.machines import carried
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.modes import MODES
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import kvm, standalone


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            **STANDALONE,
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
        hypervisor, check = plan["hypervisor"], module.check_mode
        found = standalone.owner_of(module.params, plan, check=check)
        console = Path(hypervisor["console_dir"])
        domain_type = kvm.domain_type(hypervisor["domain_type"])
        wanted = [
            domain.render(
                node,
                found,
                pool=hypervisor["pool"],
                domain_type=domain_type,
                console=Path(node["console"]),
                medium=MODES[plan["boot"]["mode"]].medium,
                medium_first=any(faults.of_kind(plan, "boot_order", node["name"])),
                clock_offset=sum(fault["offset"] for fault in faults.of_kind(plan, "clock", node["name"])),
            )
            for node in carried(plan["nodes"])
        ]
        if not check:
            console.mkdir(parents=True, exist_ok=True)
        with connect() as connection:
            pool, made = storage.pool(connection, hypervisor["pool"], hypervisor["pool_dir"], found.mark, check=check)
            changes = (
                [{"name": hypervisor["pool"], "before": "", "after": f"pool {hypervisor['pool_dir']}\n"}]
                if made
                else []
            )
            for disk in storage.missing(pool, [disk for node in carried(plan["nodes"]) for disk in node["disks"]]):
                changes.append({"name": disk["name"], "before": "", "after": f"disk of {disk['size_gib']} GiB\n"})
                if not check:
                    storage.create(pool, disk)
            changes += domain.apply(connection, wanted, check=check)
        return {**changed(changes), "domain_type": domain_type}

    run(module, make)


if __name__ == "__main__":
    main()
