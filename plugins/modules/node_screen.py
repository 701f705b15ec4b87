#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Perform steps on the screen of a node and read it; see DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
module: node_screen
short_description: Perform steps on the screen of a node, and read it
version_added: 1.0.0
description:
  - Performs the steps on the screen and the keyboard of a machine that runs, in their order, and returns what the screen shows as text.
  - The machine needs a screen, C(screen) in the profile. What the serial console shows is not on it.
  - Each cell is looked up in the fonts of firmware and kernel, dot by dot; a cell with other dots is V(�).
  - In check mode no step is performed, and the screen is not read.
  - Without a plan, on any machine of this host's libvirt.
extends_documentation_fragment: [agentlab.ocp.module.no_diff, agentlab.ocp.lab.plan, agentlab.ocp.lab.owner]
requirements:
  - libvirt-python
  - PyYAML
  - zstandard
options:
  node:
    description: Name of the node. Required with O(plan).
    type: str
  domain:
    description: Without O(plan), the machine's name in libvirt.
    type: str
  media:
    description:
      - With O(domain), a directory with ISOs from which the machine may have booted. The kernel's font is read from the first one that has a
        kernel, or from the medium in the machine's CD drive.
    type: path
  steps:
    description:
      - The steps; each has one of O(steps[].wait), O(steps[].press), O(steps[].type) and O(steps[].picture).
      - Those of the plan by default, which are C(screen_steps) of the node in the profile. None by default with O(domain).
    type: list
    elements: dict
    suboptions:
      wait:
        description: Text for which it waits, as a part of a line of the screen. It fails with the last screen when it does not appear.
        type: str
      timeout:
        description: Limit of O(steps[].wait) in seconds, O(timeout) by default.
        type: float
      press:
        description: A key, or keys pressed together, such as V(enter), V(f2) or V(ctrl-x).
        type: str
      type:
        description: Text that is typed on a US keyboard.
        type: str
      picture:
        description: Path of a picture of the screen (PNG, mode 0600), which is written on the hypervisor.
        type: path
  timeout:
    description: Limit in seconds of each O(steps[].wait) that has none.
    type: float
    default: 60
"""

EXAMPLES = r"""
- name: Boot from the disk in the firmware's menu
  agentlab.ocp.node_screen:
    plan: "{{ agentlab_plan }}"
    owner: "{{ agentlab_owner }}"
    node: master-0
    steps:
      - {wait: Press ESC for boot menu, timeout: 90}
      - {press: esc}
      - {wait: Select boot device}
      - {type: "1"}

- name: Read a screen
  agentlab.ocp.node_screen:
    plan: "{{ agentlab_plan }}"
    owner: "{{ agentlab_owner }}"
    node: master-0
    steps: []
  register: shown

- name: Read the screen of any machine
  agentlab.ocp.node_screen:
    domain: fedora
  register: shown
"""

RETURN = r"""
lines:
  description: The lines of the screen after the last step, without blanks at their ends. None of a screen without text.
  returned: success, not in check mode
  type: list
  elements: str
  sample: ["Select boot device:", "", "1. DVD/CD"]
selected:
  description: Texts on another background than most of the screen, such as the selected line of a menu.
  returned: success, not in check mode
  type: list
  elements: str
font:
  description: Name of the font. V(blank) for a screen of one colour; null for one that no font fits, which a picture shows.
  returned: success, not in check mode
  type: str
  sample: VGA text, 9x16
"""

import os
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.agentlab.ocp.plugins.module_utils._ansible import PLAN, run
from ansible_collections.agentlab.ocp.plugins.module_utils.libvirt import display
from ansible_collections.agentlab.ocp.plugins.module_utils.libvirt.connection import connect
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import given
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.arguments import argument
from ansible_collections.agentlab.ocp.plugins.module_utils.screen import steps, text
from ansible_collections.agentlab.ocp.plugins.module_utils.state import owner


def main() -> None:
    step = {
        "wait": {"type": "str"},
        "timeout": {"type": "float"},
        "press": {"type": "str"},
        "type": {"type": "str"},
        "picture": {"type": "path"},
    }
    module = AnsibleModule(
        argument_spec={
            **PLAN,
            "owner": argument(owner.Caller),
            "node": {"type": "str"},
            "domain": {"type": "str"},
            "media": {"type": "path"},
            "steps": {"type": "list", "elements": "dict", "options": step},
            "timeout": {"type": "float", "default": steps.SECONDS},
        },
        required_one_of=[("plan", "domain")],
        mutually_exclusive=[("plan", "domain"), ("plan", "media")],
        required_by={"plan": ("owner", "node")},
        supports_check_mode=True,
    )

    def do() -> dict[str, Any]:
        params = module.params
        wanted, name, domain = params["steps"], params["domain"], params["domain"]
        media = Path(params["media"] or os.devnull)
        if params["plan"] is not None:
            plan = given.plan_of(params, module.no_log_values.update)
            owner.of_cluster(params, check=module.check_mode)
            node = display.node_of(plan, params["node"])
            name, domain, media = node["name"], node["domain"], Path(plan["services"]["http"]["root"])
            wanted = node.get("screen_steps") if wanted is None else wanted
        todo = steps.parse(wanted or [])
        limited = steps.with_limits(todo, params["timeout"], "timeout")
        changed = any("press" in step or "type" in step for step in todo)
        if module.check_mode:
            return {"changed": changed}
        with connect() as connection:
            machine = display.Display(connection, domain, name, media)
            steps.follow(machine, limited)
            shown = text.read(machine.picture(), machine.fonts)
        return {"changed": changed, "lines": shown.lines, "selected": shown.selected, "font": shown.font}

    run(module, do)


if __name__ == "__main__":
    main()
