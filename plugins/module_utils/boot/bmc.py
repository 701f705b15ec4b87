"""The kinds of BMCs: which addresses are theirs, and what drives a machine through one."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

from ..errors import LabError
from . import redfish
from .machine import Bmc

Connect = Callable[[str, str, str, str, "bool | str", Collection[str]], Bmc]
"""name (the machine's, for messages), address, username, password, verify (whether its certificate is checked, or the path of
the CA to check with), quirks (names of `quirks.QUIRKS`) -> the machine. Raises `LabError`."""


class Kind(NamedTuple):
    """schemes: of the addresses, without a transport as in `+https`.

    `connect` returns the machine behind an address; a second kind of BMC is one more row of `KINDS`.
    """

    schemes: tuple[str, ...]
    connect: Connect


KINDS = {"redfish": Kind(redfish.SCHEMES, redfish.Bmc)}


def connect(
    name: str, address: str, username: str, password: str, verify: bool | str = True, quirks: Collection[str] = ()
) -> Bmc:
    """Return the machine behind the BMC at `address`. Raises `LabError`.

    `name` is the machine's, for messages; `verify` is whether the BMC's certificate is checked, or the path of the CA
    to check with; `quirks` are names of `quirks.QUIRKS`. The address's scheme decides which kind it is.
    """
    scheme = address.partition("://")[0].partition("+")[0]
    for kind in KINDS.values():
        if scheme in kind.schemes:
            return kind.connect(name, address, username, password, verify, quirks)
    known = ", ".join(scheme for kind in KINDS.values() for scheme in kind.schemes)
    raise LabError(f"BMC address {address}: scheme {scheme!r} is unknown: known are {known}, as in {redfish.EXAMPLE}")
