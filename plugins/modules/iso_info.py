#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Inspect a live ISO; see DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
module: iso_info
short_description: Inspect a live ISO
version_added: 1.0.0
description:
  - Returns the customizations of a CoreOS live ISO, and what can be customized. Nothing is written.
extends_documentation_fragment: [agentlab.ocp.module.reads]
requirements:
  - PyYAML
  - zstandard
options:
  path:
    description: A CoreOS live ISO.
    type: path
    required: true
  files:
    description: Also list every file of the image.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Inspect an ISO
  agentlab.ocp.iso_info:
    path: agent.x86_64.iso
  register: agent_iso
"""

RETURN = r"""
volume_id:
  description: The label of the image.
  returned: always
  type: str
ignition:
  description: Size, digest and version of the embedded config, null for none.
  returned: always
  type: dict
  sample: {size: 41233, sha256: 2c26b46b..., version: 3.2.0}
network:
  description: Names of the embedded keyfiles.
  returned: always
  type: list
  elements: str
area:
  description: Offset and length of the embed area, and whether it can be made larger.
  returned: always
  type: dict
  sample: {offset: 139264, length: 262144, growable: true}
kargs:
  description: Current and default kernel arguments, and their maximum length; null if they cannot be changed.
  returned: always
  type: dict
  sample: {current: ignition.firstboot, default: ignition.firstboot, size: 1139}
features:
  description: Features that the image supports.
  returned: always
  type: dict
customized:
  description: Whether the image has any customizations.
  returned: always
  type: bool
files:
  description: Every file of the image.
  returned: when requested
  type: list
  elements: dict
  contains:
    path: {description: Path in the image., type: str}
    size: {description: Size in bytes., type: int}
"""

import contextlib
import hashlib
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.agentlab.ocp.plugins.module_utils._ansible import run
from ansible_collections.agentlab.ocp.plugins.module_utils.coreos.iso import LiveIso
from ansible_collections.agentlab.ocp.plugins.module_utils.documents import load_json


def _ignition(config: bytes | None) -> dict[str, Any] | None:
    if config is None:
        return None
    version = None
    with contextlib.suppress(ValueError, KeyError, TypeError):
        version = load_json(config, name="Ignition config")["ignition"]["version"]
    return {"size": len(config), "sha256": hashlib.sha256(config).hexdigest(), "version": version}


def _look(params: dict[str, Any]) -> dict[str, Any]:
    with LiveIso(params["path"]) as iso:
        found: dict[str, Any] = {
            "changed": False,
            "volume_id": iso.fs.volume_id,
            "ignition": _ignition(iso.ignition),
            "network": list(iso.network),
            "area": {**iso.header(), "growable": iso.area.growable},
            "kargs": iso.kargs
            and {"current": iso.kargs.current, "default": iso.kargs.default, "size": iso.kargs.length - 1},
            "features": iso.features,
            "customized": iso.customized,
        }
        if params["files"]:
            found["files"] = [{"path": p, "size": r.size} for p, r in iso.fs.walk() if not r.is_dir]
        return found


def main() -> None:
    module = AnsibleModule(
        argument_spec={"path": {"type": "path", "required": True}, "files": {"type": "bool", "default": False}},
        supports_check_mode=True,
    )
    run(module, lambda: _look(module.params))


if __name__ == "__main__":
    main()
