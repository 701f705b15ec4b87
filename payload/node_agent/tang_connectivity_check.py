"""`tang_connectivity_check`: whether the Tang servers that unlock the disks return their advertisement."""

from __future__ import annotations

import re
from typing import Any

from ...plugins.module_utils.bounded import load_json
from . import fields, rest
from .program import main as program
from .program import marshal
from .protocol import Result
from .steps import Context, argument, arguments

# Base64url of a hash (RFC 7638); hexadecimal with colons is accepted, too.
THUMBPRINT = re.compile(r"[-\w:.+=]{1,256}", re.ASCII)
MOST_SERVERS = 100


def ask(server: dict[str, Any]) -> dict[str, Any]:
    """The model `tang_server_response`. ValueError has the reason."""
    url, thumbprint = server.get("url") or "", server.get("thumbprint") or ""
    try:
        fields.url("url", url)
    except ValueError:
        raise ValueError(f"invalid URI for request: {fields.shown_value(url)!r}") from None
    if not thumbprint:
        raise ValueError(f"Tang thumbprint isn't set for server: {url}")
    if not isinstance(thumbprint, str) or not THUMBPRINT.fullmatch(thumbprint):
        raise ValueError(f"Tang thumbprint {fields.shown_value(thumbprint)} of server {url} is not valid")
    where = f"{url}/adv/{thumbprint}"
    answer = rest.send("GET", where, {})
    if answer.status != 200:
        raise ValueError(f"HTTP GET failure. {answer.error or f'Status Code: {answer.status}'}")
    try:
        advertised = load_json(answer.body, name="advertisement")
    except ValueError as error:
        raise ValueError(f"Error unmarshaling tang response of {where}: {error}") from None
    if not isinstance(advertised, dict):
        raise ValueError(f"Error unmarshaling tang response of {where}: it is not an object")
    return {"tang_url": where, "payload": advertised.get("payload", ""), "signatures": advertised.get("signatures")}


def step(args: list[str], context: Context) -> Result:
    try:
        text = argument("tang-connectivity-check", args[0], "tang_servers")["tang_servers"]
        servers = arguments(
            "tang-connectivity-check: tang_servers", fields.text("tang_servers", text, 2**17), dict, MOST_SERVERS
        )
    except ValueError as error:
        return Result(marshal({"is_success": False, "tang_server_response": None}), str(error), -1)
    answers, errors = [], []
    for server in servers:
        try:
            answers.append(ask(server))
        except ValueError as error:
            errors.append(str(error))
    if errors:
        return Result(marshal({"is_success": False, "tang_server_response": None}), "\n".join(errors), -1)
    return Result(marshal({"is_success": True, "tang_server_response": answers or None}))


def main(argv: list[str] | None = None) -> int:
    return program("tang_connectivity_check", step, argv)


if __name__ == "__main__":
    raise SystemExit(main())
