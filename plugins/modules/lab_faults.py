#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Inject the faults of a plan; see DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
module: lab_faults
short_description: Inject the faults defined in a plan
version_added: 1.0.0
description:
  - Starts a process on the hypervisor that injects those faults of the plan that affect machines, cables, media and services, each
    at its trigger during the installation. It is one of the lab's processes, and ends with the lab.
  - Does nothing if the plan has no such faults.
extends_documentation_fragment: [agentlab.ocp.module, agentlab.ocp.lab.owned]
requirements:
  - PyYAML
  - requests
options:
  dir:
    description: Assets directory of the installation, with the address and credentials of the assisted service.
    type: path
    required: true
"""

EXAMPLES = r"""
- name: Start fault injection
  agentlab.ocp.lab_faults:
    plan: "{{ agentlab_plan }}"
    owner: "{{ agentlab_owner }}"
    dir: "{{ agentlab_run_dir }}"
"""

RETURN = r"""
changes:
  description: Names of the started processes.
  returned: success
  type: list
  elements: str
"""

from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.agentlab.ocp.plugins.module_utils._ansible import OWNED, changed, run
from ansible_collections.agentlab.ocp.plugins.module_utils.assisted.client import HEADERS, AssistedClient
from ansible_collections.agentlab.ocp.plugins.module_utils.errors import LabError
from ansible_collections.agentlab.ocp.plugins.module_utils.installer.state import StateError, load_wait_for
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import given
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import faults
from ansible_collections.agentlab.ocp.plugins.module_utils.state import owner


def main() -> None:
    module = AnsibleModule(argument_spec={**OWNED, "dir": {"type": "path", "required": True}}, supports_check_mode=True)

    def start() -> dict[str, Any]:
        plan = given.plan_of(module.params, module.no_log_values.update)
        owner.of_cluster(module.params, check=module.check_mode)
        try:
            known = load_wait_for(Path(module.params["dir"]))
        except StateError as error:
            if not module.check_mode:
                raise LabError(str(error)) from error
            return {"changed": True, "changes": [faults.NAME]}
        url = AssistedClient(known.rendezvous_ip, known.token, known.scheme).base
        headers = {HEADERS[known.scheme]: known.token} if known.token else {}
        return changed(faults.ensure(plan, url, headers, check=module.check_mode))

    run(module, start)


if __name__ == "__main__":
    main()
