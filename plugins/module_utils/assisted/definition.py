"""Define a cluster over REST, as a user of the web interface does: register it, bind the hosts that have no cluster, install it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..documents import load_json
from ..errors import AssistedError, LabError
from ..vocabulary import Status
from . import registration
from .registration import Api
from .user import RefusedError

POLL_SECONDS = 5.0
UNBOUND = "known-unbound"
_BEFORE = (Status.INSUFFICIENT, Status.PENDING_FOR_INPUT, Status.READY)
"""Statuses of a cluster whose installation has not been started."""
_FILES = {"kubeconfig": "kubeconfig-noingress", "kubeadmin-password": "kubeadmin-password"}
"""What a client of the cluster needs -> its name among the cluster's credentials, before the cluster has a router."""


class Host(NamedTuple):
    """A host of the cluster: the one with an interface of one of `macs` (in lower case) gets this name and role."""

    name: str
    role: str
    macs: frozenset[str]


class Definition:
    """The definition of a cluster of `hosts` by the manifests in `folder`.

    api: of the service, which need not answer yet; extra: file name -> content of further manifests; report: gets what happens;
    seconds: until the installation has started. It can run again: what exists is kept.
    """

    def __init__(
        self,
        api: Api,
        folder: Path,
        extra: Mapping[str, bytes],
        hosts: Sequence[Host],
        report: Callable[[str], None],
        *,
        seconds: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._api, self._folder, self._extra, self._hosts, self._report = api, folder, extra, hosts, report
        self._clock, self._sleep, self._end, self._seconds = clock, sleep, clock() + seconds, seconds
        # By id: a host that was bound has no inventory until its agent has registered again.
        self._known: dict[str, Host] = {}

    def install(self) -> dict[str, bytes]:
        """Define the cluster and start its installation; return its `kubeconfig` and `kubeadmin-password`.

        Raises `LabError` when the service refuses something, or that has not happened in time, with what is missing.
        """
        while (infra_env := self._infra_env()) is None:
            self._pause("no service answers, or it has no infra-env")
        cluster = registration.register_cluster(self._api, self._folder, self._extra, self._report)
        found: dict[str, bytes] = {}
        # Preparing the installation may fail: then the cluster is ready again.
        while missing := self._step(infra_env, cluster) or self._credentials(cluster, found):
            self._pause(missing)
        return found

    def _pause(self, missing: str) -> None:
        if self._clock() >= self._end:
            raise LabError(f"the cluster is not being installed after {self._seconds:g} s: {missing}")
        self._sleep(POLL_SECONDS)

    def _infra_env(self) -> str | None:
        try:
            known = self._api.call("GET", "/infra-envs")
        except RefusedError:
            raise
        except AssistedError:
            return None  # it does not run yet
        return str(known[0]["id"]) if known else None

    def _step(self, infra_env: str, cluster: str) -> str:
        """Do what can be done now; return what is missing, or nothing once the installation has started."""
        status = self._api.call("GET", f"/clusters/{cluster}")
        if status["status"] not in _BEFORE:
            return ""
        if missing := self._bind(infra_env, cluster):
            return missing
        if status["status"] != Status.READY or any(host["status"] != Status.KNOWN for host in status["hosts"]):
            return f"the cluster is {status['status']}: {status['status_info']}"
        self._api.call("POST", f"/clusters/{cluster}/actions/install")
        self._report("Started the installation")
        return ""

    def _bind(self, infra_env: str, cluster: str) -> str:
        """Bind the hosts that have registered, and give them their names and roles; return what is missing of them."""
        there: dict[Host, dict[str, Any]] = {}
        for found in self._api.call("GET", f"/infra-envs/{infra_env}/hosts"):
            nics = load_json(found["inventory"], name="inventory")["interfaces"] if found.get("inventory") else ()
            macs = {str(nic.get("mac_address", "")).lower() for nic in nics}
            for host in self._hosts:
                if host.macs & macs:
                    self._known[found["id"]] = host
            if known := self._known.get(found["id"]):
                there[known] = found
        for host, found in there.items():
            place = f"/infra-envs/{infra_env}/hosts/{found['id']}"
            if not found.get("cluster_id"):
                if found["status"] == UNBOUND:
                    self._api.call("POST", f"{place}/actions/bind", {"cluster_id": cluster})
                    self._report(f"Bound host {host.name}")
                return f"host {host.name} is {found['status']}: {found['status_info']}"
            wanted = {"host_name": host.name, "host_role": host.role}
            if {"host_name": found.get("requested_hostname"), "host_role": found.get("role")} != wanted:
                self._api.call("PATCH", place, wanted)
                return f"host {host.name} has just got its name and role"
        absent = [host.name for host in self._hosts if host not in there]
        return f"{', '.join(absent)}: not registered yet" if absent else ""

    def _credentials(self, cluster: str, found: dict[str, bytes]) -> str:
        """Add the credentials that there are by now; return what is missing."""
        for name in _FILES.keys() - found:
            try:
                path = f"/clusters/{cluster}/downloads/credentials?file_name={_FILES[name]}"
                found[name] = bytes(self._api.call("GET", path))
            except RefusedError as error:
                if error.status not in (404, 409):
                    raise
                return f"{_FILES[name]} is not made yet: {error}"
        return ""
