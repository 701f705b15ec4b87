#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Plan a cluster; see DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
module: plan
short_description: Derive the plan of a cluster from a profile
version_added: 1.0.0
description:
  - Reads a profile, validates it, and derives everything from it that the other stages need, such as names, addresses, MACs,
    UUIDs, DNS records, ports and paths.
  - Writes C(profile.yaml), C(plan.yaml) and C(inventory.yml) to the run directory.
  - What a profile lays over the installer's files is refused here when C(openshift-install) would refuse it, or the plan contradicts it.
  - Without a profile it uses the plan in the run directory, including edits.
  - A cluster of this name on this host that belongs to another user or another run directory is refused.
extends_documentation_fragment: [agentlab.ocp.module]
requirements:
  - cryptography
  - PyYAML
options:
  profile:
    description:
      - Path of a profile, name of one in O(profiles), or a scenario of dev-scripts such as C(HA_IPV4V6_DHCP).
    type: str
  profiles:
    description: Directory of the named profiles.
    type: path
  cluster:
    description: Name of the cluster.
    type: str
    default: ostest
  run_dir:
    description: The run directory.
    type: path
    required: true
  files:
    description:
      - Read the files that the profile names, such as the pull secret, and fail if one cannot be used.
      - They are not needed to wait for, validate or remove a cluster.
    type: bool
    default: false
  overrides:
    description:
      - Replacements of components of the lab payload, by component, which win over C(release.payload_overrides) of the profile.
      - Without O(profile), they are laid over C(profile.yaml) of the run directory.
    type: dict
    default: {}
  hypervisor:
    description: Name of the hypervisor in whose view the plan is returned, of several. By default the first one, which sees all.
    type: str
    default: hypervisor
  adopt:
    description: Take over the cluster of another owner.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Plan a compact cluster
  agentlab.ocp.plan:
    profile: compact_ipv4
    profiles: config_examples
    run_dir: runs/ostest

- name: Read the existing plan
  agentlab.ocp.plan:
    run_dir: runs/ostest
"""

RETURN = r"""
plan:
  description: The plan. docs/plan.schema.json has every field.
  returned: success
  type: dict
  contains: # written by ci/generate.py
    cluster:
      description:
        - The cluster as a whole.
      type: dict
    release:
      description:
        - What is installed.
      type: dict
    hypervisor:
      description:
        - Where the machines run.
      type: dict
    networks:
      description:
        - The networks; the first is the machine network.
      type: list
      elements: dict
    vips:
      description:
        - The addresses that api and *.apps resolve to.
      type: dict
    endpoints:
      description:
        - Where the cluster is reached.
      type: dict
    rendezvous:
      description:
        - The node that runs the assisted service and boots first.
      type: dict
    nodes:
      description:
        - The machines, in the order of their addresses.
      type: list
      elements: dict
    services:
      description:
        - What the gateway of the machine network serves.
      type: dict
    boot:
      description:
        - How the machines boot the agent ISO.
      type: dict
    installer:
      description:
        - What the installer's input files need beyond the machines.
      type: dict
    settings:
      description:
        - Intervals of the lab payload's programs.
      type: dict
    faults:
      description:
        - What goes wrong on purpose; see faults.md.
      type: list
      elements: dict
    snapshots:
      description:
        - When the lab is saved during the wait, as a snapshot of that name.
      type: list
      elements: str
    tests:
      description:
        - What 'validate' executes in addition to its own checks.
      type: list
      elements: dict
    machines:
      description:
        - 'Machines that are not part of the cluster; null, or not given: there are none.'
      type: list
      elements: dict
    hypervisors:
      description:
        - 'Further hypervisors, which carry the nodes that name them; null, or not given: there are none.'
      type: list
      elements: dict
run_dir:
  description: The run directory, absolute.
  returned: success
  type: str
  sample: /home/user/agentlab/runs/ostest
owner:
  description: The caller's identity, for the modules that enter, change or remove the cluster.
  returned: success
  type: dict
hosts:
  description: The hosts of C(inventory.yml), for M(ansible.builtin.add_host).
  returned: success
  type: list
  elements: dict
  contains:
    name: {description: Name in the inventory., type: str, sample: hypervisor}
    groups: {description: Groups of the host., type: list, elements: str, sample: [hypervisors, observers]}
    variables: {description: "Connection variables, and C(agentlab_cluster) and C(agentlab_run_dir).", type: dict}
"""

import os
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.agentlab.ocp.plugins.module_utils import contradictions
from ansible_collections.agentlab.ocp.plugins.module_utils._ansible import run
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import hypervisors, rundir
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.warnings import warnings
from ansible_collections.agentlab.ocp.plugins.module_utils.state import owner
from ansible_collections.agentlab.ocp.plugins.module_utils.vocabulary import DEFAULT_CLUSTER


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "profile": {"type": "str"},
            "profiles": {"type": "path"},
            "cluster": {"type": "str", "default": DEFAULT_CLUSTER},
            "run_dir": {"type": "path", "required": True},
            "files": {"type": "bool", "default": False},
            "overrides": {"type": "dict", "default": {}},
            "hypervisor": {"type": "str", "default": hypervisors.FIRST},
            "adopt": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )

    def plan() -> dict[str, Any]:
        folder = module.params["profiles"]
        run_dir = Path(os.path.abspath(module.params["run_dir"]))
        adopt, overrides = module.params["adopt"], module.params["overrides"]
        made, changes = contradictions.prepare(
            run_dir,
            module.params["profile"] or (str(run_dir / rundir.PROFILE) if overrides else None),
            Path(folder) if folder else None,
            module.params["cluster"],
            files=module.params["files"],
            adopt=adopt,
            components=overrides,
        )
        for warning in warnings(made):
            module.warn(warning)
        if not module.check_mode:
            rundir.write(changes)
        seen = hypervisors.view(made, module.params["hypervisor"])
        return {
            "changed": bool(changes),
            "diff": [change.diff() for change in changes],
            "plan": seen,
            "run_dir": str(run_dir),
            "hosts": rundir.hosts(made, run_dir),
            "owner": owner.caller(seen, run_dir, adopt=adopt).fact(),
        }

    run(module, plan)


if __name__ == "__main__":
    main()
