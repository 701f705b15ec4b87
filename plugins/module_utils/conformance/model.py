"""A case of the suite, and what it is given: the cluster, identities, a namespace, names."""

from __future__ import annotations

import contextlib
import itertools
import secrets
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from ..cluster.client import ClusterClient
from ..errors import ClusterError
from .api import Api, CaseFailed, CaseSkipped, Object, requests

BOOTSTRAPPER = "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper"
PREFIX = "conformance-"


class Case(NamedTuple):
    """id: `AREA/NAME`; sentence: what the API does; function: raises Failed or Skipped."""

    id: str
    sentence: str
    function: Callable[[Lab], None]


CASES: dict[str, Case] = {}
"""All cases, by id, in the order of their files; `suite` imports these."""


def case(function: Callable[[Lab], None]) -> Callable[[Lab], None]:
    """Register a case. Its id is made of the module and the function, its sentence is the first line of the docstring."""
    area = function.__module__.rpartition(".")[2]
    name = f"{area}/{function.__name__.replace('_', '-')}"
    CASES[name] = Case(name, (function.__doc__ or "").partition("\n")[0], function)
    return function


class Lab:
    """A cluster under test. Use it as a context: it creates the namespace of the cases and removes what they left.

    Raises `ClusterError` for a kubeconfig that cannot be used, and when the namespace cannot be created.
    """

    def __init__(self, kubeconfig: Path, *, timeout: float = 30) -> None:
        self.client = ClusterClient(kubeconfig, timeout)
        self.admin = self.identity()
        self._suffix = secrets.token_hex(3)
        self._numbers = itertools.count(1)
        self.namespace = f"{PREFIX}{self._suffix}"
        self._left: list[str] = []

    def __enter__(self) -> Lab:
        try:
            self.admin.post("/api/v1/namespaces", {"metadata": {"name": self.namespace}})
        except CaseFailed as error:
            raise ClusterError(
                f"{self.client.server}: the namespace of the suite cannot be created: {error}"
            ) from error
        self._left.append(f"/api/v1/namespaces/{self.namespace}")
        return self

    def __exit__(self, *__: object) -> None:
        for path in reversed(self._left):
            with contextlib.suppress(CaseFailed, ClusterError):
                self.admin.send("DELETE", path)

    def name(self) -> str:
        """Return a name that no object has."""
        return f"{self.namespace}-{next(self._numbers)}"

    def remove_later(self, path: str) -> str:
        """Remove an object outside of the namespace at the end; return its path."""
        self._left.append(path)
        return path

    # Identities

    def identity(self, user: str = "", group: str = "") -> Api:
        """Return the API as the administrator sees it, or a user of a group who is impersonated."""
        found: dict[str, str] = {}
        if user:
            found["Impersonate-User"] = user
        if group:
            found["Impersonate-Group"] = group
        return Api(self.client.session, self.client.server, found, self.client.timeout)

    @cached_property
    def node_name(self) -> str:
        """Name of the first node of the control plane."""
        nodes = self.admin.items("/api/v1/nodes")
        masters = [n for n in nodes if "node-role.kubernetes.io/master" in (n["metadata"].get("labels") or {})]
        if not nodes:
            raise CaseSkipped("the cluster has no node")
        return str((masters or nodes)[0]["metadata"]["name"])

    @cached_property
    def node(self) -> Api:
        """The API as that node sees it."""
        return self.identity(f"system:node:{self.node_name}", "system:nodes")

    @cached_property
    def bootstrap(self) -> Api:
        """The API as a new node sees it, before it has a certificate."""
        return self.identity(BOOTSTRAPPER)

    @cached_property
    def anonymous(self) -> Api:
        """The API without credentials."""
        return self.with_credentials()

    def with_credentials(self, token: str = "", certificate: tuple[str, str] | None = None) -> Api:
        """Return the API with a bearer token, or with a client certificate: files of the certificate and its key."""
        session = requests.Session()
        session.trust_env = False
        session.verify, session.cert = self.client.session.verify, certificate
        headers: Mapping[str, str] = {"Authorization": f"Bearer {token}"} if token else {}
        return Api(session, self.client.server, headers, self.client.timeout)

    # Objects

    @property
    def config_maps(self) -> str:
        """Path of the ConfigMaps of the namespace."""
        return f"/api/v1/namespaces/{self.namespace}/configmaps"

    def config_map(self, data: Mapping[str, str] | None = None, **metadata: Any) -> Object:
        """Create a ConfigMap with a new name, and return it."""
        metadata = {"name": self.name(), **metadata}
        return self.admin.post(self.config_maps, {"metadata": metadata, "data": dict(data or {})})

    def path_of(self, config_map: Object) -> str:
        """Return the path of a ConfigMap of the namespace."""
        return f"{self.config_maps}/{config_map['metadata']['name']}"

    @staticmethod
    def managed(obj: Object) -> list[Object]:
        """Return the entries of an object's managedFields."""
        return list(obj["metadata"].get("managedFields") or [])
