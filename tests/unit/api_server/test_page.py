"""The page at `/`: what can be tested without a browser."""

from __future__ import annotations

import re

from ansible_collections.agentlab.ocp.payload.api_server import app
from ansible_collections.agentlab.ocp.payload.api_server.api import OPERATIONS

TEXT = app.PAGE.read_text(encoding="utf-8")


def test_needs_nothing_from_elsewhere() -> None:
    assert not re.search(r"https?://|@import|url\(", TEXT)


def test_text_of_others_is_not_markup() -> None:
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|eval\(", TEXT)


def test_asks_what_a_watcher_may_ask() -> None:
    watched = {op.path for op in OPERATIONS if op.method == "GET" and "watcherAuth" in op.schemes}
    assert {
        "/api/assisted-install/v2/clusters",
        "/api/assisted-install/v2/clusters/{cluster_id}",
        "/api/assisted-install/v2/events",
    } <= watched


def test_words_are_not_broken_on_a_narrow_screen() -> None:
    """Below 800 pixels severities and names of clusters were cut into pieces of one to three letters: their columns could shrink to nothing."""
    wide, narrow = TEXT.partition("@media (max-width: 50rem)")[::2]
    assert "#events :is(td, th):nth-child(-n + 2) { white-space: nowrap" in wide
    assert "#events td:nth-child(3) { overflow-wrap: break-word; min-width: 7rem" in wide
    # There each event is a block: time, severity and cluster side by side, the message below them.
    assert "#events tr { display: grid" in narrow and "#events td:nth-child(4) { grid-column: 1 / -1 }" in narrow


def test_token_leaves_the_address() -> None:
    """`#token=%` is not valid encoding, and does not leave the page blank; a token is neither in the address bar nor in the history."""
    assert re.search(r"try \{ return decodeURIComponent\(found\); \} catch", TEXT)
    assert TEXT.count("decodeURIComponent") == 1
    assert 'history.replaceState(null, "", location.pathname + location.search)' in TEXT
