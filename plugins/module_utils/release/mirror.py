"""A release, and single images, copied from registry to registry with skopeo.

Repositories and tags in the target are those of oc-mirror v2: `openshift/release-images:VERSION-ARCH` is the release,
`openshift/release:VERSION-ARCH-COMPONENT` are its components, any other image keeps its path. Every image is named by
digest: a digest that the target has already is not copied, so that a copy that was interrupted resumes.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..files import size_text
from ..releases.distributions import public_image
from ..vocabulary import rpm_arch
from .content import Descriptor, RegistryError
from .mirror_set import MirrorSource
from .payload import Release
from .registry import Reference, Registry, parse

RELEASE_IMAGES, RELEASE = "openshift/release-images", "openshift/release"
ATTEMPTS = 5
"""How often one image is tried."""
PAUSES = (1.0, 2.0, 4.0, 8.0)
"""Seconds before each further attempt."""
# What skopeo prints -> what it means, and whether another attempt is useless. The first that matches counts.
_CAUSES = (
    (r"x509|certificate", "the certificate of a registry is not trusted", True),
    (r"no space left|insufficient storage|quota|status: 507|status: 413", "{target} is full", True),
    (r"pinging container registry|dial tcp|no such host", "a registry does not answer", False),
    (r"unauthorized|authentication required|requested access|denied|status: 40[13]", "credentials were refused", True),
    (r"manifest unknown|name unknown|not found", "{source} does not exist", True),
    (r"Source image rejected|signature", "the signature policy refuses {source}", True),
    (r"status: 5\d\d", "{target} failed while it stored content; it may be full, which its log would show", False),
)

Report = Callable[[str], object]
"""Takes a line of progress."""


@dataclass(frozen=True)
class Part:
    """One image of a copy.

    name: for messages; source: by digest; place: where it is read, which is the source or a mirror of it; repository and
    tag: in the target; manifests: its digests, its own last; blobs: digest -> bytes.
    """

    name: str
    source: Reference
    place: Reference
    repository: str
    tag: str
    manifests: tuple[str, ...]
    blobs: Mapping[str, int]


@dataclass(frozen=True)
class Target:
    """Where images are copied to.

    place: HOST[:PORT][/PATH] to which they are pushed; name: the same place as the cluster's nodes know it.
    """

    place: str
    name: str

    def pullspec_of(self, part: Part) -> str:
        """The pullspec by digest of an image in the target, where it is pushed to."""
        return f"{self.place}/{part.repository}@{part.source.version}"


@dataclass
class Access:
    """How skopeo reaches the registries: files with credentials and certificates in `folder`, an existing private directory.

    auths: as in a pull secret; trust: certificates in PEM beyond the system's; policy: a containers-policy.json(5) that
    sources must satisfy, None to accept every image.
    """

    folder: Path
    auths: Mapping[str, object]
    trust: str = ""
    policy: Path | None = None
    _options: list[str] = field(default_factory=list)

    def options(self) -> list[str]:
        """Arguments of `skopeo copy`; the files that they name are written the first time."""
        if not self._options:
            secret, certificates = self.folder / "auth.json", self.folder / "certs"
            secret.touch(0o600)
            secret.write_text(json.dumps({"auths": self.auths}))
            certificates.mkdir(exist_ok=True)
            if self.trust.strip():
                (certificates / "trust.crt").write_text(self.trust)
            self._options += [
                option
                for side in ("src", "dest")
                for option in (f"--{side}-authfile={secret}", f"--{side}-cert-dir={certificates}")
            ]
        return self._options


def release_pullspec(given: str, arch: str = "amd64") -> str:
    """The pullspec of a release: `given`, or for a version (4.18.3, 4.20.0-okd-scos.13) that of its public image.

    arch: Go's name.
    """
    return public_image(given, arch) or given


def release_parts(registry: Registry, pullspec: str, arch: str = "amd64") -> list[Part]:
    """The images of a release, its components first, so that a release in a target is complete.

    Raises `RegistryError` for an image that is not a release, and for one that cannot be read.
    """
    release = Release(pullspec, registry, arch)
    name = _tag(f"{release.version}-{rpm_arch(release.architecture)}")
    return [
        *(
            part
            for component, spec in sorted(release.images.items())
            for part in _parts(registry, spec, component, RELEASE, f"{name}-{component}")
        ),
        *_parts(registry, pullspec, "release", RELEASE_IMAGES, name),
    ]


def image_parts(registry: Registry, pullspec: str) -> list[Part]:
    """One image that belongs to no release, such as an operator's or a catalog. Raises `RegistryError`."""
    reference = parse(pullspec)
    return list(_parts(registry, pullspec, reference.path, reference.path, _tag(reference.version)))


def _tag(text: str) -> str:
    """A valid tag for a version or a digest."""
    return re.sub(r"[^0-9A-Za-z_.-]", "-", text)[:128]


def _parts(registry: Registry, pullspec: str, name: str, repository: str, tag: str) -> Iterator[Part]:
    """An image, and before it what signs it: cosign's signatures have the tag `sha256-<hex>.sig` in its repository."""
    part = _part(registry, pullspec, name, repository, tag)
    signature = f"{part.source.version.replace(':', '-')}.sig"
    signed = str(replace(part.place, version=signature))
    if registry.has(signed):
        found = _part(registry, signed, f"{name} (signature)", repository, signature)
        yield replace(found, source=replace(part.source, version=found.source.version))
    yield part


