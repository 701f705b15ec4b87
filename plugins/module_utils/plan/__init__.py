"""From a profile to a plan: schema, presets, addressing, and the pictures of it."""

from __future__ import annotations
