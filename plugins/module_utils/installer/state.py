"""`.openshift_install_state.json`: what a directory's last `create` knew, keyed by asset as upstream's is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..releases import RELEASES, by_version
from ..shapes import Shape, ShapeError, check
from ..state import write_atomic
from ..vocabulary import RunFile
from . import gojson
from .errors import InstallerError
from .models import Manifest

FILENAME = RunFile.INSTALLER_STATE
OWN = "agentlab"
"""Key of what upstream doesn't keep: hashes of inputs and outputs, release, fingerprints."""


class StateError(InstallerError):
    """The state file is missing or lacks what was asked for.

    The text names the file, or the directory that has none.
    """


def load(directory: Path) -> dict[str, Any]:
    """The state of `directory`; {} when there is none. Raises `StateError` when it does not parse.

    Keys are the assets' (Go types such as `*image.Ignition`), and `agentlab` for what upstream lacks.
    """
    path = directory / FILENAME
    where = f'failed to create asset store: failed to unmarshal state file "{path}"'
    try:
        state = gojson.loads(path.read_text(encoding="utf-8", errors="replace"))
    except FileNotFoundError:
        return {}
    except gojson.JsonError as error:
        raise StateError(f"{where}: {error}") from error
    if not isinstance(state, dict):
        raise StateError(
            f"{where}: json: cannot unmarshal {gojson.kind(state)} into Go value of type map[string]json.RawMessage"
        )
    return state


def is_ours(directory: Path) -> bool:
    """Return whether agentlab wrote the state of `directory`, which lists what else it generated there; not one that does not parse."""
    try:
        return OWN in load(directory)
    except StateError:
        return False


def save(directory: Path, state: Mapping[str, object]) -> None:
    """Write the state (0600: it holds keys and tokens).

    The file is replaced at once: after a crash there is the old state or the new one.
    """
    write_atomic(directory / FILENAME, json.dumps(state).encode(), 0o600)


_WAITED: Shape = {
    "*image.Ignition": {"RendezvousIP": str},
    "*manifests.AgentClusterInstall": {"Config": {"spec": {"platformType": str, "imageSetRef": {"name": str}}}},
    "*gencrypto.AuthConfig": {"AgentAuthToken": str, "WatcherAuthToken": str},
    OWN: {"profile": str},
}


class WaitFor(NamedTuple):
    """What `wait-for` needs.

    rendezvous_ip; token, None for a service that requires none, and the scheme it is for; initialize_limit in seconds; fips:
    whether to verify that mode.
    """

    rendezvous_ip: str
    token: str | None
    scheme: str
    initialize_limit: float
    fips: bool


def load_wait_for(directory: Path) -> WaitFor:
    """Read what `wait-for` needs of an installation's directory.

    It may be ours or one of `openshift-install agent`. Raises `StateError` without a rendezvous IP, without the token
    that the release's service requires, or when one of them is of another type.
    """
    nothing = "both AgentConfig and NMStateConfig are empty"
    if not directory.is_dir():
        raise StateError(f"{nothing}: {directory}: no such directory")
    state = load(directory)
    try:
        check(state, _WAITED, "state")
    except ShapeError as error:
        raise StateError(f"{directory / FILENAME}: {error}") from error
    ip = (state.get("*image.Ignition") or {}).get("RendezvousIP", "")
    if not ip:
        raise StateError(
            f"{nothing}: {directory / FILENAME} has no rendezvous IP: run `agentlab create image` in this directory first"
        )
    aci: Manifest = (state.get("*manifests.AgentClusterInstall") or {}).get("Config") or Manifest()
    spec = aci.get("spec") or {}
    version = str((spec.get("imageSetRef") or {}).get("name", "")).removeprefix("openshift-")
    profile = RELEASES.get(state.get(OWN, {}).get("profile", "")) or by_version(version)
    kind, scheme = ("WatcherAuthToken", "watcher") if profile.auth == "personas" else ("AgentAuthToken", "user")
    token = (state.get("*gencrypto.AuthConfig") or {}).get(kind) or None
    if token is None and profile.auth != "none":
        raise StateError(f"failed to load AuthConfig: {directory / FILENAME} has no {kind}")
    limits = profile.initialize_limits
    from .manifests.overrides import overrides_of  # imports the rules of install-config, which other users do not need

    fips = profile.fips_check and overrides_of(aci).get("fips") is True
    return WaitFor(ip, token, scheme, limits.get(spec.get("platformType", ""), limits[""]), fips)
