#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Run the tests of a profile; see DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_tests
short_description: Run the tests of a profile, or others
version_added: 1.0.0
description:
  - Runs the C(tests) of a plan, or O(tests), one after the other, each within its limit. A command is run, a URL or a path of the OpenShift
    API is requested, or the serial console of a node is read until it matches.
  - A test that fails does not fail the module; see RV(ok). The role P(agentlab.ocp.validate#role) fails then.
  - What a command changes is not known, so the module never reports a change. In check mode no test is run.
extends_documentation_fragment: [agentlab.ocp.module.no_diff, agentlab.ocp.lab.plan, agentlab.ocp.short.tests]
requirements:
  - cryptography
  - kubernetes
  - PyYAML
  - requests
options:
  run_dir:
    description:
      - Run directory of the cluster, whose C(ssh/id_ecdsa) may log in to the nodes, and whose C(auth/kubeconfig) is used.
      - The directory of C(openshift-install) does as well, with O(ssh_key).
    type: path
    required: true
  hosts:
    description: Without O(plan), the hosts that tests are on.
    type: list
    elements: dict
    suboptions:
      name:
        description: Name of the host, as in O(tests[].on).
        type: str
        required: true
      address:
        description: Its name in DNS, or its address.
        type: str
        required: true
      console:
        description: File that has the output of its serial console. Required by the tests that read it.
        type: str
  kubeconfig:
    description: Without O(plan), the kubeconfig. C(auth/kubeconfig) in O(run_dir) by default.
    type: path
  ssh_key:
    description: Without O(plan), the private key that may log in to O(hosts) as C(core). C(ssh/id_ecdsa) in O(run_dir) by default.
    type: path
  place:
    description: V(host) for the tests on the host that the module runs on, V(lab) for all others, which need the cluster's network.
    type: str
    choices: [lab, host]
    default: lab
  only:
    description: Names of the tests to run. All by default.
    type: list
    elements: str
    default: []
"""

EXAMPLES = r"""
- name: Run the tests of the profile
  agentlab.ocp.cluster_tests:
    plan: "{{ agentlab_plan }}"
    run_dir: "{{ agentlab_run_dir }}"
  register: tests

- name: Run tests of any cluster
  agentlab.ocp.cluster_tests:
    run_dir: /srv/assets
    ssh_key: ~/.ssh/id_ed25519
    hosts:
      - {name: master-0, address: 192.0.2.10}
    tests:
      - {name: api-ready, "on": api, http: /readyz}
      - {name: kubelet, "on": master-0, run: systemctl is-active kubelet}
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
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import partial
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.arguments import argument
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.stored import check_plan
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.tests import TestOptions
from ansible_collections.agentlab.ocp.plugins.module_utils.report.ssh import ssh
from ansible_collections.agentlab.ocp.plugins.module_utils.vocabulary import RunFile


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            **PLAN,
            "tests": argument(list[TestOptions]),
            "hosts": argument(list[partial.TestedHost]),
            "kubeconfig": {"type": "path"},
            "ssh_key": {"type": "path"},
            "run_dir": {"type": "path", "required": True},
            "place": {"type": "str", "choices": ["lab", "host"], "default": "lab"},
            "only": {"type": "list", "elements": "str", "default": []},
        },
        required_one_of=[("plan", "tests")],
        mutually_exclusive=[("plan", name) for name in ("tests", "hosts", "kubeconfig", "ssh_key")],
        supports_check_mode=True,
    )

    def run_tests() -> dict[str, Any]:
        params, run_dir = module.params, Path(module.params["run_dir"])
        plan = check_plan(params["plan"]) if params["plan"] is not None else partial.plan_of_tests(params)
        kubeconfig = Path(params["kubeconfig"] or run_dir / RunFile.KUBECONFIG)
        key = Path(params["ssh_key"]) if params["ssh_key"] else None
        environment = {"KUBECONFIG": str(kubeconfig)}
        if params["plan"] is not None:
            environment["CLUSTER"] = plan["cluster"]["name"]
        reach = tests.Reach(
            lambda address: ssh(run_dir, address, key=key), kubeconfig, run_dir / RunFile.CA, environment
        )
        chosen = tests.selected_tests(plan, params["only"], on_host=params["place"] == "host")
        checks = [] if module.check_mode else [tests.execute(plan, test, reach) for test in chosen]
        return {
            "changed": False,
            "ok": all(check.ok for check in checks),
            "checks": [check._asdict() for check in checks],
            "table": table(checks),
        }

    run(module, run_tests)


if __name__ == "__main__":
    main()
