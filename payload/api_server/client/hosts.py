"""configure: applies the ISO's settings of each host (role, root device hints, fencing) once the host has registered."""

from __future__ import annotations

import logging
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict

from ....plugins.module_utils.assisted.registration import ClientError, load
from ....plugins.module_utils.documents import load_json
from ..bodies import FencingCredentials, HostParams
from ..hardware import Inventory
from ..objects import Host
from . import hints as root_hints
from .rest import Rest, RestError

LOG = logging.getLogger("agent-installer-client")
FIRST_WAIT, LONGEST_WAIT = 1.0, 30.0

MISSING = "Host has not registered yet"
NO_INVENTORY = "Host has not sent its inventory yet"
NO_DISK = "No disk of the host matches the root device hints"


class Fencing(TypedDict, total=False):
    """Access to a host's BMC, as the ISO has it; `macaddress` or `hostname` name the host."""

    address: str
    username: str
    password: str
    certificateVerification: str
    macaddress: str
    hostname: str


@dataclass
class HostConfig:
    """One directory of HOST_CONFIG_DIR.

    `name` is the directory's, as the console shows it. `macs` are in lower case; one of them identifies the host. An
    empty `role`, `hints` or `fencing` leaves the host's as it is.
    """

    name: str
    macs: frozenset[str]
    role: str = ""
    hints: dict[str, Any] = field(default_factory=dict)
    fencing: Fencing = field(default_factory=Fencing)

    def matches(self, inventory: Inventory) -> bool:
        """Return whether any interface of a host has one of the MAC addresses, regardless of case."""
        return any(str(nic.get("mac_address", "")).lower() in self.macs for nic in inventory.get("interfaces", ()))


def read(folder: Path) -> list[HostConfig]:
    """Return the host configs of a directory; ClientError names an unusable file.

    Files in each directory: `mac_addresses` (required, one per line), `role`, `root-device-hints.yaml` and
    `fencing-credentials.yaml`. Sorted by name; empty if the ISO has no such directory. Hints are validated when they
    are used.
    """
    if not folder.is_dir():
        return []
    found = []
    for entry in sorted(path for path in folder.iterdir() if path.is_dir()):
        path = entry / "mac_addresses"
        if not path.is_file():
            raise ClientError(f"{path} is missing: it should have the MAC addresses of host {entry.name}, one per line")
        config = HostConfig(
            entry.name, frozenset(line.strip().lower() for line in path.read_text().splitlines() if line.strip())
        )
        if (entry / "role").is_file():
            config.role = (entry / "role").read_text().strip()
            if config.role not in ("master", "arbiter", "worker", "auto-assign"):
                raise ClientError(f"{entry / 'role'} is {config.role!r}: master, arbiter, worker or auto-assign")
        if (entry / "root-device-hints.yaml").is_file():
            documents = load(entry / "root-device-hints.yaml")
            config.hints = documents[0] if documents else {}
        if (entry / "fencing-credentials.yaml").is_file():
            documents = load(entry / "fencing-credentials.yaml")
            entries = documents[0].get("credentials", documents) if documents else []
            config.fencing = entries[0] if entries else {}
        found.append(config)
    return found


def global_fencing(folder: Path) -> list[Fencing]:
    """Fencing credentials that name their host, from the file next to the directories.

    The file has a list `credentials`. Empty without the file; ClientError if it is not YAML. An entry has precedence
    over one in the directory of the same host.
    """
    path = folder / "fencing-credentials.yaml"
    if not path.is_file():
        return []
    documents = load(path)
    return list(documents[0].get("credentials") or []) if documents else []


def fencing_params(entry: Fencing) -> FencingCredentials:
    """Return fencing credentials as the API takes them (`fencing-credentials-params`).

    Missing texts become empty, and the certificate is verified unless the ISO has another value.
    """
    params: FencingCredentials = {
        "address": entry.get("address", ""),
        "username": entry.get("username", ""),
        "password": entry.get("password", ""),
        "certificate_verification": entry.get("certificateVerification") or "Enabled",
    }
    if entry.get("macaddress"):
        params["mac_address"] = entry["macaddress"]
    return params


