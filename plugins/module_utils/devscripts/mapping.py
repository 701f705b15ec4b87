"""Cluster, release, networks and services of a profile, from variables of dev-scripts."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import get_args

from ..addresses import family
from ..plan import iscsi
from ..plan.fields import BondMode
from ..releases.distributions import PUBLIC_REGISTRY, of_version
from ..vocabulary import COMPONENTS
from . import variables
from .builder import Builder

STATE = "agentlab"
"""Directory in dev-scripts' WORKING_DIR: dev-scripts keeps a directory with the cluster's name in it, as agentlab does."""
BOND, BONDED = "bond0", ("eth0", "eth1")
"""The one bond of dev-scripts, and its NICs."""
_Put = Callable[[Builder, str, str, list[str]], None]
_DIGEST = re.compile(r"[^/.][^@ ]*/[^@ ]+@sha256:[0-9a-f]{64}")


def cluster(b: Builder) -> None:
    """Map what is of the cluster as a whole.

    Sets `b.options` too: `cluster` for CLUSTER_NAME, and `stop-after` where dev-scripts would not wait for the
    installation.
    """
    if b.value("CLUSTER_NAME"):
        b.options["cluster"] = b.cluster_name()
        b.mapped["CLUSTER_NAME"] = f"--cluster {b.cluster_name()}"
    if b.boolean("AGENT_WAIT_FOR_INSTALL_COMPLETE") is False:
        b.options["stop-after"] = "boot"
        b.mapped["AGENT_WAIT_FOR_INSTALL_COMPLETE"] = "--stop-after boot, then agentlab wait-for bootstrap-complete"
    b.text("BASE_DOMAIN", "base_domain")
    if b.value("WORKING_DIR"):
        base = Path(b.path("WORKING_DIR")).expanduser()
        b.put("hypervisor.state_dir", str(base / STATE), "WORKING_DIR")


def release(b: Builder) -> None:
    """Map the release, and whether nodes may reach its registry.

    OPENSHIFT_RELEASE_IMAGE decides: with it the payload is `ocp`, or `okd` if its tag has a version of OKD; without it the
    lab payload. Images of single components (`*_LOCAL_IMAGE`) become replacements of lab components.
    """
    if not b.real:
        for name in ("OPENSHIFT_VERSION", "PERSONAL_PULL_SECRET", "PULL_SECRET_FILE"):
            if b.value(name):
                b.ignored[name] = "without OPENSHIFT_RELEASE_IMAGE the lab payload is installed"
    else:
        image = b.value("OPENSHIFT_RELEASE_IMAGE")
        distribution = of_version(image)
        b.put("release.payload", distribution.payload, "OPENSHIFT_RELEASE_IMAGE")
        b.put("release.image", image, "OPENSHIFT_RELEASE_IMAGE")
        if of_version(b.value("OPENSHIFT_VERSION")) is distribution:
            b.text("OPENSHIFT_VERSION", "release.version")
        elif b.value("OPENSHIFT_VERSION"):
            b.ignored["OPENSHIFT_VERSION"] = f"it is not a version of {distribution.title}; the image has one"
        secret = next((name for name in ("PERSONAL_PULL_SECRET", "PULL_SECRET_FILE") if b.value(name)), None)
        if secret:
            b.put("installer.pull_secret_file", b.path(secret), secret)
        elif distribution.pull_secret is None or image.partition("/")[0] != PUBLIC_REGISTRY:
            base = b.path("WORKING_DIR") or variables.MAPPED["WORKING_DIR"].default
            b.put("installer.pull_secret_file", f"{base.rstrip('/')}/pull_secret.json")
    isolated = b.boolean("AGENT_ISOLATED_NETWORK")
    if isolated is not None:
        b.put("hypervisor.egress", not isolated, "AGENT_ISOLATED_NETWORK")
    elif b.real:
        b.put("hypervisor.egress", True)
    _installer(b)
    _overrides(b)


def _installer(b: Builder) -> None:
    """Map an installer that dev-scripts builds from its own checkout; it is built from what is committed there."""
    if not b.value("KNI_INSTALL_FROM_GIT"):
        return
    name = "OPENSHIFT_INSTALL_PATH"
    if b.value(name):
        b.put("release.installer.git", b.path(name), "KNI_INSTALL_FROM_GIT", name)
    else:
        b.refuse("KNI_INSTALL_FROM_GIT", f"name the checkout of the installer in {name}")


def _overrides(b: Builder) -> None:
    for name in b.set:
        if not name.endswith("_LOCAL_IMAGE") or not b.value(name):
            continue
        component = name.removesuffix("_LOCAL_IMAGE").lower().replace("_", "-")
        if b.real:
            b.refuse(name, "a component of a real payload cannot be replaced; use a release image with it")
        elif component not in COMPONENTS:
            b.refuse(name, f"{component} is not a component of the lab payload")
        elif not _DIGEST.fullmatch(b.value(name)):
            b.refuse(name, "must be a pullspec with a digest (HOST/NAME@sha256:...): agentlab does not build images")
        else:
            b.put(f"release.payload_overrides.{component}", b.value(name), name)


def network(b: Builder) -> None:
    """Map networks and virtual addresses.

    The deprecated names without a family (EXTERNAL_SUBNET, say) are accepted alone; with one of the newer names they
    are refused.
    """
    b.text("BAREMETAL_NETWORK_NAME", "network.bridge")
    b.number("DHCP_LEASE_EXPIRY", "network.lease_minutes")
    if b.value("INSTALLER_PROXY"):
        b.put("network.connection", "proxied", "INSTALLER_PROXY")
    _bond(b)
    _by_family(b, "EXTERNAL_SUBNET", "network")
    _by_family(b, "SERVICE_SUBNET", "installer.service_network")
    _by_family(b, "CLUSTER_SUBNET", "installer.cluster_network", _cluster_network)
    b.text("BAREMETAL_API_VIP", "vips.api", lambda text: text.split(","))
    b.text("BAREMETAL_INGRESS_VIP", "vips.ingress", lambda text: text.split(","))
    extra: list[dict[str, str]] = []
    for label in b.value("EXTRA_NETWORK_NAMES").split():
        entry, sources = {"name": label}, ["EXTRA_NETWORK_NAMES"]
        for version in ("4", "6"):
            variable = f"{label.upper()}_NETWORK_SUBNET_V{version}"
            if b.value(variable):
                entry[f"ipv{version}"] = b.value(variable)
                sources.append(variable)
        b.put("extra_networks", [*extra, entry], *(sources[1:]))
        extra.append(entry)
    if extra:
        b.put("extra_networks", extra, "EXTRA_NETWORK_NAMES")
    octets = b.value("ISCSI_NETWORK_SUBNET")
    if octets and b.value("AGENT_E2E_TEST_BOOT_MODE").upper() == "ISCSI":
        own = {"name": iscsi.NETWORK, "ipv4": f"{octets}.0/24"}
        b.put("extra_networks", [*extra, own], "ISCSI_NETWORK_SUBNET")


def _bond(b: Builder) -> None:
    mode = b.value("BOND_CONFIG")
    if mode in ("", variables.MAPPED["BOND_CONFIG"].default):
        return
    modes = get_args(BondMode)
    if mode not in modes:
        b.refuse("BOND_CONFIG", f"the lab's switch has no link aggregation for it; there are {', '.join(modes)}")
        return
    b.put(f"bonds.{BOND}", {"mode": mode, "nics": list(BONDED)}, "BOND_CONFIG")
    b.put("network.interface", BOND)


def _by_family(b: Builder, name: str, place: str, put: _Put | None = None) -> None:
    """Map NAME_V4 and NAME_V6, and NAME, the deprecated one for either."""
    own = {f"ipv{version}": f"{name}_V{version}" for version in ("4", "6")}
    if b.value(name):
        newer = [variable for variable in own.values() if b.value(variable)]
        if newer:
            b.refuse(name, f"has been removed in favor of {name}_V4 and {name}_V6, and {' and '.join(newer)} is set")
            return
        own[family(b.value(name))] = name
    for kind, variable in own.items():
        if put:
            put(b, kind, variable, [variable] if b.value(variable) else [])
        else:
            b.text(variable, f"{place}.{kind}")


def _cluster_network(b: Builder, family: str, variable: str, sources: list[str]) -> None:
    version = family[-1]
    prefix = f"CLUSTER_HOST_PREFIX_V{version}"
    if not b.value(prefix) and variable == "CLUSTER_SUBNET":
        prefix = "CLUSTER_HOST_PREFIX"
    number = b.integer(prefix)
    if not sources and number is None:
        return
    cidr = b.value(variable) or variables.MAPPED[f"CLUSTER_SUBNET_V{version}"].default
    length = int(variables.MAPPED[f"CLUSTER_HOST_PREFIX_V{version}"].default) if number is None else number
    sources = [*sources, *([prefix] if number is not None else [])]
    b.put(f"installer.cluster_network.{family}", [{"cidr": cidr, "host_prefix": length}], *sources)


def services(b: Builder) -> None:
    """Map the services of the gateway.

    Ports and users of registry and file server. Mirroring is what the lab does anyway, and is refused for a real
    payload.
    """
    b.number("AGENT_BOOT_SERVER_PORT", "services.http.port")
    b.number("LOCAL_REGISTRY_PORT", "services.registry.port")
    b.text("REGISTRY_USER", "services.registry.username")
    if b.value("ENABLE_LOCAL_REGISTRY"):
        b.mapped["ENABLE_LOCAL_REGISTRY"] = "every lab has a registry"
    if b.boolean("MIRROR_IMAGES"):
        if b.real:
            b.refuse("MIRROR_IMAGES", "a real payload is not mirrored; its nodes need a way to its registry")
        else:
            b.mapped["MIRROR_IMAGES"] = "the lab payload is in the lab's registry"
