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
  - A machine that was booted from this image already is left alone, or switched on if it is off. With another image it is
    switched off, gets empty disks, and boots from the new one.
  - Machines with the fault C(wrong_token) boot from a copy whose tokens another key signed.
extends_documentation_fragment: [agentlab.ocp.module, agentlab.ocp.lab.owned]
requirements:
  - bcrypt
  - cryptography
  - libvirt-python
  - PyYAML
  - sushy
  - zstandard
options:
  mode:
    description:
      - V(redfish) inserts the image as virtual media through each machine's BMC.
      - V(minimal) is the same with a minimal image, whose root file system is published too.
      - V(cdrom) puts it into the domain's CD drive, without a BMC.
      - V(pxe) publishes the boot artifacts beside the image; the machines fetch the iPXE script, kernel and root file system.
      - V(manual) publishes the image and boots nothing.
    type: str
    choices: [redfish, minimal, cdrom, pxe, manual]
    default: redfish
  secrets:
    description: The text of C(secrets.json) in the run directory, the passwords of the run. BMCs are asked with them.
    type: str
  image:
    description:
      - The image, on the hypervisor. For O(mode=pxe) the iPXE script.
      - For O(mode=minimal) the files in C(boot-artifacts) beside it are published with it, for O(mode=pxe) those beside the script.
    type: path
    required: true
  ca:
    description: PEM text of the authority that the BMCs' certificates are checked with. Without it they are not checked.
    type: str
  state:
    description:
      - V(booted) boots.
      - V(ejected) takes the media out. The running machines keep theirs until they are switched off.
    type: str
    choices: [booted, ejected]
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
"""

RETURN = r"""
changes:
  description: Names of what was created or changed.
  returned: success
  type: list
  elements: str
url:
  description: Where the image can be had.
  returned: when O(mode=manual)
  type: str
"""

import os
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.agentlab.ocp.plugins.module_utils import _lab
from ansible_collections.agentlab.ocp.plugins.module_utils._ansible import run
from ansible_collections.agentlab.ocp.plugins.module_utils.coreos.errors import CoreosError
from ansible_collections.agentlab.ocp.plugins.module_utils.installer import foreign
from ansible_collections.agentlab.ocp.plugins.module_utils.libvirt import machine
from ansible_collections.agentlab.ocp.plugins.module_utils.libvirt.connection import connect
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import faults
from ansible_collections.agentlab.ocp.plugins.module_utils.redfish import boot
from ansible_collections.agentlab.ocp.plugins.module_utils.redfish.client import Bmc
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import LabError, services


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            **_lab.OWNED,
            "secrets": _lab.SECRETS,
            "mode": {"type": "str", "choices": ["redfish", "minimal", "cdrom", "pxe", "manual"], "default": "redfish"},
            "image": {"type": "path", "required": True},
            "ca": {"type": "str"},
            "state": {"type": "str", "choices": ["booted", "ejected"], "default": "booted"},
        },
        supports_check_mode=True,
    )

    def start() -> dict[str, Any]:
        # BMCs are on the lab's network or on a management network; a web proxy leads to neither.
        os.environ["no_proxy"] = os.environ["NO_PROXY"] = "*"
        image = Path(module.params["image"])
        needs_bmc = module.params["mode"] in ("redfish", "minimal")
        plan = _lab.plan_with_secrets(module)[0] if needs_bmc else _lab.plan_of(module)
        _lab.owner_of(module)
        mode, state_dir = module.params["mode"], Path(plan["hypervisor"]["state_dir"])
        nodes = boot.order(plan["nodes"], plan["rendezvous_ip"])
        if module.check_mode and "AGENTLAB_NO_SANDBOX" in os.environ:
            return {"changed": True, "changes": [node["name"] for node in nodes]}
        if not image.exists() and module.params["state"] == "booted":
            raise LabError(f"{image}: no such image: agentlab image --cluster {plan['cluster']['name']}")

        def place(path: Path) -> str:
            return str(path) if mode == "cdrom" else services.published_url(plan, path)

        folder = image.parent if mode == "pxe" else image.parent / "boot-artifacts"
        files = {image, *folder.glob("*")} if mode in ("pxe", "minimal") else {image}
        images = dict.fromkeys((node["name"] for node in nodes), boot.Image(place(image), boot.identity(files)))
        published = sorted(files)
        if foreigners := {fault["node"] for fault in faults.of_kind(plan, "wrong_token")}:
            other = state_dir / f"wrong-token-{image.name}"
            images |= dict.fromkeys(foreigners, boot.Image(place(other), f"wrong-token {boot.identity(files)}"))
            if not module.check_mode and module.params["state"] == "booted":
                foreign.image(image, other)
                published.append(other)
        if not module.check_mode and mode != "cdrom" and module.params["state"] == "booted":
            for path in published:
                services.publish(plan, path)
        if mode == "manual":
            return {"changed": False, "changes": [], "url": place(image)}
        with ExitStack() as stack:
            connection = stack.enter_context(connect())
            verify: bool | str = False
            if module.params["ca"]:
                authority = stack.enter_context(tempfile.NamedTemporaryFile("w", suffix=".crt"))
                authority.write(module.params["ca"])
                authority.flush()
                verify = authority.name

            def reach(node: Mapping[str, Any]) -> boot.Machine:
                if mode in ("cdrom", "pxe"):
                    return machine.Machine(connection, node["domain"], has_cd=mode == "cdrom")
                bmc = node["bmc"]
                return Bmc(node["name"], bmc["address"], bmc["username"], bmc["password"], verify)

            if module.params["state"] == "ejected":
                named = boot.eject(nodes, reach) if not module.check_mode else []
                return {"changed": bool(named), "changes": named}
            return _lab.changed(
                boot.boot(
                    nodes,
                    reach,
                    lambda node: images[node["name"]],
                    state_dir,
                    lambda node: machine.blank(connection, plan["hypervisor"]["pool"], node),
                    check=module.check_mode,
                )
            )

    run(module, start, LabError, CoreosError)


if __name__ == "__main__":
    main()
