"""assisted-service of the lab payload: REST v2, host and cluster state machines, events, validations."""

from __future__ import annotations


def main() -> int:
    """`/assisted-service` of the image."""
    from .__main__ import main as run

    return run()
