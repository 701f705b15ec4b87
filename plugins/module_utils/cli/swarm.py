"""`agentlab swarm`: simulated hosts against an assisted service; see payload/node_agent/swarm."""

from __future__ import annotations

import importlib


def main(argv: list[str]) -> int:
    """Run `agentlab swarm`; returns the exit status."""
    package = __package__.partition(".plugins.")[0]
    program = importlib.import_module(f"{package}.payload.node_agent.swarm.main")
    return int(program.main(argv))
