"""What every module that makes a part of a lab documents."""

from __future__ import annotations


class ModuleDocFragment:
    """The plan, and what such a module supports."""

    DOCUMENTATION = r"""
options:
  plan:
    description: The plan of the cluster, C(agentlab_plan).
    type: dict
    required: true
author:
  - The agentlab authors (@agentlab)
attributes:
  check_mode:
    description: Can run in check mode and return what would change.
    support: full
  diff_mode:
    description: Returns what is different.
    support: full
"""
