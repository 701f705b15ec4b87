"""Common documentation of the lab modules."""

from __future__ import annotations


class ModuleDocFragment:
    """A plan, or who and where without one; `owner` goes with a plan."""

    STANDALONE = r"""
options:
  plan:
    description: The plan of the cluster, C(agentlab_plan). Needs O(owner).
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
"""

    OWNER = r"""
options:
  owner:
    description:
      - The caller's identity, C(agentlab_owner), which the role P(agentlab.ocp.plan#role) sets.
      - A cluster of another user or another run directory is refused.
    type: dict
    suboptions:
      owner:
        description: The user, and where the user works.
        type: dict
        required: true
        suboptions:
          cluster:
            description: Name of the cluster.
            type: str
            required: true
          run_dir:
            description: Path of the run directory, without symbolic links.
            type: str
            required: true
          uid:
            description: Number of the user.
            type: int
            required: true
          user:
            description: Name of the user, for messages.
            type: str
            required: true
          host:
            description: Name of the host with the run directory. It is compared for a remote hypervisor only.
            type: str
            required: true
          plan:
            description: Digest (SHA-256) of the plan.
            type: str
            required: true
          mark:
            description: What marks the cluster's objects on a hypervisor; empty before there are any.
            type: str
            default: ''
          kept:
            description: Whether the state directory existed before, and stays.
            type: bool
            default: false
      adopt:
        description: Whether to take over the cluster of another owner.
        type: bool
        default: false
      remote:
        description: Whether the hypervisor is another host.
        type: bool
        default: false
"""
