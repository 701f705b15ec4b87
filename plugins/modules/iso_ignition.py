#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Embed an Ignition config in a live ISO; see DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
module: iso_ignition
short_description: Embed an Ignition config in a live ISO, or remove it
version_added: 1.0.0
description:
  - Writes an Ignition config into the embed area of a CoreOS live ISO, in place or into a copy.
  - An image that already has exactly this config is not written.
extends_documentation_fragment: [agentlab.ocp.module, agentlab.ocp.live_iso]
requirements:
  - PyYAML
  - zstandard
options:
  config:
    description: The config, as JSON text; use the filter C(to_json) for a dictionary.
    type: str
  src:
    description: A file with the config.
    type: path
  grow:
    description:
      - What to do with a config that is larger than the embed area. V(true) moves the area to the image's end and makes it larger.
      - V(false) fails, naming both sizes.
    type: bool
    default: false
  state:
    description: V(absent) removes the config.
    type: str
    choices: [present, absent]
    default: present
"""

EXAMPLES = r"""
- name: Embed a config in a copy of the ISO
  agentlab.ocp.iso_ignition:
    path: rhcos-live.x86_64.iso
    dest: agent.x86_64.iso
    src: agent.ign
    grow: true
"""

RETURN = r"""
path:
  description: The image with the config.
  returned: always
  type: str
"""

from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.agentlab.ocp.plugins.module_utils._ansible import LIVE_ISO, run
from ansible_collections.agentlab.ocp.plugins.module_utils.coreos.edit import change
from ansible_collections.agentlab.ocp.plugins.module_utils.coreos.iso import LiveIso
from ansible_collections.agentlab.ocp.plugins.module_utils.documents import load_json


def _config(params: dict[str, Any]) -> bytes | None:
    if params["state"] == "absent":
        return None
    if params["src"]:
        return Path(params["src"]).read_bytes()
    config: str = params["config"]
    try:
        load_json(config, name="config")
    except ValueError as error:
        raise ValueError(f"config is not JSON, use the filter to_json: {error}") from None
    return config.encode()


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            **LIVE_ISO,
            "config": {"type": "str", "no_log": True},
            "src": {"type": "path"},
            "grow": {"type": "bool", "default": False},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        },
        mutually_exclusive=[("config", "src")],
        required_if=[("state", "present", ("config", "src"), True)],
        supports_check_mode=True,
    )

    def embed() -> dict[str, Any]:
        config = _config(module.params)

        def edit(iso: LiveIso) -> None:
            iso.ignition = config

        return change(module.params, edit, grow=module.params["grow"], check=module.check_mode)

    run(module, embed)


if __name__ == "__main__":
    main()
