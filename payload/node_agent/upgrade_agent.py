"""`upgrade_agent`: pull another image of the agent; its runner takes over after the next registration."""

from __future__ import annotations

import threading

from . import fields, host
from .program import main as program
from .program import marshal
from .protocol import Result
from .steps import Context, argument

PULL_SECONDS = 1800.0
_pulling = threading.Lock()


def step(args: list[str], context: Context) -> Result:
    """During a pull, further requests are answered without a result."""
    image = fields.image("upgrade-agent: agent_image", argument("upgrade-agent", args[0], "agent_image")["agent_image"])
    if not _pulling.acquire(blocking=False):
        return Result(marshal({"agent_image": image}))
    try:
        pulled = host.run(["podman", "pull", "--quiet", image], PULL_SECONDS, host=True)
    finally:
        _pulling.release()
    result = "failure" if pulled.exit_code else "success"
    return Result(marshal({"agent_image": image, "result": result}), pulled.error if pulled.exit_code else "")


def main(argv: list[str] | None = None) -> int:
    return program("upgrade_agent", step, argv)


if __name__ == "__main__":
    raise SystemExit(main())
