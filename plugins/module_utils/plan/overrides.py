"""Replacements of the lab payload's components: their kinds, and what makes one unusable.

A replacement is one of:

- a directory that is laid over the component's image, or one with its programs alone: a checkout after `make build` is one;
- a directory with an OCI layout;
- an image in a local container store: `containers-storage:NAME`;
- a pullspec with a digest, which nodes pull as it is;
- `fails`: the component's programs exit with an error at once.
"""

from __future__ import annotations

import difflib
import os
import re
import shutil
import stat
import subprocess
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any

from ..documents import DocumentError, load_json, read_file
from ..vocabulary import COMPONENTS, Component, rpm_arch
from .faults import FAILS

ARCH = "x86_64"
"""Architecture of the nodes."""
STORE = "containers-storage:"
STORE_SECONDS = 60
"""Seconds that reading an image's configuration from a local store may take."""
ENTRY_POINTS: Mapping[str, tuple[str, ...]] = {
    Component.NODE_AGENT: ("/usr/bin/agent",),
    Component.API_SERVER: ("/assisted-service", "/usr/local/bin/agent-installer-client"),
    Component.ORCHESTRATOR: ("/usr/bin/installer",),
    Component.CSR_APPROVER: ("/usr/bin/assisted-installer-controller",),
    Component.CLI: ("/usr/bin/oc",),
    Component.INSTALLER: ("/usr/bin/openshift-install",),
    Component.MACHINE_CONFIG_OPERATOR: ("/usr/bin/machine-config-daemon",),
    Component.HYPERKUBE: ("/usr/bin/hyperkube",),
    Component.CLUSTER_ETCD_OPERATOR: ("/usr/bin/two-node-fencing",),
    Component.UI: ("/usr/bin/installer-ui",),
}
"""Programs that units and other programs start, by component. A replacement has at least one of them."""
# Next to a program in a checkout: directory there -> directory in the image, as upstream's Dockerfile copies it.
_DATA: Mapping[str, Mapping[str, str]] = {
    Component.ORCHESTRATOR: {"deploy/assisted-installer-controller": "/assisted-installer-controller/deploy"}
}
# Directories below a checkout in which upstream's Makefiles put programs.
_BUILT = ("", "build", "bin")
# Names of upstream's repositories and programs.
_MEANT: Mapping[str, str] = {
    "agent": Component.NODE_AGENT,
    "assisted-installer-agent": Component.NODE_AGENT,
    "service": Component.API_SERVER,
    "assisted-service": Component.API_SERVER,
    "agent-installer-client": Component.API_SERVER,
    "assisted-installer": Component.ORCHESTRATOR,
    "controller": Component.CSR_APPROVER,
    "assisted-installer-controller": Component.CSR_APPROVER,
}
# e_machine of an ELF header, in the order of its e_ident[EI_DATA].
_ELF = {62: "x86_64", 183: "aarch64", 21: "ppc64le", 22: "s390x", 243: "riscv64", 3: "i386", 40: "arm"}
_PULLSPEC = re.compile(r"[^/.][^@ ]*/[^@ ]+@sha256:[0-9a-f]{64}")
_IMAGE = re.compile(r"containers-storage:[^\s-]\S*")
_REF_NAME = "org.opencontainers.image.ref.name"


class Kind(Enum):
    """What a replacement is.

    The value is its name in messages. `kind` finds out which of them a text is.
    """

    FAILS = "fails"
    FILES = "a directory of files"
    LAYOUT = "an OCI layout"
    STORE = "an image in a local store"
    PULLSPEC = "a pullspec"


class OverrideError(ValueError):
    """A replacement that cannot be used; the message does not name the component.

    The text follows the component in a message: "there is no such directory", say.
    """


def pair(text: str) -> tuple[str, str]:
    """Return component and replacement of `COMPONENT=WHAT`, a command-line option. Raises `OverrideError`.

    The path of a directory becomes absolute. The component's name is not checked here; `check` does that.
    """
    name, separator, source = text.partition("=")
    if not (separator and name and source):
        raise OverrideError(
            f"--override {text}: must be COMPONENT=WHAT, such as {Component.NODE_AGENT}=/src/assisted-installer-agent"
        )
    return name, absolute(source)


def absolute(source: str) -> str:
    """Return a replacement that means the same in every directory: the path of a directory becomes absolute.

    A leading `~` is the home of this user. Pullspecs, images of a store and `fails` stay as they are.
    """
    path = Path(source).expanduser()
    return str(path.absolute()) if path.is_dir() or source.startswith(("/", ".", "~")) else source


