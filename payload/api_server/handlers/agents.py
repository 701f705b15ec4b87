"""Operations of agents: instructions, stages and step replies."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Literal

from ....plugins.module_utils.documents import load_json
from ....plugins.module_utils.vocabulary import Status
from .. import inventory as inv
from .. import limits, state, validations
from ..aside import QUICK, in_pieces, run_in_thread
from ..bodies import (
    ConnectivityReport,
    DhcpResponse,
    DiskSpeed,
    ImageAvailability,
    StepReply,
    UpgradeResponse,
    VerifiedVip,
)
from ..calls import Call, handler
from ..document import tracked_document
from ..engine import Engine
from ..errors import ApiError
from ..hardware import Inventory
from ..models import MODELS, STEP_OUTPUTS, Invalid, read_json
from ..network import contains
from ..objects import VIPS, Host, Vip
from ..state import HostTrigger
from ..tables import BEFORE_INSTALL, MEDIA_DISCONNECTED
from .hosts import EDITABLE, called_host


@handler
def get_instructions(e: Engine, call: Call) -> Any:
    host = called_host(e, call)
    e.check_in(host, call.query.get("timestamp"), call.headers.get("discovery_agent_version"))
    return e.instructions(host)


@handler
def update_progress(e: Engine, call: Call) -> Any:
    host = called_host(e, call)
    if not host.get("cluster_id"):
        raise ApiError(400, f"host {host['id']} is not bound to any cluster, cannot update progress")
    e.progress(host, call.body["current_stage"], call.body.get("progress_info", ""))
    return None


MEDIA_EXIT = 256
_FREE_ON_FAILURE = frozenset({"container-image-availability", "installation-disk-speed-check"})


async def _output(e: Engine, host: Host, kind: str, text: str) -> Any:
    """What is kept of a step's output, or the refusal of one that does not decode; large ones are decoded in a thread."""
    most = limits.MAX_OUTPUT.get(kind, limits.MAX_REPLY)
    if len(text) > most:
        return ApiError(400, f"the output of step {kind} is longer than {most} characters")
    rules, quick = e.inventory_rules(host), len(text) <= QUICK
    encode: Callable[..., str] = json.dumps if quick else in_pieces

    def read(value: object) -> Any:
        found = MODELS.output(STEP_OUTPUTS[kind], value)
        if kind == "inventory":
            return inv.kept_inventory(found, *rules, encode)
        if kind == "connectivity-check":
            return found, encode(found, ensure_ascii=False, separators=(",", ":"))
        return found

    try:
        value = await read_json(text)
        return read(value) if quick else await run_in_thread(read, value)
    except Invalid as err:
        return ApiError(400, str(err))


@handler
async def post_reply(e: Engine, call: Call) -> Any:
    reply = call.body
    kind, code, text = reply.get("step_type", ""), reply.get("exit_code", 0), reply.get("output", "")
    known = kind in STEP_OUTPUTS and kind in REPLIES and (code == 0 or kind in _FREE_ON_FAILURE)
    output: Any = {}
    if known and (text or code == 0):
        output = await _output(e, called_host(e, call), kind, text)
    host = called_host(e, call)  # it may have gone meanwhile
    e.replied(host["id"], kind, code)
    if code == MEDIA_EXIT:
        _media_lost(e, host)
    if code != 0 and kind not in _FREE_ON_FAILURE:
        failed = _FAILURES.get(kind)
        if failed:
            failed(e, host, reply)
        return None
    if code == 0 and host.get("media_status") == "disconnected":
        host["media_status"] = "connected"
        e.dirty.add(host["id"])
    if not known:
        return None
    if isinstance(output, ApiError):
        raise output
    REPLIES[kind](e, host, output, code)
    return None


def _media_lost(e: Engine, host: Host) -> None:
    """Report a failure once, because the agent repeats it with every step. A host that has failed already keeps its reason."""
    if (
        host.get("media_status") == "disconnected"
        or state.decide(state.HOST, HostTrigger.MEDIA_DISCONNECT, host["status"], lambda name: True) is None
    ):
        return
    reason, before = MEDIA_DISCONNECTED, host.get("status_info", "")
    if host["status"] == Status.ERROR:
        reason = f"Failed - {reason}"
        reason = before if reason in before else f"{reason}. {before}"
    host["media_status"] = "disconnected"
    e.event("host_media_disconnected", host=host)
    e.trigger(host, HostTrigger.MEDIA_DISCONNECT, lambda name: True, REASON=reason)


def _install_failed(e: Engine, host: Host, reply: StepReply) -> None:
    error = reply.get("error", "")
    if "already in use" in error and "assisted-installer" in error:
        return
    e.trigger(host, HostTrigger.FAILED, lambda name: True)


def _tang_failed(e: Engine, host: Host, reply: StepReply) -> None:
    host["tang_connectivity"] = json.dumps({"is_success": False, "error": reply.get("error", "")[:2000]})
    e.dirty.add(host["id"])


_FAILURES: dict[str, Callable[[Engine, Host, StepReply], None]] = {
    "install": _install_failed,
    "tang-connectivity-check": _tang_failed,
}


_Kept = Literal["free_addresses", "ntp_sources", "domain_name_resolutions", "tang_connectivity", "api_vip_connectivity"]


