#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Report on an installed cluster; see DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_info
short_description: Report whether an installed cluster is healthy
version_added: 1.0.0
description:
  - Checks that the kubeconfig is usable, that the nodes are Ready, that ClusterVersion is Available and not Failing, that the operators
    are stable, and that no pod fails.
  - With O(plan), also that every role has the right number of nodes with the planned addresses, that the Job
    C(assisted-installer-controller) has completed, that pod and service networks, FIPS mode and the BMCs of BareMetalHosts are the
    planned ones, that the objects of the extra manifests are there with their fields, and that VIPs and DNS names answer for each address family.
  - A check that fails does not fail the module; see RV(ok). The role P(agentlab.ocp.validate#role) fails then.
extends_documentation_fragment: [agentlab.ocp.module.reads]
requirements:
  - cryptography
  - kubernetes
  - PyYAML
  - requests
options:
  kubeconfig:
    description: Path of the kubeconfig.
    type: path
    required: true
  plan:
    description: The plan of the cluster, C(agentlab_plan). Without it, requests are sent to the OpenShift API only.
    type: dict
  run_dir:
    description:
      - Run directory of the cluster, whose C(ssh/id_ecdsa) may log in to the nodes.
      - With it, how each machine was booted and which time servers it used are compared with the O(plan), from the records of the
        installation; what was not recorded is left out.
      - With it, and on the hypervisor, state, networks, addresses and images of the machines outside of the cluster are also compared.
      - With it, bonds, VLANs, MTUs, static routes and default gateways are checked on each node, if the O(plan) has bonds, VLANs or
        static routes.
    type: path
"""

EXAMPLES = r"""
- name: Report on a cluster
  agentlab.ocp.cluster_info:
    kubeconfig: auth/kubeconfig
  register: cluster

- name: Stop when it is not healthy
  ansible.builtin.assert:
    that: cluster.ok
    fail_msg: "{{ cluster.table }}"
"""

RETURN = r"""
ok:
  description: Whether no check failed.
  returned: success
  type: bool
checks:
  description: All checks, in the order in which a failure explains those after it.
  returned: success
  type: list
  elements: dict
  contains:
    name: {description: What was checked., type: str, sample: ClusterOperators}
    ok: {description: Whether it is right., type: bool}
    found: {description: What was found., type: str, sample: 33 of 33 stable}
    seconds: {description: "0; a test of the profile has a time, see M(agentlab.ocp.cluster_tests).", type: float}
table:
  description: The checks, a line each.
  returned: success
  type: str
"""

from functools import partial
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.agentlab.ocp.plugins.module_utils._ansible import run
from ansible_collections.agentlab.ocp.plugins.module_utils.cluster.client import ClusterClient
from ansible_collections.agentlab.ocp.plugins.module_utils.cluster.validate import table, validate
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import phases
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.stored import check_plan
from ansible_collections.agentlab.ocp.plugins.module_utils.report.secrets import of_run
from ansible_collections.agentlab.ocp.plugins.module_utils.report.ssh import on_node
from ansible_collections.agentlab.ocp.plugins.module_utils.state import recording


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "kubeconfig": {"type": "path", "required": True},
            "plan": {"type": "dict"},
            "run_dir": {"type": "path"},
        },
        supports_check_mode=True,
    )

    def check() -> dict[str, Any]:
        given = module.params["plan"]
        run_dir = module.params["run_dir"]
        tape: recording.Tape = recording.no_tape
        if run_dir and not module.check_mode:
            tape = recording.Recorder(Path(run_dir) / recording.FILE, of_run(Path(run_dir)))
        checks = validate(
            phases.present(check_plan(given), Path(run_dir) if run_dir else None) if given else None,
            Path(module.params["kubeconfig"]),
            partial(ClusterClient, tape=tape),
            ask=(lambda address, command: on_node(Path(run_dir), address, command)) if run_dir else None,
            run_dir=Path(run_dir) if run_dir else None,
        )
        return {
            "changed": False,
            "ok": all(c.ok for c in checks),
            "checks": [c._asdict() for c in checks],
            "table": table(checks),
        }

    run(module, check)


if __name__ == "__main__":
    main()
