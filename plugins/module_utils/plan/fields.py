"""The types of single fields, from which those of profile (`options`) and plan (`model`) are made.

A field is `Annotated` with the name of its format (`formats`), or with one of the rules below; a plain `str` has the
format "line". What the annotations mean is up to `shapes`, the only reader of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple

from .modes import MODES


class Range(NamedTuple):
    """Minimum and maximum of an integer.

    Both are allowed themselves. The JSON schema has them as `minimum` and `maximum`.
    """

    least: int
    most: int


@dataclass(frozen=True, eq=False)
class OneOf:
    """A name of a table: what is added to the table is allowed, documented and completed at once.

    `table` is any collection of names; the keys of a dictionary are in the order in which messages list them.
    """

    table: Collection[str]


@dataclass(frozen=True, eq=False)
class TaggedMapping:
    """A mapping whose fields depend on the value of the field `key`.

    kinds: the values that there are, with what each one means; record: fields and those that are required, for a value.
    """

    key: str
    kinds: Mapping[str, str]
    record: Callable[[str], tuple[Mapping[str, Any], Collection[str]]]


BootMode = Annotated[str, OneOf(MODES)]
BondMode = Literal["active-backup", "balance-xor", "802.3ad"]
Eject = Literal["never", "on_rebooting", "after"]
Family = Literal["ipv4", "ipv6"]
Platform = Literal["none", "baremetal", "external", "vsphere", "nutanix"]
ClusterRole = Literal["master", "arbiter", "worker"]
Role = Literal["master", "arbiter", "worker", "extra"]
Addressing = Literal["dhcp", "slaac", "static"]
Stack = Literal["ipv4", "ipv6", "dualstack", "v6v4"]
SavePoint = Literal["ready", "installed"]

Bridge = Annotated[str, "bridge"]
Cidr = Annotated[str, "cidr"]
Directory = Annotated[str, "directory"]
Domain = Annotated[str, "domain"]
Duration = Annotated[str, "duration"]
File = Annotated[str, "file"]
OwnFile = Annotated[str, "own_file"]
Serial = Annotated[str, "serial"]
Source = Annotated[str, "source"]
Ref = Annotated[str, "ref"]
Hctl = Annotated[str, "hctl"]
Host = Annotated[str, "host"]
Ip = Annotated[str, "ip"]
Iqn = Annotated[str, "iqn"]
Label = Annotated[str, "label"]
Link = Annotated[str, "bridge"]
Login = Annotated[str, "login"]
Mac = Annotated[str, "mac"]
Model = Annotated[str, "disk_model"]
NameFormat = Annotated[str, "name_format"]
Name = Annotated[str, "name"]
Password = Annotated[str, "password"]
Repository = Annotated[str, "repository"]
Url = Annotated[str, "url"]
Uuid = Annotated[str, "uuid"]
Vendor = Annotated[str, "disk_vendor"]
Version = Annotated[str, "version"]
Wwn = Annotated[str, "wwn"]
WwnHint = Annotated[str, "wwn_hint"]

Mtu = Annotated[int, Range(1280, 9216)]
Port = Annotated[int, Range(1, 65535)]
Prefix = Annotated[int, Range(1, 128)]
Size = Annotated[int, Range(1, 1 << 32)]
VlanId = Annotated[int, Range(1, 4094)]
