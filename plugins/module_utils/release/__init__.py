"""Release payloads: what a release image says, and files out of its components, read straight from a registry."""

from __future__ import annotations
