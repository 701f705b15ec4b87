#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Make the machines of a cluster; see DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
module: lab_nodes
short_description: Make the machines of a cluster in libvirt
version_added: 1.0.0
description:
  - Makes the storage pool, the disks and the domains of a plan's nodes. They stay off.
  - Compares with what is defined; a machine that runs is not changed, and neither is the size of a disk.
  - Where the plan says C(auto), the domain type is KVM if a guest really boots on it, which is tried once for each boot of the host.
extends_documentation_fragment: [agentlab.ocp.module, agentlab.ocp.lab.owned]
requirements:
  - libvirt-python
  - PyYAML
"""

EXAMPLES = r"""
- name: Make the machines
  agentlab.ocp.lab_nodes:
    plan: "{{ agentlab_plan }}"
    owner: "{{ agentlab_owner }}"
"""

RETURN = r"""
changes:
  description: Names of what was created or changed.
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
from ansible_collections.agentlab.ocp.plugins.module_utils._ansible import OWNED, changed, run
from ansible_collections.agentlab.ocp.plugins.module_utils.boot.modes import MODES
from ansible_collections.agentlab.ocp.plugins.module_utils.libvirt import domain, storage
from ansible_collections.agentlab.ocp.plugins.module_utils.libvirt.connection import connect
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import faults, given
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import kvm
from ansible_collections.agentlab.ocp.plugins.module_utils.state import owner


def main() -> None:
    module = AnsibleModule(argument_spec=OWNED, supports_check_mode=True)

    def make() -> dict[str, Any]:
        plan = given.plan_of(module.params, module.no_log_values.update)
        hypervisor, check = plan["hypervisor"], module.check_mode
        found = owner.of_cluster(module.params, check=module.check_mode)
        console = Path(hypervisor["console_dir"])
        domain_type = kvm.domain_type(hypervisor["domain_type"])
        wanted = [
            domain.render(
                node,
                found,
                pool=hypervisor["pool"],
                domain_type=domain_type,
                console=Path(node["console"]),
                network_boot=not MODES[plan["boot"]["mode"]].cd,
                medium_first=any(faults.of_kind(plan, "boot_order", node["name"])),
                clock_offset=sum(fault["offset"] for fault in faults.of_kind(plan, "clock", node["name"])),
            )
            for node in plan["nodes"]
        ]
        if not check:
            console.mkdir(parents=True, exist_ok=True)
        with connect() as connection:
            pool, made = storage.pool(connection, hypervisor["pool"], hypervisor["pool_dir"], found.mark, check=check)
            changes = [{"name": hypervisor["pool"], "before": "", "after": f"pool {hypervisor['pool_dir']}\n"}] if made else []
            for disk in storage.missing(pool, [disk for node in plan["nodes"] for disk in node["disks"]]):
                changes.append({"name": disk["name"], "before": "", "after": f"disk of {disk['size_gib']} GiB\n"})
                if not check:
                    storage.create(pool, disk)
            changes += domain.apply(connection, wanted, check=check)
        return {**changed(changes), "domain_type": domain_type}

    run(module, make)


if __name__ == "__main__":
    main()
