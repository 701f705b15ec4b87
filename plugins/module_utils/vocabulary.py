"""Names and numbers that several parts must spell alike: stages, statuses, components of a release, ports, the lab's version.

Needs nothing, and is in the swarm's bundle.
"""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Literal, NamedTuple

LAB_SUFFIX = "-lab"
"""What versions of the lab payload end with."""
LAB_VERSION = f"4.22.0{LAB_SUFFIX}"
"""OpenShift's version as the lab payload has it, unless a profile names another one."""
SETTINGS_MANIFEST = "agentlab-settings"
"""Name of the ConfigMap that carries the lab's intervals to its programs, as an extra manifest."""
CONFIG_IMAGE = "agentconfig.noarch.iso"
"""File of the config image, as upstream names it."""
BOOT_ARTIFACTS = "boot-artifacts"
"""Folder for the files of a network boot and for the rootfs of a minimal ISO, as upstream names it."""
REGISTRY = "registry.agentlab.test"
"""Host in the pullspecs of the lab payload. No DNS has it: the lab's own registry is its mirror."""
RELEASE_REPOSITORY, PAYLOAD_REPOSITORY = "lab/release", "lab/payload"
"""Repositories of the lab payload: the release image, and the components, each with its name as the tag."""

DEFAULT_CLUSTER = "ostest"
"""Name of a cluster unless another one is given; dev-scripts has the same."""


class RunFile:
    """Files of a run directory, by their paths in it. Those of the installer are upstream's; roles spell these names, too.

    CA is of the authority of the lab's services, CERTIFICATE and CERTIFICATE_KEY are these services' own. SSH_KEY may log in to the
    nodes. OPENSHIFT_INSTALL is a link to a build from a repository. LAST_CLUSTER and LAST_EVENTS are what the assisted service returned
    last to a wait.
    """

    PROFILE = "profile.yaml"
    PLAN = "plan.yaml"
    PLAN_SCHEMA = "plan.schema.json"
    INVENTORY = "inventory.yml"
    SECRETS = "secrets.json"
    STATE = "state.json"
    INSTALL_CONFIG = "install-config.yaml"
    AGENT_CONFIG = "agent-config.yaml"
    KUBECONFIG = "auth/kubeconfig"
    PASSWORD = "auth/kubeadmin-password"
    RENDEZVOUS_IP = "rendezvousIP"
    INSTALLER_LOG = ".openshift_install.log"
    INSTALLER_STATE = ".openshift_install_state.json"
    OPENSHIFT_INSTALL = "openshift-install"
    LAB_PAYLOAD = "lab-payload.json"
    CA = "tls/ca.crt"
    CERTIFICATE = "tls/server.crt"
    CERTIFICATE_KEY = "tls/server.key"
    SSH_KEY = "ssh/id_ecdsa"
    SSH_PUBLIC_KEY = f"{SSH_KEY}.pub"
    EVENTS = "logs/events.jsonl"
    RECORDING = "logs/recording.jsonl"
    FAILURE = "logs/failure.json"
    LAST_CLUSTER = "logs/cluster.json"
    LAST_EVENTS = "logs/events.json"
    WAIT_LOG = "logs/wait-for.log"
    DEFINITION_LOG = "logs/definition.log"
    CREATE_LOG = "logs/create-cluster.log"
    FORWARD_LOG = "logs/forward.log"
    IRONIC_LOG = "logs/ironic.log"


RUN_STAGES = ("prepare", "configure", "image", "boot", "wait", "validate")
"""The stages of a run of ours, each a playbook and a verb."""


PLATFORMS = {
    "baremetal": "BareMetal", "vsphere": "VSphere", "nutanix": "Nutanix", "none": "None", "external": "External"
}  # fmt: skip
"""Platforms of the agent-based installer: the name in install-config.yaml, and the one in objects of an API, in upstream's order."""
WITH_VIPS = ("baremetal", "vsphere", "nutanix")
"""Platforms whose clusters have virtual addresses for API and ingress."""
MAKERS = {"vsphere": "VMware, Inc.", "nutanix": "Nutanix"}
"""Manufacturer that a platform's machines have in SMBIOS; the assisted service refuses other ones there."""
UNINITIALIZED = "node.cloudprovider.kubernetes.io/uninitialized"
"""Taint of a node until its cloud provider has seen it."""

