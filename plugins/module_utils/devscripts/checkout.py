"""The configuration in a checkout of dev-scripts."""

from __future__ import annotations

import getpass
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..documents import Positions
from ..plan import profile
from ..plan.options import Profile
from ..plan.rundir import Change
from ..redact_words import is_secret_key
from . import configuration, exporter

_SCRIPT = "common.sh"
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")


class CheckoutError(ValueError):
    """A checkout, user or profile that cannot be used."""


def prepare(given: Mapping[str, Any]) -> tuple[configuration.Export, Path, list[Change]]:
    """Return the configuration for the options of the module `devscripts_config`, its path, and what would have to change.

    Raises `CheckoutError`, `ProfileError`, `ExportError`.
    """
    folder, user = Path(given["checkout"]), given["user"] or getpass.getuser()
    if not (folder / _SCRIPT).is_file():
        raise CheckoutError(f"{folder}: is not a checkout of dev-scripts: it has no {_SCRIPT}")
    if not _USER.fullmatch(user):
        raise CheckoutError(f"user is {user!r}: must be the name of a user, such as root")
    made = exporter.config(_profile(given["profile"], given["cluster"]), given["cluster"], _texts(given["variables"]))
    path = folder / f"config_{user}.sh"
    if not given["overwrite"]:
        configuration.check_replaceable(path, "overwrite: true")
    before = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
    text = made.text()
    return made, path, [Change(path, before, text, 0o600)] if before != text else []


def secrets(variables: Mapping[str, object]) -> list[str]:
    """Return the values of variables that must not be shown."""
    return [text for name, text in _texts(variables).items() if text and is_secret_key(name)]


def _profile(given: object, cluster: str) -> Profile:
    raw = profile.scenario(given) if isinstance(given, str) else given
    if not isinstance(raw, dict):
        raise CheckoutError(f"profile is {given!r}: must be a mapping, or a scenario such as HA_IPV4V6_DHCP")
    return profile.validated_profile(profile.Source(raw, "profile", Positions(None), []), cluster)


def _texts(variables: Mapping[str, object]) -> dict[str, str]:
    """Return variables as dev-scripts has them: booleans are `true` and `false`."""
    return {
        str(name): str(value).lower() if isinstance(value, bool) else str(value) for name, value in variables.items()
    }
