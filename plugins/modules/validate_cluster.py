#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Check an installed cluster; see DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
module: validate_cluster
short_description: Check an installed cluster against its plan
version_added: 1.0.0
description:
  - Checks that the kubeconfig is usable, that every role has the right number of nodes that are Ready, that ClusterVersion is
    Available and not Failing, that the operators are stable, and that VIPs and DNS names answer for each address family.
  - Fails when a check does, with all checks in the result.
extends_documentation_fragment: [agentlab.ocp.module.reads]
requirements:
  - kubernetes
  - PyYAML
  - requests
options:
  plan:
    description: The plan of the cluster.
    type: dict
    required: true
  kubeconfig:
    description: Path of the kubeconfig.
    type: path
    required: true
"""

EXAMPLES = r"""
- name: Check the cluster
  agentlab.ocp.validate_cluster:
    plan: "{{ agentlab_plan }}"
    kubeconfig: runs/ostest/auth/kubeconfig
"""

RETURN = r"""
checks:
  description: Every check with C(name), C(ok) and what was C(found).
  returned: always
  type: list
  elements: dict
table:
  description: The checks, for people.
  returned: always
  type: str
"""

from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.agentlab.ocp.plugins.module_utils._ansible import run
from ansible_collections.agentlab.ocp.plugins.module_utils.cluster.validate import table, validate
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.stored import checked


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "plan": {"type": "dict", "required": True},
            "kubeconfig": {"type": "path", "required": True},
        },
        supports_check_mode=True,
    )

    def check() -> dict[str, Any]:
        checks = validate(checked(module.params["plan"]), Path(module.params["kubeconfig"]))
        result = {"changed": False, "checks": [c._asdict() for c in checks], "table": table(checks)}
        failed = [c for c in checks if not c.ok]
        if failed:
            module.fail_json(msg=f"{len(failed)} of {len(checks)} checks failed:\n{table(checks)}", **result)
        return result

    run(module, check)


if __name__ == "__main__":
    main()
