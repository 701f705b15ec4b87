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
  - Without a plan, for any agent-based installation, only C(agent-gather) of O(hosts), and what the assisted service and the
    OpenShift API return, without causes.
extends_documentation_fragment: [agentlab.ocp.module.no_diff, agentlab.ocp.short.hosts]
requirements:
  - bcrypt
  - cryptography
  - kubernetes
  - PyYAML
  - requests
options:
  plan:
    description: The plan of the cluster.
    type: dict
  ssh_key:
    description: Without O(plan), the private key that may log in to the hosts as C(core). C(ssh/id_ecdsa) in O(run_dir) by default.
    type: path
  run_dir:
    description: The run directory, or that of C(openshift-install agent).
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

- name: Collect from an installation by openshift-install agent
  agentlab.ocp.gather:
    run_dir: /srv/assets
    dest: /srv/report
    ssh_key: ~/.ssh/id_ed25519
    hosts:
      - {name: master-0, address: 192.0.2.10}
      - {name: master-1, address: 192.0.2.11}
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

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.agentlab.ocp.plugins.module_utils._ansible import run
from ansible_collections.agentlab.ocp.plugins.module_utils.devscripts import farm
from ansible_collections.agentlab.ocp.plugins.module_utils.installer.state import StateError, load_wait_for
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import short
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.arguments import argument
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.stored import check_plan
from ansible_collections.agentlab.ocp.plugins.module_utils.report.gather import ExternalCluster, Gatherer


def _external_cluster(params: Mapping[str, Any], rendezvous_ip: str) -> ExternalCluster:
    given = params["hosts"] or farm.hosts(Path(params["run_dir"]))
    hosts = short.hosts(given or [{"name": "rendezvous", "address": rendezvous_ip}])
    return ExternalCluster(hosts, rendezvous_ip, Path(params["ssh_key"]) if params["ssh_key"] else None)


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "plan": {"type": "dict"},
            "hosts": argument(list[short.ShortHost]),
            "ssh_key": {"type": "path"},
            "run_dir": {"type": "path", "required": True},
            "dest": {"type": "path", "required": True},
        },
        mutually_exclusive=[("plan", "hosts"), ("plan", "ssh_key")],
        supports_check_mode=True,
    )

    def collect() -> dict[str, Any]:
        if module.check_mode:
            return {"changed": True, "causes": [], "summary": "", "missing": {}}
        params, run_dir = module.params, Path(module.params["run_dir"])
        plan = check_plan(params["plan"]) if params["plan"] else None
        try:
            known = load_wait_for(run_dir)
            auth: tuple[str | None, str] = (known.token, known.scheme)
        except StateError:
            if plan is None:
                raise
            auth = (None, "watcher")
        of = plan or _external_cluster(params, known.rendezvous_ip)
        gatherer = Gatherer(of, run_dir, Path(params["dest"]), auth)
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
