"""Access to a lab through the host: nftables rules that allow only the host's own connections.

A host forwards, and Linux takes packets for any of its addresses on any device: a neighbour that routes through the host
would reach BMCs, registry and file server at the gateway's address. All tables here are ours; the host's own stay as
they are, and what they drop stays dropped.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

from ..plan.model import Plan
from ..state import owner

_FROM_HOST = "ct state established,related accept"


def table(name: str, *chains: str) -> str:
    """Return the input of `nft -f` that replaces a table.

    name: of the table, family inet; chains: as the functions below return them. The replacement is one transaction.
    """
    return f"table inet {name}\ndelete table inet {name}\ntable inet {name} {{\n{''.join(chains)}}}\n"


def marker(mark: str) -> str:
    """Return the chain that identifies the owner of a table: no packet passes it.

    mark: of the state directory's `owner.json`. `has_mark` finds it in what `nft list table` prints.
    """
    return f' chain owner {{\n  return comment "{owner.label(mark)}"\n }}\n'


def has_mark(text: str, mark: str) -> bool:
    """Return whether a table has the chain of `marker` with this mark.

    text: the output of `nft list table`.
    """
    return f'comment "{owner.label(mark)}"' in text


def masquerade(match: str) -> str:
    """Return the chain that masquerades forwarded packets.

    match: the expression of nft that selects packets, such as `ip saddr 192.0.2.0/24`.
    """
    return f" chain postrouting {{\n  type nat hook postrouting priority srcnat\n  {match} masquerade\n }}\n"


def host_side(link: str) -> str:
    """Return the chain of the host: only replies are forwarded into the sandbox."""
    rules = (f'oifname "{link}" {_FROM_HOST}', f'oifname "{link}" drop')
    return _chain("forward", rules)


def inner_side(link: str, host: ipaddress.IPv4Address, *, closed: bool = False) -> str:
    """Return the chains of the sandbox: new connections from the uplink must come from the host itself.

    link: the uplink's name in the sandbox; host: the host's address on it; closed: machines open no connections through
    the uplink, only the sandbox itself does. Both chains apply: input and forward.
    """
    rules = (f'iifname "{link}" {_FROM_HOST}', f'iifname "{link}" ip saddr {host} accept', f'iifname "{link}" drop')
    out = (f'oifname "{link}" {_FROM_HOST}', f'oifname "{link}" drop') if closed else ()
    return _chain("input", rules) + _chain("forward", rules + out)


def services_on_host(plan: Plan) -> str:
    """Return the chains of a hypervisor without a sandbox: its services answer the host itself and its labs' bridges.

    plan: its networks' bridges, gateways and service ports. The chain drops what else arrives for these ports.
    """
    bridges = ", ".join(f'"{name}"' for name in ("lo", *(network["bridge"] for network in plan["networks"])))
    gateways = [ipaddress.ip_address(subnet["gateway"]) for subnet in plan["networks"][0]["subnets"]]
    ports = ", ".join(str(plan["services"][name]["port"]) for name in ("registry", "bmc", "http", "ntp"))
    families = (f"{'ip' if gateway.version == 4 else 'ip6'} daddr {gateway}" for gateway in gateways)
    rules = (
        f"iifname != {{ {bridges} }} {family} meta l4proto {{ tcp, udp }} th dport {{ {ports} }} drop"
        for family in families
    )
    return _chain("input", tuple(rules))


def _chain(hook: str, rules: Sequence[str]) -> str:
    lines = "".join(f"  {rule}\n" for rule in rules)
    return f" chain {hook} {{\n  type filter hook {hook} priority filter\n{lines} }}\n"
