"""The files that a profile names: read before anything is created, so that one report has all problems."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._deps import optional
from ..documents import DocumentError, load_json, load_yaml_all
from ..release import mirror_set
from ..release.mirror_set import MirrorSource
from ..vocabulary import COMPONENTS
from . import manifests, openshift_install, overrides
from .model import Plan
from .options import Profile
from .problems import Finding

if TYPE_CHECKING:
    from cryptography import exceptions
    from cryptography.hazmat.primitives import serialization
else:
    exceptions = optional("cryptography.exceptions", "cryptography")
    serialization = optional("cryptography.hazmat.primitives.serialization", "cryptography")

LIMIT = 1 << 20
"""Maximum size of these files; a device or pipe would be read indefinitely."""
# Options may precede it.
_KEY = re.compile(r"(?:ssh|ecdsa|sk)-\S+ +[A-Za-z0-9+/=]+")


class FileError(ValueError):
    """A problem of a file, without its name.

    The text follows the name in a message: "is not a file", say. `check` makes a finding of it.
    """


def read(name: str) -> str:
    """Return the text of a file. Raises `FileError`.

    `name` is a path, `~` included. A file may have up to `LIMIT` bytes (1 MiB), and must be UTF-8 text.
    """
    path = Path(name).expanduser()
    try:
        if not path.is_file():
            raise FileError("is not a file" if path.exists() else "cannot be read: No such file or directory")
        with path.open("rb") as stream:
            data = stream.read(LIMIT + 1)
        if len(data) > LIMIT:
            raise FileError(f"is larger than {LIMIT >> 10} KiB")
        return data.decode()
    except OSError as error:
        raise FileError(f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError:
        raise FileError("is not text in UTF-8") from None


def ssh_keys(name: str) -> str:
    """Return the public keys in a file, a line each. Raises `FileError`.

    Empty lines and comments are left out; each other line must be a public key as in authorized_keys, and options may
    precede it.
    """
    lines = [line.strip() for line in read(name).splitlines() if line.strip() and not line.lstrip().startswith("#")]
    if not lines:
        raise FileError("has no public key")
    for line in lines:
        if "PRIVATE KEY" in line:
            raise FileError("is a private key; use the public one, such as ~/.ssh/id_ed25519.pub")
        key = _KEY.search(line)
        try:
            serialization.load_ssh_public_key((key[0] if key else line).encode())
        except exceptions.UnsupportedAlgorithm:
            # Only OpenSSH reads keys of security tokens.
            if not (key and key[0].startswith("sk-")):
                raise FileError("is not a file of SSH public keys, such as `ssh-ed25519 AAAA...`") from None
        except ValueError:
            raise FileError("is not a file of SSH public keys, such as `ssh-ed25519 AAAA...`") from None
    return "\n".join(lines)


def pull_secret(name: str) -> dict[str, Any]:
    """Return the pull secret in a file. Raises `FileError`.

    It must be a JSON object with a mapping `auths`. The registries in it are not contacted.
    """
    try:
        found = load_json(read(name), name=name)
    except DocumentError as error:
        raise FileError(f"is not JSON: line {error.line}, column {error.column}: {error.problem}") from None
    if not isinstance(found, dict) or not isinstance(found.get("auths"), dict):
        raise FileError('is not a pull secret, which is {"auths": {...}}')
    return found


def mirror_sources(name: str) -> list[MirrorSource]:
    """Return the mirrors in a file of ImageDigestMirrorSets, as oc-mirror v2 writes it. Raises `FileError`."""
    try:
        return mirror_set.read(read(name), name)
    except mirror_set.MirrorSetError as error:
        raise FileError(str(error)) from None


def manifests_of(name: str) -> dict[str, str]:
    """Return the manifests of a folder, text by name of the file. Raises `FileError`.

    `name` is a path, `~` included. As the installer does, it passes over subfolders and all but `*.yaml` and `*.yml`.
    Each must be YAML, of objects that have `apiVersion`, `kind` and `metadata.name`.
    """
    try:
        found = sorted(path for path in Path(name).expanduser().iterdir() if path.suffix in (".yaml", ".yml"))
    except OSError as error:
        raise FileError(f"cannot be read: {error.strerror}") from error
    texts = {path.name: _manifest(path) for path in found if not path.is_dir()}
    if not texts:
        raise FileError("has no file *.yaml or *.yml")
    return texts


def _manifest(path: Path) -> str:
    if path.stem in manifests.TAKEN:
        raise FileError(f"has {path.name}, which is the name of another input file; rename it")
    try:
        text = read(str(path))
        documents = load_yaml_all(text, name=path.name)
    except FileError as error:
        raise FileError(f"has {path.name}, which {error}") from error
    except DocumentError as error:
        raise FileError(f"has {path.name}, which is not YAML: line {error.line}: {error.problem}") from None
    for number, document in enumerate(documents, 1):
        if field := manifests.missing_field(document):
            raise FileError(f"has {path.name}, whose object {number} has no {field}")
    return text


def _duplicate_manifests(own: Collection[str], folder: str | None) -> Iterator[Finding]:
    """Yield the manifests of a profile's folder that the profile has itself, too. own: their names."""
    try:
        given = manifests_of(folder) if folder else {}
    except FileError:
        return  # which `check` reports
    for name in own:
        if f"{name}.yaml" in given:
            yield ("installer", "manifests_dir"), folder, f"has {name}.yaml, as installer.manifests has; remove one"


def check(profile: Profile | Plan, _cluster: str = "") -> Iterator[Finding]:
    """Yield problems of the files in a complete profile or a plan.

    These are the SSH keys, the pull secret, the mirrors, the extra manifests, the replacements of lab components and the build of openshift-install. The
    check reads files of this host, so it runs only where `files` is asked for.
    """
    installer = profile["installer"]
    named: tuple[tuple[str, str | None, Callable[[str], object]], ...] = (
        ("ssh_key_file", installer["ssh_key_file"], ssh_keys),
        ("pull_secret_file", installer["pull_secret_file"], pull_secret),
        ("mirrors_file", installer.get("mirrors_file"), mirror_sources),
        ("manifests_dir", installer.get("manifests_dir"), manifests_of),
    )
    for key, name, reader in named:
        if name:
            try:
                reader(name)
            except FileError as error:
                yield ("installer", key), name, str(error)
    yield from _duplicate_manifests(installer.get("manifests") or {}, installer.get("manifests_dir"))
    if profile["release"]["payload"] == "lab":
        for name, source in profile["release"]["payload_overrides"].items():
            yield from _override(name, source)

    build = profile["release"]["installer"]
    binary, repository = build["binary"], build["git"]
    if repository and (text := openshift_install.missing()):
        yield ("release", "installer", "git"), repository, text
    elif repository and repository.startswith("/") and not openshift_install.is_repository(Path(repository)):
        yield ("release", "installer", "git"), repository, "is not a git repository"
    if binary:
        try:
            openshift_install.check(binary, profile["release"]["version"])
        except ValueError as error:
            yield ("release", "installer", "binary"), binary, str(error)


def _override(name: str, source: str) -> Iterator[Finding]:
    try:
        overrides.check(name, source)
    except ValueError as error:
        yield ("release", "payload_overrides", name), source if name in COMPONENTS else None, str(error)
