"""Checks of what is installed: the platform and the release. See `checks`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ..releases import LATEST, RELEASES, ReleaseProfile, first_release
from ..releases.distributions import DISTRIBUTIONS, PUBLIC_REGISTRY, Distribution, of_version
from ..vocabulary import LAB_SUFFIX, WITH_VIPS
from . import boot_modes
from .build import platform_of
from .modes import modes_where
from .options import Profile
from .presets import DEFAULTS
from .problems import Finding, Path
from .topologies import TOPOLOGIES

# Boot modes whose image has all that it needs; `unconfigured` has what those without a cluster require.
_FETCH_NOTHING = modes_where(lambda mode: mode.configured and mode.folder is None)
_PAYLOADS = " or ".join(f"`payload: {name}`" for name in DISTRIBUTIONS)


def check_platform(profile: Profile, _cluster: str) -> Iterator[Finding]:
    """What openshift-install would refuse, in its words where it has some."""
    platform, release = platform_of(profile), RELEASES[profile["release"]["profile"] or LATEST.name]
    if profile["master"]["count"] == 1:
        if platform in WITH_VIPS:
            yield ("platform",), platform, "Only platform none and external supports 1 ControlPlane and 0 Compute nodes"
        network_type = profile["installer"]["network_type"]
        if network_type != "OVNKubernetes":
            remedy = "Only OVNKubernetes network type is allowed for Single Node OpenShift (SNO) cluster"
            yield ("installer", "network_type"), network_type, remedy
    if platform == "nutanix":
        if not release.nutanix:
            yield ("platform",), platform, f"is not one of the agent-based installer of {release.name}"
        laid = profile["installer"]["install_config"].get("platform") or {}
        if not (isinstance(laid, Mapping) and laid.get("nutanix")):
            remedy = "platform.nutanix.prismCentral.endpoint.address: must specify the Prism Central endpoint address"
            yield ("installer", "install_config"), None, remedy
    yield from _check_external(profile, platform, release)
    if profile["installer"]["hosts_in"] == "install-config":
        path: Path = ("installer", "hosts_in")
        if platform != "baremetal":
            yield path, "install-config", f"requires `platform: baremetal`, the only one with hosts, not {platform}"
        elif not release.install_config_hosts:
            yield path, "install-config", f"are ignored by the agent-based installer of {release.name}"


def _check_external(profile: Profile, platform: str, release: ReleaseProfile) -> Iterator[Finding]:
    name, manager = profile["external"]["platform_name"], profile["external"]["cloud_controller_manager"]
    if platform != "external":
        for field, value in profile["external"].items():
            if value != DEFAULTS["external"][field]:
                yield ("external", field), value, f"requires `platform: external`, not {platform}"
        return
    if name == "oci" and manager == "None":
        yield (
            ("external", "cloud_controller_manager"),
            manager,
            "When using external oci platform, platform.external.cloudControllerManager must be set to External",
        )
    if (mode := boot_modes.boot_mode(profile)) in _FETCH_NOTHING:
        remedy = "loads nothing from the network, and the image of platform external is a minimal one: choose redfish"
        yield ("boot", "mode"), mode, remedy
    if release.external_platforms and name not in release.external_platforms:
        supported = ", ".join(f'"{one}"' for one in release.external_platforms)
        yield ("external", "platform_name"), name, f"Unsupported value: supported values: {supported}"


def check_topology(profile: Profile, _cluster: str) -> Iterator[Finding]:
    """A control plane that the release does not know. One of the user's own installer is left to it."""
    release, build = RELEASES[profile["release"]["profile"] or LATEST.name], profile["release"]["installer"]
    if build["binary"] or build["git"]:
        return
    topology, masters, arbiters = profile["topology"], profile["master"]["count"], profile["arbiter"]["count"]
    row = TOPOLOGIES[topology]
    chosen = profile["installer"]["install_config"].get("featureSet")
    if arbiters:
        place: Finding = (("topology",), topology, "") if row.arbiter.number else (("arbiter", "count"), arbiters, "")
        fits, preview, first = release.arbiter_nodes, release.arbiter, first_release(lambda one: one.arbiter_nodes)
    elif row.fencing:
        place = ("topology",), topology, ""
        fits, preview, first = (
            release.fencing_gate_default,
            release.two_node_fencing,
            first_release(lambda one: one.fencing_gate_default),
        )
    else:
        place = (("topology",), topology, "") if row.master.number == masters else (("master", "count"), masters, "")
        known = [name for name, one in RELEASES.items() if masters in one.control_planes]
        # Others are refused whatever the release is.
        fits, preview, first = release.name in known or not known, False, (known or [""])[0]
    preview = preview and release.feature_sets
    if fits or (preview and chosen):
        return
    remedy = f"requires a release from {first} on, not {release.name}"
    yield *place[:2], f"{remedy}, or `installer.install_config.featureSet: TechPreviewNoUpgrade`" if preview else remedy


def _check_distribution(profile: Profile, distribution: Distribution) -> Iterator[Finding]:
    release, installer = profile["release"], profile["installer"]
    image, version = release["image"], release["version"]
    if not image:
        yield (
            ("release", "image"),
            None,
            "a real payload requires the pullspec of its release image, or a full version in release.version",
        )
    if version and distribution is not (other := of_version(version)):
        remedy = f"is a version of {other.title}, which requires `payload: {other.payload}`"
        yield (
            ("release", "version"),
            version,
            remedy if other.image(version) else f"is not a version of {distribution.title}",
        )
    if installer["pull_secret_file"]:
        return
    path = ("installer", "pull_secret_file")
    if distribution.pull_secret is None:
        yield path, None, "a real payload requires a file with the pull secret of its registries"
    elif image and not (installer["image_digest_sources"] or installer["mirrors_file"]):
        host = image.partition("/")[0]
        if host != PUBLIC_REGISTRY:
            yield (
                path,
                None,
                f"requires a file with an entry for {host}: without mirrors only {PUBLIC_REGISTRY} needs none",
            )


def check_release(profile: Profile, _cluster: str) -> Iterator[Finding]:
    """The release image, and the build of openshift-install, of which there is one."""
    release = profile["release"]
    if distribution := DISTRIBUTIONS.get(release["payload"]):
        yield from _check_distribution(profile, distribution)
    else:
        if release["image"]:
            yield ("release", "image"), release["image"], f"a release image requires {_PAYLOADS}"
        if wrong := lab_version_fault(release["version"] or ""):
            yield ("release", "version"), release["version"], wrong
    build = release["installer"]
    if build["git"] and build["binary"]:
        yield (
            ("release", "installer", "git"),
            build["git"],
            "requires that release.installer.binary is null: which of the two?",
        )
    if build["ref"] != DEFAULTS["release"]["installer"]["ref"] and not build["git"]:
        yield (
            ("release", "installer", "ref"),
            build["ref"],
            "requires release.installer.git, the repository that has it",
        )


def lab_version_fault(version: str) -> str:
    """What is wrong with `version` as one of the lab payload; "" for those like `4.18.0-lab`, of a known release."""
    match = re.fullmatch(rf"([0-9]+\.[0-9]+)\.[0-9]{{1,3}}{LAB_SUFFIX}", version)
    if match and match[1] in RELEASES:
        return ""
    return f"is not a version of the lab payload: must be like {LATEST.name}.0{LAB_SUFFIX}, of one of {', '.join(RELEASES)}"
