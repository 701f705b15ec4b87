"""The lab's file server as a place for boot media: files that are published there under their own names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..addresses import in_url


def published_url(plan: Mapping[str, Any], path: Path) -> str:
    """Return the URL that `path` has on the lab's file server once it is published."""
    address = plan["networks"][0]["subnets"][0]["gateway"]
    return f"http://{in_url(address)}:{plan['services']['http']['port']}/{path.name}"


def publish(plan: Mapping[str, Any], path: Path) -> str:
    """Serve a file, or a directory, under its own name by the lab's file server; return its URL."""
    link = Path(plan["hypervisor"]["state_dir"]) / "services" / "http" / "root" / path.name
    target = path.resolve()
    if not link.is_symlink() or link.resolve() != target:
        link.unlink(missing_ok=True)
        link.symlink_to(target)
    return published_url(plan, path)