def _part(registry: Registry, pullspec: str, name: str, repository: str, tag: str) -> Part:
    manifests, blobs = list[str](), dict[str, int]()

    def visit(spec: str) -> tuple[Reference, str]:
        document, place, digest = registry.document(spec)
        for nth, entry in enumerate(document.get("manifests") or ()):
            child = Descriptor.of(entry, f"{spec}: manifests[{nth}]")
            visit(str(replace(place, version=child.digest)))
        for nth, entry in enumerate([document.get("config"), *(document.get("layers") or ())]):
            if entry is not None:
                blob = Descriptor.of(entry, f"{spec}: blob {nth}")
                blobs[blob.digest] = blob.size
        manifests.append(digest)
        return place, digest

    place, digest = visit(pullspec)
    source, place = replace(parse(pullspec), version=digest), replace(place, version=digest)
    return Part(name, source, place, repository, tag, tuple(manifests), blobs)


def missing(registry: Registry, target: Target, parts: Iterable[Part]) -> list[Part]:
    """The images that the target does not have by digest, or not by tag. Raises `RegistryError`."""
    return [
        part
        for part in parts
        if not registry.has(target.pullspec_of(part))
        or not registry.has(f"{target.place}/{part.repository}:{part.tag}")
    ]


def size(parts: Iterable[Part]) -> int:
    """Bytes of some images; what they share counts once."""
    return sum({digest: size for part in parts for digest, size in part.blobs.items()}.values())


def copy(
    registry: Registry, target: Target, parts: Sequence[Part], access: Access, report: Report, attempts: int = ATTEMPTS
) -> None:
    """Copy images, and say after each how many there are of how many, their bytes and the rate.

    registry: reads both sides. attempts: for each image, at least 1. RegistryError names the image and the cause when
    the last attempt failed, or the first where another one would not help.
    """
    begin, done, total, have = time.monotonic(), 0, size(parts), set[str]()
    for count, part in enumerate(parts, 1):
        _copy(registry, target, part, access, report, attempts)
        done += sum(size for digest, size in part.blobs.items() if digest not in have)
        have |= set(part.blobs)
        rate = done / max(time.monotonic() - begin, 0.001)
        report(
            f"{count} of {len(parts)}: {part.name}: {size_text(done)} of {size_text(total)}, {size_text(int(rate))}/s"
        )


def _copy(registry: Registry, target: Target, part: Part, access: Access, report: Report, attempts: int) -> None:
    policy = f"--policy={access.policy}" if access.policy else "--insecure-policy"
    place = f"{target.place}/{part.repository}:{part.tag}"
    command = [_skopeo(), policy, "copy", "--quiet", "--all", "--preserve-digests", *access.options()]
    for attempt in range(1, attempts + 1):
        done = subprocess.run(
            [*command, f"docker://{part.place}", f"docker://{place}"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        if done.returncode == 0 and registry.has(target.pullspec_of(part)):
            return
        text = done.stderr.decode(errors="replace").strip()
        reason, final = _cause(text, str(part.place), target.place) if done.returncode else _vanished(target.place)
        if final or attempt == attempts:
            last = f" ({_line(text)})" if text else ""
            tries = f" in {attempt} attempts" if attempt > 1 else ""
            raise RegistryError(f"{part.name} cannot be copied{tries}: {reason}{last}")
        pause = PAUSES[min(attempt, len(PAUSES)) - 1]
        report(f"{part.name}: {reason}; attempt {attempt + 1} of {attempts} in {pause:.0f} s")
        time.sleep(pause)


def _vanished(place: str) -> tuple[str, bool]:
    return f"{place} accepted the image and does not have it; a full registry does so", False


def _cause(text: str, source: str, target: str) -> tuple[str, bool]:
    for pattern, meaning, final in _CAUSES:
        if re.search(pattern, text, re.IGNORECASE):
            return meaning.format(source=source, target=target), final
    return "skopeo failed", False


def _line(text: str) -> str:
    """The last line that skopeo printed, without what its logger adds."""
    last = text.splitlines()[-1]
    found = re.search(r'msg="(.*)"$', last)
    return (found[1].replace('\\"', '"') if found else last)[:400]


def _skopeo() -> str:
    path = shutil.which("skopeo")
    if not path:
        raise RegistryError("needs the program skopeo; to install it: agentlab setup")
    return path


def verify(registry: Registry, target: Target, parts: Iterable[Part]) -> int:
    """Compare every manifest in the target with its digest, and every blob with its size; returns the number of blobs.

    A registry compares the digest of a blob as it is uploaded; one that is cut afterwards has another size.
    RegistryError names what is missing or different.
    """
    sizes = dict[tuple[str, str], int]()
    for part in parts:
        for digest in part.manifests:
            registry.document(f"{target.place}/{part.repository}@{digest}")
        for digest, expected in part.blobs.items():
            key = (part.repository, digest)
            if key in sizes:
                continue
            found = registry.blob_size(target.pullspec_of(part), digest)
            if found != expected:
                what = "is missing" if found is None else f"has {found} bytes instead of {expected}"
                raise RegistryError(f"{part.name}: blob {digest} {what} in {target.place}/{part.repository}")
            sizes[key] = expected
    return len(sizes)


def sources(target: Target, parts: Iterable[Part], before: Iterable[MirrorSource] = ()) -> list[MirrorSource]:
    """The mirrors of what was copied, a source each; those of `before` stay, ahead of this target."""
    found: dict[str, MirrorSource] = {entry["source"]: {**entry} for entry in before}
    for part in parts:
        source, place = f"{part.source.host}/{part.source.path}", f"{target.name}/{part.repository}"
        entry = found.setdefault(source, {"source": source, "mirrors": []})
        entry["mirrors"] = [*entry["mirrors"], *([] if place in entry["mirrors"] else [place])]
    return list(found.values())
