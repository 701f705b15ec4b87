"""The boot images: agent ISO, PXE files, config image."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from .. import files
from ..ignition.config import dumps, files_of
from ..release.payload import read_matching
from ..state import write_atomic
from ..vocabulary import BOOT_ARTIFACTS, CONFIG_IMAGE, boot_file
from .build import Build
from .ignition import ADD_NODES, appliance
from .live_env import CONFIG_IMAGE_PATHS
from .manifests.overrides import overrides_of

if TYPE_CHECKING:
    from ..coreos.iso import LiveIso

# Part of an image's fingerprint: raise it when the same inputs give other bytes.
_FORMAT = 2


def workflow(build: Build) -> Literal["agent", "node"]:
    """Return what the names of images begin with: `agent`, or `node` for nodes that join an installed cluster."""
    return "node" if build["Agent Workflow"] == ADD_NODES else "agent"


def kernel_arguments(build: Build) -> list[str]:
    """What the live system is booted with in addition.

    A serial console for the external platform `oci`, and `fips=1` when the cluster has that mode.
    """
    aci = build["AgentClusterInstall Config"]["Config"]
    found = []
    if (aci["spec"].get("external") or {}).get("platformName") == "oci":
        found.append("console=ttyS0")
    if overrides_of(aci).get("fips"):
        found.append("fips=1")
    return found


class Artifacts(TypedDict):
    """All that an image is made of.

    arch: RPM's name; ignition: JSON text; base, agent_files: {"path", "identity"}; base_url: bootArtifactsBaseURL;
    rootfs_url: where the payload's root file system is published. "" is what is absent.
    """

    arch: str
    ignition: str
    kargs: list[str]
    base: dict[str, str]
    agent_files: dict[str, str]
    base_url: str
    minimal: bool
    external: bool
    rootfs_url: str
    fingerprint: str


def artifacts(build: Build) -> Artifacts:
    """All that an image is made of, and its fingerprint.

    Images are written again only when the fingerprint is another, or a file was touched.
    """
    aci = build["AgentClusterInstall Config"]["Config"]
    agent = (build["Agent Config"] or {}).get("Config")
    ignition = build["Agent Installer Ignition"]
    external = aci["spec"].get("platformType") == "External"
    minimal = ignition["Minimal"]
    base_url = ((agent or {}).get("bootArtifactsBaseURL") or "").strip("/")
    found: Artifacts = {
        "arch": ignition["CPUArch"],
        "ignition": dumps(ignition["Config"]).decode(),
        "kargs": build["Agent ISO/PXE files Kernel Arguments"],
        "base": build["Base ISO Image"],
        "agent_files": agent_files(build),
        "base_url": base_url,
        "minimal": minimal,
        "external": external,
        "rootfs_url": build.os_image_metadata(ignition["CPUArch"]).get("rootfs_url", "") if minimal else "",
        "fingerprint": "",  # of the rest, below
    }
    identity = [
        _FORMAT, found["ignition"], found["kargs"], found["base"]["identity"], found["agent_files"]["identity"], base_url,
        minimal, found["rootfs_url"],
    ]  # fmt: skip
    found["fingerprint"] = hashlib.sha256(json.dumps(identity).encode()).hexdigest()
    return found


_TUI = ["usr/bin/agent-tui", "usr/lib64/libnmstate.so.*"]
# Runs in the initrd, before the switch to the real root.
TUI_HOOK = b"""#!/bin/bash
# Puts the text interface of the installer into the real root.
if [[ -d /agent-files ]]; then
    cp /agent-files/* "$NEWROOT/usr/local/bin/"
    for file in /agent-files/*; do
        chroot "$NEWROOT" chcon system_u:object_r:bin_t:s0 "/usr/local/bin/${file##*/}" || true
    done
