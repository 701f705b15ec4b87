"""Run directories as a run leaves them, small: made of the formats that its programs write."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ansible_collections.agentlab.ocp.plugins.module_utils.plan import rundir
from ansible_collections.agentlab.ocp.plugins.module_utils.screen.picture import Picture, to_png
from ansible_collections.agentlab.ocp.plugins.module_utils.state.events import FILE, Event, EventLog, Kind, event

ROOT = Path(__file__).resolve().parents[2]
START = 1_767_225_600.0  # 2026-01-01T00:00:00Z
STATUSES = (
    "discovering",
    "insufficient",
    "known",
    "preparing-for-installation",
    "preparing-successful",
    "installing",
    "installing-in-progress",
)
STAGES = ("Starting installation", "Installing", "Writing image to disk", "Rebooting", "Joined", "Done")
VALIDATIONS = (
    "connected",
    "has-inventory",
    "has-min-memory",
    "ntp-synced",
    "hostname-unique",
    "container-images-available",
)


def good(run_dir: Path, profile: str = "compact_ipv4", hosts: int | None = None) -> Path:
    """An installation that succeeded."""
    names = _plan(run_dir, profile, hosts)
    events = [*_begin(), *_hosts(names, STAGES), *_stage("wait", 60, 500)]
    events += [
        event("check", "nodes", "ok", "3 of 3 Ready", at=START + 505),
        event("operator", "etcd", "Available", at=START + 480),
    ]
    _write(run_dir, [*events, *_stage("validate", 502, 510)])
    (run_dir / "logs/wait-for.log").write_text('time="2026-01-01T00:01:10Z" level=info msg="Cluster is ready"\n')
    return run_dir


def failed(run_dir: Path, text: str = "", lines: int = 300) -> Path:
    """An installation that failed: a machine was powered off. text: added to what hosts and logs report."""
    names = _plan(run_dir, "compact_ipv4", None)
    cause = f"VM ut_master_1 (master-1) is shut off{text}"
    until = event("run", "", at=START + 200)["time"]  # of the machine that is off
    events = [
        *_begin(),
        *(one for one in _hosts(names, STAGES[:3], text) if one["subject"] != "master-1" or one["time"] < until),
    ]
    more: list[tuple[float, Kind, str, str, str]] = [
        (150, "fault", "power_off", "", "power_off master-1 begins (installing)"),
        (200, "host", "master-1", "error", f"Host lost{text}"),
        (201, "message", "wait", "", f"Cluster has hosts in error{text}"),
    ]
    events += [
        event(kind, name, state, reason, level="error" if state else "warning", at=START + at)
        for at, kind, name, state, reason in more
    ]
    events += [
        event(
            "validation",
            "ntp-synced",
            "failure",
            f"no NTP server{text}",
            level="warning",
            host="master-2",
            at=START + 205,
        )
    ]
    events += _stage("wait", 60, 300, failure=f"Wait for the installation: bootstrap process returned error: {cause}")
    events += [event("stage", "gather", "started", at=START + 301), event("stage", "gather", "ok", at=START + 311)]
    found = {cause: "agentlab boot", "also something": "agentlab wait"}
    events += [
        event("cause", "", text=reason, level="error", next=step, at=START + 310) for reason, step in found.items()
    ]
    _write(run_dir, events)
    (run_dir / "logs/wait-for.log").write_text(
        f'time="2026-01-01T00:02:31Z" level=warning msg="Cluster has hosts in error{text}"\n'
    )
    for name in names:
        journal = run_dir / "report/hosts" / name / "agent-gather" / "journal.log"
        journal.parent.mkdir(parents=True)
        stamps = (f"Jan 01 00:{i * 5 // lines:02}:{i * 300 // lines % 60:02}.{i % 1000:03}000" for i in range(lines))
        journal.write_text(
            "".join(f"{stamp} {name} agent.service[{i}]: line {i}{text}\n" for i, stamp in enumerate(stamps))
        )
    console = run_dir / "report/console/ut_master_1.log"
    console.parent.mkdir()
    console.write_text(f"\x1b[0mBdsDxe: starting\r\n[    1.0] kernel: {text}\r\n")
    (run_dir / "logs/cluster.json").write_text(json.dumps({"hosts": [_reports(name, names, text) for name in names]}))
    registry = run_dir / "report/services/registry.log"
    registry.parent.mkdir()
    registry.write_text("".join(_responses(run_dir, text)))
    (run_dir / "report/services/dhcp.log").write_text("".join(_leases(text)))
    (run_dir / "report/summary.txt").write_text(f"First cause: {cause}\n")
    screen = run_dir / "report/screen/ut_master_1.png"
    screen.parent.mkdir()
    screen.write_bytes(to_png(Picture(2, 1, b"\0\0\0\xff\xff\xff")))
    return run_dir


def _leases(text: str) -> Iterator[str]:
    """Lines of dnsmasq 2.89: master-0 gets its address, an unknown machine gets none."""
    stamps = (datetime.datetime.fromtimestamp(START + 10 + i).strftime("%b %e %H:%M:%S") for i in range(5))
    for stamp, line in zip(
        stamps,
        (
            "dnsmasq[41]: started, version 2.89 cachesize 150",
            "dnsmasq-dhcp[41]: DHCPDISCOVER(utbm) 52:54:00:00:00:01",
            "dnsmasq-dhcp[41]: DHCPACK(utbm) 192.168.111.20 52:54:00:00:00:01 master-0",
            "dnsmasq-dhcp[41]: DHCPREPLY(utbm) fd2e:6f44:5dd8::99 00:03:00:01:52:54:00:00:00:02",
            f"dnsmasq-dhcp[41]: DHCPDISCOVER(utbm) 52:54:00:00:00:03 no address available{text}",
        ),
        strict=True,
    ):
        yield f"{stamp} {line}\n"


def _reports(name: str, names: list[str], text: str) -> dict[str, str]:
    """A host of the service that reaches all others but master-1."""
    remote = [
        {
            "host_id": other,
            "l2_connectivity": [
                {"remote_ip_address": f"192.168.111.2{number}{text}", "successful": other != "master-1"}
            ],
            "l3_connectivity": [
                {"remote_ip_address": f"192.168.111.2{number}", "successful": True, "average_rtt_ms": 1.25}
            ],
        }
        for number, other in enumerate(names)
        if other != name
    ]
    return {"id": name, "requested_hostname": name, "connectivity": json.dumps({"remote_hosts": remote})}


def _responses(run_dir: Path, text: str) -> Iterator[str]:
    """Lines of docker-registry 2.8: master-0 pulls two layers at a time, another manifest is missing."""
    node = rundir.load_plan(run_dir)["nodes"][0]
    for at, written, lasted, error in (
        (90.0, 4 << 20, "2s", ""),
        (90.5, 2 << 20, "500ms", ""),
        (120.0, 91, "1.5ms", f"manifest unknown{text}"),
    ):
        kind = "manifests" if error else "blobs"
        fields = {
            "time": event("run", "", at=START + at)["time"],
            "level": "error" if error else "info",
            "msg": "response completed with error" if error else "response completed",
            **({"err.message": error} if error else {}),
            "http.request.method": "GET",
            "http.request.remoteaddr": f"{node['nics'][0]['addresses'][0]['ip']}:4000",
            "http.request.uri": f"/v2/lab/release/{kind}/sha256:{'0' * 64}",
            "http.response.duration": lasted,
            "http.response.status": "404" if error else "200",
            "http.response.written": str(written),
        }
        yield " ".join(f"{key}={json.dumps(value)}" for key, value in fields.items()) + "\n"


def _plan(run_dir: Path, profile: str, hosts: int | None) -> list[str]:
    plan, changes = rundir.prepare(run_dir, profile, ROOT / "config_examples", "ut")
    rundir.write(changes)
    (run_dir / "logs").mkdir(parents=True)
    return [f"host-{number}" for number in range(hosts)] if hosts else [node["name"] for node in plan["nodes"]]


def _begin() -> list[Event]:
    names = ("prepare", "configure", "image", "boot")
    return [event("run", "compact_ipv4", text="agentlab 1.0.0 (abc1234)", at=START),
            *(one for number, name in enumerate(names) for one in _stage(name, number * 15, number * 15 + 14)),
            event("machine", "master-0", "booted", "booted from its image", at=START + 55)]  # fmt: skip


def _stage(name: str, start: int, end: int, failure: str = "") -> list[Event]:
    task = event("task", f"Task of {name}", "ok", at=START + end, stage=name, seconds=end - start - 1)
    return [event("stage", name, "started", at=START + start), task,
            event("stage", name, "failed" if failure else "ok", failure, level="error" if failure else "info", at=START + end)]  # fmt: skip


def _hosts(names: list[str], stages: tuple[str, ...], text: str = "") -> list[Event]:
    found = [
        event("cluster", "ut", status, at=START + at, late=late)
        for status, at, late in (("insufficient", 70, 0), ("ready", 100, 2000), ("installing", 130, 4000))
    ]
    for number, name in enumerate(names):
        at = START + 70 + number % 20
        for check in VALIDATIONS:
            found.append(
                event(
                    "validation",
                    check,
                    "failure" if check == "ntp-synced" else "success",
                    f"{check}{text}",
                    host=name,
                    at=at,
                )
            )
        found.append(event("validation", "ntp-synced", "success", "synchronized", host=name, at=at + 20))
        found += [event("host", name, status, f"info{text}", at=at + 10 * i) for i, status in enumerate(STATUSES)]
        found += [
            event("host", name, STATUSES[-1], f"info{text}", stage=stage, percentage=10 * i, at=at + 70 + 40 * i)
            for i, stage in enumerate(stages)
        ]
    return sorted(found, key=lambda one: one["time"])


def _write(run_dir: Path, events: list[Event]) -> None:
    stages: dict[str, Any] = {}
    (run_dir / "state.json").write_text(json.dumps({"owner": None, "created": [], "stages": stages}))
    EventLog(run_dir / FILE).write(sorted(events, key=lambda one: one["time"]))