def kind(source: str) -> Kind:
    """Return what a replacement is. Raises `OverrideError`.

    Files are only looked for here, not read: a directory with `index.json` is an OCI layout, any other one a directory
    of files.
    """
    if source == FAILS:
        return Kind.FAILS
    path = Path(source).expanduser()
    if path.is_dir():
        return Kind.LAYOUT if (path / "index.json").exists() else Kind.FILES
    if source.startswith(STORE):
        if not _IMAGE.fullmatch(source):
            raise OverrideError(f"must be {STORE}NAME, such as {STORE}localhost/agent:latest")
        return Kind.STORE
    if _PULLSPEC.fullmatch(source):
        return Kind.PULLSPEC
    if source.startswith(("/", ".", "~")):
        raise OverrideError(
            "is not a directory; give that of the program" if path.exists() else "there is no such directory"
        )
    raise OverrideError(
        f"is neither a directory, nor {STORE}NAME, nor a pullspec with a digest (HOST/NAME@sha256:...), nor {FAILS!r}"
    )


def check(name: str, source: str) -> Kind:
    """Return the kind of the replacement of the component `name`. Raises `OverrideError`.

    It reads what is on this host: files, layouts and stores. Of an image in a store the architecture is checked, and its
    entry point when the payload is built (`check_layout`). A pullspec is not looked up.
    """
    check_name(name)
    what = kind(source)
    if what is Kind.FAILS and name not in ENTRY_POINTS:
        raise OverrideError("has no programs, so it cannot fail")
    if what is Kind.FILES:
        _check_files(contents(name, source), name)
    elif what is Kind.LAYOUT:
        check_layout(Path(source).expanduser(), name)
    elif what is Kind.STORE:
        _check_architecture(load_json(stored_config(source), name=source))
    return what


def check_layout(root: Path, name: str) -> None:
    """Raise `OverrideError` unless the image of a layout can be the component `name`: its architecture, and an entry point.

    root: directory of the layout, whose image is the one tagged `name`, or the only one.
    """
    from ..release import layers
    from ..release.content import Descriptor, RegistryError

    manifest = _layout_manifest(root, name)
    _check_architecture(_blob(root, manifest.get("config")))
    programs = ENTRY_POINTS.get(name, ())
    listed = manifest.get("layers")
    try:
        stack = [Descriptor.of(one, "a layer") for one in listed] if isinstance(listed, list) else []
        there = layers.has_any(root / "blobs/sha256", stack, [path.lstrip("/") for path in programs])
    except RegistryError as error:
        raise OverrideError(f"is not a valid OCI layout: {error}") from None
    if programs and not there:
        raise OverrideError(f"has no entry point of {name}: the image must have {' or '.join(programs)}")


def check_name(name: str) -> None:
    """Raise `OverrideError` with what is right, unless the release has the component `name`."""
    if name not in COMPONENTS:
        raise OverrideError(_unknown(name))


def contents(name: str, source: str) -> dict[str, Path]:
    """Return the files that a directory adds to a component's image: path in the image, without leading `/` -> file.

    A directory with `usr` is laid over it as a whole, as is any for a component without programs. In any other, the
    programs are looked for by their names, and only they and their data are taken.
    """
    root = Path(source).expanduser()
    programs = ENTRY_POINTS.get(name, ())
    if not programs or (root / "usr").is_dir():
        return dict(_tree(root))
    found = {}
    for path in programs:
        places = (root / folder / Path(path).name for folder in _BUILT)
        program = next((place for place in places if place.is_file()), None)
        if program:
            found[path.lstrip("/")] = program
    for folder, target in _DATA.get(name, {}).items() if found else ():
        found |= {f"{target.lstrip('/')}/{path}": file for path, file in _tree(root / folder)}
    return found


def from_store(*words: str) -> list[str]:
    """Return the command of a skopeo that reads a local store. For root it runs in a mount namespace: it leaves the store mounted."""
    return [*(["unshare", "--mount"] if os.geteuid() == 0 else []), "skopeo", *words]


