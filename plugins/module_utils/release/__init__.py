"""Release payloads: the metadata of a release image, and files out of its components, read straight from a registry."""

from __future__ import annotations
