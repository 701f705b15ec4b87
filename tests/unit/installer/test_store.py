"""Assets that threads make while others are made."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.installer.errors import InstallerError
from ansible_collections.agentlab.ocp.plugins.module_utils.installer.store import Asset, Store
from ansible_collections.agentlab.ocp.plugins.module_utils.log import Log


class Build:
    """What a store needs of a run."""

    def title(self, name: str) -> str:
        return name


def store_of(directory: Path, *assets: Asset) -> Store:
    return Store(assets, directory, Log(None, emit=lambda _line: None))


def test_threads_make_what_takes_long(tmp_path: Path) -> None:
    began = threading.Event()

    def waiting(_build: Any) -> str:
        assert began.wait(10), "it must be made while the other one waits"
        return "key"

    def other(_build: Any) -> str:
        began.set()
        return "text"

    store: Store = store_of(
        tmp_path,
        Asset("Key", "key", generate=waiting, ahead=True),
        Asset("Certificate", "crt", ("Key",), generate=lambda _b: store.value("Key") + "'s certificate", ahead=True),
        Asset("Text", "text", generate=other),
        Asset("Image", "image", ("Text", "Key"), generate=lambda _b: f"{store.value('Text')} {store.value('Key')}"),
    )
    assert store.fetch("Image", Build(), ("Image", "Certificate")) == "text key"
    assert store.fetch("Certificate", Build()) == "key's certificate"
    store.remember()
    again = store_of(tmp_path, *(Asset(name, key) for name, key in (("Key", "key"), ("Certificate", "crt"))))
    assert again.fetch("Key", Build()) == "key" and again.fetch("Certificate", Build()) == "key's certificate"


@pytest.mark.parametrize("ahead", [False, True])
def test_their_errors_are_those_of_other_assets(tmp_path: Path, ahead: bool) -> None:
    def fails(_build: Any) -> str:
        raise ValueError("why")

    store = store_of(
        tmp_path, Asset("Key", "key", generate=fails, ahead=ahead), Asset("Image", "image", ("Key",), generate=str)
    )
    text = 'failed to fetch Image: failed to fetch dependency of "Image": failed to generate asset "Key": why'
    with pytest.raises(InstallerError, match=f"^{text}$"):
        store.fetch("Image", Build(), ("Image",))


def test_what_the_state_has_is_not_made(tmp_path: Path) -> None:
    first = store_of(tmp_path, Asset("Key", "key", generate=lambda _b: "first", ahead=True))
    first.fetch("Key", Build())
    first.remember()
    store = store_of(tmp_path, Asset("Key", "key", generate=lambda _b: "second", ahead=True))
    assert store.fetch("Key", Build(), ("Key",)) == "first"
