#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Change the kernel arguments of a live ISO; see DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
module: iso_kargs
short_description: Change the kernel arguments of a live ISO
version_added: 1.0.0
description:
  - Deletes, appends and replaces kernel arguments of a CoreOS live ISO, in this order, in place or in a copy.
extends_documentation_fragment: [agentlab.ocp.module, agentlab.ocp.live_iso]
requirements:
  - PyYAML
  - zstandard
options:
  append:
    description: Arguments to append. Existing ones are not appended again.
    type: list
    elements: str
    default: []
  delete:
    description: Arguments to delete, in full.
    type: list
    elements: str
    default: []
  replace:
    description: Values to replace, as C(KEY=OLD=NEW).
    type: list
    elements: str
    default: []
  reset:
    description: Start from the image's default arguments instead of the current ones.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Print the kernel's messages on the serial console
  agentlab.ocp.iso_kargs:
    path: agent.x86_64.iso
    append: [console=ttyS0]
"""

RETURN = r"""
path:
  description: The image with the arguments.
  returned: always
  type: str
kargs:
  description: The arguments.
  returned: always
  type: str
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.agentlab.ocp.plugins.module_utils._ansible import LIVE_ISO, run
from ansible_collections.agentlab.ocp.plugins.module_utils.coreos.edit import change
from ansible_collections.agentlab.ocp.plugins.module_utils.coreos.iso import LiveIso


def main() -> None:
    words: dict[str, Any] = {"type": "list", "elements": "str", "default": []}
    module = AnsibleModule(
        argument_spec={
            **LIVE_ISO,
            "append": words,
            "delete": words,
            "replace": words,
            "reset": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )

    def edit_kargs() -> dict[str, Any]:
        result: dict[str, Any] = {}

        def edit(iso: LiveIso) -> None:
            if module.params["reset"]:
                iso.reset_kargs()
            iso.edit_kargs(delete=module.params["delete"])
            present = f" {iso.kargs_text} "
            missing = [karg for karg in module.params["append"] if f" {karg.strip()} " not in present]
            iso.edit_kargs(append=missing, replace=module.params["replace"])
            result["kargs"] = iso.kargs_text

        return {**change(module.params, edit, check=module.check_mode), **result}

    run(module, edit_kargs)


if __name__ == "__main__":
    main()
