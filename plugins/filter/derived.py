# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What follows from a plan; see DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
name: derived
short_description: Return what roles decide by, from a plan
version_added: 1.0.0
description:
  - Flow, boot mode, targets and others that follow from the plan of a cluster alone; C(plan/derived.py) has their meaning.
author:
  - The agentlab authors (@agentlab)
options:
  _input:
    description: The plan. Of an empty one, what roles use in place of a plan is returned.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Print what the stage image creates
  ansible.builtin.debug:
    msg: "{{ (agentlab_plan | agentlab.ocp.derived).targets }}"
"""

RETURN = r"""
_value:
  description: The values by their names.
  type: dict
  sample: {flow: agent, mode: redfish, targets: [cluster-manifests, image]}
"""

from collections.abc import Callable

from ansible_collections.agentlab.ocp.plugins.module_utils.plan.derived import derived_values


class FilterModule:
    """The filter of this file."""

    def filters(self) -> dict[str, Callable[..., object]]:
        """Return it by its name."""
        return {"derived": derived_values}
