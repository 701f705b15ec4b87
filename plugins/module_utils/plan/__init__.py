"""From a profile to a plan: schema, presets, addressing, tables and drawings."""

from __future__ import annotations
