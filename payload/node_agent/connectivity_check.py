"""`connectivity_check`: connectivity to other hosts: answers on the link, loss and latency, full-size packets."""

from __future__ import annotations

import ipaddress
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from . import fields, network, probes
from .journal import log
from .network import Nic
from .program import main as program
from .program import marshal
from .protocol import Result
from .steps import Context, arguments

PLAIN_MTU = 1500
MOST, MOST_ADDRESSES = 1000, 20_000
HEADERS = {4: 28, 6: 48}


def valid(target: str) -> bool:
    try:
        ipaddress.ip_address(target)
    except ValueError:
        return False
    return True


def addresses(hosts: list[dict[str, Any]]) -> list[str]:
    """Every address of every remote host, once, without prefix."""
    return list(
        dict.fromkeys(address for one in hosts for nic in one.get("nics") or () for address in nic_addresses(nic))
    )


def nic_addresses(nic: dict[str, Any]) -> list[str]:
    return [text.partition("/")[0] for text in nic.get("ip_addresses") or () if text]


def link_layer(nic: Nic, targets: list[str]) -> dict[str, tuple[str, set[str]]]:
    """Target -> (our address, MACs that claim the target), for those in a subnet of the interface."""
    by_source: dict[tuple[int, str], list[str]] = {}
    for target in targets:
        if own := nic.on_link(target):
            by_source.setdefault((own.version, str(own.ip)), []).append(target)
    found: dict[str, tuple[str, set[str]]] = {}
    for (version, source), group in by_source.items():
        ask = probes.arp if version == 4 else probes.ndp
        try:
            answers = ask(nic.name, nic.mac, source, group)
        except OSError as error:  # the link went down, or the address is still tentative
            log.warning("Cannot probe %s from %s on %s: %s", group, source, nic.name, error)
            continue
        found |= {target: (source, macs) for target, macs in answers.items()}
    return found


def full_size(nic: Nic, targets: list[str]) -> dict[str, bool]:
    """Return target -> whether packets of the interface's MTU reach it, without targets that do not answer at all.

    Only probed if the MTU is not 1500.
    """
    if nic.mtu == PLAIN_MTU:
        return {}
    versions = {address.version for address in nic.outgoing}
    found = {}
    for version in versions:
        group = [target for target in targets if ipaddress.ip_address(target).version == version]
        alive = [target for target, echo in probes.ping(group, 3, timeout=2.0, nic=nic.name).items() if echo.times]
        large = probes.ping(alive, 3, timeout=2.0, nic=nic.name, size=nic.mtu - HEADERS[version], dont_fragment=True)
        found.update({target: bool(echo.times) for target, echo in large.items()})
    return found


def check(hosts: list[dict[str, Any]], nics: list[Nic]) -> dict[str, Any]:
    """The model `connectivity-report` for the hosts of `connectivity-check-params`."""
    if not hosts:
        return {"remote_hosts": None}
    targets = [target for target in addresses(hosts) if valid(target)]
    with ThreadPoolExecutor(1 + 2 * len(nics)) as pool:
        echoes = pool.submit(probes.ping, targets)
        links = [(nic, pool.submit(link_layer, nic, targets), pool.submit(full_size, nic, targets)) for nic in nics]
        l3 = echoes.result()
        l2 = [(nic, macs.result(), sizes.result()) for nic, macs, sizes in links]
    return {"remote_hosts": [report(one, l3, l2) for one in sorted(hosts, key=lambda one: one.get("host_id", ""))]}


def report(
    one: dict[str, Any],
    l3: dict[str, probes.Echo],
    l2: list[tuple[Nic, dict[str, tuple[str, set[str]]], dict[str, bool]]],
) -> dict[str, Any]:
    """The model `connectivity-remote-host`. A link-layer answer by a MAC that is not the host's own is not a success.

    An invalid address counts as unreachable by any interface, so that it does not hide results of the others.
    """
    own_macs = {(nic.get("mac") or "").lower() for nic in one.get("nics") or ()}
    targets = addresses([one])
    result: dict[str, Any] = {"host_id": one.get("host_id", ""), "l2_connectivity": [], "l3_connectivity": []}
    for target in sorted(targets):
        echo = l3.get(target, probes.Echo())
        entry: dict[str, Any] = {"remote_ip_address": target, "successful": bool(echo.times)}
        if echo.times:
            entry |= {"average_rtt_ms": echo.average_ms, "packet_loss_percentage": echo.loss_percentage}
        result["l3_connectivity"].append(entry)
    for nic, macs, __ in l2:
        for target in targets:
            source, answered = macs.get(target, ("", set()))
            for mac in answered:
                result["l2_connectivity"].append(
                    {
                        "outgoing_ip_address": source,
                        "outgoing_nic": nic.name,
                        "remote_ip_address": target,
                        "remote_mac": mac,
                        "successful": mac in own_macs,
                    }
                )
    result["l2_connectivity"].sort(
        key=lambda entry: (entry["remote_ip_address"], entry["remote_mac"], entry["outgoing_nic"])
    )
    result["mtu_report"] = [
        {"outgoing_nic": nic.name, "remote_ip_address": target, "mtu_successful": reached.get(target, False)}
        for target in sorted(targets)
        for nic, __, reached in l2
        if target in reached or not valid(target)
    ]
    return {key: value if key == "host_id" else value or None for key, value in result.items()}


def rehearsed_report(hosts: list[dict[str, Any]], nics: list[Nic]) -> dict[str, Any]:
    """Return what `check` would report if all hosts were reachable."""
    remote: list[dict[str, Any]] = []
    for one in sorted(hosts, key=lambda one: one.get("host_id", "")):
        pairs = [(nic.get("mac", ""), target) for nic in one.get("nics") or () for target in nic_addresses(nic)]
        l2 = [
            {"outgoing_nic": own.name, "remote_ip_address": target, "remote_mac": mac, "successful": True}
            for own in nics
            for mac, target in pairs
        ]
        l3 = [{"remote_ip_address": target, "successful": True} for __, target in pairs]
        remote.append(
            {
                "host_id": one.get("host_id", ""),
                "l2_connectivity": l2 or None,
                "l3_connectivity": l3 or None,
                "mtu_report": None,
            }
        )
    return {"remote_hosts": remote or None}


def peers(text: str) -> list[dict[str, Any]]:
    """Return the hosts of `connectivity-check-params`. ValueError: they are invalid, or too many for a check to end."""
    hosts, name = arguments("connectivity-check", text, dict), "connectivity-check"
    count = 0
    for one in hosts:
        fields.text(f"{name}: host_id", one.get("host_id") or "")
        for nic in fields.entries(f"{name}: nics", one.get("nics"), dict, MOST):
            fields.text(f"{name}: mac", nic.get("mac") or "")
            for address in fields.entries(f"{name}: ip_addresses", nic.get("ip_addresses"), str, MOST):
                fields.text(f"{name}: ip_addresses:", address)
                count += 1
    if count > MOST_ADDRESSES:
        raise ValueError(f"{name}: {count} addresses, the limit is {MOST_ADDRESSES}")
    return hosts


def step(args: list[str], context: Context) -> Result:
    hosts, nics = peers(args[0]), network.outgoing_nics()
    return Result(marshal((rehearsed_report if context.dry.enabled else check)(hosts, nics)))


def main(argv: list[str] | None = None) -> int:
    return program("connectivity_check", step, argv)


if __name__ == "__main__":
    raise SystemExit(main())
