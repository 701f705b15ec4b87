"""The ZTP manifests of `cluster-manifests/`: made from install-config and agent-config, or read from disk."""

from __future__ import annotations
