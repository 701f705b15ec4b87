"""The lab's file server as a place for boot media: files that are published there under their own names."""

from __future__ import annotations

from pathlib import Path

from ..plan.model import Plan
from ..state import write_atomic


def published_url(plan: Plan, path: Path) -> str:
    """Return the URL that `path` has on the lab's file server once it is published.

    `path` is a file of the hypervisor, of which only the name counts. Nothing is published here.
    """
    return f"{plan['services']['http']['url']}/{path.name}"


def publish(plan: Plan, path: Path) -> str:
    """Serve a file, or a directory, under its own name by the lab's file server; return its URL.

    By a symbolic link in the server's directory, so the file stays where it is; a link of that name is replaced.
    """
    link = Path(plan["services"]["http"]["root"]) / path.name
    target = path.resolve()
    if not link.is_symlink() or link.resolve() != target:
        link.unlink(missing_ok=True)
        link.symlink_to(target)
    return published_url(plan, path)


def write(plan: Plan, name: str, text: str) -> None:
    """Serve a text as the file `name` by the lab's file server."""
    write_atomic(Path(plan["services"]["http"]["root"]) / name, text)