fi
"""


def agent_files(build: Build) -> dict[str, str]:
    """{"path", "identity"} of a compressed cpio archive with agent-tui, for the initrd; "" when the payload has none.

    External platform oci goes without: it has a serial console only.
    """
    aci = build["AgentClusterInstall Config"]["Config"]
    pullspec = build.release_facts.get("utils", "")
    if not pullspec or (aci["spec"].get("external") or {}).get("platformName") == "oci":
        return {"path": "", "identity": ""}
    digest = pullspec.rpartition("@")[2].replace(":", "-").replace("/", "_")
    path = build.options.cache / "files_cache" / digest / "agent-files.cpio.gz"
    if not path.exists() and not build.options.dry:
        from ..coreos import cpio

        release = build.release()
        found = read_matching(release.registry, pullspec, release.arch, _TUI)
        members = {f"agent-files/{Path(name).name}": cpio.File(data, 0o555) for name, data in found.items()}
        if any(name.endswith("agent-tui") for name in members):
            members["usr/lib/dracut/hooks/pre-pivot/99-agent-copy-files.sh"] = cpio.File(TUI_HOOK, 0o755)
            packed = cpio.compress(cpio.archive(members))
        else:
            build.log.debug(f"{pullspec} has no agent-tui")
            packed = b""
        write_atomic(path, packed, 0o644)
    empty = not path.exists() or path.stat().st_size == 0
    return {"path": "" if empty else str(path), "identity": pullspec}


def _fresh(build: Build, kind: str, fingerprint: str, paths: list[Path]) -> bool:
    """Return whether the files of the last run are still what this run would make."""
    known = build.store.own.get("images", {}).get(kind, {})
    if known.get("fingerprint") != fingerprint:
        return False
    return bool(known.get("files") == _stamps(build, paths))


def _stamps(build: Build, paths: list[Path]) -> dict[str, list[int]]:
    found = {}
    for path in paths:
        try:
            status = path.stat()
        except FileNotFoundError:
            continue
        found[str(path.relative_to(build.options.directory))] = [status.st_size, status.st_mtime_ns]
    return found


def _record(build: Build, kind: str, fingerprint: str, paths: list[Path]) -> None:
    images = build.store.own.setdefault("images", {})
    images[kind] = {"fingerprint": fingerprint, "files": _stamps(build, paths)}


def agent_iso(build: Build) -> None:
    """Write `agent.<arch>.iso`, and the rootfs of a minimal one.

    The rootfs is for `bootArtifactsBaseURL`, in `boot-artifacts/`; without that URL the minimal ISO fetches the
    published one. An ISO that is up to date is left alone; a dry run only notes what would change.
    """
    parts: Artifacts = build["Agent Installer Artifacts"]
    arch, directory = parts["arch"], build.options.directory
    target = directory / boot_file(workflow(build), arch, ".iso")
    if parts["minimal"]:
        why = "for External platform" if parts["external"] else "based on configuration"
        build.log.info(f"Minimal ISO will be created {why}")
    rootfs = directory / BOOT_ARTIFACTS / boot_file(workflow(build), arch, "-rootfs.img")
    outputs = [target, *([rootfs] if parts["minimal"] and parts["base_url"] else [])]
    if _fresh(build, "iso", parts["fingerprint"], outputs):
        build.log.debug(f"{target} is up to date")
    else:
        build.changed(*(str(path.relative_to(directory)) for path in outputs))
        if not build.options.dry:
            directory.mkdir(parents=True, exist_ok=True)
            (_write_minimal if parts["minimal"] else _write_full)(build, parts, target, rootfs)
            _record(build, "iso", parts["fingerprint"], outputs)
    if parts["minimal"]:
        if parts["base_url"]:
            build.log.info(f"RootFS file created in: {rootfs.parent}. Upload it at {parts['base_url']}/{rootfs.name}")
        build.log.info(f"Generated minimal ISO at {target}")
    else:
        expiry = build["Agent Installer API Auth Config"].get("AuthTokenExpiry") if workflow(build) == "node" else ""
        build.log.info(f"Generated ISO at {target}." + (f" The ISO is valid up to {expiry}" if expiry else ""))
    if parts["external"]:
        build.log.info(
            "When using External oci platform, always make sure CCM manifests were added in the openshift directory."
        )
    build.save_rendezvous_ip()


def _write_full(build: Build, parts: Artifacts, target: Path, _rootfs: Path) -> None:
    from ..coreos.iso import LiveIso

    with LiveIso(Path(parts["base"]["path"])) as iso:
        _embed(iso, parts)
        iso.save_as(target, grow=True, overwrite=True)
        before = iso.area.length
    with LiveIso(target) as iso:
        if iso.area.length > before:
            build.log.debug(
                f"ignition content length exceeds default embed area size ({before}), increasing final image size: the "
                f"area has {iso.area.length} bytes now"
            )


def _embed(iso: LiveIso, parts: Artifacts) -> None:
    iso.ignition = parts["ignition"].encode()
    if parts["kargs"]:
        iso.edit_kargs(append=parts["kargs"])
    if parts["agent_files"]["path"]:
        iso.append_to_initrd(Path(parts["agent_files"]["path"]).read_bytes())


def _write_minimal(build: Build, parts: Artifacts, target: Path, rootfs: Path) -> None:
    from ..coreos import minimal
    from ..coreos.iso import ROOTFS_PATH, LiveIso

    base = parts["base"]["path"]
    with LiveIso(base) as full:
        url = parts["rootfs_url"] or published_rootfs(full.fs.volume_id, parts["arch"])
        if parts["base_url"]:
            url = f"{parts['base_url']}/{rootfs.name}"
            rootfs.parent.mkdir(mode=0o750, exist_ok=True)
            full.fs.extract(full.fs.find_file(ROOTFS_PATH), rootfs, overwrite=True)
    if not url:
        build.log.warning(
            f"no RootFSURL found for {parts['arch']}: give bootArtifactsBaseURL in agent-config.yaml, or boot the image "
            "with the kernel argument coreos.live.rootfs_url=URL"
        )
    with files.staging_directory(target.parent) as work:
        plain = work / target.name
        minimal.make(base, plain, url)
        with LiveIso(plain) as iso:
            _embed(iso, parts)
            iso.save(grow=True)
        plain.replace(target)


_PUBLISHED = (
    (
        r"rhcos-(4)(\d\d)\.(9)(\d)\.(\d{12}-\d)",
        "https://rhcos.mirror.openshift.com/art/storage/prod/streams/{0}.{1}-{2}.{3}/builds/{0}{1}.{2}{3}.{4}/{arch}/"
        "rhcos-{0}{1}.{2}{3}.{4}-live-rootfs.{arch}.img",
    ),
    (
        r"rhcos-(\d+\.\d+)\.(\d{8}-\d)",
        "https://rhcos.mirror.openshift.com/art/storage/prod/streams/rhel-{0}/builds/{0}.{1}/{arch}/"
        "rhcos-{0}.{1}-live-rootfs.{arch}.img",
    ),
    (
        r"scos-(\d+)\.0\.(\d{8}-\d)",
        "https://rhcos.mirror.openshift.com/art/storage/prod/streams/c{0}s/builds/{0}.0.{1}/{arch}/"
        "scos-{0}.0.{1}-live-rootfs.{arch}.img",
    ),
)


def published_rootfs(volume_id: str, arch: str) -> str:
    """Where the root file system of a released CoreOS live ISO is published; "" for other images.

    The volume ID has the build; the places are those of the builds' own stream metadata.
    """
    for form, place in _PUBLISHED:
        match = re.fullmatch(form, volume_id)
        if match:
            return place.format(*match.groups(), arch=arch)
    return ""


def pxe_files(build: Build) -> None:
    """Write `boot-artifacts/agent.<arch>-{initrd.img,rootfs.img,vmlinuz}`, the iPXE script, and what s390x needs.

    They go to `boot-artifacts/`, which is emptied first; the script needs `bootArtifactsBaseURL`. Files that are up to
    date are left alone; a dry run only notes what would change.
    """
    from ..coreos import cpio, pxe
    from ..coreos.iso import LiveIso

    parts: Artifacts = build["Agent Installer Artifacts"]
    directory = build.options.directory
    folder, start = directory / BOOT_ARTIFACTS, boot_file(workflow(build), parts["arch"], "")
    s390x = parts["arch"] == "s390x"
    kernel = "kernel.img" if s390x else "vmlinuz"
    names = [f"{start}-{name}" for name in ("initrd.img", "rootfs.img", kernel)]
    if parts["base_url"]:
        names.append(f"{start}.ipxe")
    if s390x:
        names += [f"{start}-initrd.addrsize", f"{start}-generic.ins"]
    outputs = [folder / name for name in names]
    if not parts["base"]["path"]:
        build.changed(*(str(path.relative_to(directory)) for path in outputs))
        return
    append = "".join(f" {argument}" for argument in parts["kargs"])
    with LiveIso(parts["base"]["path"]) as iso:
        if not _fresh(build, "pxe", parts["fingerprint"], outputs):
            build.changed(*(str(path.relative_to(directory)) for path in outputs))
            if not build.options.dry:
                tui = parts["agent_files"]["path"]
                archives = [Path(tui).read_bytes()] if tui else []
                archives.append(cpio.compress(cpio.archive({"config.ign": parts["ignition"].encode()})))
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir(mode=0o750, parents=True)
                pxe.write_artifacts(iso, folder, start, archives, parts["base_url"], append, kernel)
                _record(build, "pxe", parts["fingerprint"], outputs)
        arguments = pxe.kernel_arguments(iso, append)
    if s390x:
        build.log.info(f"Created boot artefacts for s390x in {folder} directory")
    if parts["base_url"]:
        build.log.info(f"Created iPXE script {start}.ipxe in {folder} directory")
    build.log.info(f"PXE boot artifacts created in: {folder}")
    build.log.info(f"Kernel parameters for PXE boot: {arguments}")
    build.save_rendezvous_ip()


def config_iso(build: Build) -> None:
    """Write `agentconfig.noarch.iso`: the files of the Ignition that a host without configuration lacks.

    They are in `config.gz`, which is all that the host reads; an embed area shows them as an Ignition config.
    """
    from ..coreos import build as isos
    from ..coreos import cpio

    config = build["Agent Installer Ignition"]["Config"]
    target = build.options.directory / CONFIG_IMAGE
    contents = files_of(config)
    entries = {entry["path"]: entry for entry in config["storage"]["files"]}
    chosen = list(dict.fromkeys(path for part in CONFIG_IMAGE_PATHS for path in contents if part in path))
    members = {path: cpio.File(contents[path], entries[path].get("mode", 0o600)) for path in chosen}
    shown = dumps({"ignition": config["ignition"], "storage": {"files": [entries[path] for path in chosen]}})
    fingerprint = hashlib.sha256(shown).hexdigest()
    if not _fresh(build, "config", fingerprint, [target]):
        build.changed(target.name)
        if not build.options.dry:
            isos.config_image(members, target, shown, overwrite=True)
            _record(build, "config", fingerprint, [target])
    build.save_rendezvous_ip()


def unconfigured_iso(build: Build, *, interactive: bool) -> dict[str, Any]:
    """Write `agent.<arch>.iso` for hosts that get their cluster later; returns {"RendezvousIP"} of it.

    interactive: from users, who choose the rendezvous host on the hosts' screens; otherwise from a config image. Upstream's
    appliance makes such an image of `unconfigured-ignition`. An ISO that is up to date is left alone.
    """
    made, base = appliance(build, interactive=interactive), build["Base ISO Image"]
    parts: Artifacts = {
        "arch": made["CPUArch"],
        "ignition": dumps(made["Config"]).decode(),
        "kargs": [],
        "base": base,
        "agent_files": {"path": "", "identity": ""},
        "base_url": "",
        "minimal": False,
        "external": False,
        "rootfs_url": "",
        "fingerprint": "",
    }
    fingerprint = hashlib.sha256(json.dumps([_FORMAT, parts["ignition"], base["identity"]]).encode()).hexdigest()
    directory = build.options.directory
    target = directory / boot_file("agent", parts["arch"], ".iso")
    if not _fresh(build, "unconfigured", fingerprint, [target]):
        build.changed(target.name)
        if not build.options.dry:
            directory.mkdir(parents=True, exist_ok=True)
            if interactive:  # what a rendezvous host of another image has made
                shutil.rmtree(directory / "auth", ignore_errors=True)
            _write_full(build, parts, target, target)
            _record(build, "unconfigured", fingerprint, [target])
    build.log.info(f"Generated unconfigured ISO at {target}.")
    build.save("rendezvousIP", made["RendezvousIP"].encode(), 0o644)
    return {"RendezvousIP": made["RendezvousIP"], "CPUArch": parts["arch"]}
