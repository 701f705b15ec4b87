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
  - Without a plan, what was created with O(cluster). Of libvirt it has the objects that are named.
extends_documentation_fragment:
  - agentlab.ocp.module.no_diff
  - agentlab.ocp.lab.plan
  - agentlab.ocp.short.networks
  - agentlab.ocp.short.nodes
  - agentlab.ocp.short.machines
requirements:
  - PyYAML
options:
  cluster:
    description: Without O(plan), the name that networks and machines were created with.
    type: str
  state_dir:
    description: Without O(plan), the state directory that they were created with. C(/var/lib/agentlab/<cluster>) by default.
    type: path
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

- name: Pack the logs of what M(agentlab.ocp.lab_networks) and M(agentlab.ocp.lab_nodes) created without a cluster
  agentlab.ocp.hypervisor_logs:
    cluster: mine
    networks: "{{ mine_networks }}"
    nodes: "{{ mine_nodes }}"
  become: true
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
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import short
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.arguments import argument
from ansible_collections.agentlab.ocp.plugins.module_utils.report import hypervisor_logs
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import standalone


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            **PLAN,
            "cluster": {"type": "str"},
            "state_dir": {"type": "path"},
            "networks": argument(list[short.ShortNetwork]),
            "nodes": argument(list[short.ShortNode]),
            "machines": argument(list[short.ShortMachine]),
        },
        required_one_of=[("plan", "cluster")],
        mutually_exclusive=[("plan", name) for name in ("cluster", "state_dir", "networks", "nodes", "machines")],
        supports_check_mode=True,
    )

    def pack() -> dict[str, Any]:
        plan = standalone.plan_of(module.params, module.no_log_values.update)
        if module.check_mode:
            return {"changed": True}
        path = hypervisor_logs.pack(plan)
        return {"changed": path is not None, **({"path": str(path)} if path else {})}

    run(module, pack)


if __name__ == "__main__":
    main()
