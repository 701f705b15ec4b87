"""Sections of a keyfile: their keys and values, before they are text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Section = dict[str, Any]


def pick(conf: Mapping[str, Any], names: Iterable[str] = (), **renamed: str) -> Section:
    """Pick fields of an nmstate mapping: `names` as they are, `renamed` ones (new=old, dashes for underscores).

    Fields that `conf` lacks are left out of the section; values stay as they are, `text_of` makes them text.
    """
    table = dict.fromkeys(names, "") | {new.replace("_", "-"): old for new, old in renamed.items()}
    return {new: conf[old or new] for new, old in table.items() if (old or new) in conf}


def text_of(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ";".join(value)
    return str(value)
