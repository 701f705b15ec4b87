#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Check the owner of a cluster; see DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
module: lab_owner_info
short_description: Check the owner of a cluster
version_added: 1.0.0
description:
  - Reads C(owner.json) of a cluster's state directory, and fails when the cluster belongs to another user or another run directory.
  - Runs on the hypervisor, before what works from the run directory alone, such as the role P(agentlab.ocp.configure#role).
extends_documentation_fragment: [agentlab.ocp.module.reads]
requirements:
  - PyYAML
options:
  state_dir:
    description: The cluster's state directory.
    type: path
    required: true
  owner:
    description: The caller's identity, C(agentlab_owner), which the role P(agentlab.ocp.plan#role) sets.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Check the owner of the cluster
  agentlab.ocp.lab_owner_info:
    state_dir: "{{ agentlab_plan.hypervisor.state_dir }}"
    owner: "{{ agentlab_owner }}"
  delegate_to: hypervisor
"""

RETURN = r"""
owner:
  description: The owner of the cluster, as in C(owner.json); null when there is none.
  returned: success
  type: dict
"""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.agentlab.ocp.plugins.module_utils._ansible import run
from ansible_collections.agentlab.ocp.plugins.module_utils.state import owner


def main() -> None:
    module = AnsibleModule(
        argument_spec={"state_dir": {"type": "path", "required": True}, "owner": {"type": "dict", "required": True}},
        supports_check_mode=True,
    )

    def check() -> dict[str, Any]:
        found = owner.verify(Path(module.params["state_dir"]), owner.from_fact(module.params["owner"]))
        return {"changed": False, "owner": asdict(found) if found else None}

    run(module, check)


if __name__ == "__main__":
    main()
