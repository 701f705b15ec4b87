"""Kernel modules: those that the lab OS keeps, and those of the initrd."""

from __future__ import annotations

import shutil
from pathlib import Path

from . import kernel_modules
from .distro import BuildError, run

# Ubuntu, Fedora and CentOS compress their modules, which busybox neither reads nor loads. The images are compressed as a whole.
UNPACKERS = {".zst": ("zstd", "-dq", "--rm"), ".xz": ("xz", "-d"), ".gz": ("gzip", "-d")}


def prune(parts: Path) -> None:
    """Remove modules that are neither in kernel_modules.MODULES nor dependencies of those; unpack the others."""
    tree, release = _tree(parts)
    unpack(tree / release)
    run(
        next(path for path in (parts / "bin/busybox", parts / "usr/bin/busybox") if path.exists()),
        "depmod",
        "-b",
        parts,
        release,
    )
    depends = _depends(tree / release)
    kept = {path for path in depends if path.removeprefix("kernel/").startswith(kernel_modules.MODULES)}
    kept |= {needed for path in kept for needed in depends[path]}
    for path in depends:
        if path not in kept:
            (tree / release / path).unlink()


def unpack(modules: Path) -> None:
    """Decompresses every module below `modules`."""
    for suffix, command in UNPACKERS.items():
        run("find", modules, "-name", f"*.ko{suffix}", "-exec", *command, "{}", "+")


def install(parts: Path, root: Path) -> str:
    """Copies modules and kernel of the unpacked, pruned packages `parts` into `root`; returns the kernel's release."""
    tree, release = _tree(parts)
    target = root / "usr/lib/modules" / release
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(
        tree / release,
        target,
        ignore=shutil.ignore_patterns("modules.dep*", "modules.alias*", "modules.symbols*", "build", "source"),
    )
    run("chroot", root, "depmod", release)
    shutil.copy2(parts / f"boot/vmlinuz-{release}", target / "vmlinuz")
    return release


def _tree(parts: Path) -> tuple[Path, str]:
    found = [
        (tree, path.name)
        for tree in (parts / "lib/modules", parts / "usr/lib/modules")
        if tree.is_dir()
        for path in tree.iterdir()
    ]
    if len(found) != 1:
        raise BuildError(f"{parts}: one kernel's modules expected, found {[name for __, name in found]}")
    return found[0]


def _depends(modules: Path) -> dict[str, list[str]]:
    """modules.dep(5): module -> all modules that it needs, as paths relative to `modules`."""
    lines = (line.partition(":") for line in (modules / "modules.dep").read_text().splitlines())
    return {path: needs.split() for path, __, needs in lines}


def closure(modules: Path, names: tuple[str, ...]) -> list[Path]:
    """The files of the modules `names` and of all that they depend on (modules.dep(5)), relative to `modules`."""
    depends = _depends(modules)
    by_name = {Path(path).name.split(".")[0].replace("-", "_"): path for path in depends}
    builtin = {
        Path(line).name.split(".")[0].replace("-", "_")
        for line in (modules / "modules.builtin").read_text().splitlines()
    }
    wanted: set[str] = set()
    for name in names:
        key = name.replace("-", "_")
        if key in by_name:
            wanted |= {by_name[key], *depends[by_name[key]]}
        elif key not in builtin:
            raise BuildError(f"the kernel has no module {name}; needed in the initrd")
    return sorted(Path(path) for path in wanted)
