"""Commands on the nodes, as user core with the key of the run."""

from __future__ import annotations

import subprocess
from pathlib import Path

from ..vocabulary import RunFile

SSH = (
    "ssh",
    "-o",
    "StrictHostKeyChecking=no",
    "-o",
    "UserKnownHostsFile=/dev/null",
    "-o",
    "ConnectTimeout=10",
    "-o",
    "LogLevel=ERROR",
)
LOGIN_SECONDS = 120
"""How long a login may take. A host without its network is refused within 10 s; three busy emulated ones took more than 60."""


def run(*command: str, limit: float = 30) -> str:
    """Output of a command; raises what `subprocess.run` does.

    limit: seconds. That is `CalledProcessError` (with its stderr as text), `TimeoutExpired`, or `OSError` for a missing
    program.
    """
    return subprocess.run(command, capture_output=True, text=True, timeout=limit, check=True).stdout


def ssh(run_dir: Path, address: str, *, batch: bool = True, key: Path | None = None) -> tuple[str, ...]:
    """Return the ssh command prefix for a node; batch: never prompt; key: the private key, that of the run unless given.

    address: of the node, IPv4 or IPv6. Append the command to run. Host keys are not checked: each installation makes
    new ones.
    """
    return (
        *SSH,
        *(("-o", "BatchMode=yes") if batch else ()),
        "-i",
        str(key or run_dir / RunFile.SSH_KEY),
        f"core@{address}",
    )


def on_node(run_dir: Path, address: str, command: str) -> str:
    """Return the output of a command on a node; raises OSError with the reason.

    command: for the node's shell, as user core. The limit is LOGIN_SECONDS and 60 for the command itself.
    """
    try:
        return run(*ssh(run_dir, address), command, limit=LOGIN_SECONDS + 60)
    except subprocess.CalledProcessError as error:
        raise OSError(f"ssh to {address}: {error.stderr.strip() or f'exit status {error.returncode}'}") from error
    except subprocess.TimeoutExpired as error:
        raise OSError(f"ssh to {address}: no answer within {error.timeout:.0f} s") from error
