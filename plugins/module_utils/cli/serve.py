"""`agentlab serve`: one of the lab's simulators, or the recording of a run, in the foreground."""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path

from ..documents import load_json, read_file
from ..terminal import write_line
from ..vocabulary import Exit, Port
from .output import message
from .replay import play, speed

SIGNERS = "EPHEMERAL_INSTALLER_CLUSTER_TLS_CERTS_OVERRIDE_DIR"


def _listen(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} should be HOST:PORT, like 127.0.0.1:8090 or [::1]:8090")
    return host.strip("[]"), int(port)


def _tokens(data: Path) -> tuple[str, Path]:
    """The public key of the service, and the file with its tokens; made on the first start, kept 0600."""
    from ....payload.api_server.auth import make_tokens

    path = data / "tokens.json"
    if not path.is_file():
        key, tokens = make_tokens()
        temporary = path.with_suffix(".new")
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump({"EC_PUBLIC_KEY_PEM": key, **tokens}, file, indent=2)
        temporary.rename(path)
    try:
        return str(load_json(read_file(path), name=str(path))["EC_PUBLIC_KEY_PEM"]), path
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"{path} is corrupt: remove it to create new tokens") from None


def assisted_service(argv: list[str]) -> int:
    """The assisted-service simulator; further settings come from the environment, with the names of upstream's service."""
    import asyncio

    from ....payload.api_server.__main__ import serve
    from ....payload.api_server.config import Config

    parser = argparse.ArgumentParser(prog="agentlab serve assisted-service", description=assisted_service.__doc__)
    parser.add_argument(
        "--listen",
        type=_listen,
        default=("127.0.0.1", Port.ASSISTED_SERVICE),
        metavar="HOST:PORT",
        help=f"address to listen on, default 127.0.0.1:{Port.ASSISTED_SERVICE}; port 0 selects a free one",
    )
    parser.add_argument(
        "--auth", choices=("none", "local"), default="none", help="local: tokens are written to DIR/tokens.json"
    )
    parser.add_argument(
        "--exit-on-reboot",
        action="store_true",
        help="end when the rendezvous host reboots, as the service of the agent-based installer does",
    )
    parser.add_argument(
        "--data",
        type=Path,
        default=Path("assisted-service"),
        metavar="DIR",
        help="state and logs, default ./assisted-service",
    )
    options = parser.parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    try:
        options.data.mkdir(parents=True, exist_ok=True, mode=0o700)
        # Without signers there is no cluster to create configs for: hosts get empty ones.
        environment = {"DUMMY_IGNITION": "false" if SIGNERS in os.environ else "true", **os.environ}
        environment["AUTH_TYPE"] = {"none": "none", "local": "agent-installer-local"}[options.auth]
        if options.exit_on_reboot:
            environment["INSTALL_INVOKER"] = "agent-installer"
        if options.auth == "local":
            environment["EC_PUBLIC_KEY_PEM"], path = _tokens(options.data)
            write_line(f"tokens: {path}")
        config = Config(
            environment, options.data, options.data / "assisted-service.sqlite", exit_on_reboot=options.exit_on_reboot
        ).check()
        work = serve(config, [options.listen], lambda urls: write_line(f"assisted-service listens on {urls[0]}"))
        code: int = asyncio.run(work)
        return code
    except (OSError, ValueError) as error:
        write_line(f"agentlab serve assisted-service: {message(error)}", sys.stderr)
        return Exit.FAILED


SIMULATORS: dict[str, Callable[[list[str]], int]] = {"assisted-service": assisted_service}


def main(argv: list[str]) -> int:
    """Start the simulator that the first argument names, or play the recording of a run."""
    parser = argparse.ArgumentParser(
        prog="agentlab serve",
        description="Start one of the lab's simulators in the foreground, or play the recording of a run.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--replay",
        type=Path,
        metavar="DIR|ARCHIVE",
        help="play the recording of a run: its directory, its artifacts, or an archive of these",
    )
    parser.add_argument("--speed", type=speed, default=1.0, metavar="N", help="play it N times as fast (default 1)")
    parser.add_argument(
        "--listen",
        type=_listen,
        default=("127.0.0.1", Port.ASSISTED_SERVICE),
        metavar="HOST:PORT",
        help=f"address to play it on, default 127.0.0.1:{Port.ASSISTED_SERVICE}; port 0 selects a free one",
    )
    names = parser.add_subparsers(dest="name", metavar="SIMULATOR", title="simulators")
    for name, function in SIMULATORS.items():
        names.add_parser(name, help=(function.__doc__ or "").partition(";")[0], add_help=False)
    if argv[:1] and argv[0] in SIMULATORS:
        return SIMULATORS[argv[0]](argv[1:])
    args = parser.parse_args(argv)
    if args.replay is None:
        parser.error("name a simulator, or a run with --replay")
    return play(args.replay, args.speed, args.listen)
