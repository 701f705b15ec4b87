#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Record the objects of a cluster; see DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
module: lab_state
short_description: Record created objects and issue certificates
version_added: 1.0.0
description:
  - Records everything that the next stages create in C(state.json) of the run directory, before it is created, with its owner.
  - Creates the lab's certificate authority and server certificate in C(tls/) of the run directory.
extends_documentation_fragment: [agentlab.ocp.module]
requirements:
  - PyYAML
options:
  plan:
    description: The plan of the cluster, C(agentlab_plan). Required to write.
    type: dict
  owner:
    description: The caller's identity, C(agentlab_owner). Required to write.
    type: dict
  run_dir:
    description: The run directory.
    type: path
    required: true
  host:
    description: Inventory name of the hypervisor. Required to write.
    type: str
  state:
    description:
      - V(present) records the objects.
      - V(absent) removes C(state.json) and the certificates, after M(agentlab.ocp.lab_destroy).
    type: str
    choices: [present, absent]
    default: present
"""

EXAMPLES = r"""
- name: Record the objects before they are created
  agentlab.ocp.lab_state:
    plan: "{{ agentlab_plan }}"
    owner: "{{ agentlab_owner }}"
    run_dir: "{{ agentlab_run_dir }}"
    host: "{{ inventory_hostname }}"
  delegate_to: localhost
"""

RETURN = r"""
created:
  description: The added entries.
  returned: when it writes
  type: list
  elements: dict
owner:
  description: The option O(owner) with the mark of the cluster's objects.
  returned: when it writes
  type: dict
"""

import shutil
import uuid
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.agentlab.ocp.plugins.module_utils import state
from ansible_collections.agentlab.ocp.plugins.module_utils._ansible import run
from ansible_collections.agentlab.ocp.plugins.module_utils.errors import LabError
from ansible_collections.agentlab.ocp.plugins.module_utils.installer import state as installer_state
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import certificates, created, given, ipi
from ansible_collections.agentlab.ocp.plugins.module_utils.state import owner


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "plan": {"type": "dict"},
            "owner": {"type": "dict"},
            "run_dir": {"type": "path", "required": True},
            "host": {"type": "str"},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        },
        required_if=[("state", "present", ("plan", "owner", "host"))],
        supports_check_mode=True,
    )

    def write() -> dict[str, Any]:
        plan, run_dir = given.plan_of(module.params, module.no_log_values.update), Path(module.params["run_dir"])
        items = created.items(plan, module.params["host"])
        recorded = state.load(run_dir)
        listed = recorded["created"]
        new = [item for item in items if item not in listed]
        who = owner.from_fact(module.params["owner"])
        found = None
        if not who.remote:
            directory = Path(plan["hypervisor"]["state_dir"])
            owner.refuse_foreign(directory)
            found = owner.verify(directory, who)
        if found and not listed and found.plan != who.owner.plan:
            raise LabError(
                f"cluster {found.cluster} exists with a different plan, and {run_dir}/state.json, which lists its objects, "
                f"is lost: remove it first, agentlab destroy PROFILE --cluster {found.cluster}"
            )
        # Another hypervisor may have been recorded since the plan was read.
        noted = (recorded["owner"] or {}).get("mark", "")
        mark = found.mark if found else who.owner.mark or noted or str(uuid.uuid4())
        who = replace(who, owner=replace(who.owner, mark=mark))
        if not module.check_mode:
            if not listed:
                # A new cluster: what the previous one with this name left would be mistaken for its own.
                # The state of an agent-based one stays: `create cluster` removes with it what it lists.
                kept = [installer_state.FILENAME] if installer_state.ours(run_dir) else []
                for name in ("logs", "report", *(ipi.LEFT if ipi.bootstrap(plan) else ())):
                    if name not in kept:
                        _remove(run_dir / name)
            state.record(run_dir, items, asdict(who.owner))
        certified = not plan["hypervisor"].get("further") and certificates.ensure(
            run_dir / "tls", plan["cluster"]["name"], certificates.served_names(plan), check=module.check_mode
        )
        added = [f"{item['kind']} {item['name']}\n" for item in new] + (["certificates in tls/\n"] if certified else [])
        return {
            "changed": bool(added),
            "created": new,
            "owner": who.fact(),
            "diff": {"before": "", "after": "".join(added)},
        }

    def forget() -> dict[str, Any]:
        run_dir = Path(module.params["run_dir"])
        there = [path for path in (run_dir / state.FILE, run_dir / "tls") if path.exists()]
        if not module.check_mode:
            for path in there:
                _remove(path)
        return {"changed": bool(there), "diff": {"before": "".join(f"{path}\n" for path in there), "after": ""}}

    run(module, write if module.params["state"] == "present" else forget)


if __name__ == "__main__":
    main()
