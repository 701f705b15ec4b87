#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Create the ZTP manifests of an agent-based installation; see DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_manifests
short_description: Create the ZTP manifests of an agent-based installation
version_added: 1.0.0
description:
  - Does in a directory what C(openshift-install agent create cluster-manifests) does there. It checks C(install-config.yaml)
    and C(agent-config.yaml), and turns them into C(cluster-manifests) and C(mirror).
  - Inputs are kept, and edited manifests as long as the inputs have not changed. If both have changed, the module
    fails and names them.
  - No image is read or written; M(agentlab.ocp.agent_image) continues from here.
extends_documentation_fragment: [agentlab.ocp.module, agentlab.ocp.installer]
requirements:
  - bcrypt
  - cryptography
  - Jinja2
  - PyYAML
  - zstandard
seealso:
  - module: agentlab.ocp.agent_image
"""

EXAMPLES = r"""
- name: Create the manifests
  agentlab.ocp.cluster_manifests:
    directory: runs/ostest
    release_image: quay.io/openshift-release-dev/ocp-release@sha256:9c5b0d8f0c0a5e0e4d0b3b2a1f0e9d8c7b6a5948372615041322110ffeeddccb
    release_version: 4.20.1

- name: Edit a manifest, which is kept from now on
  ansible.builtin.replace:
    path: runs/ostest/cluster-manifests/agent-cluster-install.yaml
    regexp: "workerAgents: 2"
    replace: "workerAgents: 0"
"""

RETURN = r"""
changed_files:
  description: The changed files, relative to the directory.
  returned: success
  type: list
  elements: str
  sample: [cluster-manifests/infraenv.yaml, mirror/registries.conf]
manifests:
  description: The existing manifests and mirror files, relative to the directory.
  returned: success
  type: list
  elements: str
release_image:
  description: The pullspec of the release.
  returned: success
  type: str
version:
  description: The version of the release.
  returned: success
  type: str
  sample: 4.22.0-lab
log:
  description: The messages, in order.
  returned: success
  type: list
  elements: str
"""

from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.agentlab.ocp.plugins.module_utils._ansible import INSTALLER
from ansible_collections.agentlab.ocp.plugins.module_utils._ansible import run as run_module
from ansible_collections.agentlab.ocp.plugins.module_utils.installer.task import create


def main() -> None:
    module = AnsibleModule(argument_spec=INSTALLER, supports_check_mode=True)

    def manifests() -> dict[str, Any]:
        result = create(module.params, ["cluster-manifests"], check=module.check_mode)
        del result["rendezvous_ip"]
        directory = Path(module.params["directory"])
        names = {str(path.relative_to(directory)) for path in directory.glob("*/*")} | {*result["changed_files"]}
        return result | {
            "manifests": sorted(name for name in names if name.startswith(("cluster-manifests/", "mirror/")))
        }

    run_module(module, manifests)


if __name__ == "__main__":
    main()
