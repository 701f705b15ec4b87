#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Wait until nodes have joined a cluster; see DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
module: node_monitor
short_description: Wait until nodes have joined an installed cluster
version_added: 1.0.0
description:
  - Follows nodes that boot from a node image until they are Ready, as C(oc adm node-image monitor) does, with its messages, interval and limit.
  - The messages are appended to C(.openshift_install.log) in O(directory), so that they can be followed while the module waits.
  - In the end each node must be a worker of the cluster's architecture.
extends_documentation_fragment: [agentlab.ocp.module.no_diff]
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
    description: Directory of the node image, for the log.
    type: path
    required: true
  kubeconfig:
    description: The kubeconfig of the installed cluster.
    type: path
    required: true
  nodes:
    description: The nodes, as M(agentlab.ocp.node_image) returns them.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: Host name, by which the node's certificate requests are recognized.
        type: str
        required: true
      address:
        description: An address of the node.
        type: str
        required: true
  approve:
    description:
      - Approve the certificate requests of these nodes, and of no others. A request must have the name of a node in its subject.
      - Without it the messages report which requests wait, and a user approves them.
    type: bool
    default: false
  minutes:
    description: How long to wait for all nodes together. As upstream by default.
    type: float
    default: 90
"""

EXAMPLES = r"""
- name: Wait until the node is Ready
  agentlab.ocp.node_monitor:
    directory: "{{ agentlab_run_dir }}/add-nodes"
    kubeconfig: "{{ agentlab_run_dir }}/auth/kubeconfig"
    nodes: [{name: worker-0, address: 192.168.111.30}]
    approve: true
"""

RETURN = r"""
joined:
  description: The nodes, as the OpenShift API has them.
  returned: success, not in check mode
  type: list
  elements: dict
  contains:
    name: {description: Its host name., type: str, sample: worker-0}
    address: {description: The address., type: str, sample: 192.168.111.30}
    architecture: {description: Its architecture., type: str, sample: amd64}
    roles: {description: Its roles., type: list, elements: str, sample: [worker]}
table:
  description: The same as text, a line each.
  returned: success, not in check mode
  type: str
  sample: worker-0  192.168.111.30  Ready  worker  amd64
approved:
  description: Names of the certificate requests that were approved; the module has changed something if there is one.
  returned: always
  type: list
  elements: str
exit_code:
  description: What C(oc adm node-image monitor) would exit with; 1 when a node was not Ready in time.
  returned: always
  type: int
seconds:
  description: How long it took.
  returned: always
  type: float
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.agentlab.ocp.plugins.module_utils._ansible import run
from ansible_collections.agentlab.ocp.plugins.module_utils.cluster.node_task import monitor


def main() -> None:
    node = {"name": {"type": "str", "required": True}, "address": {"type": "str", "required": True}}
    module = AnsibleModule(
        argument_spec={
            "directory": {"type": "path", "required": True},
            "kubeconfig": {"type": "path", "required": True},
            "nodes": {"type": "list", "elements": "dict", "options": node, "required": True},
            "approve": {"type": "bool", "default": False},
            "minutes": {"type": "float", "default": 90},
        },
        supports_check_mode=True,
    )

    def follow() -> dict[str, Any]:
        result = monitor(module.params, check=module.check_mode)
        if result["exit_code"]:
            module.fail_json(**result)
        return result

    run(module, follow)


if __name__ == "__main__":
    main()
