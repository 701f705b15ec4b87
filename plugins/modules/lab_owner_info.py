#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Check the owner of a cluster; see DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
module: lab_owner_info
short_description: Check the owner of a cluster
version_added: 1.0.0
description:
  - Reads C(owner.json) of a cluster's state directory. With O(owner) it fails when the cluster belongs to another user or another run
    directory.
  - Runs on the hypervisor, before what works from the run directory alone, such as the role P(agentlab.ocp.configure#role).
extends_documentation_fragment: [agentlab.ocp.module.reads, agentlab.ocp.lab.owner]
requirements:
  - PyYAML
options:
  state_dir:
    description: The cluster's state directory.
    type: path
    required: true
"""

EXAMPLES = r"""
- name: Check the owner of the cluster
  agentlab.ocp.lab_owner_info:
    state_dir: "{{ agentlab_plan.hypervisor.state_dir }}"
    owner: "{{ agentlab_owner }}"
  delegate_to: hypervisor

- name: Report who owns a cluster of this host
  agentlab.ocp.lab_owner_info:
    state_dir: /var/lib/agentlab/ostest
  register: found
"""

RETURN = r"""
owner:
  description: The owner of the cluster, as in C(owner.json); null when there is none.
  returned: success
  type: dict
  contains:
    cluster: {description: Its name., type: str, sample: ostest}
    run_dir: {description: Path of the run directory., type: str, sample: /home/dev/runs/ostest}
    uid: {description: Number of the user., type: int, sample: 1000}
    user: {description: Name of the user., type: str, sample: dev}
    host: {description: Name of the host with the run directory., type: str, sample: lab1}
    plan: {description: Digest of the plan., type: str}
    mark: {description: What marks the cluster's objects on a hypervisor., type: str}
    kept: {description: "Whether the state directory existed before, and stays.", type: bool}
"""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.agentlab.ocp.plugins.module_utils._ansible import run
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.arguments import argument
from ansible_collections.agentlab.ocp.plugins.module_utils.state import owner


def main() -> None:
    module = AnsibleModule(
        argument_spec={"state_dir": {"type": "path", "required": True}, "owner": argument(owner.Caller)},
        supports_check_mode=True,
    )

    def check() -> dict[str, Any]:
        state_dir, caller = Path(module.params["state_dir"]), module.params["owner"]
        found = owner.verify(state_dir, owner.from_fact(caller)) if caller else owner.read(state_dir)
        return {"changed": False, "owner": asdict(found) if found else None}

    run(module, check)


if __name__ == "__main__":
    main()
