#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Create the image of nodes that join a cluster; see DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
module: node_image
short_description: Create the image from which nodes join an installed cluster
version_added: 1.0.0
description:
  - Does what C(oc adm node-image create) does. It turns C(nodes-config.yaml) and what the OpenShift API shows of the installed cluster into
    C(node.x86_64.iso), or the files for a network boot.
  - The tokens of the image are stored in the Secret C(openshift-config/agent-auth-token), and are valid for 48 hours. As long as more than 24
    hours of them are left and the inputs are the same, nothing changes.
  - Neither image nor Secret is written when the cluster is not installed, when its release does not have the wanted architecture, or when a
    node of the cluster has the name or the address of a host.
extends_documentation_fragment: [agentlab.ocp.module]
requirements:
  - bcrypt
  - cryptography
  - Jinja2
  - kubernetes
  - PyYAML
  - requests
  - zstandard
options:
  directory:
    description: Directory of C(nodes-config.yaml) and of what is created.
    type: path
    required: true
  kubeconfig:
    description: The kubeconfig of the installed cluster.
    type: path
    required: true
  assets:
    description: The directory C(files/live) of the role P(agentlab.ocp.agent_image#role), which has the units and scripts of the live system.
      That of the collection on this host by default.
    type: path
  pxe:
    description: Create the files for a network boot instead of the ISO.
    type: bool
    default: false
  plan:
    description:
      - The plan of the cluster, C(agentlab_plan). With it C(nodes-config.yaml) is written first, for the day-2 nodes (C(day2) in the profile).
      - Nothing changes when all of O(only) are nodes of the cluster.
    type: dict
  only:
    description: With O(plan), the names of the nodes to add. All day-2 nodes by default.
    type: list
    elements: str
    default: []
  architecture:
    description: With O(plan), the architecture of the nodes, such as V(arm64). That of the cluster by default.
    type: str
    default: ''
  os_image:
    description: Path or URL of the base ISO. That of the cluster's release by default.
    type: str
  release_profile:
    description: The minor release to behave like, such as V(4.18). That of the cluster's version by default.
    type: str
  cache:
    description: The cache of base ISOs. C(agentlab) below E(XDG_CACHE_HOME) by default.
    type: path
"""

EXAMPLES = r"""
- name: Create the node ISO of the nodes in nodes-config.yaml
  agentlab.ocp.node_image:
    directory: "{{ playbook_dir }}/add-nodes"
    kubeconfig: "{{ playbook_dir }}/auth/kubeconfig"

- name: Create the node ISO of the day-2 nodes of a plan
  agentlab.ocp.node_image:
    directory: "{{ agentlab_run_dir }}/add-nodes"
    kubeconfig: "{{ agentlab_run_dir }}/auth/kubeconfig"
    plan: "{{ agentlab_plan }}"
"""

RETURN = r"""
changed_files:
  description: The changed files, relative to the directory, and the changed Secret.
  returned: success
  type: list
  elements: str
  sample: [node.x86_64.iso, Secret openshift-config/agent-auth-token]
image:
  description: Path of the node ISO.
  returned: success, without O(pxe)
  type: str
  sample: /home/dev/runs/ostest/add-nodes/node.x86_64.iso
nodes:
  description: The nodes of O(only), with the addresses by which M(agentlab.ocp.node_monitor) follows them.
  returned: with O(plan)
  type: list
  elements: dict
  contains:
    name: {description: Its host name., type: str, sample: worker-0}
    address: {description: Its first address in the machine network., type: str, sample: 192.168.111.30}
missing:
  description: Names of those that are not nodes of the cluster yet.
  returned: with O(plan)
  type: list
  elements: str
  sample: [worker-0]
version:
  description: The version of the cluster.
  returned: when an image is created
  type: str
log:
  description: The messages, in order.
  returned: success
  type: list
  elements: str
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.agentlab.ocp.plugins.module_utils._ansible import ASSETS, collection_path, run
from ansible_collections.agentlab.ocp.plugins.module_utils.cluster.node_task import create


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "directory": {"type": "path", "required": True},
            "kubeconfig": {"type": "path", "required": True},
            "assets": {"type": "path"},
            "pxe": {"type": "bool", "default": False},
            "plan": {"type": "dict"},
            "only": {"type": "list", "elements": "str", "default": []},
            "architecture": {"type": "str", "default": ""},
            "os_image": {"type": "str"},
            "release_profile": {"type": "str"},
            "cache": {"type": "path"},
        },
        supports_check_mode=True,
    )

    def make() -> dict[str, Any]:
        assets = collection_path(module.params, "assets", ASSETS)
        return create({**module.params, "assets": assets}, check=module.check_mode)

    run(module, make)


if __name__ == "__main__":
    main()
