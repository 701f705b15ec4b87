"""Host validations of the assisted service that the report treats in a way of their own.

Those of `payload/api_server/validations`, which the collection's side does not import; ci/generate.py writes this file.
"""

from __future__ import annotations

#: They fail without holding a host back.
WARNINGS = frozenset(
    {
        "container-images-available",
        "inventory-not-partially-truncated",
        "mtu-valid",
        "ntp-synced",
    }
)
#: Waiting does not change them.
LASTING = frozenset(
    {
        "has-cpu-cores-for-role",
        "has-memory-for-role",
        "has-min-cpu-cores",
        "has-min-memory",
        "has-min-valid-disks",
    }
)
