"""What every module that makes a part of a lab documents."""

from __future__ import annotations


class ModuleDocFragment:
    """The plan."""

    DOCUMENTATION = r"""
options:
  plan:
    description: The plan of the cluster, C(agentlab_plan).
    type: dict
    required: true
"""

    OWNED = r"""
options:
  plan:
    description: The plan of the cluster, C(agentlab_plan).
    type: dict
    required: true
  owner:
    description:
      - Who works on the cluster, C(agentlab_owner), which the role P(agentlab.ocp.plan#role) sets.
      - A cluster of another user or another run directory is refused.
    type: dict
    required: true
"""
