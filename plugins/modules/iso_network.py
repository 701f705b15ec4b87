#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Embed NetworkManager keyfiles in a live ISO; see DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
module: iso_network
short_description: Embed NetworkManager keyfiles in a live ISO, or remove them
version_added: 1.0.0
description:
  - Writes keyfiles into the embed area of a CoreOS live ISO, in place or into a copy. They take effect before Ignition runs.
  - They replace existing ones.
extends_documentation_fragment: [agentlab.ocp.module, agentlab.ocp.live_iso]
requirements:
  - PyYAML
  - zstandard
options:
  keyfiles:
    description: Content of keyfiles by file name.
    type: dict
  nmstate:
    description:
      - A network state. Its keyfiles are embedded.
      - A state with passwords needs C(no_log) on the task.
    type: dict
  state:
    description: V(absent) removes all keyfiles.
    type: str
    choices: [present, absent]
    default: present
"""

EXAMPLES = r"""
- name: Give the live system a static address
  agentlab.ocp.iso_network:
    path: rhcos-live.x86_64.iso
    nmstate:
      interfaces:
        - name: eth0
          type: ethernet
          state: up
          ipv4:
            enabled: true
            address: [{ip: 192.0.2.10, prefix-length: 24}]
"""

RETURN = r"""
path:
  description: The image with the keyfiles.
  returned: always
  type: str
keyfiles:
  description: Names of the embedded keyfiles.
  returned: always
  type: list
  elements: str
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.agentlab.ocp.plugins.module_utils._ansible import LIVE_ISO, run
from ansible_collections.agentlab.ocp.plugins.module_utils.coreos.edit import change
from ansible_collections.agentlab.ocp.plugins.module_utils.coreos.iso import LiveIso
from ansible_collections.agentlab.ocp.plugins.module_utils.nmstate import generate


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            **LIVE_ISO,
            "keyfiles": {"type": "dict", "no_log": True},
            "nmstate": {"type": "dict"},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        },
        required_if=[("state", "present", ("keyfiles", "nmstate"), True)],
        supports_check_mode=True,
    )

    def embed() -> dict[str, Any]:
        keyfiles: dict[str, bytes] = {}
        if module.params["state"] == "present":
            given = {**dict(generate(module.params["nmstate"] or {})), **(module.params["keyfiles"] or {})}
            keyfiles = {name: str(text).encode() for name, text in given.items()}
        if wrong := [name for name in keyfiles if "/" in name or name in ("", ".", "..")]:
            raise ValueError(f"{wrong[0]!r} is not a valid name of a keyfile")

        def edit(iso: LiveIso) -> None:
            iso.network = keyfiles

        return {**change(module.params, edit, check=module.check_mode), "keyfiles": sorted(keyfiles)}

    run(module, embed)


if __name__ == "__main__":
    main()
