"""Builds the lab payload: base ISO, component images, release image. Every step is cached by the hash of its inputs.

$XDG_CACHE_HOME/agentlab/parts/<step>-<hash>/     slow steps: packages, root file system, ISO, base layer
$XDG_CACHE_HOME/agentlab/payload/<hash>/          payload.json, coreos-x86_64.iso, oci/
$XDG_CACHE_HOME/agentlab/payload/current          link to the newest

`digests` hashes the inputs, `steps` keeps the results, `layers` reads and writes layers and images of others.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...plugins.module_utils.documents import load_json, read_file
from ...plugins.module_utils.plan import overrides as replacements
from ...plugins.module_utils.plan.release_checks import lab_version_fault
from ...plugins.module_utils.state import write_atomic
from ...plugins.module_utils.vocabulary import COMPONENTS, LAB_VERSION, REGISTRY, RELEASE_REPOSITORY
from ..images import base, code, components, oci, registry, release
from ..machine_os import bootloader, debs, initrd, iso, kernel, kernel_modules, packages, rootfs
from ..machine_os.distro import BuildError, Distro, host, require, run
from . import layers
from .digests import digest, digest_files, digest_path, hash_of, source_digest
from .parts import Parts, pullspec
from .steps import Report, Steps, cache_root, lock, point

ISO_NAME = "coreos-x86_64.iso"
_HERE = Path(__file__).resolve()
_MACHINE_OS, _IMAGES = _HERE.parents[1] / "machine_os", _HERE.parents[1] / "images"


@dataclass
class Builder:
    """One build, once. `overrides`: component -> what replaces it (`plan.overrides`); version: as `lab_version_fault` takes it.

    cache: as `cache_root` returns it; report: gets lines of progress; force: build every step again.
    """

    cache: Path
    overrides: Mapping[str, str]
    report: Report
    distro: Distro
    force: bool = False
    version: str = LAB_VERSION
    _kinds: dict[str, replacements.Kind] = field(default_factory=dict)
    _apt: debs.Apt | None = None

    def __post_init__(self) -> None:
        self._steps = Steps(self.cache, self.report, self.force)
        self.volume_id = f"lab-os-{self.version.partition('-')[0]}"  # at most 16 characters, Joliet's limit

    # Inputs of each step

    @property
    def keys(self) -> dict[str, str]:
        """Return step -> hash; the last one, "payload", is the payload's.

        Keys of inputs that did not change stay the same on every host of a distribution's release. Raises `OSError` for
        a missing replacement.
        """
        distro, scripts = self.distro, digest_files(_MACHINE_OS)
        made_of: dict[str, object] = {
            "packages": (
                distro.id,
                distro.codename,
                distro.arch,
                packages.PARTS,
                kernel_modules.MODULES,
                (_MACHINE_OS / "kernel.py").read_text(),
            ),
            "rootfs": (distro.id, distro.codename, distro.arch, packages.ROOTFS),
        }
        keys = {step: hash_of(value) for step, value in made_of.items()}
        glue = hash_of(
            [(path.name, digest_path(path)) for path in sorted(_HERE.parent.glob("*.py")) if path.name != "__main__.py"]
        )
        keys["base"] = hash_of(
            (
                distro.id,
                distro.codename,
                distro.arch,
                (components.BASE_PACKAGES, components.EXTRA_PACKAGES),
                (_IMAGES / "base.py").read_text(),
                (_IMAGES / "oci.py").read_text(),
            )
        )
        keys["iso"] = hash_of((keys, scripts, glue, self.version, self.volume_id))
        sources = [(str(path), digest((code.ROOT / path).read_bytes())) for path in code.sources()]
        changes = {name: source_digest(name, source) for name, source in sorted(self.overrides.items())}
        keys["payload"] = hash_of((keys["iso"], digest_files(_IMAGES), glue, sources, changes, self.version))[:16]
        return keys

    def ensure(self) -> tuple[Path, bool]:
        """The directory of the payload, and whether it had to be built.

        It waits for another build in the same cache. Raises `BuildError` for a wrong override, a missing program or a
        step that fails.
        """
        self._check()
        with lock(self.cache / "lock", self.report):
            keys = self.keys
            target = self.cache / "payload" / keys["payload"]
            if (target / "payload.json").exists() and not self.force:
                os.utime(target)
                point(self.cache / "payload/current", target)
                return target, False
            require(
                *[
                    "apt-get",
                    "dpkg-deb",
                    "mmdebstrap",
                    "mksquashfs",
                    "mformat",
                    "mcopy",
                    "mmd",
                    "zstd",
                    "tar",
                    "chroot",
                    "skopeo",
                ]
            )
            self._steps.sweep()
            with self._steps.new_directory("payload", target) as out:
                self._payload(out, keys)
            point(self.cache / "payload/current", target)
            self._steps.prune()
            return target, True

    # Steps

    def apt(self) -> debs.Apt:
        if self._apt is None:
            self._apt = debs.Apt(self.distro, self.cache / "apt")
            self._apt.update()
        return self._apt

    def _packages(self, out: Path) -> None:
        apt = self.apt()
        kernel_package = [apt.kernel()]
        kernel_package += [
            name for name in (kernel_package[0].replace("linux-image", "linux-modules"),) if self.distro.id == "ubuntu"
        ]
        debs.unpack(apt.download(*packages.PARTS, *kernel_package, dependencies=False), out)
        kernel.prune(out)

    def _iso(self, out: Path, parts: Path, tree: Path, bottom: Path) -> None:
        with tempfile.TemporaryDirectory(dir=out, prefix="work-") as name:
            work = Path(name)
            root = work / "root"
            rootfs.copy(tree, root)
            releases = kernel.install(parts, root)
            shutil.copy2(parts / "usr/lib/dracut/modules.d/30ignition/ignition", root / "usr/libexec/ignition")
            rootfs.finish(self.distro, root, self.version, self.volume_id)
            self._share(root, bottom, work)
            modules = root / "usr/lib/modules" / releases
            initrd.build(self.distro, parts, root, releases, work / "initrd", modules / "initramfs.img", self.volume_id)
            boot = root / "usr/lib/machine-os"
            boot.mkdir()
            bootloader.disk_efi(parts, self.distro, boot / "esp")
            bootloader.disk_bios(parts, boot / "core.img")
            shutil.copy2(parts / "usr/lib/grub/i386-pc/boot.img", boot / "boot.img")
            self.report("machine-os: packing the root file system ...")
            rootfs.squash(root, work / "root.squashfs")
            iso.rootfs_image(work / "root.squashfs", self.volume_id, work / "rootfs.img")
            configs = bootloader.cd_config(self.distro, self.volume_id)
            loaders = {**bootloader.efi(parts, self.distro), **configs}
            bootloader.fat_image(work / "efiboot.img", loaders, "EFI-SYSTEM")
            iso.build(
                out / ISO_NAME,
                self.volume_id,
                vmlinuz=modules / "vmlinuz",
                initrd=modules / "initramfs.img",
                rootfs=work / "rootfs.img",
                efiboot=work / "efiboot.img",
                efi=configs,
                isolinux={
                    "isolinux.bin": parts / "usr/lib/ISOLINUX/isolinux.bin",
                    "ldlinux.c32": parts / "usr/lib/syslinux/modules/bios/ldlinux.c32",
                },
            )
        digest = digest_path(out / ISO_NAME)
        (out / f"{ISO_NAME}.sha256").write_text(f"{digest}\n")
        files = {
            "coreos": oci.Node(),
            f"coreos/{ISO_NAME}": oci.Node(out / ISO_NAME, mode=0o644),
            f"coreos/{ISO_NAME}.sha256": oci.Node(f"{digest}\n".encode(), mode=0o644),
            "coreos/coreos-stream.json": oci.Node(iso.stream(self.version, ISO_NAME, digest), mode=0o644),
        }
        layers.save(out / "layer", oci.write_layer(out / "layer.tar", files, compression=""))

    @staticmethod
    def _share(root: Path, bottom: Path, work: Path) -> None:
        """Put the images' common layers into the OS's image store: unpacking them takes most of a pull in an emulated machine."""
        layout, lowest = oci.Layout.create(work / "shared"), layers.load(bottom / "base")
        layout.link_blob(bottom / "base.tar", lowest.digest)
        images = {}
        for name in components.EXTRA_PACKAGES:
            layer = layers.load(bottom / name)
            layout.link_blob(bottom / f"{name}.tar", layer.digest)
            images[name] = layout.add_image(oci.Image([lowest, layer]))
        layout.write_index(images)
        store = f"overlay@{root}/usr/lib/containers/storage+{work}/run"
        for name in images:
            places = f"oci:{layout.path}:{name}", f"containers-storage:[{store}]localhost/shared:{name}"
            # In a mount namespace: the store's driver leaves a mount behind.
            run("unshare", "--mount", "skopeo", "--insecure-policy", "copy", "--quiet", *places)

    def _base(self, out: Path) -> None:
        for name, layer in base.build(self.distro, self.apt(), out).items():
            layers.save(out / name, layer)

    def _payload(self, out: Path, keys: Mapping[str, str]) -> None:
        parts = self._steps.step(
            "packages", keys["packages"], "packages: kernel, boot loaders, ignition", self._packages
        )
        tree = (
            self._steps.step(
                "rootfs",
                keys["rootfs"],
                f"machine-os: installing {len(packages.ROOTFS)} packages of {self.distro.name}",
                lambda path: rootfs.bootstrap(self.distro, path / "tree", path / "mmdebstrap.log"),
            )
            / "tree"
        )
        bottom = self._base_step(keys["base"])
        image = self._steps.step(
            "iso", keys["iso"], "machine-os: ISO", lambda path: self._iso(path, parts, tree, bottom)
        )
        self.report("images: components and release ...")
        layout = oci.Layout.create(out / "oci")
        os.link(image / ISO_NAME, out / ISO_NAME)
        images, pullspecs = self._components(layout, out / ".work", image, bottom)
        top = oci.write_layer(out / ".layer", release.nodes(self.version, pullspecs, bottom / "tree/usr/bin/busybox"))
        os.rename(out / ".layer", layout.blob(top.digest))
        images["release"] = layout.add_image(
            oci.Image(
                [top],
                entrypoint=["/usr/bin/cluster-version-operator"],
                environment={"VERSION": self.version},
                labels={"io.openshift.release": self.version, "name": "agentlab/release"},
            )
        )
        layout.write_index(images)
        shutil.rmtree(out / ".work", ignore_errors=True)
        described = {
            "hash": keys["payload"],
            "version": self.version,
            "release": f"{REGISTRY}/{RELEASE_REPOSITORY}@{images['release'].digest}",
            "images": {
                name: {"pullspec": spec, "digest": spec.rpartition("@")[2]} for name, spec in sorted(pullspecs.items())
            },
            "iso": ISO_NAME,
            "iso_sha256": (image / f"{ISO_NAME}.sha256").read_text().strip(),
        }
        write_atomic(out / "payload.json", json.dumps(described, indent=2).encode() + b"\n")

    def _components(
        self, layout: oci.Layout, work: Path, image: Path, bottom: Path
    ) -> tuple[dict[str, oci.Descriptor], dict[str, str]]:
        """Write the component images; return their descriptors, and the pullspec of every component."""
        work.mkdir()
        parts = Parts(self.distro, layout, work, bottom, image)
        images: dict[str, oci.Descriptor] = {}
        pullspecs: dict[str, str] = {}
        for name in sorted({*COMPONENTS, *self.overrides}):
            made = self._component(name, parts)
            if made is None:
                pullspecs[name] = self.overrides[name]
            else:
                images[name] = made
                pullspecs[name] = pullspec(made)
        return images, pullspecs

    def component(self, name: str, storage: Path) -> str:
        """Build the image of the component `name` alone and write it to the storage directory of a registry, without a tag.

        Returns its pullspec. No payload is made or changed. Raises `BuildError` when it cannot be built.
        """
        self._check()
        with lock(self.cache / "lock", self.report):
            bottom = self._base_step(self.keys["base"])
            with tempfile.TemporaryDirectory(dir=self.cache / "parts", prefix=".component-") as folder:
                layout = oci.Layout.create(Path(folder, "oci"))
                work = Path(folder, "work")
                work.mkdir()
                made = self._component(name, Parts(self.distro, layout, work, bottom))
                if made is None:
                    return self.overrides[name]
                layout.write_index({"": made})
                registry.push(Path(folder), storage)
        return pullspec(made)

    def _component(self, name: str, parts: Parts) -> oci.Descriptor | None:
        """Write the image of a component; None for a pullspec, which nodes pull as it is."""
        source, kind = self.overrides.get(name), self._kinds.get(name)
        component = components.COMPONENTS.get(name)
        if kind is replacements.Kind.PULLSPEC:
            return None
        if source is not None and kind is replacements.Kind.LAYOUT:
            return layers.adopt(parts.layout, Path(source), name)
        if source is not None and kind is replacements.Kind.STORE:
            return layers.adopt(parts.layout, layers.copy_image(source, parts.work / name, name), name)
        if component is None and source is None:
            return parts.layout.add_image(oci.Image([parts.lowest], command=["/bin/sh"]))
        stack = parts.stack(name, component)
        if component is not None and kind is replacements.Kind.FAILS:
            failing = {path.lstrip("/"): code.failing_program(path) for path in component.programs}
            stack.append(parts.layer(failing, name))
        elif source is not None:
            added = oci.nodes_of(replacements.contents(name, source))
            if called := components.CALLED.get(name):
                added = parts.programs(called) | added
            if more := components.provision(name, added):
                stack.append(self._provision(more, parts))
                added |= code.executables(components.Component(files=more.files))
            stack += parts.replacement(added, name)
        own: Mapping[str, str] = component.environment if component else {}
        if source is not None:
            own = components.ENVIRONMENT.get(name, {})
        return parts.layout.add_image(
            oci.Image(
                stack,
                environment={"PYTHONPATH": f"/{code.PREFIX}", "PYTHONUNBUFFERED": "1", **own},
                command=component.command if component else (),
                entrypoint=component.entrypoint if component else (),
                labels={"name": f"agentlab/{name}", "io.openshift.release.operator": "false"},
            )
        )

    def _base_step(self, key: str) -> Path:
        return self._steps.step("base", key, "images: base layer", self._base)

    def _provision(self, wanted: components.Provision, parts: Parts) -> oci.Descriptor:
        name, bottom = wanted.layer, parts.bottom
        made = self._steps.step(
            name,
            hash_of((bottom.name, wanted.packages, (_IMAGES / "base.py").read_text())),
            f"images: {wanted.title}",
            lambda out: layers.save(out / name, base.provision(self.distro, self.apt(), out, wanted, bottom / "tree")),
        )
        return parts.linked(made, name)

    def _check(self) -> None:
        if wrong := lab_version_fault(self.version):
            raise BuildError(f"version: {self.version}: {wrong}")
        for name, source in self.overrides.items():
            try:
                self._kinds[name] = replacements.check(name, source)
            except ValueError as error:
                raise BuildError(f"payload_overrides: {name}: {source}: {error}") from None


def ensure(
    overrides: Mapping[str, str] | None = None,
    *,
    version: str = LAB_VERSION,
    force: bool = False,
    report: Report = lambda text: None,
    cache: Path | None = None,
) -> dict[str, Any]:
    """Build the payload if necessary; return payload.json's content with "directory" (str) and "built" (bool).

    Raises `BuildError`.
    """
    builder = Builder(cache or cache_root(), dict(overrides or {}), report, host(), force, version)
    directory, built = builder.ensure()
    return describe(directory) | {"built": built}


def lookup(
    overrides: Mapping[str, str] | None = None, *, version: str = LAB_VERSION, cache: Path | None = None
) -> dict[str, Any] | None:
    """Return what `ensure` would return without building; None if it would have to build.

    overrides, version, cache: as for `ensure`. Nothing is downloaded or written. Raises `BuildError` for a wrong override.
    """
    builder = Builder(cache or cache_root(), dict(overrides or {}), lambda text: None, host(), version=version)
    builder._check()
    directory = builder.cache / "payload" / builder.keys["payload"]
    return describe(directory) | {"built": False} if (directory / "payload.json").exists() else None


def describe(directory: Path) -> dict[str, Any]:
    """payload.json of a payload's directory, with the directory itself and `iso` as full paths.

    The keys are `hash`, `version`, `release`, `images`, `iso`, `iso_sha256` and `directory`. Raises `BuildError`
    without a payload.
    """
    try:
        value: dict[str, Any] = load_json(read_file(directory / "payload.json"), name=str(directory / "payload.json"))
    except FileNotFoundError:
        raise BuildError(f"{directory} has no payload: payload.json is missing; run 'agentlab payload build'") from None
    return value | {"directory": str(directory.resolve()), "iso": str(directory.resolve() / value["iso"])}
