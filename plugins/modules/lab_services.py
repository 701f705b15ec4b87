#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Start the services of a lab; see DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
module: lab_services
short_description: Start BMCs, registry, file server and time server of a lab
version_added: 1.0.0
description:
  - Starts a BMC emulator (sushy-tools), a registry (docker-registry), a file server and a time server (chronyd, which never
    sets the clock), each with its files below C(<state_dir>/services), and waits until each answers.
  - Services that run with the same program and files are left alone.
  - On a hypervisor without a sandbox, an nftables table of the cluster restricts them to this host and its machines.
extends_documentation_fragment: [agentlab.ocp.module, agentlab.ocp.lab.owned]
requirements:
  - bcrypt
  - PyYAML
options:
  secrets:
    description: The content of C(secrets.json) in the run directory, with the passwords of the run. Required except in check mode.
    type: str
  tls:
    description: PEM texts.
    type: dict
    required: true
    suboptions:
      ca:
        description: The certificate authority.
        type: str
        required: true
      certificate:
        description: The server's certificate.
        type: str
        required: true
      key:
        description: Its key.
        type: str
        required: true
"""

EXAMPLES = r"""
- name: Serve
  agentlab.ocp.lab_services:
    plan: "{{ agentlab_plan }}"
    owner: "{{ agentlab_owner }}"
    secrets: "{{ lookup('ansible.builtin.file', agentlab_run_dir + '/secrets.json') }}"
    tls:
      ca: "{{ lookup('ansible.builtin.file', agentlab_run_dir + '/tls/ca.crt') }}"
      certificate: "{{ lookup('ansible.builtin.file', agentlab_run_dir + '/tls/server.crt') }}"
      key: "{{ lookup('ansible.builtin.file', agentlab_run_dir + '/tls/server.key') }}"
"""

RETURN = r"""
changes:
  description: Names of the created or changed objects.
  returned: success
  type: list
  elements: str
"""

from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.agentlab.ocp.plugins.module_utils._ansible import OWNED, SECRETS, changed, run
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import given
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import services, uplink
from ansible_collections.agentlab.ocp.plugins.module_utils.state import owner


def main() -> None:
    pem = {"type": "str", "required": True}
    module = AnsibleModule(
        argument_spec={
            **OWNED,
            "secrets": SECRETS,
            "tls": {
                "type": "dict",
                "required": True,
                "options": {"ca": pem, "certificate": pem, "key": {**pem, "no_log": True}},
            },
        },
        supports_check_mode=True,
    )

    def serve() -> dict[str, Any]:
        plan, secrets = given.plan_with_secrets(module.params, module.no_log_values.update, check=module.check_mode)
        owner.of_cluster(module.params, check=module.check_mode)
        hypervisor = plan["hypervisor"]
        wanted = services.render(
            plan, module.params["tls"], private=hypervisor["kind"] == "sandbox", http_secret=secrets["registry_http"]
        )
        directory = Path(hypervisor["state_dir"]) / "processes"
        rules = [] if hypervisor["kind"] == "sandbox" else uplink.guard_services(plan, check=module.check_mode)
        return changed(rules + services.ensure(wanted, directory, check=module.check_mode))

    run(module, serve)


if __name__ == "__main__":
    main()
