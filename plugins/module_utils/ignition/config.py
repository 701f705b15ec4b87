"""Build, read and check Ignition configs (https://coreos.github.io/ignition/configuration-v3_2/)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from . import rules
from .resources import VERSION, IgnitionError, data_url, read_data_url


class Config:
    """An Ignition config that grows. Entries of the same path replace each other in place.

    `to_dict` gives it as data. Nothing is checked while it grows; `check` does that for the whole.
    """

    def __init__(self) -> None:
        self._users: list[dict[str, Any]] = []
        self._files: dict[str, dict[str, Any]] = {}
        self._directories: dict[str, dict[str, Any]] = {}
        self._units: dict[str, dict[str, Any]] = {}
        self._merged: list[Mapping[str, str]] = []
        self._trusted: list[Mapping[str, str]] = []

    def user(self, name: str, keys: list[str], password_hash: str | None = None, groups: tuple[str, ...] = ()) -> None:
        """A user with SSH keys, and a password if its hash is given.

        `keys` are lines as in authorized_keys; the hash is as crypt(3) makes it, and `!` one that no password has.
        """
        user: dict[str, Any] = {"name": name, "sshAuthorizedKeys": keys}
        if groups:
            user["groups"] = list(groups)
        if password_hash is not None:
            user["passwordHash"] = password_hash
        self._users.append(user)

    def file(self, path: str, content: str | bytes, mode: int, *, append: bool = False) -> None:
        """A file owned by root; with `append` its content is added to what the image has.

        `path` is absolute, `mode` the permission bits. Without `append` it replaces a file of the image.
        """
        entry: dict[str, Any] = {"path": path, "overwrite": not append, "user": {"name": "root"}, "mode": mode}
        contents = {"source": data_url(content)}
        entry |= {"append": [contents]} if append else {"contents": contents}
        self._files[path] = entry

    def directory(self, path: str, mode: int) -> None:
        """A directory owned by root.

        `path` is absolute, `mode` the permission bits; an existing directory gets these, too.
        """
        self._directories[path] = {"path": path, "overwrite": True, "user": {"name": "root"}, "mode": mode}

    def unit(self, name: str, contents: str | None = None, *, enabled: bool | None = None) -> None:
        """A systemd unit: its text, and whether a preset enables it. None leaves that to the image.

        `name` is with its suffix (`x.service`). A unit without text is one that the image has.
        """
        entry: dict[str, Any] = {"name": name}
        if enabled is not None:
            entry["enabled"] = enabled
        if contents is not None:
            entry["contents"] = contents
        self._units[name] = entry

    def add(self, *, files: Iterable[dict[str, Any]] = (), units: Iterable[dict[str, Any]] = ()) -> None:
        """Entries that are ready: files as `resources.data_file` makes them, and units.

        Each has the fields of the specification; they are neither copied nor changed.
        """
        self._files |= {entry["path"]: entry for entry in files}
        self._units |= {entry["name"]: entry for entry in units}

    def merge(self, resource: Mapping[str, str]) -> None:
        """A config that Ignition gets and merges on top of this one.

        `resource` is where it is: a URL as `source`, or as `resources.resource` makes it.
        """
        self._merged.append(resource)

    def trust(self, resource: Mapping[str, str]) -> None:
        """Certificates of an authority, in PEM, that Ignition trusts when it gets what the config points to.

        `resource` as of `merge`.
        """
        self._trusted.append(resource)

    def to_dict(self, version: str = VERSION) -> dict[str, Any]:
        """The config as JSON-able data.

        `version` is the specification that it declares. Sections without entries are left out. Entries are those of
        this object, not copies.
        """
        config: dict[str, Any] = {"ignition": {"version": version}}
        if self._merged:
            config["ignition"]["config"] = {"merge": self._merged}
        if self._trusted:
            config["ignition"]["security"] = {"tls": {"certificateAuthorities": self._trusted}}
        if self._users:
            config["passwd"] = {"users": self._users}
        storage = {}
        if self._directories:
            storage["directories"] = list(self._directories.values())
        if self._files:
            storage["files"] = list(self._files.values())
        if storage:
            config["storage"] = storage
        if self._units:
            config["systemd"] = {"units": list(self._units.values())}
        return config


def dumps(config: Mapping[str, object]) -> bytes:
    """The config as the bytes that go into an image.

    Compact JSON in UTF-8, with keys in the order of `config`: the same bytes for the same config.
    """
    return json.dumps(config, separators=(",", ":"), ensure_ascii=False).encode()


def files_of(config: dict[str, Any]) -> dict[str, bytes]:
    """Path -> content of every file of a config whose content is inline, appended fragments included.

    Fragments follow the contents. What is to be fetched from a URL is an `IgnitionError`, as of `read_data_url`.
    """
    found = {}
    for entry in (config.get("storage") or {}).get("files") or []:
        parts = [entry.get("contents") or {}, *(entry.get("append") or [])]
        found[entry["path"]] = b"".join(
            read_data_url(part["source"], part.get("compression")) for part in parts if part.get("source")
        )
    return found


def merge(parent: Mapping[str, object], child: Mapping[str, object]) -> dict[str, Any]:
    """The config that Ignition makes of `parent` with `child` merged on top: the child wins, lists join by key.

    Lists of files, units and so on are joined by path, name or device, other lists by value. Neither argument is
    changed.
    """
    merged: dict[str, Any] = _merge(parent, child, "")
    return merged


_KEYS = {"files": "path", "directories": "path", "links": "path", "units": "name", "users": "name", "groups": "name",
         "dropins": "name", "disks": "device", "filesystems": "device", "raid": "name", "luks": "name"}  # fmt: skip


def _merge(parent: object, child: object, field: str) -> Any:
    if isinstance(parent, dict) and isinstance(child, dict):
        return {
            key: _merge(parent[key], child[key], key) if key in parent and key in child
            else child.get(key, parent.get(key))
            for key in [*parent, *(key for key in child if key not in parent)]
        }  # fmt: skip
    if isinstance(parent, list) and isinstance(child, list):
        key = _KEYS.get(field)
        if key is None:
            return parent + [item for item in child if item not in parent]
        entries = {item[key]: item for item in parent}
        for item in child:
            entries[item[key]] = _merge(entries[item[key]], item, "") if item[key] in entries else item
        return list(entries.values())
    return child


# Not compiled here: programs on nodes that only build configs start faster.
_UNIT = r"[A-Za-z0-9:_.\\@-]+\.(service|socket|device|mount|automount|swap|target|path|timer|snapshot|slice|scope)"


def check(config: dict[str, Any]) -> None:
    """Raise `IgnitionError` listing everything in `config` that Ignition would refuse by the config's own specification.

    Unknown keys, which Ignition only warns of, are refused too: they are always mistakes.
    """
    found: list[str] = []
    section = config.get("ignition") if isinstance(config, dict) else None
    version = section.get("version", "") if isinstance(section, dict) else ""
    known = re.fullmatch(r"3\.([0-5])\.0", str(version))
    if not known:
        raise IgnitionError(f"$.ignition.version: unsupported config version {version!r}")
    _shape(config, rules.CONFIG, int(known[1]), "$", found)
    if not found:
        _content(config, found)
    if found:
        raise IgnitionError("\n".join(found))


_TYPES: dict[str, type] = {"str": str, "int": int, "bool": bool}


def _shape(value: object, rule: object, minor: int, path: str, found: list[str]) -> None:
    if value is None:
        return
    if isinstance(rule, str):
        kind = rule.removesuffix("!")
        if not isinstance(value, _TYPES[kind]) or (kind == "int" and isinstance(value, bool)):
            found.append(f"{path}: expected {kind}, found {type(value).__name__}")
    elif isinstance(rule, list):
        if not isinstance(value, list):
            found.append(f"{path}: expected a list, found {type(value).__name__}")
            return
        for index, item in enumerate(value):
            if item is None:
                found.append(f"{path}[{index}]: null is not a valid entry")
            _shape(item, rule[0], minor, f"{path}[{index}]", found)
    elif not isinstance(value, dict):
        found.append(f"{path}: expected an object, found {type(value).__name__}")
    elif isinstance(rule, dict):
        _object(value, rule, minor, path, found)


def _object(value: dict[str, object], rule: dict[str, object], minor: int, path: str, found: list[str]) -> None:
    for key, item in value.items():
        inner = rule.get(key)
        if inner is None:
            found.append(f"{path}: unknown key {key}")
        elif not isinstance(inner, rules.NewField):
            _shape(item, inner, minor, f"{path}.{key}", found)
        elif inner.minor > minor:
            found.append(f"{path}: key {key} is not known before version 3.{inner.minor}.0")
        else:
            _shape(item, inner.rule, minor, f"{path}.{key}", found)
    found += [f"{path}.{key}: must be given" for key, inner in rule.items() if inner == "str!" and not value.get(key)]


def _content(config: dict[str, Any], found: list[str]) -> None:
    storage = config.get("storage") or {}
    paths: dict[str, str] = {}
    for kind in ("files", "directories", "links"):
        for index, entry in enumerate(storage.get(kind) or []):
            at, path = f"$.storage.{kind}[{index}]", entry.get("path") or ""
            if not path.startswith("/"):
                found.append(f"{at}.path: path not absolute: {path!r}")
            elif path in paths:
                found.append(f"{at}.path: duplicate entry, {path} is also {paths[path]}")
            paths[path] = at
            mode = entry.get("mode")
            if mode is not None and not 0 <= mode <= 0o7777:
                found.append(f"{at}.mode: illegal file mode {mode}")
            if kind == "files":
                for part in [entry.get("contents") or {}, *(entry.get("append") or [])]:
                    _source(part, at, found)
    for index, unit in enumerate((config.get("systemd") or {}).get("units") or []):
        for number, dropin in enumerate(unit.get("dropins") or []):
            if not (dropin.get("name") or "").endswith(".conf"):
                found.append(
                    f"$.systemd.units[{index}].dropins[{number}].name: invalid drop-in name {dropin.get('name')!r}"
                )
        if not re.fullmatch(_UNIT, unit.get("name") or ""):
            found.append(f"$.systemd.units[{index}].name: invalid unit name {unit.get('name')!r}")
        text = unit.get("contents") or ""
        if unit.get("enabled") and text and not re.search(r"^\[Install\]", text, re.M):
            found.append(f"$.systemd.units[{index}]: {unit.get('name')} is enabled but has no [Install] section")


def _source(part: dict[str, Any], at: str, found: list[str]) -> None:
    url = part.get("source") or ""
    if url.startswith("data:"):
        try:
            read_data_url(url, part.get("compression"))
        except (ValueError, OSError) as error:
            found.append(f"{at}.contents: bad data URL: {error}")
    elif url and not re.match(r"(https?|tftp|s3|arn|gs):", url):
        found.append(f"{at}.contents: invalid url scheme: {url[:60]}")
