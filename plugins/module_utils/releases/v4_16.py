"""Release 4.16: nothing that the agent-based installer does differently is known."""

from __future__ import annotations

from dataclasses import replace

from .v4_15 import RELEASE as BEFORE

RELEASE = replace(
    BEFORE,
    name="4.16",
)
