#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Pack the logs of a hypervisor; see DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
module: hypervisor_logs
short_description: Pack the logs of a hypervisor
version_added: 1.0.0
description:
  - Packs what a hypervisor has of the cluster's machines and services, for M(agentlab.ocp.gather) on another host. That is XML of
    libvirt, leases, logs of QEMU, consoles, and logs of services.
  - Nothing in the archive is redacted; M(agentlab.ocp.gather) does that. It is in the state directory, and removed with it.
  - Runs as root on the host of the hypervisor, outside of a sandbox.
extends_documentation_fragment: [agentlab.ocp.module.no_diff, agentlab.ocp.lab.plan]
requirements:
  - PyYAML
"""

EXAMPLES = r"""
- name: Pack the logs
  agentlab.ocp.hypervisor_logs:
    plan: "{{ agentlab_plan }}"
  become: true
  register: packed

- name: Fetch them to where the role gather expects them
  ansible.builtin.fetch:
    src: "{{ packed.path }}"
    dest: "{{ agentlab_run_dir }}/logs/{{ inventory_hostname }}.tar.xz"
    flat: true
"""

RETURN = r"""
path:
  description: The archive.
  returned: when the hypervisor has a state directory of the cluster, unless in check mode
  type: str
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.agentlab.ocp.plugins.module_utils._ansible import PLAN, run
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import given
from ansible_collections.agentlab.ocp.plugins.module_utils.report import hypervisor_logs


def main() -> None:
    module = AnsibleModule(argument_spec=PLAN, supports_check_mode=True)

    def pack() -> dict[str, Any]:
        plan = given.plan_of(module.params, module.no_log_values.update)
        if module.check_mode:
            return {"changed": True}
        path = hypervisor_logs.pack(plan)
        return {"changed": path is not None, **({"path": str(path)} if path else {})}

    run(module, pack)


if __name__ == "__main__":
    main()
