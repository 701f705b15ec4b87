"""The dialog (agent-tui) by which hosts without a cluster get their rendezvous host: what is done on their screens."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

from .machines import Node
from .screens import ScreenStep

DIALOG_SECONDS = 1500
"""How long the dialog may take to appear: the host boots, and pulls the release image and that of the dialog before."""


def ask(nodes: Sequence[Node], rendezvous: str) -> None:
    """Give nodes a screen, and the steps by which their dialog (agent-tui) gets the rendezvous host. Steps of their own stay.

    nodes: the rendezvous host is the first; rendezvous: its address.
    """
    for node in nodes:
        node["screen"] = True
        node.setdefault("screen_steps", rendezvous_steps(rendezvous, own=node is nodes[0]))


def rendezvous_steps(address: str, *, own: bool) -> list[ScreenStep]:
    """Return the steps of one node. own: whether the address is its own, which it then chooses, as the first of its list, if it is IPv4."""
    question: ScreenStep = {"wait": "<This is the rendezvous node>", "timeout": DIALOG_SECONDS}
    if own and ipaddress.ip_address(address).version == 4:
        chosen: list[ScreenStep] = [{"type": "\t\t"}, {"press": "enter"}, {"wait": address}, {"press": "enter"}]
    else:
        chosen = [{"type": f"{address}\t"}, {"press": "enter"}]
    # `<Continue>`, or `<Save and Continue>` of a host whose service does not answer yet.
    return [question, *chosen, {"wait": "ontinue>"}, {"press": "enter"}]