def _keep(
    field_name: _Kept, pick: Callable[[Any], Any] = lambda output: output, cluster: bool = False
) -> Callable[[Engine, Host, Any, int], None]:
    def take(e: Engine, host: Host, output: object, code: int) -> None:
        text = json.dumps(pick(output), ensure_ascii=False, separators=(",", ":"))
        if host.get(field_name) != text:
            host[field_name] = text
            e.dirty.add(host["id"])
            if cluster:
                e.dirty.add(host.get("cluster_id", ""))

    return take


def _take_inventory(e: Engine, host: Host, output: tuple[Inventory, str], code: int) -> None:
    if host["status"] in EDITABLE or host["status"].endswith("-unbound"):
        e.keep_inventory(host, *output)


def _take_connectivity(e: Engine, host: Host, output: tuple[ConnectivityReport, str], code: int) -> None:
    e.take_connectivity(host, *output)


def _take_vips(e: Engine, host: Host, output: list[VerifiedVip], code: int) -> None:
    cluster = e.cluster_of(host)
    if cluster is None or cluster["status"] not in BEFORE_INSTALL:
        return
    for key in VIPS:
        kind = key.removesuffix("_vips")
        found = {vip.get("vip"): vip.get("verification", "") for vip in output if vip.get("vip_type") == kind}
        made: list[Vip] = [
            {**vip, "verification": found[vip["ip"]]} if found.get(vip["ip"]) in ("succeeded", "failed") else vip
            for vip in cluster.get(key, ())
        ]
        if made != cluster.get(key, []):
            cluster[key] = made
            e.dirty.add(cluster["id"])


def _take_dhcp(e: Engine, host: Host, output: DhcpResponse, code: int) -> None:
    cluster = e.cluster_of(host)
    if cluster is None or not cluster.get("vip_dhcp_allocation"):
        return
    leased = (
        ("api", output["api_vip_address"], output.get("api_vip_lease", "")),
        ("ingress", output["ingress_vip_address"], output.get("ingress_vip_lease", "")),
    )
    for key, ip, lease in leased:
        if not any(contains(cidr, ip) for cidr in validations.machine_cidrs(cluster)):
            raise ApiError(400, f"{key} VIP {ip} from DHCP does not belong to the machine networks")
        made = [{"cluster_id": cluster["id"], "ip": ip, "verification": "succeeded"}]
        tracked_document(cluster).set(**{f"{key}_vips": made, f"_{key}_lease": lease})
    e.dirty.add(cluster["id"])


def _take_disk_speed(e: Engine, host: Host, output: DiskSpeed, code: int) -> None:
    path = output.get("path") or host.get("installation_disk_id", "")
    speed = output.get("io_sync_duration", 0)
    info = {"path": path, "disk_speed": {"tested": True, "exit_code": code, "speed_ms": speed}}
    disk = inv.find_disk(e.inventories.get(host["id"], {}), path)
    if disk is None:
        return
    host["disks_info"] = json.dumps({**load_json(host.get("disks_info") or "{}", name="disks_info"), disk["id"]: info})
    cluster = e.cluster_of(host) or {}
    limit = validations.requirement(e.table(cluster), cluster, validations.role_of(host)).get(
        "installation_disk_speed_threshold_ms", 0
    )
    if code == 0:
        e.metrics.observe("cluster_host_disk_sync_duration_ms", speed)
    if code == 0 and limit and speed > limit:
        e.event("disk_speed_slower_than_supported", host=host, host_disk=path, fdatasync_duration=speed)
    e.dirty.add(host["id"])


def _take_images(e: Engine, host: Host, output: ImageAvailability, code: int) -> None:
    known = load_json(host.get("images_status") or "{}", name="images_status")
    wanted = set(e.needed_images(e.cluster_of(host) or {}))
    images = output.get("images") or [
        {"name": name, "result": "failure"} for name in wanted if name not in known and code != 0
    ]
    for image in images:
        name = image.get("name", "")
        if name not in wanted:
            continue
        if name in known:
            known[name]["result"] = image.get("result", "")
            continue
        known[name] = image
        time, size, rate = image.get("time", 0), image.get("size_bytes", 0), image.get("download_rate", 0)
        pulled = f"time: {time:.2f} seconds; size: {size / 2**20:.2f} Megabytes; download rate: {rate:.2f} MBps"
        info = pulled if size else ""
        e.metrics.observe("cluster_image_pull_status", rate, name, str(image.get("result", "")))
        e.event("image_status_updated", host=host, image_status=name, result=image.get("result", ""), info=info)
    host["images_status"] = json.dumps(known)
    e.dirty.add(host["id"])


def _take_upgrade(e: Engine, host: Host, output: UpgradeResponse, code: int) -> None:
    name = "upgrade_agent_finished" if output.get("result") == "success" else "upgrade_agent_failed"
    e.event(name, host=host, agent_image=output.get("agent_image", ""))


REPLIES: dict[str, Callable[[Engine, Host, Any, int], None]] = {
    "inventory": _take_inventory,
    "connectivity-check": _take_connectivity,
    "free-network-addresses": _keep("free_addresses", cluster=True),
    "verify-vips": _take_vips,
    "ntp-synchronizer": _keep("ntp_sources", lambda output: output.get("ntp_sources", [])),
    "domain-resolution": _keep("domain_name_resolutions"),
    "dhcp-lease-allocate": _take_dhcp,
    "installation-disk-speed-check": _take_disk_speed,
    "container-image-availability": _take_images,
    "tang-connectivity-check": _keep("tang_connectivity"),
    "api-vip-connectivity-check": _keep("api_vip_connectivity"),
    "upgrade-agent": _take_upgrade,
}
