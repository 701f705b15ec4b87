"""The cluster of an installation's directory, defined over REST: what `assisted.definition` needs, of directory and plan."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from .assisted.definition import Definition, Host
from .assisted.user import User
from .documents import read_file
from .files import new_file
from .installer import inputs
from .installer.manifests.meta import DIRECTORY
from .installer.state import StateError, load, load_wait_for
from .plan import phases
from .plan.model import Plan
from .vocabulary import RunFile

CREDENTIALS = {"kubeconfig": RunFile.KUBECONFIG, "kubeadmin-password": RunFile.PASSWORD}
"""A credential of the service -> its file in the directory."""


def is_defined(directory: Path) -> bool:
    """Return whether the cluster was defined before: its credentials are there."""
    return all((directory / file).exists() for file in CREDENTIALS.values())


def define(directory: Path, plan: Plan, report: Callable[[str], None], *, seconds: float) -> None:
    """Define the cluster of `directory` with the hosts of `plan`, and write its credentials once its installation has started.

    The manifests are in `cluster-manifests` and `openshift`. report: gets what happens; seconds: the limit. Raises `LabError`.
    """
    known = load_wait_for(directory)
    token = (load(directory).get("*gencrypto.AuthConfig") or {}).get("UserAuthToken")
    if known.token and not token:
        raise StateError(f"{directory}: its state has no token of users: create the image again")
    texts = {path.name: read_file(path) for path in sorted((directory / "openshift").glob("*")) if path.is_file()}
    extra = {name: text.encode() for name, text in inputs.extra_manifests(texts).items()}
    hosts = [
        Host(node["name"], node["role"], frozenset(nic["mac"].lower() for nic in node["nics"]))
        for node in phases.installed_nodes(plan)
    ]
    api = User(known.rendezvous_ip, token or None, "user")
    found = Definition(api, directory / DIRECTORY, extra, hosts, report, seconds=seconds).install()
    for name, file in CREDENTIALS.items():
        (directory / file).parent.mkdir(mode=0o750, exist_ok=True)
        with new_file(directory / file, overwrite=True, mode=0o600) as out:
            out.write(found[name])
