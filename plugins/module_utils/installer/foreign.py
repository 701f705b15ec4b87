"""An agent image of another run: the same but for its tokens, which another key signed.

That is what a machine has that was booted from last week's image: the assisted service, which knows its own key alone, refuses it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from ..coreos.iso import LiveIso
from ..documents import load_json
from ..ignition.config import dumps
from ..ignition.resources import data_url, read_data_url
from .credentials import tokens
from .errors import InstallerError

ENV = "/etc/assisted/rendezvous-host.env"
_NAMES = {"PULL_SECRET_TOKEN": "AgentAuthToken", "USER_AUTH_TOKEN": "UserAuthToken"}


def config(raw: bytes) -> bytes:
    """An Ignition config of an agent image, with the tokens in `rendezvous-host.env` signed by a new key.

    Raises InstallerError for a config without tokens: its service accepts any token.
    """
    document = load_json(raw, name="Ignition config")
    new, replaced = tokens(), 0

    def token(match: re.Match[str]) -> str:
        return f"{match[1]}={new[_NAMES[match[1]]]}"

    for file in (document.get("storage") or {}).get("files") or []:
        contents = file.get("contents") or {}
        if file["path"] == ENV and contents.get("source"):
            text = read_data_url(contents["source"], contents.get("compression")).decode()
            text, replaced = re.subn(rf"^({'|'.join(_NAMES)})=\S+$", token, text, flags=re.MULTILINE)
            file["contents"] = {"source": data_url(text)}
    if not replaced:
        raise InstallerError(
            f"the image's Ignition config has no tokens in {ENV}: its service requires none, so none can be wrong"
        )
    return dumps(document)


def image(source: Path, target: Path) -> None:
    """Write `source`, an agent ISO, to `target` with tokens of another key; one that is newer than `source` is kept.

    Raises `InstallerError` when `source` has no Ignition config, or one without tokens. The mode is that of `source`.
    """
    if target.exists() and target.stat().st_mtime_ns >= source.stat().st_mtime_ns:
        return
    with LiveIso(source) as iso:
        if iso.ignition is None:
            raise InstallerError(f"{source}: has no Ignition config: it is not an agent image")
        iso.ignition = config(iso.ignition)
        iso.save_as(target, grow=True, overwrite=True, mode=os.stat(source).st_mode & 0o777)
