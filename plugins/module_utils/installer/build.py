"""What one run of `create` knows besides its assets: options, environment, release."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..documents import load_json, read_file
from ..log import Log
from ..redact import redact
from ..release.payload import Release, extract_file
from ..release.registry import Registry, RegistryError
from ..releases import ReleaseProfile, UnknownRelease, by_name, by_version
from ..releases.distributions import of_version
from ..releases.model import PROFILE_VARIABLE
from ..state import write_atomic
from ..vocabulary import Component, RunFile, go_arch
from . import credentials, mirrors
from .errors import InstallerError
from .install_config import default_stream
from .manifests.overrides import overrides_of
from .models import ImageSource, InstallConfig
from .store import Store

if TYPE_CHECKING:
    from .joiner.cluster import ClusterInfo, Member


@dataclass(frozen=True)
class Options:
    """directory: the `--dir`. assets: the text assets of the Ignition. cache: where base ISOs are kept.

    release_image, release_version, release_profile: what is installed; empty ones are found out, see `Build`.
    os_image: base ISO, a path or URL, by RPM architecture ("" for all). token_hours: for how long the service takes the image's
    tokens; None, as upstream: indefinitely. image_policy: which images a live host may pull, the text of a
    containers-policy.json(5); empty: that of the OS image. dry: write nothing, only report what would change.

    Of the add-nodes workflow: cluster, the one that is joined; members, its nodes; tokens, those of its services, as
    `credentials.tokens` returns them.
    """

    directory: Path
    assets: Path
    cache: Path
    release_image: str = ""
    release_version: str = ""
    release_profile: str = ""
    os_image: dict[str, str] = field(default_factory=dict)
    load_certificates: bool = False
    lenient: bool = False
    disable_image_policy: str = ""
    token_hours: float | None = None
    image_policy: str = ""
    interactive: bool = False
    dry: bool = False
    cluster: ClusterInfo | None = None
    tokens: dict[str, str] = field(default_factory=dict)
    members: list[Member] = field(default_factory=list)

    @classmethod
    def from_environment(cls, environment: dict[str, str], directory: Path, assets: Path, **more: Any) -> Options:
        """Take the switches that openshift-install takes from its environment, and agentlab's own.

        directory, assets: as the fields; more: other fields by name. `cache` is below XDG_CACHE_HOME or ~/.cache. An OS
        image for one architecture has the architecture behind `..._OS_IMAGE_OVERRIDE_`.
        """
        override = "OPENSHIFT_INSTALL_OS_IMAGE_OVERRIDE"
        cache = environment.get("XDG_CACHE_HOME") or str(Path(environment.get("HOME") or "~").expanduser() / ".cache")
        return cls(
            directory=directory,
            assets=assets,
            cache=Path(cache) / "agentlab",
            release_image=environment.get("OPENSHIFT_INSTALL_RELEASE_IMAGE_OVERRIDE", ""),
            release_version=environment.get("AGENTLAB_RELEASE_VERSION", ""),
            release_profile=environment.get(PROFILE_VARIABLE, ""),
            os_image={
                key.removeprefix(override).removeprefix("_").lower(): value
                for key, value in environment.items()
                if key == override or key.startswith(override + "_")
            },
            load_certificates=environment.get("OPENSHIFT_INSTALL_LOAD_CLUSTER_CERTS") == "true",
            lenient=bool(environment.get("OPENSHIFT_INSTALL_INVOKER")),
            disable_image_policy=environment.get("OPENSHIFT_INSTALL_EXPERIMENTAL_DISABLE_IMAGE_POLICY", ""),
            **more,
        )


def lab_payload(cache: Path) -> dict[str, Any]:
    """Return payload.json of the lab payload that was built last; {} when there is none.

    cache: as in `Options`.
    """
    try:
        path = cache / "payload" / "current" / "payload.json"
        found = load_json(read_file(path), name=str(path))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


class Build:
    """Handed to every asset: `options`, `log`, `store`, and the release, read when it is first needed.

    `build[name]` is the value of an asset that was fetched before. `changes` and `diffs` collect what the run changes;
    `hint` is the install-config that is being loaded, which may be needed to read the release.
    """

    def __init__(self, options: Options, log: Log, store: Store) -> None:
        self.options, self.log, self.store = options, log, store
        self._releases: dict[str, Release] = {}

        self.hint: InstallConfig = {}
        self.changes: list[str] = []
        self.diffs: list[dict[str, str]] = []

    def title(self, name: str) -> str:
        """What the release calls the asset `name`.

        Releases differ in the names of two assets, which their messages show.
        """
        if name == "InfraEnv Config File" and self.profile.unconfigured_from_install_config:
            return "InfraEnv Config"
        return self.profile.base_iso_asset if name == "Base ISO Image" else name

    def changed(self, *names: str) -> None:
        """Note that files of the directory are not, or would not be left, as they were.

        names: paths relative to the directory, each noted once. In a dry run nothing else happens.
        """
        self.changes += [name for name in names if name not in self.changes]

    def save(self, name: str, content: bytes, mode: int) -> None:
        """Bring a file of the directory to this content and mode; noted when it was another.

        name: path relative to the directory; mode: permission bits. A kubeconfig to which wait-for has added CAs stays.
        Files in `cluster-manifests/` leave a redacted diff, but for the pull secret. A dry run only notes.
        """
        path = self.options.directory / name
        try:
            before: bytes | None = read_file(path)
            same = before == content or (
                name == RunFile.KUBECONFIG and before is not None and credentials.trusts_more(before, content)
            )
            same = same and path.stat().st_mode & 0o777 == mode
        except FileNotFoundError:
            before, same = None, False
        if same:
            return
        self.changed(name)
        if name.startswith("cluster-manifests/") and not name.endswith("pull-secret.yaml"):
            self.diffs.append(
                {
                    "before_header": name, "after_header": name,
                    "before": redact((before or b"").decode("utf-8", "replace")), "after": redact(content.decode()),
                }
            )  # fmt: skip
        if not self.options.dry:
            path.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
            write_atomic(path, content, mode)

    def save_rendezvous_ip(self) -> None:
        """Write `rendezvousIP`.

        The file has the address of node zero without a newline; the Ignition must have been made.
        """
        self.save("rendezvousIP", self["Agent Installer Ignition"]["RendezvousIP"].encode(), 0o644)

    def os_image_metadata(self, arch: str) -> dict[str, str]:
        """`url`, `version` and `rootfs_url` of the live ISO for RPM architecture `arch`, by the payload's stream metadata.

        A payload that can't be read, or has none, gives the release's version and a URL that leads nowhere: the
        service wants both well-formed and uses neither.
        """
        facts = self.release_facts
        if facts.get("os_images"):
            name = f"{self.os_stream}-stream.json"
            path = self.os_images_cache / name
            try:
                if not path.exists():
                    release = self.release()
                    extract_file(release.registry, facts["os_images"], release.arch, f"coreos/{name}", path)
                metal = load_json(read_file(path), name=str(path))["architectures"][arch]["artifacts"]["metal"]
                disk, rootfs = metal["formats"]["iso"]["disk"], metal["formats"].get("pxe", {}).get("rootfs", {})
                return {
                    "url": disk["location"], "version": metal["release"], "rootfs_url": rootfs.get("location", "")
                }  # fmt: skip
            except (RegistryError, KeyError, ValueError) as error:
                self.log.debug(f"unable to determine base ISO version: {error}")
        return {"url": f"http://localhost/coreos/coreos-{arch}.iso", "version": self.version}

    def __getitem__(self, name: str) -> Any:
        return self.store.value(name)

    @functools.cached_property
    def _payload(self) -> dict[str, Any]:
        return lab_payload(self.options.cache)

    @functools.cached_property
    def release_image(self) -> str:
        """The pullspec of the release: named by the environment, the directory's last one, or the lab payload.

        Raises `InstallerError` when none of them names one.
        """
        found = self.options.release_image or self.store.own.get("release_image") or self._payload.get("release") or ""
        if not found:
            raise InstallerError(
                "no release image is known: set OPENSHIFT_INSTALL_RELEASE_IMAGE_OVERRIDE to its pullspec, or build the "
                "lab payload: `agentlab payload build`"
            )
        return str(found)

    @functools.cached_property
    def version(self) -> str:
        """The version of the release.

        It comes from the options, from the last run or the lab payload if they have this pullspec, or from the image
        itself. Raises `InstallerError` when the image cannot be read.
        """
        if self.options.release_version:
            return self.options.release_version
        if self.store.own.get("version") and self.store.own.get("release_image") == self.release_image:
            return str(self.store.own["version"])
        if self._payload.get("release") == self.release_image and self._payload.get("version"):
            return str(self._payload["version"])
        try:
            return self.release().version
        except RegistryError as error:
            raise InstallerError(
                f"the version of the release is not known: {error}; set AGENTLAB_RELEASE_VERSION instead"
            ) from error

    @functools.cached_property
    def profile(self) -> ReleaseProfile:
        """What the release does: the profile that the options name, or that of its version.

        Raises `InstallerError` for an unknown name.
        """
        if not self.options.release_profile:
            return by_version(self.version)
        try:
            return by_name(self.options.release_profile)
        except UnknownRelease as error:
            raise InstallerError(f"{PROFILE_VARIABLE}: {error}") from error

    def release(self) -> Release:
        """The release, readable through the mirrors and with the pull secret and CA bundle of the inputs.

        The inputs are those fetched so far, or else the install-config that is being loaded. One object serves all
        calls with the same inputs. Errors of the registry, `RegistryError`, come when it is read.
        """
        config = self._optional_asset("Install Config") or self.hint
        secret = config.get("pullSecret") or ""
        manifest = self._optional_asset("Agent PullSecret")
        if manifest:
            secret = manifest["stringData"][".dockerconfigjson"]
        conf = self._optional_asset("Mirror Registries Config")
        registries: Sequence[ImageSource] = mirrors.parse(conf["File"]) if conf else [
            {"source": entry.get("source", ""), "mirrors": entry.get("mirrors") or []}
            for entry in config.get("imageDigestSources") or config.get("imageContentSources") or []
        ]  # fmt: skip
        bundle = (self._optional_asset("Mirror Registries Certificate File") or {}).get("File") or config.get(
            "additionalTrustBundle", ""
        )
        try:
            auths = (load_json(secret, name="pull secret") if secret else {}).get("auths", {})
        except (ValueError, AttributeError):
            auths = {}
        infra = self._optional_asset("InfraEnv Config") or self._optional_asset("InfraEnv Config File") or {}
        arch = (infra.get("Config", {}).get("spec") or {}).get("cpuArchitecture") or (
            config.get("controlPlane", {}).get("architecture", "amd64")
        )
        key = json.dumps([secret, registries, bundle, arch], sort_keys=True)
        if key not in self._releases:
            registry = Registry(auths, bundle, lambda pullspec: mirrors.mirrors_of(pullspec, registries))
            self._releases[key] = Release(self.release_image, registry, go_arch(arch))
        return self._releases[key]

    @functools.cached_property
    def release_facts(self) -> dict[str, str]:
        """What the release image contains: `architecture`, `hw_requirements`, `os_images`, `utils`; or `error`, why it can't be read.

        The content of a digest never changes, so it is read once and kept in the state.
        """
        known: dict[str, str] = self.store.own.get("release_facts", {})
        if known.get("pullspec") == self.release_image and "@sha256:" in self.release_image:
            return known
        try:
            release = self.release()
            facts = {
                "pullspec": self.release_image,
                "architecture": release.architecture,
                "hw_requirements": release.hw_requirements,
                "os_images": release.images.get(Component.MACHINE_OS_IMAGES, ""),
                "utils": release.images.get(Component.UTILS, ""),
            }
        except RegistryError as error:
            return {"error": str(error)}
        self.store.own["release_facts"] = facts
        return facts

    @property
    def os_stream(self) -> str:
        """How the names of the operating system's files begin.

        The stream is the one that the cluster requests, or the release's own. Returns "coreos" or "coreos10": the
        beginning of the ISO's name in the payload's OS image.
        """
        aci = (self._optional_asset("AgentClusterInstall Config") or {}).get("Config")
        stream = overrides_of(aci).get("osImageStream") or default_stream(self.version)
        return of_version(self.version).os_streams.get(stream, "coreos")

    @property
    def os_images_cache(self) -> Path:
        """Where files out of the payload's OS images are kept, by the digest of the image."""
        digest = self.release_facts["os_images"].rpartition("@")[2]
        return self.options.cache / "image_cache" / digest.replace(":", "-").replace("/", "_")

    def _optional_asset(self, name: str) -> Any:
        try:
            return self.store.value(name)
        except KeyError:
            return None
