#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Remove a cluster from a hypervisor; see DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
module: lab_destroy
short_description: Remove what a cluster made on a hypervisor
version_added: 1.0.0
description:
  - Removes exactly what C(state.json) of the run directory lists, in whatever state it is, and takes it off the list.
  - For a sandbox it runs on the controller, as root; for another hypervisor, on that.
extends_documentation_fragment: [agentlab.ocp.module]
options:
  created:
    description: The list of C(state.json), or the part of it that is on this host.
    type: list
    elements: dict
    required: true
  cluster:
    description: Name of the cluster.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Remove what the cluster made
  agentlab.ocp.lab_destroy:
    created: "{{ agentlab_state.created }}"
    cluster: ostest
  delegate_to: localhost
  become: true
"""

RETURN = r"""
removed:
  description: What was there and is removed.
  returned: success
  type: list
  elements: dict
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.agentlab.ocp.plugins.module_utils._ansible import run
from ansible_collections.agentlab.ocp.plugins.module_utils.libvirt.remove import remove
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import LabError


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "created": {"type": "list", "elements": "dict", "required": True},
            "cluster": {"type": "str", "required": True},
        },
        supports_check_mode=True,
    )

    def destroy() -> dict[str, Any]:
        removed = remove(module.params["created"], module.params["cluster"], check=module.check_mode)
        before = "".join(f"{item['kind']} {item['name']}\n" for item in removed)
        return {"changed": bool(removed), "removed": removed, "diff": {"before": before, "after": ""}}

    run(module, destroy, LabError)


if __name__ == "__main__":
    main()
