"""Release 4.16: two more capabilities; nothing else that the agent-based installer does differently is known."""

from __future__ import annotations

from dataclasses import replace

from .v4_15 import RELEASE as BEFORE

RELEASE = replace(
    BEFORE,
    name="4.16",
    capability_sets={**BEFORE.capability_sets, "v4.16": ("CloudControllerManager", "Ingress")},
)
