"""What drives a machine through its BMC, by the kind of the BMC, which the address has."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

from ..errors import LabError
from ..plan.bmcs import KINDS, SCHEMES
from ..plan.machines import Node
from . import redfish
from .machine import Bmc

Connect = Callable[[str, str, str, str, "bool | str", Collection[str]], Bmc]
"""name (the machine's, for messages), address, username, password, verify (whether its certificate is checked, or the path of
the CA to check with), quirks (names of `plan.bmcs.QUIRKS`) -> the machine. Raises `LabError`."""


CONNECT: dict[str, Connect] = {"redfish": redfish.Bmc}
"""For each row of `plan.bmcs.KINDS`."""


def of_node(node: Node, lab_ca: bool | str) -> Bmc:
    """Return the machine of `node`, which has its password (`secrets.into`). Raises `LabError`.

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
    to check with; `quirks` are names of `plan.bmcs.QUIRKS`. The address's scheme decides which kind it is.
    """
    scheme = address.partition("://")[0].partition("+")[0]
    for kind, row in KINDS.items():
        if scheme in row.schemes:
            return CONNECT[kind](name, address, username, password, verify, quirks)
    raise LabError(
        f"BMC address {address}: scheme {scheme!r} is unknown: known are {', '.join(SCHEMES)}, as in {redfish.EXAMPLE}"
    )
