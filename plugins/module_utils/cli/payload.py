"""`agentlab payload build|show|push`: the lab payload, which replaces an OpenShift release."""

from __future__ import annotations

import importlib


def main(argv: list[str]) -> int:
    """Run `agentlab payload`; returns the exit status."""
    package = __package__.partition(".plugins.")[0]
    program = importlib.import_module(f"{package}.payload.build.__main__")
    return int(program.main(argv))
