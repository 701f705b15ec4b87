#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Write the installer's input; see DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
module: configure
short_description: Write install-config.yaml and agent-config.yaml of a plan
version_added: 1.0.0
description:
  - Writes C(install-config.yaml), C(agent-config.yaml) and, if the plan has settings,
    C(openshift/agentlab-settings.yaml) to the run directory.
  - Creates the run's certificate authority (C(tls/)) and SSH key pair (C(ssh/)) if they do not exist.
  - The installer consumes its input, that is, removes it after use. The last written files are kept in C(inputs/), so that a
    consumed file is only written again if it would differ. A file that users changed is kept.
extends_documentation_fragment: [agentlab.ocp.module]
requirements:
  - cryptography
  - PyYAML
options:
  plan:
    description: The plan, as M(agentlab.ocp.plan) returns it.
    type: dict
    required: true
  run_dir:
    description: The run directory.
    type: path
    required: true
"""

EXAMPLES = r"""
- name: Write the installer's input
  agentlab.ocp.configure:
    plan: "{{ agentlab_plan }}"
    run_dir: "{{ agentlab_run_dir }}"
"""

RETURN = r"""
files:
  description: The files that differ, relative to the run directory.
  returned: success
  type: list
  elements: str
  sample: [install-config.yaml, agent-config.yaml]
"""

from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.agentlab.ocp.plugins.module_utils._ansible import run
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import inputs, rundir
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.stored import check_plan


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "plan": {"type": "dict", "required": True},
            "run_dir": {"type": "path", "required": True},
        },
        supports_check_mode=True,
    )

    def configure() -> dict[str, Any]:
        run_dir = Path(module.params["run_dir"]).absolute()
        changes = inputs.prepare(check_plan(module.params["plan"]), run_dir, check=module.check_mode)
        if not module.check_mode:
            rundir.write(changes)
        shown = [change for change in changes if change.path.parent.name != inputs.LAST]
        return {
            "changed": bool(changes),
            "files": [str(change.path.relative_to(run_dir)) for change in shown],
            "diff": [change.diff() for change in shown],
        }

    run(module, configure)


if __name__ == "__main__":
    main()
