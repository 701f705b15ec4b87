"""The kinds that the API simulator serves, as a table, and their discovery documents.

Names, short names and scopes are those of Kubernetes 1.35 and OpenShift 4.22 (`kubectl api-resources`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ...plugins.module_utils.vocabulary import MACHINE_CONFIGURATION

# Keys of the store.
MACHINE_CONFIGS, POOLS = f"machineconfigs.{MACHINE_CONFIGURATION}", f"machineconfigpools.{MACHINE_CONFIGURATION}"
VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
# Groups of Kubernetes itself and of OpenShift's aggregated API servers; all others are those of custom resources.
NATIVE = frozenset(
    {
        "",
        "apps",
        "batch",
        "apiextensions.k8s.io",
        "authentication.k8s.io",
        "authorization.k8s.io",
        "certificates.k8s.io",
        "coordination.k8s.io",
        "rbac.authorization.k8s.io",
        "storage.k8s.io",
        "project.openshift.io",
        "route.openshift.io",
        "user.openshift.io",
    }
)


@dataclass(frozen=True)
class Resource:
    """One kind: where it is served and how clients may call it.

    group: empty for the core group; plural: as in URLs; short: further names for kubectl; status: whether it has the
    subresource `status`; categories: such as `all`; verbs: of discovery.
    """

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    short: tuple[str, ...] = ()
    status: bool = True
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = VERBS

    @property
    def key(self) -> str:
        """Name within the store: `plural` for the core group, else `plural.group`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def api_version(self) -> str:
        """The `apiVersion` of its objects."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def custom(self) -> bool:
        """Whether it is a custom resource, for which the API server has no types."""
        return self.group not in NATIVE

    @property
    def unconditional(self) -> bool:
        """Return whether an update needs no `resourceVersion`.

        Custom resources and leases need one, as on a real API server.
        """
        return not self.custom and self.plural != "leases"

    @property
    def singular(self) -> str:
        """Lower-case kind, as in discovery."""
        return self.kind.lower()


def _core(plural: str, kind: str, namespaced: bool, *short: str, status: bool = False) -> Resource:
    return Resource("", "v1", plural, kind, namespaced, short, status)


def _review(group: str, plural: str, kind: str) -> Resource:
    return Resource(f"{group}.k8s.io", "v1", plural, kind, False, status=False, verbs=("create",))


def _config(plural: str, kind: str, *short: str) -> Resource:
    return Resource("config.openshift.io", "v1", plural, kind, False, short)


RESOURCES: tuple[Resource, ...] = (
    _core("namespaces", "Namespace", False, "ns", status=True),
    _core("nodes", "Node", False, "no", status=True),
    _core("configmaps", "ConfigMap", True, "cm"),
    _core("secrets", "Secret", True),
    _core("services", "Service", True, "svc", status=True),
    _core("endpoints", "Endpoints", True, "ep"),
    _core("serviceaccounts", "ServiceAccount", True, "sa"),
    _core("pods", "Pod", True, "po", status=True),
    _core("events", "Event", True, "ev"),
    Resource("apps", "v1", "deployments", "Deployment", True, ("deploy",)),
    Resource("apps", "v1", "daemonsets", "DaemonSet", True, ("ds",)),
    Resource("batch", "v1", "jobs", "Job", True),
    Resource("coordination.k8s.io", "v1", "leases", "Lease", True, status=False),
    Resource("certificates.k8s.io", "v1", "certificatesigningrequests", "CertificateSigningRequest", False, ("csr",)),
    Resource(
        "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", False, ("crd", "crds")
    ),
    Resource("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", False, status=False),
    Resource("rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", False, status=False),
    Resource("rbac.authorization.k8s.io", "v1", "roles", "Role", True, status=False),
    Resource("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding", True, status=False),
    Resource("storage.k8s.io", "v1", "storageclasses", "StorageClass", False, ("sc",), status=False),
    _review("authentication", "selfsubjectreviews", "SelfSubjectReview"),
    _review("authentication", "tokenreviews", "TokenReview"),
    _review("authorization", "selfsubjectaccessreviews", "SelfSubjectAccessReview"),
    _review("authorization", "subjectaccessreviews", "SubjectAccessReview"),
    _config("clusterversions", "ClusterVersion"),
    _config("clusteroperators", "ClusterOperator", "co"),
    _config("infrastructures", "Infrastructure"),
    _config("dnses", "DNS"),
    _config("ingresses", "Ingress"),
    _config("networks", "Network"),
    _config("proxies", "Proxy"),
    _config("imagedigestmirrorsets", "ImageDigestMirrorSet", "idms"),
    _config("imagetagmirrorsets", "ImageTagMirrorSet", "itms"),
    _config("schedulers", "Scheduler"),
    _config("oauths", "OAuth"),
    _config("featuregates", "FeatureGate"),
    _config("apiservers", "APIServer"),
    _config("consoles", "Console"),
    Resource("operator.openshift.io", "v1", "networks", "Network", False),
    Resource("operator.openshift.io", "v1", "ingresscontrollers", "IngressController", True),
    Resource("operator.openshift.io", "v1", "etcds", "Etcd", False),
    Resource("operator.openshift.io", "v1alpha1", "imagecontentsourcepolicies", "ImageContentSourcePolicy", False),
    Resource(MACHINE_CONFIGURATION, "v1", "machineconfigs", "MachineConfig", False, ("mc",), status=False),
    Resource(MACHINE_CONFIGURATION, "v1", "machineconfigpools", "MachineConfigPool", False, ("mcp",)),
    Resource(MACHINE_CONFIGURATION, "v1", "kubeletconfigs", "KubeletConfig", False),
    Resource("machine.openshift.io", "v1beta1", "machines", "Machine", True),
    Resource("machine.openshift.io", "v1beta1", "machinesets", "MachineSet", True),
    Resource("metal3.io", "v1alpha1", "baremetalhosts", "BareMetalHost", True, ("bmh", "bmhost")),
    Resource("metal3.io", "v1alpha1", "provisionings", "Provisioning", False),
    Resource("route.openshift.io", "v1", "routes", "Route", True),
    Resource("project.openshift.io", "v1", "projects", "Project", False),
    Resource("user.openshift.io", "v1", "users", "User", False, status=False),
    Resource("operators.coreos.com", "v1alpha1", "subscriptions", "Subscription", True, ("sub", "subs")),
    Resource(
        "operators.coreos.com", "v1alpha1", "clusterserviceversions", "ClusterServiceVersion", True, ("csv", "csvs")
    ),
    Resource("operators.coreos.com", "v1", "operatorgroups", "OperatorGroup", True, ("og",)),
)


class Registry:
    """All kinds that are served; grows when an object of an unknown kind or a CustomResourceDefinition is stored."""

    def __init__(self, resources: Iterable[Resource] = RESOURCES) -> None:
        self._by_path = {(r.group, r.version, r.plural): r for r in resources}
        self._by_kind = {(r.api_version, r.kind): r for r in self._by_path.values()}

    def __iter__(self) -> Iterator[Resource]:
        return iter(self._by_path.values())

    def by_path(self, group: str, version: str, plural: str) -> Resource | None:
        """Return the resource that is served at this URL."""
        return self._by_path.get((group, version, plural))

    def by_kind(self, api_version: str, kind: str) -> Resource | None:
        """Return the resource of objects with this `apiVersion` and `kind`."""
        return self._by_kind.get((api_version, kind))

    def add(self, resource: Resource) -> Resource:
        """Serve an additional kind."""
        self._by_path[resource.group, resource.version, resource.plural] = resource
        self._by_kind[resource.api_version, resource.kind] = resource
        return resource

    def for_object(self, obj: dict[str, Any]) -> Resource:
        """Return the resource of an object.

        An unknown kind is served from now on, under a plural that is guessed; it is namespaced if the object has a
        namespace. KeyError for an object without `apiVersion` or `kind`.
        """
        api_version, kind = str(obj["apiVersion"]), str(obj["kind"])
        known = self.by_kind(api_version, kind)
        if known:
            return known
        group, __, version = api_version.rpartition("/")
        namespaced = bool(obj["metadata"].get("namespace"))
        return self.add(Resource(group, version, _plural(kind), kind, namespaced))

    def add_definition(self, crd: dict[str, Any]) -> None:
        """Serve what a CustomResourceDefinition defines, in all versions that it serves.

        crd: validated, see `api.validation.established_status`.
        """
        spec = crd["spec"]
        names = spec["names"]
        for version in spec["versions"]:
            if version.get("served", True):
                self.add(
                    Resource(
                        spec["group"],
                        version["name"],
                        names["plural"],
                        names["kind"],
                        spec["scope"] == "Namespaced",
                        tuple(names.get("shortNames", ())),
                        "status" in version.get("subresources", {}),
                        tuple(names.get("categories", ())),
                    )
                )

    def remove_definition(self, crd: dict[str, Any]) -> None:
        """Serve no longer what a CustomResourceDefinition defined."""
        spec = crd["spec"]
        for version in spec["versions"]:
            found = self._by_path.pop((spec["group"], version["name"], spec["names"]["plural"]), None)
            if found:
                self._by_kind.pop((found.api_version, found.kind), None)

    def groups(self) -> dict[str, list[str]]:
        """Return the versions of every named API group, in the table's order.

        The first version of a group is the preferred one. The core group is not part of it.
        """
        found: dict[str, list[str]] = {}
        for group, version, __ in self._by_path:
            if group and version not in found.setdefault(group, []):
                found[group].append(version)
        return found

    def resource_list(self, group: str, version: str) -> dict[str, Any]:
        """Return the APIResourceList of one group and version, with subresources.

        group: empty for the core group. A version that is not served has no resources.
        """
        entries: list[dict[str, Any]] = []
        for r in self._resources_of(group, version):
            entry: dict[str, Any] = {
                "name": r.plural,
                "singularName": r.singular,
                "namespaced": r.namespaced,
                "kind": r.kind,
                "verbs": list(r.verbs),
            }
            if r.short:
                entry["shortNames"] = list(r.short)
            if r.categories:
                entry["categories"] = list(r.categories)
            entries.append(entry)
            entries += [
                {
                    "name": f"{r.plural}/{sub}",
                    "singularName": "",
                    "namespaced": r.namespaced,
                    "kind": r.kind,
                    "verbs": ["get", "patch", "update"],
                }
                for sub in subresources(r)
            ]
        group_version = f"{group}/{version}" if group else version
        return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": entries}

    def group_list(self) -> dict[str, Any]:
        """Return the APIGroupList, which leaves out the core group."""
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [self.group(name) for name in self.groups()]}

    def group(self, name: str) -> dict[str, Any]:
        """Return the APIGroup of one named group."""
        versions = [{"groupVersion": f"{name}/{v}", "version": v} for v in self.groups()[name]]
        return {
            "kind": "APIGroup",
            "apiVersion": "v1",
            "name": name,
            "versions": versions,
            "preferredVersion": versions[0],
        }

    def aggregated(self, core: bool) -> dict[str, Any]:
        """Return the APIGroupDiscoveryList (apidiscovery.k8s.io/v2) of `/api` or `/apis`.

        core: of `/api`. kubectl asks for this form first.
        """
        groups = {"": ["v1"]} if core else self.groups()
        return {
            "kind": "APIGroupDiscoveryList",
            "apiVersion": "apidiscovery.k8s.io/v2",
            "metadata": {},
            "items": [
                {
                    "metadata": {"name": name, "creationTimestamp": None} if name else {"creationTimestamp": None},
                    "versions": [
                        {
                            "version": v,
                            "freshness": "Current",
                            "resources": [_discovery(r) for r in self._resources_of(name, v)],
                        }
                        for v in versions
                    ],
                }
                for name, versions in groups.items()
            ],
        }

    def _resources_of(self, group: str, version: str) -> list[Resource]:
        return [r for r in self._by_path.values() if (r.group, r.version) == (group, version)]


def subresources(resource: Resource) -> tuple[str, ...]:
    """Return the subresources that are served for a resource."""
    extra = {"certificatesigningrequests": ("approval",), "pods": ("log", "binding")}
    return (("status",) if resource.status else ()) + extra.get(resource.plural, ())


def _discovery(r: Resource) -> dict[str, Any]:
    kind = {"group": r.group, "version": r.version, "kind": r.kind}
    entry: dict[str, Any] = {
        "resource": r.plural,
        "responseKind": kind,
        "scope": "Namespaced" if r.namespaced else "Cluster",
        "singularResource": r.singular,
        "verbs": list(r.verbs),
    }
    if r.short:
        entry["shortNames"] = list(r.short)
    if r.categories:
        entry["categories"] = list(r.categories)
    if subresources(r):
        entry["subresources"] = [
            {"subresource": sub, "responseKind": kind, "verbs": ["get", "patch", "update"]} for sub in subresources(r)
        ]
    return entry


def _plural(kind: str) -> str:
    lower = kind.lower()
    if lower.endswith("y") and lower[-2:-1] not in "aeiou":
        return lower[:-1] + "ies"
    return lower + ("es" if lower.endswith(("s", "x", "ch", "sh")) else "s")
