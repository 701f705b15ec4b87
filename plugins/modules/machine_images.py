#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Write the images of machines outside of the cluster; see DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
module: machine_images
short_description: Write the images of machines outside of the cluster
version_added: 1.0.0
description:
  - Writes C(machines/<name>.iso) in the run directory for each machine of the plan, or of O(machines), with the image C(lab).
  - An image is the live ISO of the lab payload with an Ignition config, which has host name, addresses, SSH keys, files and units, and
    on the load balancer the configuration of haproxy.
extends_documentation_fragment: [agentlab.ocp.module, agentlab.ocp.lab.plan, agentlab.ocp.short.machines]
requirements:
  - cryptography
  - libvirt-python
  - PyYAML
  - zstandard
options:
  directory:
    description:
      - The run directory, with C(ssh/id_ecdsa.pub) and C(tls/ca.crt), which the module M(agentlab.ocp.configure) writes.
      - With O(machines) any directory. Its SSH key pair C(ssh/id_ecdsa), which logs in as C(core), is created if it does not exist.
    type: path
    required: true
  ssh_key_file:
    description: With O(machines), a file with further public keys that may log in.
    type: path
  base:
    description: The live ISO. Required unless in check mode, in which it may not have been built yet.
    type: path
"""

EXAMPLES = r"""
- name: Write the images of the machines
  agentlab.ocp.machine_images:
    plan: "{{ agentlab_plan }}"
    directory: "{{ agentlab_run_dir }}"
    base: "{{ agentlab_payload.iso }}"

- name: Write the image of a web server, without a cluster
  agentlab.ocp.machine_images:
    machines:
      - name: web
        files: {/srv/index.html: hello}
        units: {web.service: "{{ lookup('ansible.builtin.file', 'web.service') }}"}
    directory: /srv/mine
    base: "{{ agentlab_payload.iso }}"
"""

RETURN = r"""
changes:
  description: Names of the machines whose image was written.
  returned: success
  type: list
  elements: str
"""

from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.agentlab.ocp.plugins.module_utils._ansible import PLAN, change_result, run
from ansible_collections.agentlab.ocp.plugins.module_utils.keys import ensure_ssh_key
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import given, short
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.arguments import argument
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import outside


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            **PLAN,
            "machines": argument(list[short.ShortMachine]),
            "ssh_key_file": {"type": "path"},
            "directory": {"type": "path", "required": True},
            "base": {"type": "path"},
        },
        required_one_of=[("plan", "machines")],
        mutually_exclusive=[("plan", "machines"), ("plan", "ssh_key_file")],
        supports_check_mode=True,
    )

    def write() -> dict[str, Any]:
        params, check = module.params, module.check_mode
        plan = given.plan_of({**params, "cluster": "machines"}, module.no_log_values.update)
        if not params["base"] and not check:
            raise ValueError("base is missing: pass the path of the lab payload's live ISO")
        base, directory = Path(params["base"]) if params["base"] else None, Path(params["directory"])
        if params["plan"] is None and not check:
            ensure_ssh_key(directory)
        return change_result(outside.write_images(plan, directory, base, check=check))

    run(module, write)


if __name__ == "__main__":
    main()
