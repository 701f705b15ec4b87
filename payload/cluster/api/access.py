"""Users of the API: who they are, and what they may do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from aiohttp import web

from ..store import Store
from . import node_access
from .errors import ApiError
from .requests import READ, Target


@dataclass(frozen=True)
class User:
    """The user of a request."""

    name: str
    groups: tuple[str, ...]


ANONYMOUS = User("system:anonymous", ("system:unauthenticated",))
AUTHENTICATED = "system:authenticated"
MASTERS = "system:masters"
NODES = "system:nodes"
BOOTSTRAPPER = "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper"
_REQUESTS = {"certificatesigningrequests.certificates.k8s.io": frozenset({"create", "get", "list", "watch"})}
_SELF = {
    "selfsubjectaccessreviews.authorization.k8s.io": frozenset({"create"}),
    "selfsubjectreviews.authentication.k8s.io": frozenset({"create"}),
}


@dataclass
class Access:
    """Bearer tokens, and what users and groups may do; the group `system:masters` has full access.

    `rules` maps a group or a user to the verbs that it has, by resource; a subresource has an entry of its own, as in
    `nodes/status`. What nodes may do depends on the objects, and is in `node_access`.
    """

    tokens: dict[str, User] = field(default_factory=dict)
    rules: dict[str, dict[str, frozenset[str]]] = field(
        default_factory=lambda: {"system:bootstrappers": _REQUESTS, BOOTSTRAPPER: _REQUESTS, AUTHENTICATED: _SELF}
    )

    def user(self, request: web.Request) -> User:
        """Return the user of a request: from the client certificate (CN, O) or bearer token, or anonymous.

        Raises ApiError 401 for a token that is not known, 403 for a user who may not impersonate another.
        """
        user = self._authenticated(request)
        as_user = request.headers.get("Impersonate-User")
        if not as_user:
            return user
        if MASTERS not in user.groups:
            raise ApiError(
                403,
                "Forbidden",
                f'users "{as_user}" is forbidden: User "{user.name}" cannot impersonate resource "users" in API group "" '
                "at the cluster scope",
                {"name": as_user, "kind": "users"},
            )
        return impersonated_user(as_user, request.headers.getall("Impersonate-Group", []))

    def _authenticated(self, request: web.Request) -> User:
        certificate = request.transport.get_extra_info("peercert") if request.transport else None
        if certificate:
            subject = [attribute for rdn in certificate.get("subject", ()) for attribute in rdn]
            name = next((value for kind, value in subject if kind == "commonName"), "")
            return User(name, (*(value for kind, value in subject if kind == "organizationName"), AUTHENTICATED))
        kind, __, token = request.headers.get("Authorization", "").partition(" ")
        if kind.lower() == "bearer":
            if token not in self.tokens:
                raise ApiError(401, "Unauthorized", "Unauthorized")
            return self.tokens[token]
        return ANONYMOUS

    @staticmethod
    def is_master(user: User) -> bool:
        """Return whether a user has full access."""
        return MASTERS in user.groups

    def allowed(self, user: User, verb: str, target: Target, store: Store, fields: Callable[[], str]) -> bool:
        """Return whether the user may do this.

        fields: returns the field selector of the request, which limits what a node may list.
        """
        if self.is_master(user):
            return True
        key = f"{target.resource.key}/{target.sub}" if target.sub else target.resource.key
        if any(verb in self.rules.get(subject, {}).get(key, ()) for subject in (user.name, *user.groups)):
            return True
        node = node_access.node_of(user.name) if NODES in user.groups else ""
        return bool(node) and node_access.may(store, node, verb, target, fields() if verb in READ else "")


def impersonated_user(name: str, groups: list[str]) -> User:
    """Return the user that a request impersonates; like the real API it is authenticated, and a service account has its groups."""
    if name == ANONYMOUS.name:
        return User(name, tuple(groups) or ANONYMOUS.groups)
    prefix, account = "system:serviceaccount:", name.split(":")
    if name.startswith(prefix) and len(account) == 4 and not groups:
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{account[2]}"]
    return User(name, tuple(dict.fromkeys((*groups, AUTHENTICATED))))
