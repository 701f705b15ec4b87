"""Operators of Subscriptions: a ClusterServiceVersion is created, installs, and succeeds.

As OLM does, without catalog, bundle and operator: names, phases and messages are those that clients of an installation
wait for (`operators.coreos.com/v1alpha1`).
"""

from __future__ import annotations

from dataclasses import dataclass

from . import nodes as node_list
from .conditions import is_true
from .facts import ClusterFacts
from .objects import make
from .store import Object, Store, timestamp

SUBSCRIPTIONS = "subscriptions.operators.coreos.com"
VERSIONS = "clusterserviceversions.operators.coreos.com"
OPERATORS = "clusteroperators.config.openshift.io"
NEEDS = ("operator-lifecycle-manager", "operator-lifecycle-manager-catalog", "marketplace")
"""Names of OLM's own ClusterOperators."""
# Phase -> the next one, with its reason and message.
_NEXT = {
    "": ("Pending", "RequirementsUnknown", "requirements not yet checked"),
    "Pending": ("InstallReady", "AllRequirementsMet", "all requirements found, attempting install"),
    "InstallReady": ("Installing", "InstallSucceeded", "waiting for install components to report healthy"),
    "Installing": ("Succeeded", "InstallSucceeded", "install strategy completed with no errors"),
}


@dataclass
class Lifecycle:
    """Advances every Subscription's version by one phase per step."""

    store: Store
    facts: ClusterFacts

    def step(self) -> None:
        """Create and advance versions of subscriptions, once OLM is available and a node for workloads is ready."""
        operators = [self.store.find(OPERATORS, "", name) for name in NEEDS]
        if not all(obj and is_true(obj, "Available") for obj in operators) or not node_list.ready(
            self.store.items("nodes"), "worker"
        ):
            return
        for subscription in self.store.items(SUBSCRIPTIONS):
            self._follow(subscription)

    def _follow(self, subscription: Object) -> None:
        namespace, spec = subscription["metadata"]["namespace"], subscription["spec"]
        release = self.facts["version"].partition("-")[0]
        name = f"{spec['name']}.v{release}"
        version = self.store.find(VERSIONS, namespace, name)
        if version is None:
            about = {"displayName": spec["name"], "version": release}
            made = make(
                "operators.coreos.com/v1alpha1",
                "ClusterServiceVersion",
                name,
                namespace,
                spec=about,
                status={"phase": ""},
            )
            self.store.create(VERSIONS, made)
        elif following := _NEXT.get(version["status"].get("phase", "")):
            phase, reason, message = following
            status = {
                "phase": phase,
                "reason": reason,
                "message": message,
                "lastTransitionTime": timestamp(),
                "lastUpdateTime": timestamp(),
            }
            self.store.update(VERSIONS, {**version, "status": status})
        done = version is not None and version["status"].get("phase") in ("Installing", "Succeeded")
        state = {"installedCSV": name, "state": "AtLatestKnown"} if done else {"state": "UpgradePending"}
        self._report(subscription, {"currentCSV": name, **state})

    def _report(self, subscription: Object, status: Object) -> None:
        known = subscription.get("status") or {}
        if known | status != known:
            self.store.update(SUBSCRIPTIONS, {**subscription, "status": known | status | {"lastUpdated": timestamp()}})
