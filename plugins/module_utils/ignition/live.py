"""The live host's files and units: text assets with values filled in, put into an Ignition config.

The assets are a directory with `files/`, a tree that mirrors the host's, and `units/`. What ends in `.j2` is a Jinja template; nothing
else is touched.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from .._deps import optional
from .config import Config

if TYPE_CHECKING:
    import jinja2
else:
    jinja2 = optional("jinja2", "Jinja2")

_EXECUTABLE = {"bin", "dispatcher.d", "system-generators"}
_APPENDED = {"motd", "containers.conf"}
_READABLE = {"registries.conf"}


def _render(path: Path, data: Mapping[str, object]) -> tuple[str, str]:
    """Name and text of an asset."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".j2":
        return path.name, text
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, keep_trailing_newline=True, trim_blocks=True, lstrip_blocks=True,
        autoescape=False,
    )  # fmt: skip
    return path.stem, environment.from_string(text).render(data)


def add_files(config: Config, assets: Path, data: Mapping[str, object], absent: Iterable[str] = ()) -> None:
    """Add the tree `assets/files`, but for the paths in `absent`.

    `assets` is the directory, `data` the variables of the templates, `absent` absolute paths on the host. Programs get
    mode 0555, files that all may read 0644, others 0600.
    """
    root = assets / "files"
    left_out = set(absent)
    for path in sorted(path for path in root.rglob("*") if path.is_file()):
        name, text = _render(path, data)
        target = "/" + str(path.relative_to(root).with_name(name))
        if target in left_out:
            continue
        appended = name in _APPENDED
        if path.parent.name in _EXECUTABLE:
            mode = 0o555
        elif appended or name in _READABLE:
            mode = 0o644
        else:
            mode = 0o600
        config.file(target, text, mode, append=appended)


def add_units(
    config: Config, assets: Path, data: Mapping[str, object], enabled: Iterable[str], absent: Iterable[str] = ()
) -> None:
    """Add every unit of `assets/units`; those in `enabled` are enabled, also if the OS brings them.

    `data` are the variables of the templates; `absent` units are left out even if `enabled` has them.
    """
    wanted, left_out = list(enabled), set(absent)
    for path in sorted((assets / "units").iterdir()):
        name, text = _render(path, data)
        if name not in left_out:
            config.unit(name, text, enabled=True if name in wanted else None)
    written = {unit["name"] for unit in config.to_dict()["systemd"]["units"]}
    for name in wanted:
        if name not in written and name not in left_out:
            config.unit(name, enabled=True)


def env_file(values: dict[str, str]) -> str:
    """An EnvironmentFile of systemd, one KEY=value for each.

    Values are written as they are: they must have no line breaks, and no quotes that systemd would take away.
    """
    return "".join(f"{key}={value}\n" for key, value in values.items())
