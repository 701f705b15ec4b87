"""`python -m ansible_collections.agentlab.ocp.plugins.module_utils.cli VERB ...`, which `bin/agentlab` runs."""

from __future__ import annotations

import sys

from . import main

if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
