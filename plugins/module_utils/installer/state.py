"""`.openshift_install_state.json`: what a directory's last `create` knew, keyed by asset as upstream's is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from ..releases import LATEST, RELEASES
from ..state import write_atomic
from . import gojson
from .errors import InstallerError

FILENAME = ".openshift_install_state.json"
OWN = "agentlab"
"""Key of what upstream doesn't keep: hashes of inputs and outputs, release, fingerprints."""


class StateError(InstallerError):
    """The state file is missing or lacks what was asked for."""


def load(directory: Path) -> dict[str, Any]:
    """The state of `directory`; {} when there is none. Raises `StateError` when it does not parse."""
    path = directory / FILENAME
    where = f'failed to create asset store: failed to unmarshal state file "{path}"'
    try:
        state = gojson.loads(path.read_text(encoding="utf-8", errors="replace"))
    except FileNotFoundError:
        return {}
    except gojson.JsonError as error:
        raise StateError(f"{where}: {error}") from error
    if not isinstance(state, dict):
        raise StateError(f"{where}: json: cannot unmarshal {gojson.kind(state)} into Go value of type map[string]json.RawMessage")
    return state


def save(directory: Path, state: dict[str, Any]) -> None:
    """Write the state (0600: it holds keys and tokens)."""
    write_atomic(directory / FILENAME, json.dumps(state).encode(), 0o600)


class WaitFor(NamedTuple):
    """What `wait-for` needs: rendezvous_ip; token and the scheme it is for; initialize_limit in seconds."""

    rendezvous_ip: str
    token: str
    scheme: str
    initialize_limit: float


def load_wait_for(directory: Path) -> WaitFor:
    """Read what `wait-for` needs of an installation's directory. Raises `StateError`."""
    state = load(directory)
    ip = (state.get("*image.Ignition") or {}).get("RendezvousIP", "")
    if not ip:
        raise StateError(
            "failed to load AgentConfig, NMStateConfig, InstallConfig, or AgentHosts: "
            f"{directory / FILENAME} has no rendezvous IP: run `agentlab create image` in this directory first"
        )
    token = (state.get("*gencrypto.AuthConfig") or {}).get("WatcherAuthToken", "")
    if not token:
        raise StateError(f"failed to load AuthConfig: {directory / FILENAME} has no watcher token")
    own = state.get(OWN, {})
    platform = ((state.get("*manifests.AgentClusterInstall") or {}).get("Config") or {}).get("spec", {})
    limits = RELEASES.get(own.get("profile", ""), LATEST).initialize_limits
    return WaitFor(ip, token, "watcher", limits.get(platform.get("platformType", ""), limits[""]))
