"""The installer's input in the run directory.

The installer removes its input after use ("consumes" it). Therefore the last written files are kept in `inputs/`: as long as
the plan does not change, a consumed file is not written again, and files that users changed are kept. A manifest that the profile no
longer has is removed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from ..keys import ensure_ssh_key
from ..releases.distributions import DISTRIBUTIONS
from ..vocabulary import SETTINGS_MANIFEST, RunFile
from . import certificates, files, ipi, manifests, secrets
from .configs import agent_config, install_config, settings_manifest
from .model import Plan
from .rundir import Change, RunError, dump

LAST = "inputs"
_INSTALL_CONFIG, _AGENT_CONFIG = RunFile.INSTALL_CONFIG, RunFile.AGENT_CONFIG
# The installer's state file, which remains after it has consumed its input.
_CONSUMERS = ("cluster-manifests", RunFile.INSTALLER_STATE)
_LATER = "(created by the run)"
T = TypeVar("T")


def prepare(plan: Plan, run_dir: Path, check: bool = False) -> list[Change]:
    """Return files that must be written; create the run's keys if they do not exist, unless `check`.

    Raises `RunError` for files that the plan names and that cannot be used.
    """
    plan = secrets.with_passwords(plan, secrets.ensure(plan, run_dir, check=check))
    keyless = check and not (run_dir / "ssh").exists()
    ssh_key = _LATER if keyless else ensure_ssh_key(run_dir)
    trust_bundle = _authority(plan, run_dir, check)
    installer = plan["installer"]
    if installer["ssh_key_file"]:
        ssh_key += "\n" + _named(installer["ssh_key_file"], "installer.ssh_key_file", files.ssh_keys)
    mirrors = installer.get("mirrors_file")
    wanted: dict[str, Mapping[str, object] | str] = {
        _INSTALL_CONFIG: install_config(
            plan,
            pull_secret=_pull_secret(plan),
            ssh_key=ssh_key,
            trust_bundle=trust_bundle,
            more_sources=_named(mirrors, "installer.mirrors_file", files.mirror_sources) if mirrors else (),
        ),
        **({} if ipi.bootstrap(plan) else {_AGENT_CONFIG: agent_config(plan)}),
        **{f"{manifests.FOLDER}/{name}": manifest for name, manifest in _manifests(plan).items()},
    }
    consumed = any((run_dir / name).exists() for name in _CONSUMERS)
    return [
        *(
            change
            for name, data in wanted.items()
            for change in _changes(run_dir, name, data if isinstance(data, str) else dump(data), consumed)
        ),
        *_removed(run_dir, {Path(name).name for name in wanted}),
    ]


def _manifests(plan: Plan) -> dict[str, Mapping[str, object] | str]:
    """Name of the file -> object, or text: the lab's settings, those of the profile's folder, and those that it has itself."""
    installer, settings = plan["installer"], settings_manifest(plan)
    folder = installer.get("manifests_dir")
    own = {f"{name}.yaml": manifest for name, manifest in (installer.get("manifests") or {}).items()}
    given = _named(folder, "installer.manifests_dir", files.manifests_of) if folder else {}
    return {**({f"{SETTINGS_MANIFEST}.yaml": settings} if settings else {}), **given, **own}


def _removed(run_dir: Path, wanted: Collection[str]) -> Iterator[Change]:
    """Yield the manifests that the profile no longer has: they are removed, unless users changed them."""
    for last in sorted((run_dir / LAST).glob("*.y*ml")):
        path, text = run_dir / manifests.FOLDER / last.name, _text(last)
        if last.name in wanted:
            continue
        if _text(path) == text:
            yield Change(path, text, "", 0o600)
        yield Change(last, text, "", 0o600)


def _pull_secret(plan: Plan) -> Mapping[str, object]:
    """Return the pull secret that the plan names, or else what its distribution puts in place of one."""
    name = plan["installer"]["pull_secret_file"]
    if name:
        return _named(name, "installer.pull_secret_file", files.pull_secret)
    distribution = DISTRIBUTIONS.get(plan["release"]["payload"])
    return (distribution and distribution.pull_secret) or {"auths": {}}


def _changes(run_dir: Path, name: str, text: str, consumed: bool) -> list[Change]:
    path, last = run_dir / name, run_dir / LAST / Path(name).name
    before = _text(last)
    if before == text and (path.exists() or consumed):
        return []
    changes = [Change(path, _text(path), text, 0o600)]
    return changes if before == text else [*changes, Change(last, before, text, 0o600)]


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


def _authority(plan: Plan, run_dir: Path, check: bool) -> str:
    """Return the certificate of the run's authority, which `prepare` also creates."""
    path = run_dir / RunFile.CA
    made = certificates.ensure(path.parent, plan["cluster"]["name"], certificates.served_names(plan), check=check)
    return f"{_LATER}\n" if check and made else path.read_text(encoding="utf-8")


def _named(name: str, field: str, reader: Callable[[str], T]) -> T:
    """Return `reader`'s result for a file of the plan. It was readable when the plan was created."""
    try:
        return reader(name)
    except files.FileError as error:
        raise RunError(f"{field} is {name!r}: {error}") from error
