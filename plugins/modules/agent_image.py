#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Create the image of an agent-based installation; see DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
module: agent_image
short_description: Create the image of an agent-based installation
version_added: 1.0.0
description:
  - Does in a directory what C(openshift-install agent create) does there. It turns C(install-config.yaml) and
    C(agent-config.yaml), or the manifests in C(cluster-manifests), C(mirror) and C(openshift), into manifests, credentials
    and a bootable image.
  - Inputs are kept. If neither they nor the release have changed, nothing changes; keys and tokens are kept in
    C(.openshift_install_state.json).
  - The release payload is read from its registry, through the mirrors of the inputs, with their pull secret and certificates.
extends_documentation_fragment: [agentlab.ocp.module, agentlab.ocp.installer]
requirements:
  - bcrypt
  - cryptography
  - Jinja2
  - PyYAML
  - zstandard
options:
  assets:
    description: The directory C(files/live) of the role P(agentlab.ocp.agent_image#role), which has the units and scripts of
      the live system. That of the collection on this host by default.
    type: path
  targets:
    description:
      - What to create, in order.
      - V(unconfigured-image) is an ISO with the config of V(unconfigured-ignition), the mirrors of O(directory) and their certificates,
        for hosts that get their cluster from the config image. V(interactive-image) is the same for hosts on whose screens the
        rendezvous host is chosen, and whose cluster is defined over REST.
    type: list
    elements: str
    choices: [agent-config-template, cluster-manifests, image, pxe-files, config-image, unconfigured-ignition, unconfigured-image,
      interactive-image, certificates]
    default: [cluster-manifests, image]
  os_image:
    description: Path or URL of the base ISO. That of the release payload by default.
    type: str
  token_hours:
    description:
      - Lifetime of the image's tokens in hours. Tokens do not expire by default.
      - A value that differs from the last run's creates new tokens, and so a new image.
    type: float
  image_policy:
    description:
      - A containers-policy.json(5) that live hosts get, as C(/etc/containers/policy.json). By default they pull any image.
    type: path
  binary:
    description:
      - A build of C(openshift-install), which does the work on a copy of the inputs. Requires O(release_image).
      - Manifests are its output if there is an C(install-config.yaml). O(consume), O(token_hours) and O(image_policy) do not apply.
    type: path
  collection:
    description: The root directory of this collection, from which O(binary) gets the C(oc) that it calls. The one on this host by default.
    type: path
seealso:
  - module: agentlab.ocp.cluster_manifests
"""

EXAMPLES = r"""
- name: Create the manifests and the agent ISO
  agentlab.ocp.agent_image:
    directory: "{{ agentlab_run_dir }}"

- name: Create the files for a network boot
  agentlab.ocp.agent_image:
    directory: "{{ agentlab_run_dir }}"
    targets: [pxe-files]
    release_image: quay.io/openshift-release-dev/ocp-release@sha256:9c5b0d8f0c0a5e0e4d0b3b2a1f0e9d8c7b6a5948372615041322110ffeeddccb
"""

RETURN = r"""
changed_files:
  description: The changed files, relative to the directory.
  returned: success
  type: list
  elements: str
  sample: [agent.x86_64.iso, auth/kubeconfig, rendezvousIP]
rendezvous_ip:
  description: The address of node zero.
  returned: success
  type: str
  sample: 192.168.111.20
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

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.agentlab.ocp.plugins.module_utils._ansible import ASSETS, INSTALLER, collection_path
from ansible_collections.agentlab.ocp.plugins.module_utils._ansible import run as run_module
from ansible_collections.agentlab.ocp.plugins.module_utils.installer.run import TARGETS
from ansible_collections.agentlab.ocp.plugins.module_utils.installer.task import create, create_by_binary


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            **INSTALLER,
            "assets": {"type": "path"},
            "targets": {
                "type": "list", "elements": "str", "choices": list(TARGETS), "default": ["cluster-manifests", "image"]
            },
            "os_image": {"type": "str"},
            "token_hours": {"type": "float", "no_log": False},
            "image_policy": {"type": "path"},
            "binary": {"type": "path"},
            "collection": {"type": "path"},
        },
        required_by={"binary": ["release_image"]},
        supports_check_mode=True,
    )  # fmt: skip

    def make() -> dict[str, Any]:
        params, targets, check = module.params, module.params["targets"], module.check_mode
        if params["binary"]:
            return create_by_binary(
                {**params, "collection": collection_path(params, "collection")}, targets, check=check
            )
        more: dict[str, Any] = {
            "assets": collection_path(params, "assets", ASSETS),
            "token_hours": params["token_hours"],
        }
        if params["os_image"]:
            more["os_image"] = {"": params["os_image"]}
        return create(params, targets, check=check, **more)

    run_module(module, make)


if __name__ == "__main__":
    main()
