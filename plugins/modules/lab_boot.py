#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Boot the machines of a cluster; see DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
module: lab_boot
short_description: Boot the machines of a cluster from an image
version_added: 1.0.0
description:
  - Publishes the image on the lab's file server and boots the machines from it, the rendezvous host first.
  - A machine that was booted from this image already is left alone, or powered on if it is off. With another image it is
    powered off, gets empty disks, and boots from the new one.
  - Machines with the fault C(wrong_token) boot from a copy whose tokens are signed by another key.
extends_documentation_fragment: [agentlab.ocp.module, agentlab.ocp.lab.standalone, agentlab.ocp.lab.owner, agentlab.ocp.short.nodes]
requirements:
  - bcrypt
  - cryptography
  - libvirt-python
  - PyYAML
  - requests
  - sushy
  - zstandard
options:
  mode:
    description:
      - V(redfish) - virtual media of the BMC.
      - V(minimal) - a small ISO as virtual media, which fetches the rest; platform external has this one in place of C(redfish).
      - V(cdrom) - a CD drive, without a BMC.
      - V(usb) - a USB stick.
      - 'V(pxe) - over the network: an iPXE script, kernel and root file system.'
      - V(iscsi) - from a LUN, over a network of its own; it is the machine's only disk.
      - V(config-image) - an ISO without a cluster in one CD drive, and the cluster's files, C(agentconfig.noarch.iso), in another.
      - V(interactive) - an ISO without a cluster as virtual media, the rendezvous host chosen on the hosts' screens, and the
        cluster defined over REST.
      - V(manual) - by hand, from the image that the lab's file server has.
      - With O(nodes) it must be V(cdrom).
    type: str
    choices:
      - redfish
      - minimal
      - cdrom
      - usb
      - pxe
      - iscsi
      - config-image
      - interactive
      - manual
    default: redfish
  secrets:
    description: The content of C(secrets.json) in the run directory, with the passwords for the BMCs.
    type: str
  image:
    description:
      - The image, on the hypervisor. For O(mode=pxe) the iPXE script.
      - For O(mode=minimal) the files in C(boot-artifacts) next to it are published with it, for O(mode=pxe) those next to the script.
    type: path
    required: true
  ca:
    description: PEM text of the authority of the BMCs' certificates. Without it they are not verified.
    type: str
  only:
    description:
      - Names of the machines to boot. By default all but day-2 nodes (C(day2) in the profile), which join the installed cluster later.
    type: list
    elements: str
    default: []
  state:
    description:
      - V(booted) boots.
      - V(ejected) ejects the media. Running machines keep theirs until they are powered off.
      - V(released) powers off the existing machines (C(bare_metal) in the profile) that were booted, and ejects their media. The others
        are left as they are.
      - V(noted) records that users booted the machines from the image, in O(mode=manual).
    type: str
    choices: [booted, ejected, released, noted]
    default: booted
"""

EXAMPLES = r"""
- name: Boot
  agentlab.ocp.lab_boot:
    plan: "{{ agentlab_plan }}"
    owner: "{{ agentlab_owner }}"
    secrets: "{{ lookup('ansible.builtin.file', agentlab_run_dir + '/secrets.json') }}"
    image: "{{ agentlab_run_dir }}/agent.x86_64.iso"
    ca: "{{ lookup('ansible.builtin.file', agentlab_run_dir + '/tls/ca.crt') }}"

- name: Boot the machines of M(agentlab.ocp.lab_nodes) from an ISO
  agentlab.ocp.lab_boot:
    cluster: mine
    nodes: "{{ mine }}"
    mode: cdrom
    image: /srv/agent.x86_64.iso
"""

RETURN = r"""
changes:
  description: Names of the created or changed objects.
  returned: success
  type: list
  elements: str
url:
  description: URL of the published image.
  returned: when O(mode=manual)
  type: str
"""

import os
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.agentlab.ocp.plugins.module_utils._ansible import SECRETS, change_result, run
from ansible_collections.agentlab.ocp.plugins.module_utils.boot.lab import Lab
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import given, short
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.arguments import argument
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.modes import MODES
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import standalone


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            **standalone.OPTIONS,
            "nodes": argument(list[short.ShortNode]),
            "secrets": SECRETS,
            "mode": {"type": "str", "choices": list(MODES), "default": "redfish"},
            "image": {"type": "path", "required": True},
            "ca": {"type": "str"},
            "only": {"type": "list", "elements": "str", "default": []},
            "state": {"type": "str", "choices": ["booted", "ejected", "released", "noted"], "default": "booted"},
        },
        required_one_of=[("plan", "nodes")],
        mutually_exclusive=[("plan", "nodes"), ("plan", "cluster")],
        required_by={"plan": "owner", "nodes": "cluster"},
        supports_check_mode=True,
    )

    def start() -> dict[str, Any]:
        # BMCs are on the lab's network or on a management network; a web proxy reaches neither.
        os.environ["no_proxy"] = os.environ["NO_PROXY"] = "*"
        mode = MODES[module.params["mode"]]
        hide = module.no_log_values.update
        if module.params["nodes"] and module.params["mode"] != "cdrom":
            raise ValueError(
                f"mode is {module.params['mode']}: must be cdrom for nodes without a plan, which have neither BMC nor file server"
            )
        plan = (
            given.plan_with_secrets(module.params, hide, check=module.check_mode)[0]
            if mode.bmc
            else given.plan_of(module.params, hide)
        )
        standalone.owner_of(module.params, plan, check=module.check_mode)
        lab = Lab(
            plan=plan,
            mode=module.params["mode"],
            image=Path(module.params["image"]),
            authority=module.params["ca"],
            check=module.check_mode,
            only=module.params["only"],
        )
        if module.check_mode and "AGENTLAB_NO_SANDBOX" in os.environ:
            return {"changed": True, "changes": [node["name"] for node in lab.nodes()]}
        if module.params["state"] != "booted":
            named = {"ejected": lab.eject, "released": lab.release, "noted": lab.note}[module.params["state"]]()
            return {"changed": bool(named), "changes": named}
        result = change_result(lab.boot())
        return result if mode.boots else {**result, "url": lab.url()}

    run(module, start)


if __name__ == "__main__":
    main()
