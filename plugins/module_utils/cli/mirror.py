"""`agentlab mirror RELEASE [--to PLACE]`: a release copied into the lab's registry or another one."""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeVar

from ..errors import LabError
from ..files import size_text
from ..installer.mirrors import mirrors_of
from ..installer.models import ImageSource
from ..plan import configs, files, rundir, secrets
from ..plan.files import FileError
from ..release import mirror, mirror_set
from ..release.mirror import Part, Target
from ..release.registry import Registry
from ..releases.distributions import of_version
from ..sandbox.mirror import serve_registry
from ..state import write_atomic
from ..terminal import write_line
from ..vocabulary import Exit
from .cluster import add_cluster, again_as_root, find
from .output import print_failure

OUTPUT = "idms-oc-mirror.yaml"
T = TypeVar("T")


class Destination(NamedTuple):
    """Where to copy to, with the credentials and the certificate for it, and the directory that it stores in, if that is here."""

    target: Target
    auths: dict[str, object]
    trust: str
    storage: Path | None


def main(argv: list[str]) -> int:
    """Copy what the target lacks, verify all of it, and write the mirrors to a file.

    argv: after `mirror`. `Exit.FAILED` with one message for whatever prevents that; a rerun resumes.
    """
    parser = argparse.ArgumentParser(
        prog="agentlab mirror",
        description="Copy a release with skopeo into the registry of a lab, or another one: every image by its digest, with all "
        "architectures and cosign signatures. What is there already is not copied, so a rerun resumes.",
        epilog="Profiles name the file that it writes: installer.mirrors_file.",
    )
    parser.add_argument(
        "release",
        metavar="RELEASE",
        help="pullspec of a release image, or a version such as 4.18.3 or 4.20.0-okd-scos.13",
    )
    parser.add_argument(
        "--to",
        metavar="HOST[:PORT][/PATH]",
        help="the registry to copy to (default: that of the cluster's lab, which must be prepared)",
    )
    parser.add_argument(
        "--image",
        action="append",
        default=[],
        metavar="PULLSPEC",
        help="also copy this image, such as an operator's; may be repeated",
    )
    parser.add_argument(
        "--arch", choices=("amd64", "arm64"), default="amd64", help="architecture (default: %(default)s)"
    )
    parser.add_argument("--pull-secret", metavar="FILE", help="pull secret with the credentials of the registries")
    parser.add_argument("--trust", metavar="FILE", help="certificates in PEM of registries, beyond the system's")
    parser.add_argument("--policy", metavar="FILE", help="containers-policy.json(5) that the images must satisfy")
    parser.add_argument(
        "--mirrors", metavar="FILE", help="read the source from these mirrors: a file of ImageDigestMirrorSets"
    )
    parser.add_argument(
        "-o", "--output", type=Path, default=Path(OUTPUT), metavar="FILE",
        help="where the mirrors are written; existing entries are kept (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--retries", type=int, default=mirror.ATTEMPTS - 1, help="retries per image (default: %(default)s)"
    )
    parser.add_argument("--dry-run", action="store_true", help="print what would be copied, and copy nothing")
    add_cluster(parser)
    args = parser.parse_args(argv)
    if args.retries < 0:
        parser.error(f"argument --retries: {args.retries} is negative")
    if not args.to:
        again_as_root(["mirror", *argv])
    try:
        with tempfile.TemporaryDirectory(prefix="agentlab-mirror-") as folder:
            return _run(args, Path(folder))
    except (LabError, ValueError, OSError) as error:
        return print_failure(error)


def _run(args: argparse.Namespace, work: Path) -> int:
    auths = _named(args.pull_secret, "--pull-secret", files.pull_secret)["auths"] if args.pull_secret else {}
    trust = _named(args.trust, "--trust", files.read) if args.trust else ""
    known: list[ImageSource] = [
        {"source": entry["source"], "mirrors": entry["mirrors"]}
        for entry in (_named(args.mirrors, "--mirrors", files.mirror_sources) if args.mirrors else [])
    ]
    before = _named(str(args.output), "--output", files.mirror_sources) if args.output.exists() else []
    policy = Path(args.policy) if args.policy else None
    if policy and not policy.is_file():
        raise LabError(f"--policy is {args.policy!r}: cannot be read: no such file")
    with _destination(args, work) as there:
        auths, trust = {**auths, **there.auths}, "\n".join(text for text in (trust, there.trust) if text)
        registry = Registry(auths, trust, lambda pullspec: mirrors_of(pullspec, known))
        pullspec = mirror.release_pullspec(args.release, args.arch)
        write_line(f"{pullspec}: reading its images ...")
        parts = mirror.release_parts(registry, pullspec, args.arch)
        release, payload = parts[-1].source, of_version(parts[-1].tag).payload
        for image in args.image:
            parts += mirror.image_parts(registry, image)
        wanted = mirror.missing(registry, there.target, parts)
        write_line(
            f"{len(parts)} images, {size_text(mirror.size(parts))}; {len(wanted)} to copy to {there.target.name}, "
            f"{size_text(mirror.size(wanted))}"
        )
        if args.dry_run:
            for part in wanted:
                write_line(f"{part.name}: {part.place} -> {there.target.name}/{part.repository}:{part.tag}")
            return Exit.OK
        _check_space(there, wanted)
        mirror.copy(
            registry, there.target, wanted, mirror.Access(work, auths, trust, policy), write_line, args.retries + 1
        )
        # Another reader: this one remembers where it found images.
        checked = mirror.verify(Registry(auths, trust), there.target, parts)
        write_line(f"verified: {len(parts)} images by digest, {checked} blobs by size")
    sources = mirror.sources(there.target, parts, before)
    write_atomic(args.output, rundir.dump(mirror_set.resource(sources)), 0o644)
    write_line(f"{args.output}: {len(sources)} sources; in a profile:\n")
    write_line(
        rundir.dump(
            {
                "release": {"payload": payload, "image": str(release)},
                "installer": {"mirrors_file": str(args.output.absolute())},
            }
        ).rstrip()
    )
    return Exit.OK


def _check_space(there: Destination, wanted: list[Part]) -> None:
    """Raise `LabError` when the storage is too small for all images: a registry reports it as an error of its own."""
    if there.storage is None:
        return
    free, needed = shutil.disk_usage(there.storage).free, mirror.size(wanted)
    if needed > free:
        raise LabError(f"{there.storage} has {size_text(free)} left, and {size_text(needed)} are to be copied")


@contextlib.contextmanager
def _destination(args: argparse.Namespace, work: Path) -> Iterator[Destination]:
    if args.to:
        place = args.to.rstrip("/")
        yield Destination(Target(place, place), {}, "", None)
        return
    cluster = find(args.cluster)
    if cluster.plan["hypervisor"]["kind"] == "ssh":
        raise LabError("the lab's registry is on another host: name a registry with --to")
    plan = secrets.with_passwords(cluster.plan, secrets.passwords_of(cluster.plan, cluster.directory))
    folder = work / "registry"
    folder.mkdir()
    with serve_registry(plan, folder) as here:
        (auth,) = configs.registry_auth(plan)["auths"].values()
        name = f"{plan['services']['host']}:{plan['services']['registry']['port']}"
        storage = Path(plan["services"]["registry"]["storage"])
        yield Destination(Target(here.place, name), {here.place: auth}, here.authority, storage)


def _named(name: str, option: str, reader: Callable[[str], T]) -> T:
    """Return `reader`'s result for the file of an option. Raises `LabError`."""
    try:
        return reader(os.path.expanduser(name))
    except FileError as error:
        raise LabError(f"{option} is {name!r}: {error}") from None
