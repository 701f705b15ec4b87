"""`oc adm node-image create`: the image of hosts that join an installed cluster, and the tokens of their services."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from ..documents import DocumentError, load_json
from ..errors import ClusterError
from ..installer import credentials, run
from ..installer.joiner.assets import ADD_NODES
from ..log import Log
from .client import ClusterClient
from .inspection import inspect, members
from .joining import TOKENS

LIFETIME = timedelta(hours=48)
"""How long the tokens of a node image are valid: the image, too."""
LEAST = timedelta(hours=24)
"""Tokens that expire sooner are replaced, by an image that has others."""
NAMESPACE, NAME = "openshift-config", "agent-auth-token"
_KEYS = {
    "agentAuthToken": "AgentAuthToken",
    "userAuthToken": "UserAuthToken",
    "watcherAuthToken": "WatcherAuthToken",
    "authTokenPublicKey": "PublicKey",
}


class Tokens(NamedTuple):
    """Tokens as `credentials.tokens` returns them. new: the cluster does not have them yet."""

    values: dict[str, str]
    new: bool


def create(
    target: str,
    options: run.Options,
    kube: ClusterClient,
    log: Log,
    *,
    joined: Collection[str] = (),
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> run.Result:
    """Make a node image, or the files for a network boot, in `options.directory`, which has nodes-config.yaml.

    target: `node-image` or `node-pxe-files`. joined: host names that a node of the cluster may have already, since it is the
    host itself. Raises `ClusterError`, and `InstallerError` with upstream's text; then neither files nor the Secret with the
    tokens have changed.
    """
    log.info("Gathering additional information from the target cluster")
    info = inspect(kube)
    known = [one for one in members(kube) if one["name"].partition(".")[0] not in joined]
    tokens = stored_tokens(kube, now())
    made = replace(
        run.with_release(options, info["release_image"], info["version"]),
        cluster=info,
        members=known,
        tokens=tokens.values,
    )
    result = run.create([target], made, log, workflow=ADD_NODES)
    if tokens.new:
        result.changed.append(f"Secret {NAMESPACE}/{NAME}")
        if not options.dry:
            _store(kube, tokens.values)
    return result


def stored_tokens(kube: ClusterClient, now: datetime) -> Tokens:
    """Return the tokens that the cluster has for services of new nodes, or new ones if they are about to expire.

    A Secret that is damaged counts as none. Raises `ClusterError`. Nothing is written.
    """
    found = (kube.find(TOKENS) or {}).get("data") or {}
    try:
        values = {field: base64.b64decode(found[key], validate=True).decode() for key, field in _KEYS.items()}
        expires = _expiry(values["AgentAuthToken"])
    except (KeyError, TypeError, ValueError):
        return Tokens(credentials.tokens(now + LIFETIME), True)
    if expires - now < LEAST:
        return Tokens(credentials.tokens(now + LIFETIME), True)
    stamp = expires.strftime("%Y-%m-%dT%H:%M:%SZ")
    return Tokens({"AuthType": "agent-installer-local", **values, "AuthTokenExpiry": stamp}, False)


def _expiry(token: str) -> datetime:
    """When a JWT expires. Raises `ValueError` or `KeyError` for another text, or for one that never does."""
    try:
        body = token.split(".")[1]
        claims = load_json(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)), name="token")
        return datetime.fromtimestamp(int(claims["exp"]), UTC)
    except (IndexError, binascii.Error, DocumentError, TypeError) as error:
        raise ValueError(f"not a JWT: {error}") from error


def _store(kube: ClusterClient, tokens: dict[str, str]) -> None:
    data = {key: base64.b64encode(tokens[field].encode()).decode() for key, field in _KEYS.items()}
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": NAME, "namespace": NAMESPACE},
        "type": "Opaque",
        "data": data,
    }
    try:
        if kube.find(TOKENS) is None:
            kube.send("POST", TOKENS.rpartition("/")[0], secret)
        else:
            kube.send("PATCH", TOKENS, {"data": data})
    except ClusterError as error:
        raise ClusterError(f"the tokens of the node image cannot be stored in the cluster: {error}") from error
