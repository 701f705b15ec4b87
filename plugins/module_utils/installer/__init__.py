"""The agent-based installer: install-config, agent-config and ZTP manifests in; manifests, Ignition and images out.

`run.create(target, directory)` does what `agentlab create TARGET --dir DIRECTORY` does.
"""

from __future__ import annotations
