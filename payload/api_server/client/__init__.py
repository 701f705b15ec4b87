"""agent-installer-client of the lab payload: registers the contents of the agent ISO with the service on the rendezvous host."""

from __future__ import annotations


def main() -> int:
    """`/usr/local/bin/agent-installer-client` of the image."""
    from .__main__ import main as run

    return run()
