"""Client for the read operations of assisted-service REST v2 that observers of an installation use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from .. import deadline
from .._deps import optional
from ..addresses import in_url
from ..documents import DocumentError, Limits, load_json, read_reply
from ..errors import AssistedError
from ..state.recording import Tape, no_tape
from ..vocabulary import Port
from . import shapes

requests = optional("requests")

HEADERS = {"watcher": "Watcher-Authorization", "user": "Authorization", "agent": "X-Secret-Key"}
"""Header with the token, by authentication scheme."""


# Events of a long run with thousands of hosts are some tens of MiB.
_LIMITS = Limits(size=256 << 20, nodes=10_000_000)


class AssistedClient:
    """Client of one assisted-service.

    host: IPv4 or IPv6 address, or host name; token: a JWT, or None if the service requires none; tape: gets each answer.
    """

    def __init__(
        self,
        host: str,
        token: str | None,
        scheme: str = "watcher",
        port: int = Port.ASSISTED_SERVICE,
        timeout: tuple[float, float] = (5, 30),
        tape: Tape = no_tape,
    ) -> None:
        self.tape = tape
        self.base = f"http://{in_url(host)}:{port}/api/assisted-install/v2"
        self.timeout = timeout
        self.session = requests.Session()
        self.session.trust_env = False  # never use the caller's proxy for a lab's addresses
        if token:
            self.session.headers[HEADERS[scheme]] = token

    def get(self, path: str, **query: str) -> Any:
        """The decoded answer of GET `path`; AssistedError otherwise.

        path: below `/api/assisted-install/v2`, with its leading slash; query: parameters of the URL. Raises
        `AssistedError` when the service does not answer, answers with an error status (the message then has `HTTP` and
        its number), or with something other than JSON.
        """
        url, path_query = self.base + path, path_of(path, query)

        def ask() -> tuple[int, str, bytes]:
            with self.session.get(
                url, params=query, timeout=self.timeout, stream=True, allow_redirects=False
            ) as answer:
                return answer.status_code, answer.reason, read_reply(answer, limits=_LIMITS)

        try:
            status, title, body = deadline.call_within(deadline.REQUEST_SECONDS, ask)
        except (requests.RequestException, TimeoutError) as error:
            self.tape("assisted", path_query, 0, "no answer")
            raise AssistedError(f"{url}: {error}") from error
        if status >= 300:  # redirections, too: the token is for this service alone
            text = reason(body, title)
            self.tape("assisted", path_query, status, text)
            raise AssistedError(f"{url}: HTTP {status}: {text}")
        try:
            found = load_json(body, name="the answer", limits=_LIMITS)
        except DocumentError as error:
            raise AssistedError(f"{url}: the answer is not JSON: {error}") from error
        self.tape("assisted", path_query, status, found)
        return found

    def infra_envs(self) -> list[dict[str, Any]]:
        return shapes.object_list(self.get("/infra-envs"), f"{self.base}/infra-envs")

    def clusters(self) -> list[dict[str, Any]]:
        return shapes.object_list(self.get("/clusters"), f"{self.base}/clusters")

    def cluster(self, cluster_id: str) -> dict[str, Any]:
        """One cluster with its hosts.

        cluster_id: its UUID, as in `clusters()`. Its validations and the hosts' inventories are JSON in strings. Raises
        `AssistedError`.
        """
        path = f"/clusters/{quote(cluster_id, safe='')}"
        return shapes.cluster(self.get(path), f"{self.base}{path}")

    def events(self, infra_env_id: str) -> list[dict[str, Any]]:
        """Events of an infra-env, oldest first.

        infra_env_id: its UUID. Each event has `event_time` (ISO 8601), `severity` and `message`. Raises
        `AssistedError`.
        """
        return shapes.events(self.get("/events", infra_env_id=infra_env_id), f"{self.base}/events")


def path_of(path: str, query: Mapping[str, str]) -> str:
    """Return a path with its query, sorted by name: the name of an answer in a recording."""
    return path + (f"?{urlencode(sorted(query.items()))}" if query else "")


def reason(body: bytes, status: str) -> str:
    """Return the message of either error format of the service (`reason` or `message`)."""
    try:
        found = load_json(body, name="the answer")
    except DocumentError:
        return body.decode("utf-8", "replace").strip()[:200] or status
    return str(found.get("reason") or found.get("message") or found) if isinstance(found, dict) else str(found)
