"""Says to a service what a client said when it was recorded, and compares the answers."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple, Protocol

HERE = Path(__file__).parent
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.ASCII)


class Exchange(NamedTuple):
    """One of a recording; see the package."""

    method: str
    path: str
    scheme: str
    request: Any
    status: int
    answer: Any


def load(name: str) -> list[Exchange]:
    """The recording `name`.json of this folder."""
    return [Exchange(**entry) for entry in json.loads((HERE / f"{name}.json").read_text())]


class Call(Protocol):
    """Sends a request below the service's URL; returns status and decoded answer."""

    async def __call__(self, method: str, path: str, body: Any, scheme: str) -> tuple[int, Any]: ...


class Replay:
    """`ids`: what was called how in the recording -> how the service calls it. Ids that the client chose stay."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.ids: dict[str, str] = {}

    def here(self, text: str) -> str:
        return UUID.sub(lambda match: self.ids.get(match[0], match[0]), text)

    async def send(self, exchange: Exchange) -> Any:
        """Repeat one; its status must be the recorded one. Learns the ids in the answer, and returns it."""
        body = json.loads(self.here(json.dumps(exchange.request))) if exchange.request is not None else None
        status, answer = await self.call(exchange.method, self.here(exchange.path), body, exchange.scheme)
        assert status == exchange.status, (
            f"{exchange.method} {exchange.path}: {status}, recorded was {exchange.status}: {answer}"
        )
        self.learn(exchange.answer, answer)
        return answer

    def learn(self, recorded: Any, answer: Any) -> None:
        if isinstance(recorded, dict) and isinstance(answer, dict):
            for key in recorded.keys() & answer.keys():
                self.learn(recorded[key], answer[key])
        elif (
            isinstance(recorded, str)
            and isinstance(answer, str)
            and UUID.fullmatch(recorded)
            and UUID.fullmatch(answer)
        ):
            self.ids.setdefault(recorded, answer)


def shape(value: Any, path: str = "") -> set[str]:
    """The places in a JSON value, with the type of what is there: `.hosts[].id string`."""
    if isinstance(value, dict):
        return {f"{path} object"}.union(*(shape(child, f"{path}.{key}") for key, child in value.items()))
    if isinstance(value, list):
        return {f"{path} list"}.union(*(shape(child, f"{path}[]") for child in value))
    kinds = {bool: "boolean", int: "number", float: "number", str: "string"}
    return {f"{path} {kinds[type(value)]}"} if value is not None else set()
