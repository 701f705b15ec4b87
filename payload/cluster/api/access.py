"""Users of the API: who they are, and what their groups may do."""

from __future__ import annotations

from dataclasses import dataclass, field

from aiohttp import web

from ..resources import Resource
from ..store import Object
from .errors import ApiError
from .requests import READ


@dataclass(frozen=True)
class User:
    """The user of a request."""

    name: str
    groups: tuple[str, ...]


ANONYMOUS = User("system:anonymous", ("system:unauthenticated",))
MASTERS = "system:masters"


@dataclass
class Access:
    """Bearer tokens and the permissions of groups; the group `system:masters` has full access."""

    tokens: dict[str, User] = field(default_factory=dict)

    # group -> (resources it may write, resources it may read besides)
    rules: dict[str, tuple[frozenset[str], frozenset[str]]] = field(
        default_factory=lambda: {
            "system:nodes": (
                frozenset(
                    {
                        "nodes",
                        "pods",
                        "events",
                        "leases.coordination.k8s.io",
                        "certificatesigningrequests.certificates.k8s.io",
                    }
                ),
                frozenset({"secrets", "configmaps", "services", "routes.route.openshift.io", "namespaces"}),
            ),
            "system:bootstrappers": (frozenset({"certificatesigningrequests.certificates.k8s.io"}), frozenset()),
        }
    )

    def user(self, request: web.Request) -> User:
        """Return the user of a request: from the client certificate (CN, O) or bearer token, or anonymous."""
        user = self._authenticated(request)
        as_user = request.headers.get("Impersonate-User")
        if as_user and MASTERS in user.groups:
            return User(as_user, tuple(request.headers.getall("Impersonate-Group", [])))
        return user

    def _authenticated(self, request: web.Request) -> User:
        certificate = request.transport.get_extra_info("peercert") if request.transport else None
        if certificate:
            subject = [attribute for rdn in certificate.get("subject", ()) for attribute in rdn]
            name = next((value for kind, value in subject if kind == "commonName"), "")
            return User(
                name, (*(value for kind, value in subject if kind == "organizationName"), "system:authenticated")
            )
        kind, __, token = request.headers.get("Authorization", "").partition(" ")
        if kind.lower() == "bearer":
            if token not in self.tokens:
                raise ApiError(401, "Unauthorized", "Unauthorized")
            return self.tokens[token]
        return ANONYMOUS

    def allowed(self, user: User, verb: str, resource: Resource) -> bool:
        """Return whether the user may do this to the resource."""
        for group in user.groups:
            if group == MASTERS:
                return True
            writes, reads = self.rules.get(group, (frozenset(), frozenset()))
            if resource.key in writes or (verb in READ and resource.key in reads):
                return True
        return False


def self_review(path: str, user: User) -> Object | None:
    """Answer the requests of `oc whoami` and `kubectl auth`."""
    if path == "/apis/user.openshift.io/v1/users/~":
        return {
            "kind": "User",
            "apiVersion": "user.openshift.io/v1",
            "metadata": {"name": user.name},
            "identities": None,
            "groups": list(user.groups),
        }
    if path == "/apis/authentication.k8s.io/v1/selfsubjectreviews":
        info = {"username": user.name, "groups": list(user.groups)}
        return {
            "kind": "SelfSubjectReview",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {},
            "status": {"userInfo": info},
        }
    if path == "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews":
        allowed = MASTERS in user.groups
        return {
            "kind": "SelfSubjectAccessReview",
            "apiVersion": "authorization.k8s.io/v1",
            "metadata": {},
            "status": {"allowed": allowed},
        }
    return None
