"""The shape of an Ignition config as data, for specifications 3.0 to 3.5 (https://coreos.github.io/ignition/specs/)."""

from __future__ import annotations

from typing import Any, NamedTuple


class NewField(NamedTuple):
    """A field that specification 3.<minor> brought.

    `rule` is what the field must be, as everywhere in `CONFIG`: a name of a type, a list of one rule, or a mapping of
    rules.
    """

    minor: int
    rule: Any


# `str`, `int` and `bool` may be left out or null, `str!` must be given.
_VERIFICATION = {"hash": "str"}
_HEADERS = NewField(1, [{"name": "str!", "value": "str"}])
_FILE_CONTENTS = {"source": "str", "compression": "str", "httpHeaders": _HEADERS, "verification": _VERIFICATION}
_RESOURCE = {**_FILE_CONTENTS, "compression": NewField(1, "str")}
_OWNER = {"id": "int", "name": "str"}
_NODE = {"path": "str!", "overwrite": "bool", "user": _OWNER, "group": _OWNER}
_PARTITION = {
    "label": "str", "number": "int", "sizeMiB": "int", "startMiB": "int", "typeGuid": "str", "guid": "str",
    "wipePartitionEntry": "bool", "shouldExist": "bool", "resize": NewField(2, "bool"),
}  # fmt: skip
_CLEVIS = {
    "custom": {"pin": "str", "config": "str", "needsNetwork": "bool"},
    "tpm2": "bool",
    "tang": [{"url": "str", "thumbprint": "str", "advertisement": NewField(4, "str")}],
    "threshold": "int",
}
_LUKS = {
    "name": "str!", "label": "str", "uuid": "str", "device": "str", "keyFile": _FILE_CONTENTS, "wipeVolume": "bool",
    "clevis": _CLEVIS, "options": ["str"], "discard": NewField(4, "bool"), "openOptions": NewField(4, ["str"]),
    "cex": NewField(5, {"enabled": "bool"}),
}  # fmt: skip

CONFIG: dict[str, Any] = {
    "ignition": {
        "version": "str!",
        "config": {"merge": [_RESOURCE], "replace": _RESOURCE},
        "timeouts": {"httpResponseHeaders": "int", "httpTotal": "int"},
        "security": {"tls": {"certificateAuthorities": [_RESOURCE]}},
        "proxy": NewField(1, {"httpProxy": "str", "httpsProxy": "str", "noProxy": ["str"]}),
    },
    "kernelArguments": NewField(3, {"shouldExist": ["str"], "shouldNotExist": ["str"]}),
    "passwd": {
        "users": [
            {
                "name": "str!", "passwordHash": "str", "sshAuthorizedKeys": ["str"], "uid": "int", "gecos": "str",
                "homeDir": "str", "noCreateHome": "bool", "primaryGroup": "str", "groups": ["str"],
                "noUserGroup": "bool", "noLogInit": "bool", "shell": "str", "system": "bool",
                "shouldExist": NewField(2, "bool"),
            }
        ],
        "groups": [
            {"name": "str!", "gid": "int", "passwordHash": "str", "system": "bool", "shouldExist": NewField(2, "bool")}
        ],
    },
    "storage": {
        "disks": [{"device": "str!", "wipeTable": "bool", "partitions": [_PARTITION]}],
        "raid": [{"name": "str!", "level": "str", "spares": "int", "devices": ["str"], "options": ["str"]}],
        "filesystems": [
            {
                "device": "str!", "path": "str", "format": "str", "options": ["str"], "wipeFilesystem": "bool",
                "label": "str", "uuid": "str", "mountOptions": NewField(1, ["str"]),
            }
        ],
        "luks": NewField(2, [_LUKS]),
        "files": [{**_NODE, "contents": _FILE_CONTENTS, "append": [_FILE_CONTENTS], "mode": "int"}],
        "directories": [{**_NODE, "mode": "int"}],
        "links": [{**_NODE, "target": "str", "hard": "bool"}],
    },
    "systemd": {
        "units": [
            {
                "name": "str!", "enabled": "bool", "mask": "bool", "contents": "str",
                "dropins": [{"name": "str!", "contents": "str"}],
            }
        ]
    },
}  # fmt: skip