def update_for(host: Host, inventory: Inventory, config: HostConfig | None, fencing: list[Fencing]) -> HostParams:
    """Return what is still to be set on a host, as `host-update-params`; empty when nothing is missing.

    `config` is None for a host that no directory names. If no disk matches the hints, the installation disk becomes
    `hints.NOT_FOUND`, which the service refuses: no other disk is ever chosen silently. ValueError names an unknown
    hint.
    """
    update: HostParams = {}
    if config is not None and config.role and config.role != host.get("role"):
        update["host_role"] = config.role
    if config is not None and config.hints:
        disks = root_hints.disks_accepted(inventory.get("disks", []), config.hints)
        ident = disks[0]["id"] if disks else root_hints.NOT_FOUND
        if host.get("installation_disk_id") != ident:
            update["disks_selected_config"] = [{"id": ident, "role": "install"}]
    credentials: Fencing = config.fencing if config is not None else {}
    known = {str(nic.get("mac_address", "")).lower() for nic in inventory.get("interfaces", ())}
    known = (known | {host.get("requested_hostname") or ""}) - {""}
    for entry in fencing:
        if str(entry.get("macaddress", "")).lower() in known or entry.get("hostname", "") in known:
            credentials = entry
    if credentials:
        params = fencing_params(credentials)
        if load_json(host.get("fencing_credentials") or "{}", name="fencing_credentials") != params:
            update["fencing_credentials"] = params
    return update


def apply(rest: Rest, infra_env_id: str, configs: list[HostConfig], fencing: list[Fencing]) -> dict[str, str]:
    """Make one pass over the hosts; return host name -> why it cannot be configured yet.

    Empty when everything is applied, including hosts of no directory, which have nothing to apply. RestError if the
    service cannot be reached, refuses the token or fails (5xx); a refused update is an entry of the result instead.
    ClientError for hints that are not known.
    """
    failures: dict[str, str] = {}
    matched: set[str] = set()
    pending: set[str] = set()
    for host in rest.call("GET", f"/infra-envs/{infra_env_id}/hosts"):
        if not host.get("inventory"):
            pending.add(host["id"])
            continue
        inventory = load_json(host["inventory"], name="inventory")
        config = next((entry for entry in configs if entry.matches(inventory)), None)
        if config is not None:
            matched.add(config.name)
        name = config.name if config is not None else str(host.get("requested_hostname") or host["id"])
        try:
            update = update_for(host, inventory, config, fencing)
        except ValueError as err:
            raise ClientError(f"host {name}: {err}") from None
        if not update:
            continue
        try:
            rest.call("PATCH", f"/infra-envs/{infra_env_id}/hosts/{host['id']}", update)
            LOG.info("Updated host %s: %s", name, ", ".join(update))
        except RestError as err:
            if err.status in (0, 401, 403) or err.status >= 500:
                raise
            chosen = [disk["id"] for disk in update.get("disks_selected_config", ())]
            failures[name] = NO_DISK if chosen == [root_hints.NOT_FOUND] else err.reason
    for config in configs:
        if config.name not in matched:
            failures[config.name] = NO_INVENTORY if pending else MISSING
    return failures


def write_failures(path: Path, failures: dict[str, str]) -> None:
    """Write why hosts cannot be configured yet, as `<host>: <text>` per line; an empty file when all is well.

    The console of the live system shows the file, so every user may read it, and it is replaced atomically. Directories
    are created.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.writelines(f"{name}: {' '.join(text.split())}\n" for name, text in sorted(failures.items()))
    os.chmod(temporary, 0o644)
    os.replace(temporary, path)


def own_macs(interfaces: Path = Path("/sys/class/net")) -> frozenset[str]:
    """Return the MACs of this machine's interfaces, in lower case."""
    return frozenset(path.read_text().strip().lower() for path in interfaces.glob("*/address"))


def configure(
    rest: Rest,
    infra_env_id: str,
    folder: Path,
    failures_file: Path,
    sleep: Callable[[float], None] = time.sleep,
    *,
    macs: frozenset[str] | None = None,
) -> None:
    """Repeat until every host of the directory is registered and configured; wait 1 s at first, then up to 30 s.

    Failures of the service are reported and retried without end. ClientError, for
    unusable files, ends it at once. `sleep` takes seconds. `macs`: only hosts with one of these are waited for; None: all.
    """
    configs, fencing = read(folder), global_fencing(folder)
    if macs is not None:
        configs = [config for config in configs if config.macs & macs]
    wait, reported = FIRST_WAIT, ""
    while True:
        try:
            failures = apply(rest, infra_env_id, configs, fencing)
        except RestError as err:
            failures = {config.name: str(err) for config in configs} or {"assisted-service": str(err)}
        write_failures(failures_file, failures)
        if not failures:
            LOG.info("All %d host configs are applied", len(configs))
            return
        text = "; ".join(f"{name}: {reason}" for name, reason in sorted(failures.items()))
        if text != reported:
            LOG.info("Waiting: %s", text)
            reported = text
        sleep(wait)
        wait = min(wait * 2, LONGEST_WAIT)
