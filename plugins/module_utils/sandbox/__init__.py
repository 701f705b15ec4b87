"""A hypervisor of our own: namespaces, the processes in them, and the services at the lab's gateway."""

from __future__ import annotations


class LabError(RuntimeError):
    """Something in the machine room cannot be made, started or removed; the text is the whole message."""
