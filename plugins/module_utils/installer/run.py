"""`create`: fetch the assets of a target, write their files, remember."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from ..log import Log
from ..vocabulary import Exit, RunFile
from .assets import ASSETS, MIRROR, ZTP
from .build import Build, Options
from .errors import InstallerError
from .store import Asset, Store

_SIGNERS = tuple(asset.name for asset in ASSETS if asset.name.endswith("-signer)"))
_AUTH = ("Kubeconfig Admin Client (Agent)", "Kubeadmin Password")


@dataclass(frozen=True)
class Target:
    """What a sub-command makes.

    title: its name in messages; assets: in the order of making; reported: places in the success line, relative to the
    directory.
    """

    title: str
    assets: tuple[str, ...]
    reported: tuple[str, ...] | None = None


TARGETS: dict[str, Target] = {
    "agent-config-template": Target("Agent-Config-Template", ("Agent Config Template",), ("",)),
    "cluster-manifests": Target(
        "Cluster-Manifests",
        ("Agent Manifests", *MIRROR),
        ("cluster-manifests", "mirror"),
    ),
    "image": Target("Image", ("Agent Installer ISO", *_AUTH)),
    "pxe-files": Target("PXE-Files", ("Agent Installer PXE Files", *_AUTH)),
    "config-image": Target("Config-Image", ("Agent Config ISO", *_AUTH), ("",)),
    "unconfigured-ignition": Target(
        "Unconfigured-Ignition", ("Agent Installer Unconfigured Ignition",), ("unconfigured-agent.ign",)
    ),
    # Of hosts whose cluster comes later: with the config image, and from users.
    "unconfigured-image": Target("Unconfigured-Image", ("Agent Unconfigured ISO",)),
    "interactive-image": Target("Interactive-Image", ("Agent Interactive ISO",)),
    "certificates": Target("Certificates", (*_SIGNERS, "Kubeadmin Password"), ("tls",)),
}


class Workflow(NamedTuple):
    """What a directory is made for: the table of its assets, and the targets that are made of them."""

    assets: tuple[Asset, ...]
    targets: Mapping[str, Target]


INSTALL = Workflow(ASSETS, TARGETS)
"""The installation of a cluster; the other one is `joiner.assets.ADD_NODES`."""
# Upstream's message for an asset that has something to write and was not made, before the reason.
_UNWRITTEN = {
    "Agent Installer ISO": "cannot generate ISO image due to configuration errors",
    "Agent Installer PXE Files": "cannot generate PXE assets due to configuration errors",
    "Agent Config ISO": "cannot generate Config image due to configuration errors",
    "Agent Installer Unconfigured Ignition": "attempting to persist a UnconfiguredIgnition that has not been generated",
}


@dataclass
class Result:
    """What a run did.

    changed: files that are, or with `dry` would be, different from before; diffs: in Ansible's form; the others are ""
    when the run did not need them.
    """

    changed: list[str] = field(default_factory=list)
    diffs: list[dict[str, str]] = field(default_factory=list)
    rendezvous_ip: str = ""
    release_image: str = ""
    version: str = ""


def create(
    targets: list[str], options: Options, log: Log, *, consume: bool = False, workflow: Workflow = INSTALL
) -> Result:
    """Make `targets`, in order, in `options.directory`.

    targets: keys of `workflow.targets`; consume: delete the inputs afterwards, as upstream. Raises `InstallerError`,
    whose text is upstream's fatal line; files of targets before it stay and are remembered.
    """
    if not options.dry:
        options.directory.mkdir(mode=0o750, parents=True, exist_ok=True)
    store = Store(workflow.assets, options.directory, log)
    build = Build(options, log, store)
    fetched: list[str] = []
    for name in targets:
        target = workflow.targets[name]
        if name == "certificates" and not build.profile.certificates:
            raise InstallerError(f"create certificates is not known to release {build.profile.name}")
        for asset in target.assets:
            try:
                store.fetch(asset, build, target.assets)
            except InstallerError:
                if asset in _UNWRITTEN:
                    log.error(f"failed to write asset ({asset}) to disk: {_UNWRITTEN[asset]}")
                raise
            fetched.append(asset)
        outputs = _outputs(store, target, name)
        if name == "agent-config-template":
            _refuse_to_overwrite(options.directory, outputs)
        outputs |= {
            path: file for path, file in store.outputs(store.remade()).items() if (options.directory / path).exists()
        }
        if not options.dry and name != "agent-config-template":
            store.announce(outputs)
        for path, (content, mode) in outputs.items():
            build.save(path, content, mode)
        if target.reported is not None:
            places = " and ".join(
                str(options.directory / part) if part else str(options.directory) for part in target.reported
            )
            log.info(f"{target.title} created in: {places}")
        if not options.dry and name != "agent-config-template":
            # Even if the next target fails: files of this run must not look like the user's in the next run.
            _remember(build, store)
    if not options.dry and targets != ["agent-config-template"]:
        store.own["consumed"] = consume or bool(store.own.get("consumed"))
        store.remember()
        if consume:
            _consume(store, fetched, options.directory, log)
    try:
        ip = store.value("Agent Installer Ignition").get("RendezvousIP", "")
    except KeyError:
        ip = (store.state.get("*image.Ignition") or {}).get("RendezvousIP", "")
    known = vars(build)
    return Result(build.changes, build.diffs, ip, known.get("release_image", ""), known.get("version", ""))


def with_release(options: Options, image: str, version: str) -> Options:
    """Return options for the release of a cluster; what the environment names is not considered.

    image: its pullspec; version: its version, by which its profile is found.
    """
    return replace(options, release_image=image, release_version=version)


def _refuse_to_overwrite(directory: Path, outputs: dict[str, tuple[bytes, int]]) -> None:
    """A template must not replace a file of the user."""
    for name, (content, __) in outputs.items():
        path = directory / name
        if path.exists() and path.read_bytes() != content:
            raise InstallerError(
                f"{path} exists already and is not the template: move it aside, or choose another directory"
            )


def _outputs(store: Store, target: Target, name: str) -> dict[str, tuple[bytes, int]]:
    if name == "cluster-manifests":
        return store.outputs((*target.assets, *ZTP))
    found = store.outputs(target.assets)
    if name == "certificates":
        password = store.value("Kubeadmin Password")
        del found[RunFile.PASSWORD]
        found["tls/kubeadmin-password"] = (password["password"].encode(), 0o600)
        found["tls/kubeadmin-password.hash"] = (password["hash"].encode(), 0o600)
    return found


def _remember(build: Build, store: Store) -> None:
    known = vars(build)
    for name in ("release_image", "version"):
        if name in known:
            store.own[name] = known[name]
    if "profile" in known:
        store.own["profile"] = known["profile"].name
    store.remember()


def _consume(store: Store, fetched: list[str], directory: Path, log: Log) -> None:
    """Delete the inputs of this run as upstream does, but not what it has made."""
    kept = set(store.outputs((*fetched, *(ZTP if "Agent Manifests" in fetched else ()))))
    for name, paths in store.inputs().items():
        gone = [path for path in paths if path not in kept]
        if gone:
            log.info(f"Consuming {name} from target directory")
        for path in gone:
            (directory / path).unlink(missing_ok=True)
            parent = (directory / path).parent
            if parent != directory and not any(parent.iterdir()):
                parent.rmdir()


def graph() -> str:
    """The assets and what they are made from, in the language of Graphviz.

    Assets are boxes, targets are ellipses; an arrow leads from what is needed.
    """
    lines = ["digraph G {", "rankdir=LR;"]
    lines += [f'"{asset.name}" [ shape=box ];' for asset in ASSETS]
    lines += [f'"{target.title}" [ shape=ellipse ];' for target in TARGETS.values()]
    lines += [f'"{need}" -> "{asset.name}";' for asset in ASSETS for need in asset.needs]
    lines += [f'"{asset}" -> "{target.title}";' for target in TARGETS.values() for asset in target.assets]
    return "\n".join([*lines, "}", ""])


def exit_code(error: Exception) -> int:
    """The process's exit status for an error of `create`.

    The numbers are openshift-install's; see `vocabulary.Exit`.
    """
    return Exit.INSTALL_CONFIG if "failed to create install config" in str(error) else Exit.FAILED


__all__ = ["INSTALL", "TARGETS", "Build", "Options", "Result", "Workflow", "create", "exit_code", "graph"]
