"""The images of the lab's release, as data. One entry adds a component."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field

from ...plugins.module_utils.vocabulary import Component as Name
from .release import HARDWARE_JSON

PACKAGE = "ansible_collections.agentlab.ocp"


@dataclass(frozen=True)
class Component:
    """An image of the release.

    `programs`: path in the image -> Python module below ansible_collections.agentlab.ocp whose `main()` it calls.
    `files`: path in the image -> file below payload/, a shell script, or a Python package without imports of the collection.
    `extra`: what `build` adds: "node-agent", "machine-os".
    `command`: the image's default command; `entrypoint`: what it runs with any arguments.
    `environment`: variables of the image.
    """

    programs: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    extra: str = ""
    command: tuple[str, ...] = ("/bin/sh",)
    layers: tuple[str, ...] = ()
    entrypoint: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


# Components that run with the lab's images, by their names in OpenShift's release.
COMPONENTS: dict[str, Component] = {
    Name.NODE_AGENT: Component(extra="node-agent"),
    Name.API_SERVER: Component(
        programs={
            "/assisted-service": "payload.api_server.__main__",
            "/usr/local/bin/agent-installer-client": "payload.api_server.client.__main__",
        },
        files={"/usr/bin/start_db.sh": "images/files/start_db.sh"},
        command=("/assisted-service",),
        environment={"PAYLOAD_HW_REQUIREMENTS": HARDWARE_JSON},
    ),
    Name.ORCHESTRATOR: Component(
        programs={"/usr/bin/installer": "payload.orchestrator.installer"},
        command=(),
        entrypoint=("/usr/bin/installer",),
    ),
    Name.CSR_APPROVER: Component(
        programs={"/usr/bin/assisted-installer-controller": "payload.orchestrator.controller"}
    ),
    Name.CLI: Component(programs={"/usr/bin/oc": "payload.tools.oc"}),
    Name.INSTALLER: Component(
        programs={"/usr/bin/openshift-install": "payload.tools.openshift_install"},
        entrypoint=("/usr/bin/openshift-install",),
    ),
    Name.MACHINE_CONFIG_OPERATOR: Component(
        programs={"/usr/bin/machine-config-daemon": "payload.cluster.machine_config_daemon"}
    ),
    Name.HYPERKUBE: Component(programs={"/usr/bin/hyperkube": "payload.cluster.hyperkube"}, layers=("keepalived",)),
    # Only nodes of a cluster with two-node fencing run it: the image, with its packages, is pulled there alone.
    Name.CLUSTER_ETCD_OPERATOR: Component(
        programs={"/usr/bin/two-node-fencing": "payload.cluster.pacemaker"}, layers=("pacemaker",)
    ),
    Name.UI: Component(
        programs={"/usr/bin/installer-ui": "payload.tools.installer_ui"}, command=("/usr/bin/installer-ui",)
    ),
    Name.UTILS: Component(
        files={
            "/usr/bin/agent-tui": "images/files/agent_tui",
            "/usr/lib64/libnmstate.so.2": "images/files/libnmstate.so.2",
        }
    ),
    Name.MACHINE_OS_IMAGES: Component(extra="machine-os"),
}
# Packages of the base layer, with their dependencies.
BASE_PACKAGES: tuple[str, ...] = (
    "base-files", "bash", "busybox-static", "ca-certificates", "dash", "iproute2", "netbase", "openssl", "python3", "python3-aiohttp",
    "python3-bcrypt", "python3-cryptography", "python3-jsonpatch", "python3-jsonschema", "python3-yaml", "util-linux",
)  # fmt: skip
# Additional layers of some images: packages, with dependencies that the base layer lacks.
EXTRA_PACKAGES: dict[str, tuple[str, ...]] = {
    "keepalived": ("keepalived",),
    "pacemaker": (
        "corosync",
        "pacemaker",
        "pacemaker-cli-utils",
        "python3-pexpect",
        "python3-pycurl",
        "python3-requests",
    ),
}
# Files of packages whose dependencies a layer lacks: layer -> package -> paths.
EXTRA_FILES: dict[str, dict[str, tuple[str, ...]]] = {
    "pacemaker": {"fence-agents": ("usr/sbin/fence_redfish", "usr/share/fence/fencing.py")},
}


EXTRACTED = frozenset({Name.CLI, Name.INSTALLER})
"""Components from whose images `oc adm release extract` takes a program."""

# What a replaced component calls besides what its `Provision` has: programs of the lab, which its own files have precedence over. The
# service also runs the programs that it extracts, which import their code from its image.
CALLED: dict[str, Component] = {
    Name.API_SERVER: Component(
        programs={
            **{path: module for name in sorted(EXTRACTED) for path, module in COMPONENTS[name].programs.items()},
            "/usr/bin/nmstatectl": "payload.tools.nmstatectl",
        }
    )
}


@dataclass(frozen=True)
class Provision:
    """What a replaced component that does not bring the file `path` gets in a layer of its own.

    `layer` names the layer, `title` its content in progress lines; `packages` are the distribution's; `files` as in `Component`.
    `alternatives`: path -> target of the links that update-alternatives makes where the packages are installed.
    """

    path: str
    layer: str
    title: str
    packages: tuple[str, ...]
    files: Mapping[str, str] = field(default_factory=dict)
    alternatives: Mapping[str, str] = field(default_factory=dict)


PROVISIONS: dict[str, Provision] = {
    Name.API_SERVER: Provision(
        path="usr/bin/start_db.sh",
        layer="database",
        title="PostgreSQL for the replaced assisted service",
        packages=("postgresql",),
        files={"/usr/bin/start_db.sh": "images/files/start_postgresql.sh"},
    ),
    # Of the packages of upstream's Dockerfile.ocp, those whose programs the agent calls and the base layer lacks.
    Name.NODE_AGENT: Provision(
        path="usr/bin/nmap",
        layer="agent-tools",
        title="programs that the replaced agent calls",
        packages=("dmidecode", "file", "fio", "ipmitool", "iputils-arping", "iputils-ping", "nmap", "sg3-utils"),
        alternatives={"usr/lib/x86_64-linux-gnu/libblas.so.3": "blas/libblas.so.3"},  # nmap's
    ),
}

# Environment of a replaced component. The lab's release has no OS image to which a disk could be switched: the installer would
# look for it for 20 minutes. The lab's own service does not order it either.
ENVIRONMENT: dict[str, dict[str, str]] = {Name.API_SERVER: {"ENABLE_SKIP_MCO_REBOOT": "false"}}


def provision(component: str, brought: Container[str]) -> Provision | None:
    """Return what a replaced component needs and does not bring. `brought`: paths of its replacement, relative to the root.

    brought: any container of paths without leading slashes. None also for a component that needs nothing.
    """
    found = PROVISIONS.get(component)
    return None if found is None or found.path in brought else found
