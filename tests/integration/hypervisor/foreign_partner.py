"""Boots a machine behind foreign hardware as the role `boot` does, or takes its medium away again. Runs in a sandbox of a test.

    python foreign_partner.py FILE boot|release

FILE is JSON: the `url` of the BMC, the `authority` of its certificate, `username`, `password` and `quirks`, and the `image` to insert.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from ansible_collections.agentlab.ocp.plugins.module_utils.boot import bmc

given = json.loads(Path(sys.argv[1]).read_text())
own = bmc.connect(
    "master-0", given["url"], given["username"], given["password"], given["authority"], frozenset(given["quirks"])
)
own.power_off()
own.eject()
if sys.argv[2] == "boot":
    own.insert(given["image"])
    own.boot_from_cd()
    own.power_on()
