#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Make what an agent-based installation boots from; see DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
module: agent_image
short_description: Make the image that an agent-based installation boots from
version_added: 1.0.0
description:
  - Does in a directory what C(openshift-install agent create) does there. It turns C(install-config.yaml) and
    C(agent-config.yaml), or the manifests in C(cluster-manifests), C(mirror) and C(openshift), into manifests, credentials
    and a bootable image.
  - Inputs stay. When neither they nor the release have changed, nothing else does; keys and tokens are kept in
    C(.openshift_install_state.json).
  - The release payload is read from its registry, through the mirrors of the inputs, with their pull secret and certificates.
author:
  - The agentlab authors (@agentlab)
options:
  directory:
    description: The directory of the inputs and of what is made.
    type: path
    required: true
  assets:
    description: The directory C(files/live) of the role P(agentlab.ocp.agent_image#role), which has the units and scripts of
      the live system.
    type: path
    required: true
  targets:
    description: What to make, in order.
    type: list
    elements: str
    choices: [agent-config-template, cluster-manifests, image, pxe-files, config-image, unconfigured-ignition, certificates]
    default: [cluster-manifests, image]
  release_image:
    description:
      - The pullspec of the release. E(OPENSHIFT_INSTALL_RELEASE_IMAGE_OVERRIDE) if not given, or else the one of the
        directory's last run, or that of the lab payload that was built last.
    type: str
  release_version:
    description: The version of the release, which the release itself tells if not given.
    type: str
  release_profile:
    description: The release whose installer to be like, V(4.18) to V(4.22) or V(main). That of the version if not given.
    type: str
  os_image:
    description: Path or URL of the base ISO. That of the release payload if not given.
    type: str
  cache:
    description: Where base ISOs are kept; C(agentlab) below E(XDG_CACHE_HOME) if not given.
    type: path
  consume:
    description: Delete the inputs afterwards, as openshift-install does.
    type: bool
    default: false
attributes:
  check_mode:
    description: Can run in check mode and return what would change.
    support: full
  diff_mode:
    description: Returns what is different in the manifests, without secrets.
    support: full
"""

EXAMPLES = r"""
- name: Make the manifests and the agent ISO
  agentlab.ocp.agent_image:
    directory: "{{ agentlab_run_dir }}"
    assets: /usr/share/agentlab/live

- name: Make the files for a network boot
  agentlab.ocp.agent_image:
    directory: "{{ agentlab_run_dir }}"
    assets: /usr/share/agentlab/live
    targets: [pxe-files]
    release_image: quay.io/openshift-release-dev/ocp-release@sha256:9c5b0d8f0c0a5e0e4d0b3b2a1f0e9d8c7b6a5948372615041322110ffeeddccb
"""

RETURN = r"""
changed_files:
  description: The files that are different, relative to the directory.
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

import dataclasses
import os
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.agentlab.ocp.plugins.module_utils._ansible import run as run_module
from ansible_collections.agentlab.ocp.plugins.module_utils.installer import run
from ansible_collections.agentlab.ocp.plugins.module_utils.installer.log import Log


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "directory": {"type": "path", "required": True},
            "assets": {"type": "path", "required": True},
            "targets": {
                "type": "list", "elements": "str", "choices": list(run.TARGETS), "default": ["cluster-manifests", "image"]
            },
            "release_image": {"type": "str"},
            "release_version": {"type": "str"},
            "release_profile": {"type": "str"},
            "os_image": {"type": "str"},
            "cache": {"type": "path"},
            "consume": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )  # fmt: skip
    given = module.params

    def create() -> dict[str, Any]:
        directory = Path(given["directory"]).absolute()
        options = run.Options.from_environment(
            dict(os.environ), directory, Path(given["assets"]), dry=module.check_mode
        )
        changes: dict[str, Any] = {
            name: given[name] for name in ("release_image", "release_version", "release_profile") if given[name]
        }
        if given["os_image"]:
            changes["os_image"] = {"": given["os_image"]}
        if given["cache"]:
            changes["cache"] = Path(given["cache"])
        log = Log(None if module.check_mode else directory, emit=lambda _line: None)
        result = run.create(
            given["targets"], dataclasses.replace(options, **changes), log, consume=given["consume"]
        )
        for level, text in log.lines:
            if level == "warning":
                module.warn(text)
        return {
            "changed": bool(result.changed),
            "changed_files": result.changed,
            "rendezvous_ip": result.rendezvous_ip,
            "release_image": result.release_image,
            "version": result.version,
            "log": [text for level, text in log.lines if level != "debug"],
            "diff": result.diffs,
        }

    run_module(module, create)


if __name__ == "__main__":
    main()