def stored_config(source: str) -> bytes:
    """Return the configuration of an image in a local store, whose digest is the image's ID. Raises `OverrideError`.

    `source` is `containers-storage:NAME`. It is read by skopeo from the store of the user who runs this, within
    `STORE_SECONDS`.
    """
    if not shutil.which("skopeo"):
        raise OverrideError("needs the program skopeo; to install it: agentlab setup")
    try:
        done = subprocess.run(
            from_store("inspect", "--config", "--raw", source),
            capture_output=True,
            check=True,
            timeout=STORE_SECONDS,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        raise OverrideError(f"the container store did not answer within {STORE_SECONDS} s") from None
    except subprocess.CalledProcessError as error:
        lines = bytes(error.stderr).decode(errors="replace").strip().splitlines()
        raise OverrideError(
            f"cannot be read from the container store of this user: {lines[-1][:300] if lines else 'skopeo failed'}; "
            "of another one: podman save --format oci-dir -o DIR IMAGE"
        ) from None
    return done.stdout


def _unknown(name: str) -> str:
    near = _MEANT.get(name) or next(iter(difflib.get_close_matches(name, COMPONENTS, n=1)), None)
    return "no component of the release has this name; " + (
        f"did you mean {near}?" if near else f"there are {', '.join(COMPONENTS)}"
    )


def _tree(root: Path) -> Iterator[tuple[str, Path]]:
    for path, folders, files in os.walk(root):
        for entry in [*folders, *files]:
            full = Path(path, entry)
            yield str(full.relative_to(root)), full


def _check_files(found: Mapping[str, Path], name: str) -> None:
    programs = ENTRY_POINTS.get(name, ())
    own = [path for path in programs if path.lstrip("/") in found]
    if programs and not own:
        raise OverrideError(
            f"has no entry point of {name}: {' or '.join(programs)} must be there, "
            f"or {' or '.join(Path(path).name for path in programs)} directly in it, in build/ or in bin/"
        )
    for path in own:
        program = found[path.lstrip("/")]
        if program.is_file() and not os.access(program, os.X_OK):
            raise OverrideError(f"{program} is not executable")
    for file in found.values():
        found_for = machine(file)
        if found_for not in (None, ARCH):
            raise OverrideError(f"{file} is an ELF file for {found_for}; the nodes are {ARCH}")


def machine(file: Path) -> str | None:
    """Return the architecture of an executable ELF file; None for any other file.

    As `uname -m` names it (`x86_64`, `aarch64`), from e_machine of the ELF header; `machine N` for a number without a
    name here. Raises `OverrideError` for a file that cannot be read.
    """
    try:
        info = file.lstat()
        if not (stat.S_ISREG(info.st_mode) and info.st_mode & 0o111):
            return None
        with file.open("rb") as stream:
            head = stream.read(20)
    except OSError as error:
        raise OverrideError(f"{file} cannot be read: {error.strerror}") from None
    if len(head) < 20 or head[:4] != b"\x7fELF":
        return None
    number = int.from_bytes(head[18:20], "big" if head[5] == 2 else "little")
    return _ELF.get(number, f"machine {number}")


def _layout_manifest(root: Path, name: str) -> dict[str, Any]:
    """Return the manifest of a layout's image: the one tagged `name`, or the only one."""
    index = _mapping(_json(root / "index.json"), root / "index.json")
    images = [one for one in index.get("manifests") or () if isinstance(one, dict)]
    tagged = [one for one in images if (one.get("annotations") or {}).get(_REF_NAME) == name]
    if not tagged and len(images) != 1:
        raise OverrideError(f"has {len(images)} images and none is tagged {name}")
    manifest = _blob(root, (tagged or images)[0])
    if "manifests" in manifest:
        raise OverrideError("has an image index for several architectures, not a single image")
    return manifest


def _blob(root: Path, descriptor: object) -> dict[str, Any]:
    digest = descriptor.get("digest") if isinstance(descriptor, dict) else None
    if not (isinstance(digest, str) and re.fullmatch(r"sha256:[0-9a-f]{64}", digest)):
        raise OverrideError("is not a valid OCI layout: an entry has no digest")
    path = root / "blobs/sha256" / digest.removeprefix("sha256:")
    return _mapping(_json(path), path)


def _json(path: Path) -> object:
    try:
        return load_json(read_file(path), name=str(path))
    except OSError as error:
        raise OverrideError(f"is not a valid OCI layout: {path}: {error.strerror}") from None
    except DocumentError as error:
        raise OverrideError(f"is not a valid OCI layout: {error}") from None


def _mapping(value: object, path: Path) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise OverrideError(f"is not a valid OCI layout: {path} is not a JSON object")
    return value


def _check_architecture(config: object) -> None:
    given = config.get("architecture") if isinstance(config, dict) else None
    if not isinstance(given, str) or not given:
        raise OverrideError("has a configuration without an architecture")
    if rpm_arch(given) != ARCH:
        raise OverrideError(f"is an image for {rpm_arch(given)}; the nodes are {ARCH}")
