"""Leadership: the control-plane member with the API's virtual address leads; on a single node always this one.

A cluster with a user-managed load balancer has no such address: its members elect the leader.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import Any, Protocol

from ...plugins.module_utils.addresses import in_url, socket_family


class Leadership(Protocol):
    """Whether this member should lead, and who does.

    electable: whether it may. The methods do not block: they are called in the event loop.
    """

    electable: bool

    def holds(self) -> bool:
        """Return whether this member should lead now."""

    def leader_url(self) -> str | None:
        """Return the base URL of the leader, None if it is not known."""


class SingleMember:
    """The only member of a cluster."""

    electable = True

    def holds(self) -> bool:
        """Return True."""
        return True

    def leader_url(self) -> str | None:
        """Return None: there is no other member to ask."""
        return None


class VirtualAddress:
    """keepalived moves the API's addresses between members; the one with the first address leads.

    addresses: virtual ones, at least one; port: of the API.
    """

    electable = True

    def __init__(self, addresses: Sequence[str], port: int) -> None:
        self._address = addresses[0]
        self._port = port

    def holds(self) -> bool:
        """Return whether the address is configured here: only then can a socket be bound to it."""
        family = socket_family(self._address)
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            try:
                probe.bind((self._address, 0))
            except OSError:
                return False
        return True

    def leader_url(self) -> str | None:
        """Return the URL at the virtual address."""
        return f"https://{in_url(self._address)}:{self._port}"


class Election:
    """Election by exchanged states: a leader stays; without a leader the member with the newest state leads.

    `expected` is the number of members; a new leader must reach more than half of them; of two, one is enough.
    """

    # Number of polls without a leader before an election.
    GRACE = 3

    def __init__(self, expected: int, leads: bool) -> None:
        self._quorum = expected // 2 + 1 if expected > 2 else 1
        self._holds, self._url, self._missed = leads, "", 0
        self.electable = True

    def holds(self) -> bool:
        """Return whether this member won the last election."""
        return self._holds

    def leader_url(self) -> str | None:
        """Return the URL of the member that leads, None while there is none."""
        return self._url or None

    def resign(self) -> None:
        """Give up the lead permanently: the bootstrap host does so when it hands over."""
        self._holds, self.electable = False, False

    def look(self, own: dict[str, Any], peers: Sequence[dict[str, Any]]) -> None:
        """Decide whether this member leads, by what it and those that it reaches report of themselves.

        Each has member, uid, epoch, revision, leader and url. A member of another cluster, by its uid, does not count.
        Of two leaders, the one with the higher epoch stays.
        """
        members = [peer for peer in peers if peer["uid"] in ("", own["uid"]) or not own["uid"]]
        leaders = [peer for peer in members if peer["leader"]]
        best = max(leaders, key=lambda peer: (peer["epoch"], peer["member"]), default=None)
        if best and not (
            self._holds and own["leader"] and (own["epoch"], own["member"]) > (best["epoch"], best["member"])
        ):
            self._holds, self._url, self._missed = False, best["url"], 0
            return
        if self._holds:
            return
        self._url, self._missed = "", self._missed + 1
        if self._missed < self.GRACE or not self.electable or not own["uid"]:
            return
        candidates = [own, *(peer for peer in members if peer["uid"] and peer["electable"])]
        first = max(candidates, key=lambda peer: (peer["epoch"], peer["revision"], peer["member"]))
        self._holds = len(members) + 1 >= self._quorum and first is own