ARCHITECTURES = {"amd64": "x86_64", "arm64": "aarch64", "ppc64le": "ppc64le", "s390x": "s390x"}
"""CPU architectures of OpenShift: the name that images and nodes have, which is Go's, and that of RPM and `uname -m`."""
INSTALL_CONFIG_OVERRIDES = "agent-install.openshift.io/install-config-overrides"
"""Annotation of an AgentClusterInstall: fields of install-config that the assisted service does not model, as JSON."""
HARDWARE_REQUIREMENTS = "io.agentlab.hw-validator-requirements"
"""Field in the metadata of a lab release: the hardware that its hosts must have, in the format of the assisted service."""
FAILED_WITH_CLUSTER = "Host is part of a cluster that failed to install"
"""`status_info` of a host after another one failed, as the assisted service has it."""
MACHINE_CONFIGURATION = "machineconfiguration.openshift.io"
"""API group of the machine-config operator, and the prefix of its labels and annotations."""


def go_arch(name: str) -> str:
    """Return Go's name of an architecture; `name` itself if it has no other one."""
    return next((go for go, rpm in ARCHITECTURES.items() if rpm == name), name)


def rpm_arch(name: str) -> str:
    """Return RPM's name of an architecture; `name` itself if it has no other one."""
    return ARCHITECTURES.get(name, name)


def boot_file(workflow: Literal["agent", "node"], arch: str, suffix: str) -> str:
    """Return the name of a file that machines boot from, as upstream has it: `agent.x86_64.iso`, `agent.x86_64-rootfs.img`.

    workflow: `agent` installs a cluster, `node` adds a node to an installed one. suffix: with its dot or hyphen; empty: what
    all names begin with.
    """
    return f"{workflow}.{arch}{suffix}"


class Stage:
    """Stages of a host's installation. Source: the enumeration `host-stage` of assisted-service's API description.

    The values are what the API carries as `current_stage`, and what reports and profiles' faults name.
    """

    STARTING = "Starting installation"
    CONTROL_PLANE = "Waiting for control plane"
    BOOTKUBE = "Waiting for bootkube"
    CONTROLLER = "Waiting for controller"
    INSTALLING = "Installing"
    WRITING = "Writing image to disk"
    COPYING = "Copying registry data to disk"
    REBOOTING = "Rebooting"
    IGNITION = "Waiting for ignition"
    CONFIGURING = "Configuring"
    JOINED = "Joined"
    DONE = "Done"
    FAILED = "Failed"


STAGES = (
    Stage.STARTING, Stage.CONTROL_PLANE, Stage.BOOTKUBE, Stage.CONTROLLER, Stage.INSTALLING, Stage.WRITING, Stage.COPYING,
    Stage.REBOOTING, Stage.IGNITION, Stage.CONFIGURING, Stage.JOINED, Stage.DONE, Stage.FAILED,
)  # fmt: skip
"""In the order of the API description."""


class FinalizingStage:
    """Stages of a cluster that is `finalizing`. Source: the enumeration `finalizing-stage` of the same description.

    The values are what the API carries as `finalizing_stage`.
    """

    CLUSTER_OPERATORS = "Waiting for cluster operators"
    ROUTER_CA = "Adding router ca"
    OLM_MANIFESTS = "Applying olm manifests"
    CSV_INITIALIZATION = "Waiting for olm operators csv initialization"
    CSV = "Waiting for olm operators csv"
    SETUP_JOBS = "Waiting for OLM operator setup jobs"
    DONE = "Done"


FINALIZING_STAGES = (
    FinalizingStage.CLUSTER_OPERATORS, FinalizingStage.ROUTER_CA, FinalizingStage.OLM_MANIFESTS, FinalizingStage.CSV_INITIALIZATION, FinalizingStage.CSV,
    FinalizingStage.SETUP_JOBS, FinalizingStage.DONE,
)  # fmt: skip
"""In the order of the API description."""


