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
