"""Inputs that upstream accepts silently although they are probably mistakes: each function returns warnings."""

from __future__ import annotations

import base64
import binascii

from ..addresses import static_ips
from ..documents import load_json
from . import check
from .agent_config import FILENAME
from .models import AgentConfig, Host


def of_agent_config(config: AgentConfig) -> list[str]:
    """About agent-config.yaml by itself.

    Returns a warning when `kind` is something else than AgentConfig.
    """
    kind = config.get("kind") or "AgentConfig"
    return [] if kind == "AgentConfig" else [f'{FILENAME}: kind is "{kind}", not AgentConfig']


def of_hosts(hosts: list[Host], rendezvous: str, expected: int) -> list[str]:
    """About the hosts together: names, static addresses, and the rendezvous IP.

    rendezvous: the rendezvous IP, "" when agent-config has none; expected: replicas of all roles. An address that no
    host has is reported when all of the expected hosts are static.
    """
    lines = []
    names: dict[str, int] = {}
    addresses: dict[str, int] = {}
    for index, host in enumerate(hosts):
        name = host.get("hostname", "")
        if name:
            first = names.setdefault(name, index)
            if first != index:
                lines.append(f'hosts[{index}].hostname: "{name}" duplicates hosts[{first}]')
            why = check.subdomain(name)
            if why:
                lines.append(f'hosts[{index}].hostname: "{name}" is not a valid host name: {why}')
        for ip in dict.fromkeys(_canonical(ip) for ip in static_ips(host.get("networkConfig"))):
            first = addresses.setdefault(ip, index)
            if first != index:
                lines.append(f"hosts[{index}].networkConfig: {ip} duplicates an address of hosts[{first}]")
    static = all(static_ips(host.get("networkConfig")) and not _dynamic(host["networkConfig"]) for host in hosts)
    if rendezvous and hosts and len(hosts) >= expected and static and _canonical(rendezvous) not in addresses:
        lines.append(f"rendezvousIP: no host has the address {rendezvous}")
    return lines


def of_pull_secret(text: str) -> list[str]:
    """About a pull secret that is valid: entries that no registry will take. Values are not shown.

    An `auth` must be base64 text; entries without one are not checked.
    """
    try:
        auths = load_json(text, name="pullSecret")["auths"]
    except (ValueError, KeyError, TypeError):
        return []
    lines = []
    for registry, entry in auths.items() if isinstance(auths, dict) else ():
        auth = entry.get("auth") if isinstance(entry, dict) else None
        if not isinstance(auth, str):
            continue
        try:
            base64.b64decode(auth, validate=True)
        except (binascii.Error, ValueError):
            lines.append(f"pullSecret: the auth of {registry} is not base64")
    return lines


def _canonical(ip: str) -> str:
    found = check.address(ip)
    return ip if found is None else str(found)


def _dynamic(state: object) -> bool:
    interfaces = (state.get("interfaces") or []) if isinstance(state, dict) else []
    families = [nic.get(family) for nic in interfaces if isinstance(nic, dict) for family in ("ipv4", "ipv6")]
    return any(family.get("dhcp") or family.get("autoconf") for family in families if isinstance(family, dict))
