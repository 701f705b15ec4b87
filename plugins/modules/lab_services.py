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
  - With C(services.proxy) in the plan, also a proxy (squid), the only way out of the lab's networks.
  - With C(services.balancer), also a load balancer (haproxy), which the names of API and ingress resolve to.
  - Services that run with the same program and files are left alone.
  - On a hypervisor without a sandbox, an nftables table of the cluster restricts them to this host and its machines.
  - Without a plan, those of O(services), at the gateway of the first of O(networks).
extends_documentation_fragment:
  - agentlab.ocp.module
  - agentlab.ocp.lab.standalone
  - agentlab.ocp.lab.owner
  - agentlab.ocp.short.networks
  - agentlab.ocp.short.nodes
  - agentlab.ocp.short.services
requirements:
  - bcrypt
  - PyYAML
options:
  secrets:
    description: The content of C(secrets.json) in the run directory, with the passwords of the run. Required with O(plan), except in check mode.
    type: str
  tls:
    description:
      - PEM texts. Required with O(plan).
      - Otherwise they are made in C(tls) of the state directory unless given, which needs cryptography on the hypervisor.
    type: dict
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

- name: Serve files and images in the network of M(agentlab.ocp.lab_networks), without a cluster
  agentlab.ocp.lab_services:
    cluster: mine
    networks: "{{ mine_networks }}"
    services:
      http: {port: 8080}
      registry: {}
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
from ansible_collections.agentlab.ocp.plugins.module_utils._ansible import SECRETS, change_result, run
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import given, short
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.arguments import argument
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.options import ServicesOptions
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import lifecycle, services, standalone, uplink


def main() -> None:
    pem = {"type": "str", "required": True}
    module = AnsibleModule(
        argument_spec={
            **standalone.OPTIONS,
            "networks": argument(list[short.ShortNetwork]),
            "nodes": argument(list[short.ShortNode]),
            "services": argument(ServicesOptions),
            "secrets": SECRETS,
            "tls": {
                "type": "dict",
                "options": {"ca": pem, "certificate": pem, "key": {**pem, "no_log": True}},
            },
        },
        required_one_of=[("plan", "services")],
        mutually_exclusive=[("plan", name) for name in ("services", "networks", "nodes", "cluster")]
        + [("services", "secrets")],
        required_by={"plan": ("owner", "tls"), "services": ("cluster", "networks")},
        supports_check_mode=True,
    )

    def serve() -> dict[str, Any]:
        hide, check, tls = module.no_log_values.update, module.check_mode, module.params["tls"]
        chosen = [name for name in services.NAMES if (module.params["services"] or {}).get(name) is not None]
        if module.params["plan"]:
            plan, secrets = given.plan_with_secrets(module.params, hide, check=check)
            chosen = list(services.names_of(plan))
            standalone.owner_of(module.params, plan, check=check)
        else:
            plan = standalone.plan_of(module.params, hide)
            standalone.owner_of(module.params, plan, check=check, services=chosen)
            plan, secrets, made = standalone.with_secrets(plan, hide, check=check)
            tls = tls or made
        hypervisor = plan["hypervisor"]
        private = hypervisor["kind"] == "sandbox"
        wanted = services.render(plan, tls, private=private, http_secret=secrets["registry_http"], wanted=chosen)
        rules = [] if private else uplink.guard_services(plan, check=check)
        directory = Path(plan["services"]["process_dir"])
        return change_result(rules + lifecycle.ensure(wanted, directory, check=check))

    run(module, serve)


if __name__ == "__main__":
    main()