class Status:
    """Statuses of hosts and clusters of an installation. Source: the enumerations host status and cluster status of the same description.

    Plain strings: who compares a status may have a host or a cluster, and Ansible and YAML write no enumerations.
    `HostStatus` and `ClusterStatus` have the others, too.
    """

    DISCOVERING = "discovering"
    KNOWN = "known"
    DISCONNECTED = "disconnected"
    INSUFFICIENT = "insufficient"
    PENDING_FOR_INPUT = "pending-for-input"
    READY = "ready"
    PREPARING = "preparing-for-installation"
    PREPARED = "preparing-successful"
    PREPARING_FAILED = "preparing-failed"
    INSTALLING = "installing"
    IN_PROGRESS = "installing-in-progress"
    PENDING_USER_ACTION = "installing-pending-user-action"
    FINALIZING = "finalizing"
    RESETTING_PENDING = "resetting-pending-user-action"
    INSTALLED = "installed"
    ERROR = "error"
    CANCELLED = "cancelled"


STATUSES = tuple(value for name, value in vars(Status).items() if name.isupper())
"""In the order of an installation."""


class HostStatus(StrEnum):
    """All statuses of a host, and `INITIAL`, the source of a host's registration, which the API does not show."""

    INITIAL = "initial"
    DISCOVERING = Status.DISCOVERING
    KNOWN = Status.KNOWN
    DISCONNECTED = Status.DISCONNECTED
    INSUFFICIENT = Status.INSUFFICIENT
    DISABLED = "disabled"
    PREPARING = Status.PREPARING
    PREPARING_FAILED = Status.PREPARING_FAILED
    PREPARED = Status.PREPARED
    PENDING_FOR_INPUT = Status.PENDING_FOR_INPUT
    INSTALLING = Status.INSTALLING
    IN_PROGRESS = Status.IN_PROGRESS
    PENDING_USER_ACTION = Status.PENDING_USER_ACTION
    RESETTING_PENDING = Status.RESETTING_PENDING
    INSTALLED = Status.INSTALLED
    ERROR = Status.ERROR
    RESETTING = "resetting"
    ADDED = "added-to-existing-cluster"
    CANCELLED = Status.CANCELLED
    BINDING = "binding"
    UNBINDING = "unbinding"
    UNBINDING_PENDING = "unbinding-pending-user-action"
    KNOWN_UNBOUND = "known-unbound"
    DISCONNECTED_UNBOUND = "disconnected-unbound"
    INSUFFICIENT_UNBOUND = "insufficient-unbound"
    DISABLED_UNBOUND = "disabled-unbound"
    DISCOVERING_UNBOUND = "discovering-unbound"
    RECLAIMING = "reclaiming"
    RECLAIMING_REBOOTING = "reclaiming-rebooting"


class ClusterStatus(StrEnum):
    """All statuses of a cluster."""

    INSUFFICIENT = Status.INSUFFICIENT
    READY = Status.READY
    ERROR = Status.ERROR
    PREPARING = Status.PREPARING
    PENDING_FOR_INPUT = Status.PENDING_FOR_INPUT
    INSTALLING = Status.INSTALLING
    FINALIZING = Status.FINALIZING
    INSTALLED = Status.INSTALLED
    ADDING_HOSTS = "adding-hosts"
    CANCELLED = Status.CANCELLED
    PENDING_USER_ACTION = Status.PENDING_USER_ACTION
    UNMONITORED = "unmonitored"


class Component:
    """Images of a release that the agent-based installation runs or reads, by their names in the release.

    The names are those of the tags in the release's `image-references`, and of `payload_overrides`.
    """

    API_SERVER = "agent-installer-api-server"
    CLI = "cli"
    CLUSTER_ETCD_OPERATOR = "cluster-etcd-operator"
    CSR_APPROVER = "agent-installer-csr-approver"
    NODE_AGENT = "agent-installer-node-agent"
    ORCHESTRATOR = "agent-installer-orchestrator"
    UI = "agent-installer-ui"
    UTILS = "agent-installer-utils"
    HYPERKUBE = "hyperkube"
    INSTALLER = "installer"
    MACHINE_CONFIG_OPERATOR = "machine-config-operator"
    MACHINE_OS_IMAGES = "machine-os-images"
    MUST_GATHER = "must-gather"


