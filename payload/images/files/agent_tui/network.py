"""The network of the host, as the dialog shows it."""

from __future__ import annotations

import ipaddress
import subprocess
from pathlib import Path


def output(words: list[str]) -> list[str]:
    """Return the lines that a command prints; none if it fails."""
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return done.stdout.splitlines() if done.returncode == 0 else []


def network() -> list[str]:
    """Return addresses, default routes and name servers, a line each."""
    shown = ["Interfaces"]
    for line in output(["ip", "-brief", "address"]):
        name, state, *addresses = line.split()
        shown.append(f"  {name} {state}: {', '.join(addresses)}")
    shown.append("Routes")
    for family in ("-4", "-6"):
        shown += [f"  {line}" for line in output(["ip", family, "route", "show", "default"])]
    shown.append("DNS")
    try:
        words = [line.split() for line in Path("/etc/resolv.conf").read_text(encoding="utf-8").splitlines()]
    except OSError:
        words = []
    return [*shown, *(f"  {line[1]}" for line in words if line[:1] == ["nameserver"] and is_address(line[1:]))]


def is_address(words: list[str]) -> bool:
    """Return whether the first word is an address."""
    try:
        return bool(words) and bool(ipaddress.ip_address(words[0].partition("%")[0]))
    except ValueError:
        return False


def own_addresses() -> list[str]:
    """Return the addresses of this host that others reach, IPv4 first."""
    words = [line.split() for line in output(["ip", "-brief", "address"])]
    found = [ipaddress.ip_interface(text).ip for name, _state, *texts in words if name != "lo" for text in texts]
    return [str(one) for one in sorted(found, key=lambda one: one.version) if not one.is_link_local]
