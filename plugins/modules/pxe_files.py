#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Write the files for a network boot; see DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
module: pxe_files
short_description: Write the files for a network boot
version_added: 1.0.0
description:
  - Writes kernel, initramfs and root file system of a CoreOS live ISO, and an iPXE script, into a directory.
  - Existing identical files are not written.
extends_documentation_fragment: [agentlab.ocp.module]
requirements:
  - PyYAML
  - zstandard
options:
  path:
    description: A CoreOS live ISO.
    type: path
    required: true
  dest:
    description: An existing directory.
    type: path
    required: true
  prefix:
    description: Prefix of the file names.
    type: str
    default: agent.x86_64
  ignition:
    description: A file with an Ignition config to append to the initramfs.
    type: path
  keyfiles:
    description: Content of NetworkManager keyfiles by name, to append to the initramfs.
    type: dict
  base_url:
    description: URL of the directory. Without it there is no iPXE script.
    type: str
  kargs:
    description: Kernel arguments for the script, behind those of the image.
    type: list
    elements: str
    default: []
"""

EXAMPLES = r"""
- name: Write the files for a network boot
  agentlab.ocp.pxe_files:
    path: rhcos-live.x86_64.iso
    dest: boot-artifacts
    ignition: agent.ign
    base_url: http://192.0.2.1:8089
"""

RETURN = r"""
files:
  description: Names of the files.
  returned: always
  type: list
  elements: str
written:
  description: Names of the written files.
  returned: always
  type: list
  elements: str
"""

import filecmp
import os
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.agentlab.ocp.plugins.module_utils._ansible import run
from ansible_collections.agentlab.ocp.plugins.module_utils.coreos import cpio, pxe
from ansible_collections.agentlab.ocp.plugins.module_utils.coreos.iso import IGNITION_PATH, NETWORK_DIR, LiveIso
from ansible_collections.agentlab.ocp.plugins.module_utils.files import staging_directory


def _embedded(params: dict[str, Any]) -> list[bytes]:
    members = {NETWORK_DIR + name: str(text).encode() for name, text in (params["keyfiles"] or {}).items()}
    if params["ignition"]:
        members[IGNITION_PATH] = Path(params["ignition"]).read_bytes()
    return [cpio.compress(cpio.archive(members))] if members else []


def _write(params: dict[str, Any], check: bool) -> dict[str, Any]:
    dest = Path(params["dest"])
    with staging_directory(dest) as folder, LiveIso(params["path"]) as iso:
        append = "".join(f" {karg}" for karg in params["kargs"])
        names = pxe.write_artifacts(iso, folder, params["prefix"], _embedded(params), params["base_url"], append)
        new = [
            name
            for name in names
            if not (dest / name).is_file() or not filecmp.cmp(os.path.join(folder, name), dest / name, shallow=False)
        ]
        for name in new if not check else ():
            os.replace(os.path.join(folder, name), dest / name)
    diff = {"before": "", "after": "".join(f"{name}\n" for name in new)}
    return {"changed": bool(new), "files": names, "written": new, "diff": diff}


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path", "required": True},
            "dest": {"type": "path", "required": True},
            "prefix": {"type": "str", "default": "agent.x86_64"},
            "ignition": {"type": "path"},
            "keyfiles": {"type": "dict", "no_log": True},
            "base_url": {"type": "str"},
            "kargs": {"type": "list", "elements": "str", "default": []},
        },
        supports_check_mode=True,
    )
    run(module, lambda: _write(module.params, module.check_mode))


if __name__ == "__main__":
    main()
