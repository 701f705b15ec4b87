"""libvirt: networks, storage and domains from a plan; rendered, compared with what is defined, applied."""

from __future__ import annotations
