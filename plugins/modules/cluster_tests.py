#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Carry out the tests of a profile; see DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_tests
short_description: Carry out the tests that a profile has
version_added: 1.0.0
description:
  - Carries out the C(tests) of a plan, one after the other, each within its limit. A command is run, a URL or a path of the OpenShift
    API is requested, or the serial console of a node is read until it matches.
  - A test that fails does not fail the module; see RV(ok). The role P(agentlab.ocp.validate#role) fails then.
  - What a command changes is not known, so the module never reports a change. In check mode nothing is carried out.
extends_documentation_fragment: [agentlab.ocp.module.no_diff, agentlab.ocp.lab.plan]
requirements:
  - cryptography
  - kubernetes
  - PyYAML
  - requests
options:
  run_dir:
    description: Run directory of the cluster, whose C(ssh/id_ecdsa) may log in to the nodes, and whose C(auth/kubeconfig) is used.
    type: path
    required: true
  place:
    description: V(host) for the tests on the host that the module runs on, V(lab) for all others, which need the cluster's network.
    type: str
    choices: [lab, host]
    default: lab
  only:
    description: Names of the tests to carry out. All by default.
    type: list
    elements: str
    default: []
"""

EXAMPLES = r"""
- name: Carry out the tests of the profile
  agentlab.ocp.cluster_tests:
    plan: "{{ agentlab_plan }}"
    run_dir: "{{ agentlab_run_dir }}"
  register: tests
"""

RETURN = r"""
ok:
  description: Whether no test failed.
  returned: success
  type: bool
checks:
  description: The tests, in their order.
  returned: success
  type: list
  elements: dict
  contains:
    name: {description: The word C(test) and its name., type: str, sample: test api-ready}
    ok: {description: Whether it is as expected., type: bool}
    found: {description: What was found., type: str, sample: exit status 0 (0.2 s)}
    seconds: {description: "How long it took, in seconds.", type: float, sample: 0.2}
table:
  description: The tests, a line each.
  returned: success
  type: str
"""

from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.agentlab.ocp.plugins.module_utils._ansible import PLAN, run
from ansible_collections.agentlab.ocp.plugins.module_utils.cluster import tests
from ansible_collections.agentlab.ocp.plugins.module_utils.cluster.validate import table
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.stored import checked
from ansible_collections.agentlab.ocp.plugins.module_utils.report.ssh import ssh
from ansible_collections.agentlab.ocp.plugins.module_utils.vocabulary import RunFile


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            **PLAN,
            "run_dir": {"type": "path", "required": True},
            "place": {"type": "str", "choices": ["lab", "host"], "default": "lab"},
            "only": {"type": "list", "elements": "str", "default": []},
        },
        supports_check_mode=True,
    )

    def carry_out() -> dict[str, Any]:
        plan, run_dir = checked(module.params["plan"]), Path(module.params["run_dir"])
        kubeconfig = run_dir / RunFile.KUBECONFIG
        reach = tests.Reach(
            lambda address: ssh(run_dir, address),
            kubeconfig,
            run_dir / RunFile.CA,
            {"KUBECONFIG": str(kubeconfig), "CLUSTER": plan["cluster"]["name"]},
        )
        chosen = tests.selected(plan, module.params["only"], on_host=module.params["place"] == "host")
        checks = [] if module.check_mode else [tests.execute(plan, test, reach) for test in chosen]
        return {
            "changed": False,
            "ok": all(check.ok for check in checks),
            "checks": [check._asdict() for check in checks],
            "table": table(checks),
        }

    run(module, carry_out)


if __name__ == "__main__":
    main()
