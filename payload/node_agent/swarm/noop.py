"""Replies of a simulated host to each step. Nothing is measured or changed."""

from __future__ import annotations

import ipaddress
import random
from collections.abc import Callable
from typing import Any

from ....plugins.module_utils.documents import load_json
from ..program import dumps
from ..protocol import Result
from .hardware import Host

IMAGE_BYTES, IMAGE_SECONDS = 400_000_000, 10.0
FREE_ADDRESSES = 8


def inventory(host: Host, args: list[str]) -> Result:
    return Result(dumps(host.inventory()))


def connectivity(host: Host, args: list[str]) -> Result:
    """Answer `connectivity-check`: every address of every other host answers.

    Round trips vary, so that each reply is different, as real ones are. From a host with the failure `isolated` none
    answers.
    """
    reached = host.failure != "isolated"
    nic = host.inventory()["interfaces"][0]["name"] if args else ""
    remote = []
    for other in load_json(args[0], name="arguments"):
        pairs = [(entry["mac"], ip) for entry in other["nics"] for ip in entry.get("ip_addresses") or ()]
        l3 = [
            {"remote_ip_address": ip, "successful": reached}
            | ({"average_rtt_ms": round(random.uniform(0.15, 0.6), 3), "packet_loss_percentage": 0} if reached else {})
            for __, ip in pairs
        ]
        l2 = [
            {
                "outgoing_ip_address": host.ip,
                "outgoing_nic": nic,
                "remote_ip_address": ip,
                "remote_mac": mac,
                "successful": True,
            }
            for mac, ip in pairs
            if reached
        ]
        remote.append({"host_id": other["host_id"], "l2_connectivity": l2, "l3_connectivity": l3})
    return Result(dumps({"remote_hosts": remote}))


def free_addresses(host: Host, args: list[str]) -> Result:
    """The last addresses of each network are free, and the VIPs."""
    answer = []
    vips = (host.cluster.api_vip, host.cluster.ingress_vip)
    for cidr in load_json(args[0], name="arguments"):
        network = ipaddress.IPv4Network(cidr)
        last = range(max(network.num_addresses - 2 - FREE_ADDRESSES, 0), max(network.num_addresses - 1, 1))
        free = {str(network[at]) for at in last} | {vip for vip in vips if vip and ipaddress.ip_address(vip) in network}
        answer.append({"network": cidr, "free_addresses": sorted(free)})
    return Result(dumps(answer))


def verify_vips(host: Host, args: list[str]) -> Result:
    return Result(dumps([{**wanted, "verification": "succeeded"} for wanted in load_json(args[0], name="arguments")]))


def ntp(host: Host, args: list[str]) -> Result:
    names = [name for name in load_json(args[0], name="arguments").get("ntp_source", "").split(",") if name] or [
        host.cluster.gateway
    ]
    state = "unreachable" if host.failure == "ntp" else "synced"
    return Result(dumps({"ntp_sources": [{"source_name": name, "source_state": state} for name in names]}))


def domains(host: Host, args: list[str]) -> Result:
    """The cluster's names resolve to its VIPs (on a single node to the host itself), a wildcard does not resolve."""
    single = host.cluster.masters == 1
    answer = []
    for entry in load_json(args[0], name="arguments")["domains"]:
        name = entry["domain_name"]
        label = name.partition(".")[0]
        address = ""
        if host.failure != "dns":
            if label in ("api", "api-int"):
                address = host.ip if single else host.cluster.api_vip
            elif ".apps." in name:
                address = host.ip if single else host.cluster.ingress_vip
            elif host.cluster.domain not in name:
                address = host.cluster.gateway
        addresses = [address] if address else []
        answer.append({"domain_name": name, "ipv4_addresses": addresses, "ipv6_addresses": [], "cnames": []})
    return Result(dumps({"resolutions": answer}))


def disk_speed(host: Host, args: list[str]) -> Result:
    """A slow disk is only a warning; a failed measurement fails the host."""
    bad = host.failure == "disk"
    output = dumps({"path": load_json(args[0], name="arguments")["path"], "io_sync_duration": 0 if bad else 1})
    return Result(output, "fio: the disk cannot be written", 1) if bad else Result(output)


def images(host: Host, args: list[str]) -> Result:
    failed = host.failure == "image"
    pulled = {"result": "success", "size_bytes": IMAGE_BYTES, "time": IMAGE_SECONDS,
              "download_rate": IMAGE_BYTES / 1e6 / IMAGE_SECONDS}  # fmt: skip
    answer = [
        {"name": name, **({"result": "failure"} if failed else pulled)}
        for name in load_json(args[0], name="arguments")["images"]
    ]
    return Result(dumps({"images": answer}), "podman pull failed" if failed else "", 2 if failed else 0)


def dhcp(host: Host, args: list[str]) -> Result:
    answer: dict[str, Any] = {}
    for name, address in (("api", host.cluster.network[-3]), ("ingress", host.cluster.network[-2])):
        lease = f'lease {{\n  interface "{name}";\n  fixed-address {address};\n  renew never;\n}}'
        answer |= {f"{name}_vip_address": str(address), f"{name}_vip_lease": lease}
    return Result(dumps(answer))


def tang(host: Host, args: list[str]) -> Result:
    servers = load_json(load_json(args[0], name="arguments")["tang_servers"], name="tang_servers")
    answers = [
        {"tang_url": f"{one['url']}/adv/{one['thumbprint']}", "payload": "e30", "signatures": []} for one in servers
    ]
    return Result(dumps({"is_success": True, "tang_server_response": answers}))


def api_vip(host: Host, args: list[str]) -> Result:
    ignition = dumps({"ignition": {"version": "3.2.0"}, "storage": {}})
    return Result(dumps({"is_success": True, "url": load_json(args[0], name="arguments")["url"], "ignition": ignition}))


def upgrade(host: Host, args: list[str]) -> Result:
    return Result(dumps({"agent_image": load_json(args[0], name="arguments")["agent_image"], "result": "success"}))


def no_result(host: Host, args: list[str]) -> Result:
    return Result()


ANSWERS: dict[str, Callable[[Host, list[str]], Result]] = {
    "inventory": inventory,
    "connectivity-check": connectivity,
    "free-network-addresses": free_addresses,
    "verify-vips": verify_vips,
    "ntp-synchronizer": ntp,
    "domain-resolution": domains,
    "dhcp-lease-allocate": dhcp,
    "installation-disk-speed-check": disk_speed,
    "container-image-availability": images,
    "tang-connectivity-check": tang,
    "api-vip-connectivity-check": api_vip,
    "install": no_result,
    "stop-installation": no_result,
    "logs-gather": no_result,
    "upgrade-agent": upgrade,
}


def answer(host: Host, step: dict[str, Any]) -> Result:
    """Return the result of a step; -1 for an unknown step or invalid arguments."""
    kind = step["step_type"]
    if kind not in ANSWERS:
        return Result("", f"failed to find action for step type {kind}", -1)
    try:
        return ANSWERS[kind](host, list(step.get("args") or []))
    except (ValueError, LookupError, TypeError) as error:
        return Result("", f"{kind}: {type(error).__name__}: {error}", -1)
