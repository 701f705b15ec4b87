"""The shape of an Ignition config as data: the union of specifications 3.0 to 3.5."""

from __future__ import annotations

from typing import Any

_VERIFICATION = {"hash": "str"}
_HEADERS = [{"name": "str", "value": "str"}]
_RESOURCE = {"source": "str", "compression": "str", "httpHeaders": _HEADERS, "verification": _VERIFICATION}
_OWNER = {"id": "int", "name": "str"}
_NODE = {"path": "str", "overwrite": "bool", "user": _OWNER, "group": _OWNER}

CONFIG: dict[str, Any] = {
    "ignition": {
        "version": "str",
        "config": {"merge": [_RESOURCE], "replace": _RESOURCE},
        "timeouts": {"httpResponseHeaders": "int", "httpTotal": "int"},
        "security": {"tls": {"certificateAuthorities": [_RESOURCE]}},
        "proxy": {"httpProxy": "str", "httpsProxy": "str", "noProxy": ["str"]},
    },
    "kernelArguments": {"shouldExist": ["str"], "shouldNotExist": ["str"]},
    "passwd": {
        "users": [
            {
                "name": "str", "passwordHash": "str", "sshAuthorizedKeys": ["str"], "uid": "int", "gecos": "str",
                "homeDir": "str", "noCreateHome": "bool", "primaryGroup": "str", "groups": ["str"],
                "noUserGroup": "bool", "noLogInit": "bool", "shell": "str", "shouldExist": "bool", "system": "bool",
            }
        ],
        "groups": [
            {"name": "str", "gid": "int", "passwordHash": "str", "shouldExist": "bool", "system": "bool"}
        ],
    },
    "storage": {
        "disks": "any", "raid": "any", "filesystems": "any", "luks": "any",
        "files": [{**_NODE, "contents": _RESOURCE, "append": [_RESOURCE], "mode": "int"}],
        "directories": [{**_NODE, "mode": "int"}],
        "links": [{**_NODE, "target": "str", "hard": "bool"}],
    },
    "systemd": {
        "units": [
            {
                "name": "str", "enabled": "bool", "mask": "bool", "contents": "str",
                "dropins": [{"name": "str", "contents": "str"}],
            }
        ]
    },
}  # fmt: skip
