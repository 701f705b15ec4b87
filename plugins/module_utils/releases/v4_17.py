"""Release 4.17: the assisted service requires a token."""

from __future__ import annotations

from dataclasses import replace

from .v4_16 import RELEASE as BEFORE

RELEASE = replace(
    BEFORE,
    name="4.17",
    capability_sets={**BEFORE.capability_sets, "v4.17": ()},
    auth="infra-env",
    live_ntp=True,
    env={"LOG_LEVEL": "debug"},
    kill_mode="none",
)
