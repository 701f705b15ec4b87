#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Extract files, or the minimal ISO, from a live ISO; see DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
module: iso_extract
short_description: Extract files, or the minimal ISO, from a live ISO
version_added: 1.0.0
description:
  - Writes files of an ISO 9660 image into a directory, or the minimal ISO of a CoreOS live ISO into a file.
  - Existing identical files are not written.
extends_documentation_fragment: [agentlab.ocp.module]
requirements:
  - pycdlib
  - PyYAML
  - zstandard
options:
  path:
    description: An ISO image; for O(minimal), a CoreOS live ISO.
    type: path
    required: true
  dest:
    description: An existing directory for O(files), the new image for O(minimal).
    type: path
    required: true
  files:
    description: Paths in the image. They are written under their last component.
    type: list
    elements: str
  minimal:
    description:
      - Create an image without the root file system, which the machine fetches from O(rootfs_url).
      - V(coreos) follows the recipe in the image, as coreos-installer does. V(agent) creates the agent installer's variant.
    type: str
    choices: [coreos, agent]
  rootfs_url:
    description: URL of C(images/pxeboot/rootfs.img) for the machine.
    type: str
  mode:
    description: Permissions of the written files.
    type: str
    default: '0644'
"""

EXAMPLES = r"""
- name: Extract the root file system
  agentlab.ocp.iso_extract:
    path: agent.x86_64.iso
    dest: boot-artifacts
    files: [images/pxeboot/rootfs.img]

- name: Create a minimal image that fetches it
  agentlab.ocp.iso_extract:
    path: agent.x86_64.iso
    dest: agent-minimal.x86_64.iso
    minimal: agent
    rootfs_url: http://192.0.2.1:8089/rootfs.img
"""

RETURN = r"""
written:
  description: Files that were written.
  returned: always
  type: list
  elements: str
"""

import os
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.agentlab.ocp.plugins.module_utils._ansible import run
from ansible_collections.agentlab.ocp.plugins.module_utils.coreos import build, minimal, miniso
from ansible_collections.agentlab.ocp.plugins.module_utils.coreos.image import blocks
from ansible_collections.agentlab.ocp.plugins.module_utils.coreos.iso import LiveIso
from ansible_collections.agentlab.ocp.plugins.module_utils.coreos.iso9660 import Iso9660, Record, open_image
from ansible_collections.agentlab.ocp.plugins.module_utils.files import staging_directory


def _is_extracted(fs: Iso9660, record: Record, path: Path) -> bool:
    if not path.is_file() or path.stat().st_size != record.size:
        return False
    with path.open("rb") as file:
        return all(file.read(len(data)) == data for data in blocks(fs.fd, record.offset, record.size))


def _files(params: dict[str, Any], check: bool) -> list[str]:
    fd = open_image(params["path"])
    try:
        fs = Iso9660(fd)
        wanted = [(fs.find_file(name), Path(params["dest"]) / os.path.basename(name)) for name in params["files"]]
        missing = [(record, path) for record, path in wanted if not _is_extracted(fs, record, path)]
        for record, path in missing if not check else ():
            fs.extract(record, path, int(params["mode"], 8), overwrite=True)
        return [str(path) for __, path in missing]
    finally:
        os.close(fd)


def _minimal(params: dict[str, Any], check: bool) -> list[str]:
    dest = Path(params["dest"])
    with staging_directory(dest.parent) as folder:
        new = folder / dest.name
        if params["minimal"] == "agent":
            minimal.make(params["path"], new, params["rootfs_url"])
        else:
            with LiveIso(params["path"]) as iso:
                miniso.extract(iso, new, params["rootfs_url"])
        if dest.exists() and build.same_files(new, dest):
            return []
        if not check:
            new.chmod(int(params["mode"], 8))
            new.replace(dest)
        return [str(dest)]


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path", "required": True},
            "dest": {"type": "path", "required": True},
            "files": {"type": "list", "elements": "str"},
            "minimal": {"type": "str", "choices": ["coreos", "agent"]},
            "rootfs_url": {"type": "str"},
            "mode": {"type": "str", "default": "0644"},
        },
        mutually_exclusive=[("files", "minimal")],
        required_one_of=[("files", "minimal")],
        required_if=[("minimal", "agent", ("rootfs_url",))],
        supports_check_mode=True,
    )

    def extract() -> dict[str, Any]:
        written = (_files if module.params["files"] else _minimal)(module.params, module.check_mode)
        diff = {"before": "", "after": "".join(f"{path}\n" for path in written)}
        return {"changed": bool(written), "written": written, "diff": diff}

    run(module, extract)


if __name__ == "__main__":
    main()
