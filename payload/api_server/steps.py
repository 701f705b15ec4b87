"""Steps for an agent: which types, in which order, per host status, and their arguments.

A producer returns the arguments of a step, or None if it is not needed. Source: instruction manager of
assisted-service.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...plugins.module_utils.addresses import in_url
from ...plugins.module_utils.documents import load_json
from ...plugins.module_utils.vocabulary import LAB_SUFFIX, Component, HostStatus, Port, Status
from . import inventory as inv
from . import versions
from .bodies import Step, Steps
from .facts import installation_disk
from .hardware import Inventory
from .network import address, contains, in_networks, network
from .objects import PROXIES, VIPS, Cluster, Host, InfraEnv
from .validations import WILDCARD, control_planes, domain, is_day2, machine_cidrs, names_of, role_of, user_managed

CONTINUE, EXIT = "continue", "exit"
#: Maximum number of a host's addresses that other hosts probe, regardless of its inventory.
PROBED = 256
_NOT_FORMATTED = ("FC", "iSCSI", "LVM", "Multipath")
_CHECKS = ("tang-connectivity-check", "free-network-addresses", "dhcp-lease-allocate")
_LATE_CHECKS = ("ntp-synchronizer", "domain-resolution", "verify-vips")
#: Steps that check the same at each poll.
CHECKS = frozenset({"inventory", "connectivity-check", *_CHECKS, *_LATE_CHECKS})

#: Steps that are not ordered again while their reply is outstanding, and the setting with their timeout.
ONCE: dict[str, str] = {
    "installation-disk-speed-check": "DISK_CHECK_TIMEOUT",
    "container-image-availability": "IMAGE_AVAILABILITY_TIMEOUT",
    "install": "HOST_INSTALLING_TIMEOUT",
    "logs-gather": "HOST_LOG_COLLECTION_TIMEOUT",
}
#: Seconds for the round trip.
GRACE = 60.0
#: Seconds between polls of upstream's agents. Agents that poll less often get each step at each poll, as upstream.
UPSTREAM_POLL = 60.0

#: Host status -> step types in order (day 1). Other statuses get none.
DAY1: dict[str, tuple[str, ...]] = {
    Status.DISCOVERING: ("inventory",),
    Status.DISCONNECTED: ("inventory",),
    Status.INSUFFICIENT: ("inventory", "connectivity-check", *_CHECKS, *_LATE_CHECKS),
    Status.PENDING_FOR_INPUT: ("inventory", "connectivity-check", *_CHECKS, *_LATE_CHECKS),
    Status.KNOWN: ("connectivity-check", *_CHECKS, "inventory", *_LATE_CHECKS),
    Status.PREPARING: (
        "dhcp-lease-allocate",
        "installation-disk-speed-check",
        "container-image-availability",
    ),
    Status.INSTALLING: ("install", "dhcp-lease-allocate"),
    Status.IN_PROGRESS: ("dhcp-lease-allocate",),
    Status.ERROR: ("logs-gather", "stop-installation"),
    Status.CANCELLED: ("logs-gather", "stop-installation"),
}
_DAY2_REST = ("connectivity-check", "api-vip-connectivity-check", "tang-connectivity-check")
DAY2: dict[str, tuple[str, ...]] = {
    Status.DISCOVERING: ("inventory", "ntp-synchronizer", "domain-resolution"),
    Status.DISCONNECTED: ("inventory",),
    Status.INSUFFICIENT: ("inventory", *_DAY2_REST, "ntp-synchronizer", "domain-resolution"),
    Status.PENDING_FOR_INPUT: ("inventory", *_DAY2_REST, "ntp-synchronizer", "domain-resolution"),
    Status.KNOWN: (*_DAY2_REST, "inventory", "ntp-synchronizer", "domain-resolution"),
    Status.INSTALLING: ("install",),
    Status.ERROR: ("logs-gather", "stop-installation"),
    Status.CANCELLED: ("logs-gather", "stop-installation"),
}
#: Hosts of an infra-env without cluster.
UNBOUND: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        (HostStatus.DISCOVERING_UNBOUND, HostStatus.INSUFFICIENT_UNBOUND, HostStatus.KNOWN_UNBOUND),
        ("inventory", "ntp-synchronizer"),
    ),
    HostStatus.DISCONNECTED_UNBOUND: ("inventory",),
}
#: Statuses whose agents poll half as often.
SLOW: frozenset[str] = frozenset({
    HostStatus.DISCONNECTED, HostStatus.DISCONNECTED_UNBOUND, HostStatus.DISABLED, HostStatus.RESETTING, HostStatus.ERROR,
    HostStatus.CANCELLED,
})  # fmt: skip
LEAVING: frozenset[str] = frozenset({HostStatus.BINDING, HostStatus.UNBINDING, HostStatus.UNBINDING_PENDING})


@dataclass
class StepView:
    """Input of step arguments.

    `images` maps component names to pullspecs. `needed_images` are those that each host must pull. `ntp` has sources
    joined by commas. `settings` returns seconds. `release_host`: the registry that hosts have to resolve, empty without
    one. `peers` is called only if the step is due, because it counts against the cluster's quota.
    """

    host: Host
    cluster: Cluster
    infra_env: InfraEnv
    inventory: Inventory
    #: JSON of the other hosts for connectivity-check, or None if there is none to check now.
    peers: Callable[[], str | None]
    images: Mapping[str, str]
    needed_images: tuple[str, ...]
    release_host: str
    ntp: str
    settings: Callable[[str], float]
    check_cvo: bool = False
    cluster_hosts: Mapping[str, Host] = field(default_factory=dict)


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def _inventory(v: StepView) -> list[str]:
    return [v.host["id"]]


def _connectivity(v: StepView) -> list[str] | None:
    peers = v.peers()
    return [peers] if peers else None


def _tang(v: StepView) -> list[str] | None:
    encryption = v.cluster.get("disk_encryption") or {}
    if encryption.get("mode") != "tang" or encryption.get("enable_on", "none") == "none":
        return None
    return [_dump({"tang_servers": encryption.get("tang_servers", "")})]


def _free_addresses(v: StepView) -> list[str] | None:
    cidrs = []
    for text in dict.fromkeys(
        str(network(a)) for nic in v.inventory.get("interfaces", ()) for a in nic.get("ipv4_addresses", ())
    ):
        net = network(text)
        if net is not None and 22 <= net.prefixlen < 32:
            cidrs.append(text)
    return [_dump(cidrs)] if cidrs else None


def _dhcp(v: StepView) -> list[str] | None:
    cidrs = machine_cidrs(v.cluster)
    if not v.cluster.get("vip_dhcp_allocation") or not cidrs:
        return None
    for nic in v.inventory.get("interfaces", ()):
        if any(contains(cidrs[0], text) for text in nic.get("ipv4_addresses", ())):
            tail = v.cluster["id"].replace("-", "")[:6]
            macs = {
                kind: ":".join(["00", "1a" if kind == "api" else "1b", "4a", tail[:2], tail[2:4], tail[4:6]])
                for kind in ("api", "ingress")
            }
            return [
                _dump(
                    {
                        "interface": nic.get("name", ""),
                        "api_vip_mac": macs["api"],
                        "ingress_vip_mac": macs["ingress"],
                        "api_vip_lease": v.cluster.get("_api_lease", ""),
                        "ingress_vip_lease": v.cluster.get("_ingress_lease", ""),
                    }
                )
            ]
    return None


def _ntp(v: StepView) -> list[str]:
    return [_dump({"ntp_source": v.ntp})]


def _domains(v: StepView) -> list[str] | None:
    if not v.cluster.get("base_dns_domain"):
        return None
    served = names_of(v.cluster)
    wildcard = f"{WILDCARD}.{domain(v.cluster)}"
    names = [served.api, served.api_int, served.console, f"{wildcard}.", wildcard]
    if v.release_host and not is_day2(v.cluster) and address(v.release_host) is None:
        names.append(v.release_host)
    return [_dump({"domains": [{"domain_name": name} for name in names]})]


def _vips(v: StepView) -> list[str] | None:
    vips = [
        {"vip": vip["ip"], "vip_type": key.removesuffix("_vips")}
        for key in VIPS
        for vip in v.cluster.get(key, ())
        if any(in_networks(v.inventory, cidr) for cidr in machine_cidrs(v.cluster) if contains(cidr, vip["ip"]))
    ]
    if not vips or user_managed(v.cluster) or v.cluster.get("vip_dhcp_allocation"):
        return None
    return [_dump(vips)]


def _disk_speed(v: StepView) -> list[str] | None:
    disk = v.host.get("installation_disk_id", "")
    known = (
        load_json(v.host.get("disks_info") or "{}", name="disks_info").get(disk, {}).get("disk_speed", {}).get("tested")
    )
    persistent = v.inventory.get("boot", {}).get("device_type") == "persistent"
    if not disk or known or persistent or "--save-part" in str(v.host.get("installer_args", "")):
        return None
    return [_dump({"path": disk}), f"{v.settings('DISK_CHECK_TIMEOUT'):.2f}"]


def _images(v: StepView) -> list[str] | None:
    known = load_json(v.host.get("images_status") or "{}", name="images_status")
    images = [image for image in v.needed_images if image not in known]
    if not images:
        return None
    return [_dump({"images": images, "timeout": int(v.settings("IMAGE_AVAILABILITY_TIMEOUT"))})]


def _api_vip(v: StepView) -> list[str] | None:
    name = v.cluster.get("api_vip_dns_name")
    if not name:
        return None
    endpoint = v.cluster.get("ignition_endpoint") or {}
    url = endpoint.get("url") or f"http://{in_url(name)}:{Port.MACHINE_CONFIG_INSECURE}/config/worker"
    token = v.host.get("_ignition_token")
    headers = [{"key": "Authorization", "value": f"Bearer {token}"}] if token else []
    extra: dict[str, str] = load_json(
        v.host.get("ignition_endpoint_http_headers") or "{}", name="ignition_endpoint_http_headers"
    )
    headers += [{"key": key, "value": value} for key, value in extra.items()]
    request: dict[str, Any] = {"url": url, "request_headers": headers or None}
    if endpoint.get("ca_certificate"):
        request["ca_certificate"] = endpoint["ca_certificate"]
    if token:
        request["ignition_endpoint_token"] = token
    return [_dump(request)]


def installer_args(v: StepView) -> list[str]:
    """Return arguments of coreos-installer for a host: the user's, and those that keep its network after the reboot.

    With a static network config that is `--copy-network`. Otherwise an `ip=` kernel argument per interface in a machine
    network asks for DHCP of its family, unless the user gave an `ip=` argument. The user's stay first, unchanged.
    A LUN is found again by the firmware's table, over the interface of its session.
    """
    args = [str(arg) for arg in load_json(v.host.get("installer_args") or "[]", name="installer_args")]
    addressed = any(arg.startswith("ip=") for arg in args)
    for karg in inv.lun_arguments(v.inventory, installation_disk(v.host), addressed=addressed):
        args += [] if karg in args else ["--append-karg", karg]
    if v.infra_env.get("static_network_config"):
        return args if "--copy-network" in args else [*args, "--copy-network"]
    for nic in v.inventory.get("interfaces", ()):
        own = {"dhcp": nic.get("ipv4_addresses", []), "dhcp6": nic.get("ipv6_addresses", [])}
        for kind, texts in own.items():
            if any(contains(cidr, text) for cidr in machine_cidrs(v.cluster) for text in texts):
                if (karg := inv.ip_argument(nic, kind)) not in args and not addressed:
                    args += ["--append-karg", karg]
                break
    return args


def install_request(v: StepView) -> dict[str, Any]:
    """Return the `install_cmd_request` of a host: the one argument of the step `install`, before it becomes JSON.

    Raises KeyError if the images of the release are unknown. `role` is `bootstrap` for the bootstrap host,
    `installer_args` a JSON list as text. `disks_to_format` has the ids of other bootable eligible disks, without those
    that the user excluded.
    """
    role = "bootstrap" if v.host.get("bootstrap") else role_of(v.host)
    request: dict[str, Any] = {
        "cluster_id": v.cluster["id"],
        "infra_env_id": v.host["infra_env_id"],
        "host_id": v.host["id"],
        "role": role,
        "boot_device": installation_disk(v.host),
        "controller_image": v.images[Component.CSR_APPROVER],
        "installer_image": v.images[Component.ORCHESTRATOR],
        "control_plane_count": control_planes(v.cluster),
        "check_cvo": v.check_cvo,
        "installer_args": _dump(installer_args(v)),
        "openshift_version": v.cluster.get("openshift_version", ""),
        # The lab's release has no OS image to which the disk could be switched: the installer would look for it for 20 minutes.
        "enable_skip_mco_reboot": not versions.of_release(v.cluster).endswith(LAB_SUFFIX),
        "notify_num_reboots": True,
    }
    for name, image in (("mco_image", Component.MACHINE_CONFIG_OPERATOR), ("must_gather_image", Component.MUST_GATHER)):
        if v.images.get(image):
            request[name] = v.images[image]
    request["service_ips"] = None
    proxy = {key: v.cluster[key] for key in PROXIES if v.cluster.get(key)}
    if proxy:
        request["proxy"] = proxy
    skipped = str(v.host.get("skip_formatting_disks", "")).split(",")
    install_disk = v.host.get("installation_disk_id")
    request["disks_to_format"] = [
        disk["id"]
        for disk in v.inventory.get("disks", ())
        if disk.get("bootable")
        and disk.get("drive_type") not in _NOT_FORMATTED
        and not disk.get("is_installation_media")
        and disk["id"] not in skipped
        and disk["id"] != install_disk
        and inv.eligible_disks({"disks": [disk]})
    ]
    return request


def _install(v: StepView) -> list[str]:
    return [_dump(install_request(v))]


def _logs(v: StepView) -> list[str] | None:
    if v.host.get("logs_collected_at"):
        return None
    masters = None
    if v.host.get("bootstrap"):
        others = [host for host in v.cluster_hosts.values() if not host.get("bootstrap") and role_of(host) != "worker"]
        lists = [[text.partition("/")[0] for text in host.get("_addresses", ())] for host in others]
        if not user_managed(v.cluster):
            cidr = next(iter(machine_cidrs(v.cluster)), "")
            lists = [[text for text in texts if contains(cidr, text)][:1] for texts in lists]
        masters = [text for texts in lists for text in texts]
    return [
        _dump(
            {
                "cluster_id": v.cluster["id"],
                "infra_env_id": v.host["infra_env_id"],
                "host_id": v.host["id"],
                "bootstrap": bool(v.host.get("bootstrap")),
                "installer_gather": True,
                "master_ips": masters,
            }
        )
    ]


PRODUCERS: dict[str, Callable[[StepView], list[str] | None]] = {
    "inventory": _inventory,
    "connectivity-check": _connectivity,
    "tang-connectivity-check": _tang,
    "free-network-addresses": _free_addresses,
    "dhcp-lease-allocate": _dhcp,
    "ntp-synchronizer": _ntp,
    "domain-resolution": _domains,
    "verify-vips": _vips,
    "installation-disk-speed-check": _disk_speed,
    "container-image-availability": _images,
    "api-vip-connectivity-check": _api_vip,
    "install": _install,
    "logs-gather": _logs,
    "stop-installation": lambda v: [],
}


def step(kind: str, args: list[str]) -> Step:
    """Return a step of a type with an id of its own: the type and eight random hex digits.

    The agent repeats the id in its reply. `args` are passed to the program of the type as they are, mostly one JSON
    text.
    """
    return {"step_type": kind, "step_id": f"{kind}-{secrets.token_hex(4)}", "args": args}


def instructions(v: StepView, day2: bool, interval: int, disabled: frozenset[str], upgrade_to: str = "") -> Steps:
    """Return the `steps` response for a host.

    `interval`: seconds between polls; `upgrade_to`: the image for an outdated agent, else empty. `day2` selects the
    table of hosts that join an installed cluster. `disabled` are types that the service's environment switches off. An
    outdated agent gets the upgrade and nothing else; a host that changes its cluster gets none and must exit
    (`post_step_action`). Slow statuses double the interval.
    """
    status = v.host["status"]
    if status in LEAVING:
        return {"next_instruction_seconds": 0, "post_step_action": EXIT, "instructions": []}
    table = {**UNBOUND, **(DAY2 if day2 else DAY1)}
    found = []
    if upgrade_to:
        found.append(step("upgrade-agent", [_dump({"agent_image": upgrade_to})]))
    else:
        for kind in table.get(status, ()):
            args = None if kind in disabled else PRODUCERS[kind](v)
            if args is not None:
                found.append(step(kind, args))
    wait = interval * 2 if status in SLOW else interval
    return {"next_instruction_seconds": wait, "post_step_action": CONTINUE, "instructions": found}


def peer_entry(host: Host, inventory: Inventory) -> str:
    """Return JSON of one host for the arguments of connectivity-check, with its first PROBED addresses.

    Keys: `host_id`, `nics` (`name`, `mac`, `ip_addresses` without prefix). Interfaces without an address are left out.
    It is joined with those of other hosts as text, because thousands of hosts would have it encoded repeatedly.
    """
    nics, left = [], PROBED
    for nic in inventory.get("interfaces", ()):
        texts = [*nic.get("ipv4_addresses", ()), *nic.get("ipv6_addresses", ())][:left]
        if texts:
            addresses = [text.partition("/")[0] for text in texts]
            nics.append({"name": nic.get("name", ""), "mac": nic.get("mac_address", ""), "ip_addresses": addresses})
            left -= len(texts)
    return _dump({"host_id": host["id"], "nics": nics})
