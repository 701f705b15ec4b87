#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Gather logs of a run; see DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
module: gather
short_description: Collect diagnostics of a run
version_added: 1.0.0
description:
  - Collects C(agent-gather) of every host, state and events of the assisted service, objects of the OpenShift API, serial consoles,
    libvirt XML and leases, and logs of the lab's daemons; secrets are redacted.
  - Determines why the installation does not continue; the first cause is at the top of C(summary.txt).
extends_documentation_fragment: [agentlab.ocp.module.reads]
requirements:
  - bcrypt
  - kubernetes
  - PyYAML
  - requests
options:
  plan:
    description: The plan of the cluster.
    type: dict
    required: true
  run_dir:
    description: The run directory.
    type: path
    required: true
  dest:
    description: Directory of the collected files.
    type: path
    required: true
"""

EXAMPLES = r"""
- name: Collect
  agentlab.ocp.gather:
    plan: "{{ agentlab_plan }}"
    run_dir: runs/ostest
    dest: runs/ostest/report
"""

RETURN = r"""
causes:
  description: Why the installation does not continue, the first cause first, each with C(text) and the next C(step).
  returned: always
  type: list
  elements: dict
summary:
  description: The content of C(summary.txt).
  returned: always
  type: str
missing:
  description: What could not be collected, and why.
  returned: always
  type: dict
"""

from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.agentlab.ocp.plugins.module_utils._ansible import run
from ansible_collections.agentlab.ocp.plugins.module_utils.installer.state import StateError, load_wait_for
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.stored import checked
from ansible_collections.agentlab.ocp.plugins.module_utils.report.gather import Gatherer


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "plan": {"type": "dict", "required": True},
            "run_dir": {"type": "path", "required": True},
            "dest": {"type": "path", "required": True},
        },
        supports_check_mode=True,
    )

    def collect() -> dict[str, Any]:
        if module.check_mode:
            return {"changed": True, "causes": [], "summary": "", "missing": {}}
        run_dir = Path(module.params["run_dir"])
        try:
            known = load_wait_for(run_dir)
            auth: tuple[str | None, str] = (known.token, known.scheme)
        except StateError:
            auth = (None, "watcher")
        gatherer = Gatherer(checked(module.params["plan"]), run_dir, Path(module.params["dest"]), auth)
        gathered = gatherer.run()
        return {
            "changed": True,
            "causes": [c._asdict() for c in gathered.causes],
            "summary": gatherer.summary(),
            "missing": gathered.missing,
        }

    run(module, collect)


if __name__ == "__main__":
    main()
