"""Secrets of a run that a test knows, and the search for them in what the run shows."""

from __future__ import annotations

import base64
import io
import json
import secrets
import tarfile
from pathlib import Path
from typing import Any

import yaml


class Canaries:
    """Secrets by what they are: planted ones, and those that a run made."""

    def __init__(self) -> None:
        self.known: dict[str, str] = {}

    def new(self, name: str) -> str:
        """Return a text that is nowhere else."""
        return self.known.setdefault(name, f"Canary9{secrets.token_hex(8)}")

    def found(self, text: str) -> list[str]:
        """Return the names of those in `text`, as they are or in base64."""
        return [name for name, value in list(self.known.items()) if any(form in text for form in _forms(value))]

    def found_in(self, path: Path) -> list[str]:
        """Return the names of those in a file; of an archive, in its members and their names."""
        data = path.read_bytes()
        if ".tar" not in path.name:
            return self.found(data.decode(errors="replace"))
        names: list[str] = []
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            for member in archive:
                content = archive.extractfile(member)
                names += self.found(member.name + "\n" + (content.read().decode(errors="replace") if content else ""))
        return names

    def read(self, run_dir: Path) -> None:
        """Add the secrets that a run made, and those of its install-config: as they are in its directory."""
        for path in (*run_dir.glob("tls/*.key"), *run_dir.glob("ssh/id_*"), *run_dir.glob("auth/kubeadmin-password")):
            if path.suffix != ".pub":
                lines = [line for line in path.read_text().splitlines() if not line.startswith("-----")]
                self.known[str(path.relative_to(run_dir))] = max(lines, key=len)
        own = json.loads((run_dir / "secrets.json").read_text())
        self.known |= {
            f"secrets.json {name}": value for name, value in ({**own, **own["nodes"]}).items() if isinstance(value, str)
        }
        for path in run_dir.glob("auth/kubeconfig"):
            for user in yaml.safe_load(path.read_text())["users"]:
                pem = base64.b64decode(user["user"]["client-key-data"]).decode()
                self.known["kubeconfig"] = max(pem.splitlines(), key=len)
        for path in (*run_dir.glob("install-config.yaml"), *run_dir.glob("inputs/install-config.yaml")):
            config = yaml.safe_load(path.read_text()) or {}
            for host, entry in json.loads(config.get("pullSecret") or "{}").get("auths", {}).items():
                self.known[f"auth of {host}"] = entry["auth"]
                self.known[f"password of {host}"] = base64.b64decode(entry["auth"]).decode().partition(":")[2]
        for path in run_dir.glob(".openshift_install_state.json"):
            self.known |= {f"state {name}": value for name, value in tokens(json.loads(path.read_text()))}


def tokens(data: Any) -> list[tuple[str, str]]:
    """Return the JSON web tokens in a document by their keys."""
    found: list[tuple[str, str]] = []
    pending: list[tuple[str, Any]] = [("", data)]
    while pending:
        key, value = pending.pop()
        if isinstance(value, dict):
            pending += [(str(name), inner) for name, inner in value.items()]
        elif isinstance(value, list):
            pending += [(key, inner) for inner in value]
        elif isinstance(value, str) and value.startswith("eyJ") and value.count(".") == 2:
            found.append((key, value))
    return found


def _forms(value: str) -> list[str]:
    encoded = []
    for before in range(3):
        data = bytes(before) + value.encode()
        encoded.append(base64.b64encode(data[: len(data) // 3 * 3]).decode()[4 if before else 0 :])
    return [value, *encoded]
