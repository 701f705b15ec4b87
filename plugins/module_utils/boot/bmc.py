"""What drives a machine through its BMC, by the kind of the BMC, which the address has."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from ..bmc import kinds
from ..bmc.machine import Bmc
from ..errors import LabError
from ..plan.machines import Node

for _kind in kinds.KINDS.values():
    _kind.client()  # imports its client, so that `_deps.wanted_distributions` has the libraries of whatever boots machines


def of_node(node: Node, lab_ca: bool | str) -> Bmc:
    """Return the machine of `node`, which has its password (`secrets.with_passwords`). Raises `LabError`.

    lab_ca: the path of the CA of the lab's BMCs, or whether their certificates are checked. An existing machine has a CA of its own, the
    system's ones, or is not checked (`bmc.ca_file`, `bmc.verify_ca`).
    """
    given = node["bmc"]
    file = str(Path(given.get("ca_file") or "").expanduser()) if given.get("ca_file") else None
    if file and not Path(file).is_file():
        raise LabError(
            f"nodes.{node['name']}.bmc.ca_file is {file!r}: is not a file on the host that boots the machines"
        )
    verify = file or given.get("verify_ca") is not False if node.get("bare_metal") else lab_ca
    address, quirks = given["address"], given.get("quirks") or []
    return connect(node["name"], address, given["username"], given["password"] or "", verify, quirks)


def connect(
    name: str, address: str, username: str, password: str, verify: bool | str = True, quirks: Collection[str] = ()
) -> Bmc:
    """Return the machine behind the BMC at `address`. Raises `LabError`.

    `name` is the machine's, for messages; `verify` is whether the BMC's certificate is checked, or the path of the CA
    to check with; `quirks` are names of `bmc.quirks.QUIRKS`. The address's scheme decides which kind it is.
    """
    if kind := kinds.of_address(address):
        return kind.client()(name, address, username, password, verify, quirks)
    examples = " or ".join(one.example for one in kinds.KINDS.values())
    raise LabError(
        f"BMC address {address}: scheme {kinds.scheme(address)!r} is unknown: known are {', '.join(kinds.schemes())}, as in {examples}"
    )
