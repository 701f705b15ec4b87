#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Install packages; see DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
module: packages
short_description: Install the distribution's packages without starting their services
version_added: 1.0.0
description:
  - Installs those packages of the host's distribution that are missing. None of their services starts, now or at the next boot.
    Nothing is upgraded.
extends_documentation_fragment: [agentlab.ocp.module]
options:
  table:
    description: Package names by distribution, where a key is C(ID-VERSION), C(ID-MAJOR) or C(ID) of os-release. C(a | b) means either of them.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Install packages
  agentlab.ocp.packages:
    table:
      debian: [jq, skopeo]
      fedora: [jq, skopeo]
"""

RETURN = r"""
distribution:
  description: The key of the table for the host.
  returned: success
  type: str
  sample: debian
missing:
  description: The packages that were missing.
  returned: success
  type: list
  elements: str
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.agentlab.ocp.plugins.module_utils import packages
from ansible_collections.agentlab.ocp.plugins.module_utils._ansible import run


def main() -> None:
    module = AnsibleModule(argument_spec={"table": {"type": "dict", "required": True}}, supports_check_mode=True)

    def install() -> dict[str, Any]:
        table = module.params["table"]
        key = packages.distribution(table)
        missing = packages.missing(table[key])
        if missing and not module.check_mode:
            packages.install(missing)
        return {
            "changed": bool(missing),
            "distribution": key,
            "missing": missing,
            "diff": {"before": "", "after": "".join(f"{name}\n" for name in missing), "after_header": "packages"},
        }

    run(module, install)


if __name__ == "__main__":
    main()