PLACEHOLDERS = (
    "installer-artifacts", Component.MUST_GATHER, "baremetal-installer",
    "cluster-version-operator", "coredns", "etcd", "haproxy-router", "keepalived-ipfailover", "pod", "tools",
)  # fmt: skip
"""Components of the lab payload that units or clients name, and that never run in a lab."""

COMPONENTS = tuple(
    sorted(
        (
            Component.API_SERVER, Component.CLI, Component.CSR_APPROVER, Component.HYPERKUBE, Component.INSTALLER, Component.NODE_AGENT,
            Component.ORCHESTRATOR, Component.CLUSTER_ETCD_OPERATOR,
            Component.MACHINE_CONFIG_OPERATOR, Component.MACHINE_OS_IMAGES, Component.UI, Component.UTILS, *PLACEHOLDERS,
        )
    )
)  # fmt: skip
"""All components of the lab payload; their contents are in `payload/images/components.py`, with the same names."""


class Port:
    """TCP ports that OpenShift fixes.

    Ports of the lab's own services are in the plan. The image service and the service's page are those of the live
    system.
    """

    API = 6443
    MACHINE_CONFIG = 22623
    MACHINE_CONFIG_INSECURE = 22624
    KUBELET = 10250
    HTTP = 80
    HTTPS = 443
    ASSISTED_SERVICE = 8090
    IMAGE_SERVICE = 8888
    ASSISTED_UI = 3001


class ClusterNames(NamedTuple):
    """The names at which OpenShift serves a cluster: they follow from its domain.

    api: the API, for users; api_int: the API, for nodes; apps: the domain of routes; console: the web console.
    """

    api: str
    api_int: str
    apps: str
    console: str

    @classmethod
    def of(cls, domain: str) -> ClusterNames:
        """Return the names in a domain, which is name and base domain of a cluster."""
        return cls(f"api.{domain}", f"api-int.{domain}", f"apps.{domain}", f"console-openshift-console.apps.{domain}")


class Exit(IntEnum):
    """Exit codes of all verbs; those of `create` and `wait-for` are openshift-install's. docs/verbs.md has them as a table.

    Each is an integer, so a verb returns it as it is; `meaning` is a sentence for the table.
    """

    meaning: str

    def __new__(cls, code: int, meaning: str) -> Exit:
        """Add the meaning, for the table."""
        made = int.__new__(cls, code)
        made._value_ = code
        made.meaning = meaning
        return made

    OK = 0, "Success; `wait-for`: the cluster is installed."
    FAILED = (
        1,
        "Failure; stderr has the reason; `doctor`: a check failed; `swarm`: not all clusters were installed or removed, or a "
        "threshold was exceeded.",
    )
    USAGE = (
        2,
        "Wrong arguments; an invalid profile or plan; a failed task of a playbook; `compare`: cannot be compared; `swarm`: the "
        "service is unreachable or refused the run.",
    )
    INSTALL_CONFIG = 3, "`create`: install-config.yaml cannot be read; `ci run`: the configuration was refused."
    UNREACHABLE = 4, "A verb that runs a playbook: a host was unreachable; `ci run`: the infrastructure failed."
    BOOTSTRAP = 5, "`wait-for`, `ci run`: the bootstrap did not complete."
    INSTALL = 6, "`wait-for`, `ci run`: the cluster did not initialize."
    OPERATORS = 7, "`wait-for`, `ci run`: cluster operators did not settle."
    CREATE_INTERRUPTED = 8, "`create`: interrupted."
    NOT_FOUND = 127, "The program that the verb starts is not installed."
    INTERRUPTED = 130, "Interrupted by Ctrl-C; SIGHUP and SIGTERM end a tool with 129 and 143, `swarm` with 130."
    PIPE = 141, "The reader of the output closed it, as `head` does."
