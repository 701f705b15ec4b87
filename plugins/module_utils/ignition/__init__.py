"""Ignition configs, specification 3.x: build, merge, check."""

from __future__ import annotations
