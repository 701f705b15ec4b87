#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Create and start machines outside of the cluster; see DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
module: lab_machines
short_description: Create and start machines outside of the cluster
version_added: 1.0.0
description:
  - Creates the disks and the domains of the C(machines) of a plan in libvirt, and switches them on.
  - Without a plan, those of O(machines), in the networks of M(agentlab.ocp.lab_networks).
  - A machine that runs is left alone. One with the image C(lab) boots again when its image was written again.
extends_documentation_fragment: [agentlab.ocp.module, agentlab.ocp.lab.standalone, agentlab.ocp.lab.owner, agentlab.ocp.short.machines]
requirements:
  - cryptography
  - libvirt-python
  - PyYAML
  - zstandard
options:
  directory:
    description: The run directory, with the images that the module M(agentlab.ocp.machine_images) writes. Without it machines with
      the image C(lab) are left for later.
    type: path
  domain_type:
    description: Without O(plan), the domain type of the machines. V(auto) by default.
    type: str
    choices: [auto, kvm, qemu]
"""

EXAMPLES = r"""
- name: Start the machines outside of the cluster
  agentlab.ocp.lab_machines:
    plan: "{{ agentlab_plan }}"
    owner: "{{ agentlab_owner }}"
    directory: "{{ agentlab_run_dir }}"

- name: Start a machine from a cloud image, without a cluster
  agentlab.ocp.lab_machines:
    cluster: mine
    machines:
      - name: client
        image: /srv/images/debian-12-generic-amd64.qcow2
        nics: [{network: mine0}]
"""

RETURN = r"""
changes:
  description: Names of the created, changed or started objects.
  returned: success
  type: list
  elements: str
"""

from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.agentlab.ocp.plugins.module_utils._ansible import change_result, run
from ansible_collections.agentlab.ocp.plugins.module_utils.libvirt.connection import connect
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import given, short
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.arguments import argument
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import kvm, outside, standalone


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            **standalone.OPTIONS,
            "machines": argument(list[short.ShortMachine]),
            "domain_type": {"type": "str", "choices": ["auto", "kvm", "qemu"]},
            "directory": {"type": "path"},
        },
        required_one_of=[("plan", "machines")],
        mutually_exclusive=[("plan", "machines"), ("plan", "cluster"), ("plan", "domain_type")],
        required_by={"plan": "owner", "machines": "cluster"},
        supports_check_mode=True,
    )

    def start() -> dict[str, Any]:
        params, check = module.params, module.check_mode
        plan = given.plan_of(params, module.no_log_values.update)
        owner = standalone.owner_of(params, plan, check=check)
        kind = kvm.domain_type(plan["hypervisor"]["domain_type"])
        directory = Path(params["directory"]) if params["directory"] else None
        with connect() as connection:
            return change_result(outside.apply(connection, plan, owner, directory, kind, check=check))

    run(module, start)


if __name__ == "__main__":
    main()
