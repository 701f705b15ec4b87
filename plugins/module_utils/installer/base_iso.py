"""The live ISO that images start from: the user's, or the release payload's."""

from __future__ import annotations

import hashlib
import shutil
import urllib.request
from contextlib import suppress
from pathlib import Path

from .. import files
from ..release.payload import extract_files
from ..release.registry import RegistryError
from ..state import write_atomic
from ..vocabulary import Component
from . import check
from .build import Build
from .errors import InstallerError


def base_iso(build: Build) -> dict[str, str]:
    """{"path", "identity"} of the live ISO to start from; path is "" when nothing may be fetched.

    path: the file, "" in a dry run that would have to fetch it first; identity: what represents its content in an
    image's fingerprint. An override for the architecture comes before the release payload. Raises `InstallerError`.
    """
    arch = build["InfraEnv Config"]["Config"]["spec"].get("cpuArchitecture") or "x86_64"
    images = build.options.os_image
    override = images.get(arch) or images.get("")
    try:
        if override:
            build.log.warning("Found override for OS Image. Please be warned, this is not advised")
            return _override(build, override)
        return _from_release(build, arch)
    except OSError as error:
        raise InstallerError(f"failed to get base ISO image: {files.explain(error)}") from error
    except RegistryError as error:
        raise InstallerError(f"failed to get base ISO image: {error}") from error


def _override(build: Build, place: str) -> dict[str, str]:
    why = check.request_uri(place)
    if why:
        raise InstallerError(f"failed to get base ISO image: {why}")
    path = Path(place.removeprefix("file://"))
    if place.startswith(("http://", "https://")):
        path = build.options.cache / "image_cache" / f"{hashlib.sha256(place.encode()).hexdigest()}.iso"
        if not path.exists():
            if build.options.dry:
                return {"path": "", "identity": place}
            _download(build, place, path)
    if not path.is_file():
        why = (
            "is a directory, not an ISO image"
            if path.is_dir()
            else "not a regular file"
            if path.exists()
            else "no such file"
        )
        raise InstallerError(f"failed to get base ISO image: {path}: {why}")
    status = path.stat()
    return {"path": str(path), "identity": f"{path.name}:{status.st_size}:{status.st_mtime_ns}"}


def _download(build: Build, url: str, target: Path) -> None:
    build.log.info("Downloading base ISO")
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with (
            urllib.request.build_opener().open(url, timeout=60) as response,
            files.new_file(target, overwrite=True, mode=0o644) as out,
        ):
            shutil.copyfileobj(response, out, 2**20)
    except OSError as error:
        raise InstallerError(
            f"failed to get base ISO image: {url}: {getattr(error, 'reason', files.explain(error))}"
        ) from error


def _from_release(build: Build, arch: str) -> dict[str, str]:
    facts = build.release_facts
    if "error" in facts:
        build.log.warning("Failed to extract base ISO from release payload - check registry configuration")
        raise RegistryError(f"the base ISO comes from the release payload: {facts['error']}")
    pullspec, name = facts["os_images"], f"{build.os_stream}-{arch}.iso"
    if not pullspec:
        raise RegistryError(
            f"the release has no component {Component.MACHINE_OS_IMAGES}: name a live ISO in "
            "OPENSHIFT_INSTALL_OS_IMAGE_OVERRIDE"
        )
    folder = build.os_images_cache
    path, checksum, stream = folder / name, folder / f"{name}.sha256", folder / f"{build.os_stream}-stream.json"
    if path.exists() and checksum.exists():
        build.log.info("Verifying cached file")
        if _intact(path, checksum, keep=not build.options.dry):
            build.log.info(f"Using cached Base ISO {path}")
            return {"path": str(path), "identity": f"{pullspec}/{name}"}
        path.unlink()
    if build.options.dry:
        return {"path": "", "identity": f"{pullspec}/{name}"}
    build.log.info("Extracting base ISO from release payload")
    release = build.release()
    targets = {f"coreos/{target.name}": target for target in (path, checksum, stream)}
    found = extract_files(release.registry, pullspec, release.arch, targets)
    digest = found.get(f"coreos/{name}")
    if digest is None:
        raise InstallerError(
            f"failed to get base ISO image: base ISO for {arch} not found in release image, check release image "
            "architecture"
        )
    stated = _stated(checksum) if checksum.exists() else digest
    if stated != digest:
        path.unlink()
        checksum.unlink()
        raise RegistryError(f"{pullspec}: /coreos/{name} has sha256 {digest}, not {stated}")
    with files.new_file(checksum, overwrite=True, mode=0o644) as out:
        out.write(f"{digest}\n".encode())
    build.log.info(f"Base ISO obtained from release and cached at [{path}]")
    return {"path": str(path), "identity": f"{pullspec}/{name}"}


def _stated(checksum: Path) -> str:
    """Return the digest in a file of sha256sum(1); "" if it has none."""
    return (checksum.read_text(errors="replace").split() or [""])[0]


def _intact(path: Path, checksum: Path, *, keep: bool) -> bool:
    """Return whether a file has the digest that `checksum` states. keep: note it, so that an untouched file is read once.

    Reading takes longer than copying the image. Whatever writes to a file changes its ctime, which no program can set.
    """
    status = path.stat()
    stamp = f"{_stated(checksum)} {status.st_ino} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}\n".encode()
    noted = path.with_name(f"{path.name}.verified")
    if noted.exists() and noted.read_bytes() == stamp:
        return True
    with path.open("rb") as stream:
        intact = hashlib.file_digest(stream, "sha256").hexdigest() == _stated(checksum)
    if intact and keep:
        with suppress(OSError):  # a cache that others fill
            write_atomic(noted, stamp, 0o644)
    return intact
