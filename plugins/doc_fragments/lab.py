"""Common documentation of the lab modules."""

from __future__ import annotations


class ModuleDocFragment:
    """A plan, or who and where without one; `plan` and `owner` are for modules that need both."""

    STANDALONE = r"""
options:
  plan:
    description: The plan of the cluster, C(agentlab_plan). Needs O(owner).
    type: dict
  owner:
    description:
      - The caller's identity, C(agentlab_owner), which the role P(agentlab.ocp.plan#role) sets.
      - A cluster of another user or another run directory is refused.
    type: dict
  cluster:
    description:
      - Without O(plan), a name for all that belongs together; it is part of the machines' names. It belongs to the user of the task.
      - M(agentlab.ocp.lab_destroy) removes it.
    type: str
  state_dir:
    description: Without O(plan), where its disks and records are. C(/var/lib/agentlab/<cluster>) by default.
    type: path
"""

    PLAN = r"""
options:
  plan:
    description: The plan of the cluster, C(agentlab_plan). On one of several hypervisors, the plan as that hypervisor sees it.
    type: dict
    required: true
"""

    OWNER = r"""
options:
  owner:
    description:
      - The caller's identity, C(agentlab_owner), which the role P(agentlab.ocp.plan#role) sets.
      - A cluster of another user or another run directory is refused.
    type: dict
    required: true
"""
