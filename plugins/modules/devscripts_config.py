#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Write the configuration of dev-scripts for a profile; see DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
module: devscripts_config
short_description: Write the configuration of dev-scripts for a profile
version_added: 1.0.0
description:
  - Writes C(config_USER.sh) to a checkout of dev-scripts. It has what differs from dev-scripts' defaults, each line with the field
    of the profile that it comes from.
  - Fields without a counterpart are comments in the file, and are returned.
  - Nothing of dev-scripts is run.
extends_documentation_fragment: [agentlab.ocp.module]
requirements:
  - cryptography
  - PyYAML
options:
  profile:
    description: The profile, a mapping of its fields, or a scenario of dev-scripts such as C(HA_IPV4V6_DHCP).
    type: raw
    required: true
  cluster:
    description: Name of the cluster.
    type: str
    default: ostest
  checkout:
    description: Directory of the checkout of dev-scripts.
    type: path
    required: true
  user:
    description: The user in the name of the file. By default the one whom the module runs as.
    type: str
  variables:
    description: >-
      Variables that are added, or replace those of the profile, such as C(CI_TOKEN). Values of tokens, passwords and
      the like are not shown.
    type: dict
    default: {}
  overwrite:
    description: Replace a file that agentlab has not written.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Configure dev-scripts
  agentlab.ocp.devscripts_config:
    profile: "{{ lookup('ansible.builtin.file', 'mine.yml') | from_yaml }}"
    checkout: /home/me/dev-scripts
    variables:
      CI_TOKEN: "{{ ci_token }}"
"""

RETURN = r"""
path:
  description: The file.
  returned: success
  type: str
  sample: /home/me/dev-scripts/config_me.sh
variables:
  description: Names of the variables in the file.
  returned: success
  type: list
  elements: str
  sample: [AGENT_E2E_TEST_SCENARIO, MASTER_MEMORY]
lost:
  description: Fields of the profile without a counterpart, each with the reason.
  returned: success
  type: list
  elements: str
  sample: ["network.mtu: dev-scripts has no variable for it"]
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.agentlab.ocp.plugins.module_utils._ansible import run
from ansible_collections.agentlab.ocp.plugins.module_utils.devscripts import checkout
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import rundir
from ansible_collections.agentlab.ocp.plugins.module_utils.vocabulary import DEFAULT_CLUSTER


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "profile": {"type": "raw", "required": True},
            "cluster": {"type": "str", "default": DEFAULT_CLUSTER},
            "checkout": {"type": "path", "required": True},
            "user": {"type": "str"},
            "variables": {"type": "dict", "default": {}},
            "overwrite": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )

    def configure() -> dict[str, Any]:
        module.no_log_values.update(checkout.secrets(module.params["variables"]))
        made, path, changes = checkout.prepare(module.params)
        if not module.check_mode:
            rundir.write(changes)
        return {
            "changed": bool(changes),
            "diff": [change.diff() for change in changes],
            "path": str(path),
            "variables": list(made.values),
            "lost": [str(lost) for lost in made.lost],
        }

    run(module, configure)


if __name__ == "__main__":
    main()
