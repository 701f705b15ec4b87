# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The openshift-install that a plan names; see DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
name: installer_program
short_description: Return the path of the openshift-install that a plan names
version_added: 1.0.0
description:
  - The build that the plan has, or the link to one from a repository, which the module M(agentlab.ocp.installer_build) makes.
author:
  - The agentlab authors (@agentlab)
positional: directory
options:
  _input:
    description: C(release.installer) of the plan, or its C(git) and C(binary) alone. Without both there is no such program.
    type: dict
    required: true
  directory:
    description: The run directory.
    type: path
    required: true
"""

EXAMPLES = r"""
- name: Print which openshift-install installs the cluster
  ansible.builtin.debug:
    msg: "{{ agentlab_plan.release.installer | agentlab.ocp.installer_program(agentlab_run_dir) }}"
"""

RETURN = r"""
_value:
  description: The path. It is empty for agentlab's own installer.
  type: str
  sample: /home/user/runs/ostest/openshift-install
"""

from collections.abc import Callable

from ansible_collections.agentlab.ocp.plugins.module_utils.plan.openshift_install import program


class FilterModule:
    """The filter of this file."""

    def filters(self) -> dict[str, Callable[..., object]]:
        """Return it by its name."""
        return {"installer_program": program}
