"""nmstate network states to NetworkManager keyfiles, without nmstatectl.

    for name, text in generate(load(yaml_text)):
        ...

The output equals that of `nmstatectl gc` of nmstate 2.2.
"""

from __future__ import annotations

from .checks import check
from .errors import NmstateError
from .keyfile import files
from .name_servers import store_dns
from .schema import parse
from .source import LIMITS, load
from .state import Network

__all__ = ["LIMITS", "NmstateError", "generate", "load"]


def generate(state: object) -> list[tuple[str, str]]:
    """Return file name and text of every keyfile that a network state needs, in the order of activation.

    `state` is the document as nested dictionaries, see `load`; it is not changed. The files hold secrets and must be 0600.
    Raises `NmstateError` for what cannot be, naming the interface and the field.
    """
    parsed = parse(state)
    network = Network(parsed)
    network.link()
    for interface in network:
        if not interface.absent:
            check(interface)
    network.store_routes(parsed.get("routes", {}).get("config", []))
    network.store_rules(parsed.get("route-rules", {}).get("config", []))
    store_dns(network, parsed.get("dns-resolver", {}).get("config", {}))
    return [keyfile for interface in network.profiles() for keyfile in files(network, interface)]
