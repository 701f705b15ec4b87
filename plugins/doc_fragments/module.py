# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Common documentation of all modules."""

from __future__ import annotations


class ModuleDocFragment:
    """A module that changes something; `no_diff` is for one that shows no difference, `reads` for one that changes nothing."""

    DOCUMENTATION = r"""
options: {}
requirements:
  - python >= 3.11
author:
  - The agentlab authors (@agentlab)
attributes:
  check_mode:
    description: Can run in check mode and return what would change.
    support: full
  diff_mode:
    description: Returns what is different, without secrets.
    support: full
"""

    READS = r"""
options: {}
requirements:
  - python >= 3.11
author:
  - The agentlab authors (@agentlab)
attributes:
  check_mode:
    description: Changes nothing.
    support: full
  diff_mode:
    description: Does not change anything.
    support: none
"""

    NO_DIFF = r"""
options: {}
requirements:
  - python >= 3.11
author:
  - The agentlab authors (@agentlab)
attributes:
  check_mode:
    description: Can run in check mode, in which it writes nothing.
    support: full
  diff_mode:
    description: Shows no difference.
    support: none
"""
