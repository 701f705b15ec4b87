"""Failures: each fault as an agent reports it, and the resulting status and message of the service."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.payload.api_server import state
from ansible_collections.agentlab.ocp.payload.api_server.tables import MEDIA_DISCONNECTED

from .lab import Agent, Lab
from .test_install import VIPS
from .test_state import Clock, installing, one, pump

MAJORITY = "No connectivity to the majority of hosts in the cluster"
NOT_READY = "Host cannot be installed due to following failing validation(s): "


def _set(**fields: Any) -> Callable[[Agent], None]:
    return lambda agent: agent.inventory.update(fields)


def _answer(step: str, change: Callable[[Any], Any]) -> Callable[[Agent], None]:
    """Changes what an agent answers to a step."""

    def inject(agent: Agent) -> None:
        name = "do_" + step.replace("-", "_")
        good = getattr(agent, name)
        setattr(agent, name, lambda args: change(good(args)))

    return inject


def _deaf(report: Any) -> Any:
    for peer in report["remote_hosts"]:
        for entry in peer["l2_connectivity"]:
            entry["successful"] = False
    return report


def _small_frames(report: Any) -> Any:
    for peer in report["remote_hosts"]:
        for entry in peer["mtu_report"]:
            entry["mtu_successful"] = False
    return report


def _wildcard(answer: Any) -> Any:
    for entry in answer["resolutions"]:
        entry["ipv4_addresses"] = ["192.0.2.1"]
    return answer


def _slow(report: Any) -> Any:
    for peer in report["remote_hosts"]:
        for entry in peer["l3_connectivity"]:
            entry["average_rtt_ms"] = 250.0
    return report


#: Fault of the first of three hosts: how, the host's status, its text, the validation that reports it, its message.
DISCOVERY: dict[str, tuple[Callable[[Agent], None], str, str, str, str]] = {
    "memory": (
        _set(memory={"physical_bytes": 2**30, "usable_bytes": 2**30, "physical_bytes_method": "dmidecode"}),
        "insufficient",
        "Host does not meet the minimum hardware requirements: Require at least 2.00 GiB RAM for role",
        "has-min-memory",
        "The host is not eligible to participate in Openshift Cluster because the minimum required RAM for any role is "
        "2.00 GiB, found only 1.00 GiB",
    ),
    "disk": (
        _set(disks=[{"name": "sda", "path": "/dev/sda", "drive_type": "HDD", "size_bytes": 5 * 10**9}]),
        "insufficient",
        "Host does not meet the minimum hardware requirements: No eligible disks were found",
        "has-min-valid-disks",
        "No eligible disks were found, please check specific disks to see why they are not eligible",
    ),
    "duplicate hostname": (
        _set(hostname="node-1"),
        "insufficient",
        f"{NOT_READY}Hostname node-1 is not unique in cluster",
        "hostname-unique",
        "Hostname node-1 is not unique in cluster",
    ),
    "invalid hostname": (
        _set(hostname="localhost"),
        "insufficient",
        f"{NOT_READY}The host name localhost is forbidden",
        "hostname-valid",
        "The host name localhost is forbidden",
    ),
    "no default route": (
        _set(routes=[]),
        "insufficient",
        f"{NOT_READY}Host has not yet been configured with a default route.",
        "has-default-route",
        "Host has not yet been configured with a default route.",
    ),
    "DNS wildcard": (
        _answer("domain-resolution", _wildcard),
        "insufficient",
        f"{NOT_READY}DNS wildcard configuration was detected for domain *.ostest.test.example",
        "dns-wildcard-not-configured",
        "DNS wildcard configuration was detected for domain *.ostest.test.example - the installation will not be able to "
        "complete while this record exists. Please remove it to proceed. The domain resolves to 192.0.2.1",
    ),
    "one-way ARP": (
        _answer("connectivity-check", _deaf),
        "insufficient",
        NOT_READY + MAJORITY,
        "belongs-to-majority-group",
        MAJORITY,
    ),
    "latency": (
        _answer("connectivity-check", _slow),
        "insufficient",
        f"{NOT_READY}A total network latency above the tolerated threshold of 100.00 ms was encountered",
        "sufficient-network-latency-requirement-for-role",
        "A total network latency above the tolerated threshold of 100.00 ms was encountered when performing network latency tests",
    ),
    # These are shown, and hold nothing up.
    "MTU": (
        _answer("connectivity-check", _small_frames),
        "known",
        "Host is ready to be installed",
        "mtu-valid",
        "MTU is broken. Interface: eth0, remote IP address: 192.168.111.2",
    ),
    "NTP": (
        _answer(
            "ntp-synchronizer", lambda answer: {"ntp_sources": [{"source_name": "x", "source_state": "unreachable"}]}
        ),
        "known",
        "Host is ready to be installed",
        "ntp-synced",
        "Host couldn't synchronize with any NTP server",
    ),
}


def checks(document: Any) -> dict[str, tuple[str, str]]:
    """Validation -> (status, message) as a document shows them."""
    groups = json.loads(document.get("validations_info") or "{}").values()
    return {entry["id"]: (entry["status"], entry["message"]) for group in groups for entry in group}


@pytest.mark.parametrize("fault", DISCOVERY)
async def test_fault_in_discovery(tmp_path: Path, fault: str) -> None:
    inject, status, text, ident, message = DISCOVERY[fault]
    async with Lab(tmp_path) as lab:
        cluster = await lab.cluster(**VIPS)
        infra_env = await lab.infra_env(cluster["id"])
        agents = [Agent(lab, infra_env["id"], index) for index in range(3)]
        inject(agents[0])
        for agent in agents:
            await agent.register()
        path = agents[0].path
        for __ in range(200):
            for agent in agents:
                await agent.poll()
            await asyncio.sleep(0.05)
            host = await lab.call("GET", path)
            found = checks(host).get(ident, ("", ""))
            if host["status"] == status and found[0] == "failure" and host["status_info"].startswith(text):
                break
        assert (host["status"], found[0]) == (status, "failure"), host["status_info"]
        assert host["status_info"].startswith(text)
        assert found[1].startswith(message)
        if status != "known":
            shown = await lab.until(f"/clusters/{cluster['id']}", lambda c: c["status"] == "insufficient")
            assert checks(shown)["all-hosts-are-ready-to-install"] == (
                "failure",
                "The cluster has hosts that are not ready to install.",
            )
            refusal = await lab.call("POST", f"/clusters/{cluster['id']}/actions/install", status=409)
            assert refusal["reason"].startswith(
                "Cluster is not ready for installation, Cluster is not ready for install validation_info={"
            )


async def test_extra_host(tmp_path: Path) -> None:
    async with Lab(tmp_path) as lab:
        path, agent = await one(lab)
        await pump(lab, agent, "known")
        extra = Agent(lab, agent.infra_env_id, 1)
        await extra.register()
        await pump(lab, extra, "known")
        shown = await lab.until(
            path, lambda found: checks(found).get("sufficient-masters-count", ("",))[0] == "failure"
        )
        assert shown["status"] == "insufficient"
        assert checks(shown)["sufficient-masters-count"][1] == (
            "Single-node clusters must have a single control plane node and no workers."
        )
        await lab.call("DELETE", extra.path, status=204)
        await lab.until(path, lambda found: found["status"] == "ready")


@pytest.mark.parametrize("stage", ["", "Starting installation", "Waiting for bootkube", "Writing image to disk"])
async def test_lost_in_a_stage(tmp_path: Path, stage: str) -> None:
    async with Lab(tmp_path) as lab:
        clock = lab.engine.clock = Clock()
        path, agent = await installing(lab)
        if stage:
            await agent.stage(stage)
        # The bootstrap host has two minutes more than others.
        clock.ahead = 3 * 60 + 110
        await asyncio.sleep(0.1)
        assert (await lab.call("GET", agent.path))["status"] == ("installing-in-progress" if stage else "installing")
        clock.ahead = 5 * 60 + 10
        host = await lab.until(agent.path, lambda found: found["status"] == "error")
        assert host["status_info"] == (
            "Host failed to install due to timeout while connecting to host during the installation phase."
        )
        found = await lab.until(path, lambda found: found["status"] == "error")
        assert found["status_info"] == "cluster has hosts in error"
        [event] = [e for e in await lab.call("GET", "/events") if e["name"] == "cluster_installation_failed"]
        assert (event["severity"], event["message"]) == (
            "critical",
            "Failed installing cluster. Reason: cluster has hosts in error",
        )


async def test_a_host_lost_after_the_reboot_is_not_a_loss(tmp_path: Path) -> None:
    async with Lab(tmp_path) as lab:
        clock = lab.engine.clock = Clock()
        __, agent = await installing(lab)
        await agent.stage("Rebooting")
        clock.ahead = 30 * 60
        await asyncio.sleep(0.1)
        host = await lab.call("GET", agent.path)
        assert host["status"] == "installing-in-progress"
        assert "connected" not in checks(host)


async def test_lost_with_soft_timeouts(tmp_path: Path) -> None:
    async with Lab(tmp_path, {"ENABLE_SOFT_TIMEOUTS": "true"}) as lab:
        clock = lab.engine.clock = Clock()
        __, agent = await installing(lab)
        await agent.stage("Waiting for bootkube")
        clock.ahead = 10 * 60
        host = await lab.until(agent.path, lambda found: found.get("connection_timed_out"))
        assert (host["status"], host["status_info"]) == ("installing-in-progress", state.SOFT_LOST)
        await agent.poll()
        host = await lab.until(agent.path, lambda found: not found.get("connection_timed_out"))
        assert host["status_info"] == state.SOFT_FOUND
        clock.ahead = 65 * 60
        host = await lab.until(agent.path, lambda found: found["progress"].get("stage_timed_out"))
        assert host["status"] == "installing-in-progress"
        names = [event["name"] for event in await lab.call("GET", "/events")]
        assert names.count("host_stage_timed_out") == 1


async def test_lost_while_preparing(tmp_path: Path) -> None:
    async with Lab(tmp_path) as lab:
        clock = lab.engine.clock = Clock()
        path, agent = await one(lab)
        await pump(lab, agent, "known")
        await lab.until(path, lambda found: found["status"] == "ready")
        await lab.call("POST", f"{path}/actions/install", status=202)
        await lab.until(agent.path, lambda found: found["status"] == "preparing-for-installation")
        clock.ahead = 5 * 60 + 10
        host = await lab.until(agent.path, lambda found: found["status"] == "disconnected")
        assert host["status_info"] in (state.LOST_PREPARING, state.DISCONNECTED)
        found = await lab.until(path, lambda found: found["status"] == "insufficient")
        assert found["status_info"] in (
            "At least one host has stopped preparing for installation",
            "Cluster is not ready for install",
        )
        names = [event["message"] for event in await lab.call("GET", "/events")]
        assert any(state.LOST_PREPARING in text for text in names)


async def test_preparation_timeout_names_what_is_missing(tmp_path: Path) -> None:
    async with Lab(tmp_path, {"HOST_MAX_DISCONNECTION_TIME": "24h"}) as lab:
        clock = lab.engine.clock = Clock()
        path, agent = await one(lab)
        await pump(lab, agent, "known")
        await lab.until(path, lambda found: found["status"] == "ready")
        await lab.call("POST", f"{path}/actions/install", status=202)
        await lab.until(agent.path, lambda found: found["status"] == "preparing-for-installation")
        clock.ahead = 8 * 60 + 10
        await lab.until(path, lambda found: found["status"] == "ready")
        texts = [event["message"] for event in await lab.call("GET", "/events")]
        assert any(
            text.endswith(
                "(The host has encountered a preparation timeout, the following conditions failed: "
                f"{state.DISK_SPEED_UNKNOWN}\n{state.IMAGES_UNKNOWN})"
            )
            for text in texts
        )
        # And the way on: known again, and a second try.
        await pump(lab, agent, "known")


@pytest.mark.parametrize("when", ["discovery", "installation"])
async def test_media_lost(tmp_path: Path, when: str) -> None:
    async with Lab(tmp_path) as lab:
        if when == "discovery":
            __, agent = await one(lab)
            await pump(lab, agent, "known")
        else:
            __, agent = await installing(lab)
            await agent.stage("Installing")
        # The agent finds it gone before every step that it is given.
        for kind in ("inventory", "ntp-synchronizer", "container-image-availability"):
            await agent.reply({"step_type": kind, "step_id": "x"}, None, code=256)
        host = await lab.call("GET", agent.path)
        assert host["status"] == ("disconnected" if when == "discovery" else "error")
        # In discovery the next check of the host reports of every disconnected one, as upstream's, that it stopped communicating.
        assert host["status_info"] in (MEDIA_DISCONNECTED, state.DISCONNECTED if when == "discovery" else "")
        assert host["media_status"] == "disconnected"
        [event] = [e for e in await lab.call("GET", "/events") if e["name"] == "host_media_disconnected"]
        assert (event["severity"], event["message"]) == ("error", MEDIA_DISCONNECTED)


async def test_media_lost_after_an_error(tmp_path: Path) -> None:
    """The first error is still reported."""
    async with Lab(tmp_path) as lab:
        __, agent = await installing(lab)
        await agent.reply({"step_type": "install", "step_id": "x"}, None, code=125)
        await agent.reply({"step_type": "inventory", "step_id": "x"}, None, code=256)
        host = await lab.call("GET", agent.path)
        assert (host["status"], host["status_info"]) == (
            "error",
            f"Failed - {MEDIA_DISCONNECTED}. installation command failed",
        )


async def test_installer_cannot_start(tmp_path: Path) -> None:
    async with Lab(tmp_path) as lab:
        path, agent = await installing(lab)
        await agent.reply({"step_type": "install", "step_id": "x"}, None, code=125)
        host = await lab.call("GET", agent.path)
        assert (host["status"], host["status_info"]) == ("error", "installation command failed")
        await lab.until(path, lambda found: found["status"] == "error")


async def test_ignored_validation(tmp_path: Path) -> None:
    async with Lab(tmp_path) as lab:
        path, agent = await one(lab)
        agent.inventory["routes"] = []
        await pump(lab, agent, "insufficient")
        answer = await lab.call(
            "PUT", f"{path}/ignored-validations", {"host-validation-ids": '["hostname-valid"]'}, 400
        )
        assert "unable to ignore the following host validations (hostname-valid)" in answer["reason"]
        await lab.call("PUT", f"{path}/ignored-validations", {"host-validation-ids": '["has-default-route"]'}, 201)
        host = await pump(lab, agent, "known")
        assert checks(host)["has-default-route"][0] == "failure"


async def test_a_clock_that_is_set_loses_no_host(tmp_path: Path) -> None:
    """As after the restore of a snapshot: hours have passed for the clock, and none for the hosts."""
    async with Lab(tmp_path) as lab:
        clock = lab.engine.clock = Clock()
        path, agent = await installing(lab)
        lab.engine.notice_step(0)
        clock.ahead = 48 * 3600
        lab.engine.notice_step(clock.ahead)
        await asyncio.sleep(0.1)
        assert (await lab.call("GET", agent.path))["status"] == "installing"
        assert (await lab.call("GET", path))["status"] == "installing"
        # Then time counts again.
        clock.ahead += 5 * 60 + 10
        await lab.until(agent.path, lambda found: found["status"] == "error")
