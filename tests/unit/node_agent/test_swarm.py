from __future__ import annotations

import asyncio
import base64
import csv
import itertools
import json
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from dataclasses import replace
from html.parser import HTMLParser
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from ansible_collections.agentlab.ocp.payload.node_agent import protocol
from ansible_collections.agentlab.ocp.payload.node_agent.swarm import hardware, install, main, noop, page, report
from ansible_collections.agentlab.ocp.payload.node_agent.swarm import stats as stats_module
from ansible_collections.agentlab.ocp.payload.node_agent.swarm.driver import Swarm
from ansible_collections.agentlab.ocp.payload.node_agent.swarm.settings import (
    FAILURES,
    Settings,
    SwarmError,
    part_of,
    shares,
    topologies,
)
from ansible_collections.agentlab.ocp.payload.node_agent.swarm.stats import Histogram, Stats
from ansible_collections.agentlab.ocp.plugins.module_utils.vocabulary import Exit
from ansible_collections.agentlab.ocp.tests.unit.node_agent.fake_assisted import FakeAssisted

FAST: dict[str, Any] = {
    "think_time": 0.0, "watch": 0.1, "controller_poll": 0.1, "installer_poll": 0.05, "write_reports": 2, "register_interval": 0.2,
    "stall": 20.0, "progress": 0.1, "logs_kib": 1,
}  # fmt: skip


def run(settings: Settings) -> tuple[Swarm, dict[str, Any]]:
    async def whole() -> tuple[Swarm, dict[str, Any]]:
        swarm = Swarm(settings)
        return swarm, await asyncio.wait_for(swarm.run(), 60)

    return asyncio.run(whole())


@pytest.mark.parametrize(("topology", "hosts"), [("sno", 1), ("ha", 5), ("tna", 3)])
def test_clusters_are_installed_and_removed(service: FakeAssisted, topology: str, hosts: int, tmp_path: Path) -> None:
    __, result = run(Settings(service.url, clusters=2, topology={topology: 1}, **FAST))
    assert result["ends"] == {"installed": 2} and not result["errors"] and not service.errors
    assert service.clusters == service.infra_envs == service.hosts == {}
    assert result["operations"]["register"]["count"] == 2 * hosts
    assert result["resources"]["peak_agents"] == 2 * hosts
    assert {"discovering", "known", "installed"} & set(result["time_to_host_status"])
    # With 150 hosts the cluster's own view is 10 MB, which would be the memory of the swarm.
    assert not [
        path for method, path in service.requests if method == "GET" and path.endswith(tuple(seen_clusters(service)))
    ]
    paths = {path.name: path for path in report.save(result, tmp_path)}
    assert json.loads(paths["report.json"].read_text())["ends"] == {"installed": 2}
    rows = list(csv.DictReader(paths["operations.csv"].open()))
    assert {"operation", "count", "p50_ms", "p99_ms"} <= set(rows[0])
    assert len(list(csv.DictReader(paths["samples.csv"].open()))) == len(result["samples"])
    page = paths["report.html"].read_text()
    HTMLParser().feed(page)
    assert (
        page.count("<svg") == 7
        and "2 of 2 clusters installed" in page
        and "pull_secret" not in page + paths["report.json"].read_text()
    )


def seen_clusters(service: FakeAssisted) -> set[str]:
    return {
        path.rpartition("/")[2].partition("?")[0]
        for method, path in service.requests
        if method == "DELETE" and "/clusters/" in path
    }


def test_service_that_is_invalid_or_refuses(service: FakeAssisted) -> None:
    service.instead = {"": lambda: web.Response(text="<html>", content_type="text/html")}
    with pytest.raises(SwarmError, match=r"/component-versions: the answer is not JSON: is this an assisted service\?"):
        run(Settings(service.url, **FAST))
    refused = {"code": 401, "message": "no"}
    service.instead = {"component": lambda: web.json_response(refused, status=401)}
    with pytest.raises(SwarmError, match=r"/component-versions: \[401\] no; tokens are read from USER_AUTH_TOKEN and"):
        run(Settings(service.url, **FAST))
    service.instead = {"/clusters/0000": lambda: web.json_response(refused, status=401)}
    with pytest.raises(
        SwarmError, match=r"refuses the token of agents, which is read from PULL_SECRET_TOKEN: \[401\] no"
    ):
        run(Settings(service.url, **FAST))


def test_registration_that_fails_leaves_nothing(service: FakeAssisted) -> None:
    service.refuse_cluster = 3
    with pytest.raises(SwarmError, match=r"POST .*/clusters: \[500\] as ordered$"):
        run(Settings(service.url, clusters=40, **FAST))
    assert service.clusters == service.infra_envs == {}
    assert sum(request == ("POST", "/api/assisted-install/v2/clusters") for request in service.requests) < 40


def test_cluster_that_another_client_deletes(service: FakeAssisted) -> None:
    async def whole() -> dict[str, Any]:
        swarm = Swarm(Settings(service.url, topology={"sno": 1}, install=False, **FAST))
        running = asyncio.ensure_future(swarm.run())
        while not service.hosts:
            await asyncio.sleep(0.05)
        service.clusters.clear()
        return await asyncio.wait_for(running, 60)

    result = asyncio.run(whole())
    assert result["ends"] == {"deleted": 1} and result["left"] == [] and service.infra_envs == {}


def test_agents_that_are_refused(service: FakeAssisted) -> None:
    service.answers = [403] * 3
    __, result = run(Settings(service.url, topology={"compact": 1}, **FAST))
    assert result["ends"] == {"refused": 1} and sum(result["gave_up"].values()) == 3
    assert result["failed"][0]["cluster"] == "swarm-0"


def test_certificates(tmp_path: Path) -> None:
    with pytest.raises(SwarmError, match=r"--cacert /no/such: No such file"):
        run(Settings("https://127.0.0.1:9", cacert="/no/such", **FAST))
    (tmp_path / "ca").write_text("no certificate")
    with pytest.raises(SwarmError, match=r"--cacert .*/ca: .*CERTIFICATE"):
        run(Settings("https://127.0.0.1:9", cacert=str(tmp_path / "ca"), **FAST))


def test_discovers(service: FakeAssisted) -> None:
    service.infra_envs["ie1"] = {"id": "ie1", "cluster_id": "c1"}
    service.infra_envs["ie2"] = {"id": "ie2", "cluster_id": "c2"}
    for name, status in (("c1", "insufficient"), ("c2", "installed")):
        service.clusters[name] = {"id": name, "name": name, "base_dns_domain": "x.test", "status": status, "control_plane_count": 1,
                                  "operators": {}}  # fmt: skip
    swarm, result = run(Settings(service.url, discover=True, topology={"sno": 1}, **FAST))
    assert result["ends"] == {"installed": 1} and service.clusters["c1"]["status"] == "installed"
    assert set(service.infra_envs) == {"ie1", "ie2"} and [cluster.name for cluster in swarm.clusters] == ["c1"]
    service.clusters.clear()
    with pytest.raises(SwarmError, match="no infra-env with a cluster that is not installed"):
        run(Settings(service.url, discover=True, **FAST))


def test_failures(service: FakeAssisted) -> None:
    __, result = run(
        Settings(service.url, topology={"compact": 1}, failures={"isolated": 1.0}, keep=True, **{**FAST, "stall": 1.0})
    )
    assert result["ends"] == {"stalled": 1}
    __, result = run(
        Settings(service.url, topology={"sno": 1}, failures={"install": 1.0}, name="broken", **{**FAST, "stall": 1.0})
    )
    assert result["ends"] == {"stalled": 1} and result["time_to_host_status"]["error"]["count"] == 1
    __, result = run(
        Settings(service.url, topology={"sno": 1}, clusters=2, failures={"restart": 0.5, "lossy": 0.5}, **FAST)
    )
    assert result["ends"] == {"installed": 2} and result["operations"]["register"]["count"] >= 2
    assert len(service.clusters) == 1  # the one to keep


def test_clusters_that_are_unfinished_when_the_time_is_over(
    service: FakeAssisted, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One was insufficient for 14 minutes, occurred nowhere in the report, and the exit code was 0."""
    fast = {**FAST, "duration": 3.0}
    __, result = run(
        Settings(service.url, clusters=2, topology={"compact": 1}, failures={"isolated": 0.5}, seed=1, **fast)
    )
    assert result["ends"].get("unfinished") and sum(result["ends"].values()) == 2
    unfinished = [cluster for cluster in result["failed"] if cluster["end"] == "unfinished"]
    assert len(unfinished) == result["ends"]["unfinished"]
    assert all(cluster["status"] not in ("", "installed") for cluster in unfinished)
    assert any(host["simulated"] == "isolated" for cluster in unfinished for host in cluster["hosts"])
    shown = page.page(result)
    assert all(cluster["cluster"] in shown for cluster in unfinished) and "isolated" in shown
    assert f"{result['ends']['unfinished']} unfinished" in shown.partition("</title>")[0]
    assert main.conclude(result) == 1
    assert (
        f"agentlab swarm: {unfinished[0]['cluster']}: unfinished, {unfinished[0]['status']}; injected: isolated"
        in capsys.readouterr().err
    )
    for allowed in ({"allow_unfinished": True}, {"install": False}):
        assert main.conclude({**result, "settings": result["settings"] | allowed}) == 0
    assert (
        main.conclude(
            {
                **result,
                "settings": result["settings"] | {"allow_unfinished": True},
                "ends": {"unfinished": 1, "error": 1},
            }
        )
        == 1
    )


def test_a_cluster_that_failed_is_listed_with_its_validations() -> None:
    checks = json.dumps({"hardware": [{"id": "has-min-memory", "status": "failure", "message": "Require at least 8 GiB RAM, found only 1 GiB"},
                                      {"id": "has-inventory", "status": "success", "message": "fine"}]})  # fmt: skip
    stats = Stats(clusters=1)
    host = {
        "id": "h",
        "requested_hostname": "master-0",
        "status": "insufficient",
        "status_info": "Host cannot be installed",
        "validations_info": checks,
    }
    stats.fail(
        "swarm-4",
        "unfinished",
        {"status": "insufficient", "hosts": [host, {"id": "k", "status": "known"}], "validations_info": "{"},
        {"h": "memory"},
    )
    [cluster] = stats.failed
    assert [one["name"] for one in cluster["hosts"]] == ["master-0"]
    assert page.failures({"failed": [cluster]}) == [
        ("swarm-4", "", "unfinished: insufficient", "", ""),
        (
            "",
            "master-0",
            "insufficient",
            "memory",
            "Host cannot be installed; Require at least 8 GiB RAM, found only 1 GiB",
        ),
    ]


def test_every_cluster_that_failed_has_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 4,000 clusters, as 20,000 agents are, every second one was missing."""
    checks = json.dumps(
        {
            "hardware": [
                {"id": name, "status": "failure", "message": f"{name} is too small"} for name in ("cpu", "memory")
            ]
        }
    )
    hosts = [
        {"id": f"h{at}", "status": "insufficient", "status_info": "cannot be installed", "validations_info": checks}
        for at in range(5)
    ]
    body = {"status": "insufficient", "status_info": "not ready", "hosts": hosts}
    stats = Stats(clusters=4000)
    for at in range(4000):
        stats.end(f"swarm-{at}", "unfinished", 5)
        stats.fail(f"swarm-{at}", "unfinished", body, {"h3": "memory", "h4": "memory"})
    whole = stats.report()
    assert (
        len({row["cluster"] for row in whole["outcomes"]}) == len({row["cluster"] for row in whole["failed"]}) == 4000
    )
    first, last = whole["failed"][0], whole["failed"][-1]
    assert len(first["hosts"]) == 5 and len(first["hosts"][0]["validations"]) == 2
    assert (last["end"], last["status"], last["info"]) == ("unfinished", "insufficient", "not ready")
    assert [(host["name"], host["simulated"]) for host in last["hosts"]] == [("h0", ""), ("h3", "memory")]
    assert main.reason(last) == "h0: cannot be installed; cpu is too small"
    assert len(json.dumps(last)) < 600


def test_a_report_of_many_clusters_is_read(tmp_path: Path) -> None:
    """The limit of other documents is a million values."""
    rows = [{"cluster": f"swarm-{at}", "hosts": 1, "end": "installed", "seconds": 1.0} for at in range(65_000)]
    failed = [{**row, "status": "x", "info": "x", "validations": ["x"], "hosts": [row, row]} for row in rows]
    (tmp_path / "report.json").write_text(json.dumps({"histograms": {}, "outcomes": rows, "failed": failed}))
    assert len(report.load(tmp_path)["failed"]) == 65_000


def test_topologies_have_the_names_of_profiles() -> None:
    named = Settings("http://x", topology={"4_masters": 1, "5control:6": 1, "sno": 1})
    assert list(named.topology) == ["4control", "5control:6", "sno"]


def test_polls_at_least_every_so_often(service: FakeAssisted) -> None:
    service.interval = 3600
    __, result = run(Settings(service.url, topology={"sno": 1}, poll_limit=0.2, **FAST))
    assert result["ends"] == {"installed": 1}


def test_service_that_is_not_there() -> None:
    with pytest.raises(SwarmError, match=r"http://127\.0\.0\.1:9/api/assisted-install/v2/component-versions"):
        run(Settings("http://127.0.0.1:9", **FAST))
    assert main.main(["--url", "http://127.0.0.1:9"]) == Exit.USAGE
    assert "`swarm`: the service is unreachable" in Exit.USAGE.meaning


def test_stops_cleanly(service: FakeAssisted, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "ansible_collections.agentlab.ocp.plugins.module_utils.cli", "swarm", "--url", service.url,
               "--clusters", "3", "--watch", "60", "--report", str(tmp_path / "report")]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 120
    while len(service.hosts) < 9:
        assert time.monotonic() < end and process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, __ = process.communicate(timeout=120)
    assert process.returncode == 130 and "stopped; 0 of 3 clusters installed" in out
    assert service.clusters == service.infra_envs == service.hosts == {}
    assert sorted(path.name for path in (tmp_path / "report").iterdir()) == [
        "operations.csv", "report.html", "report.json", "samples.csv",
    ]  # fmt: skip


def test_stops_at_once(service: FakeAssisted) -> None:
    service.slow_deletes = 30.0
    command = [
        sys.executable,
        "-m",
        "ansible_collections.agentlab.ocp.plugins.module_utils.cli",
        "swarm",
        "--url",
        service.url,
        "--topology",
        "sno",
    ]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    for done in (lambda: service.hosts, lambda: service.counts["DELETE"]):
        end = time.monotonic() + 60
        while not done():
            assert time.monotonic() < end and process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
    printed = process.communicate(timeout=20)[1]
    (ident,) = service.clusters
    assert process.returncode == 130 and printed.endswith(
        f"agentlab swarm: stopped without cleanup; left behind: swarm-0 {ident}\n"
    )


def test_cluster_that_goes_in_circles() -> None:
    """Preparation fails, the cluster is ready again, and is started again: nothing new comes of it."""
    settings = Settings("http://x", topology={"sno": 1}, agent_version="a", **FAST)
    cluster = hardware.plan_clusters(settings)[0]
    statuses, now = itertools.cycle(["ready", "preparing-for-installation"]), 0.0

    def look() -> Generator[Any, Any, dict[str, Any]]:
        yield from ()
        return {"status": next(statuses), "hosts": [{"id": "h", "status": "known"}]}

    hosts = hardware.populate(settings, [cluster])
    talk = install.conduct(cluster, hosts, install.Pace(settings), lambda: now, lambda *seen: None, "", look)
    answer: Any = None
    with pytest.raises(StopIteration) as end:
        while now < 3 * settings.stall:
            action = talk.send(answer)
            now += getattr(action, "seconds", 0.0)
            answer = protocol.Response(202, {}) if isinstance(action, protocol.Request) else None
    assert end.value.value[0] == "stalled" and now < 2 * settings.stall


def test_hosts_differ() -> None:
    settings = Settings(
        "http://x", clusters=3, hosts=4, topology={"ha": 1}, hardware={"vm": 1, "baremetal": 1}, agent_version="a"
    )
    clusters = hardware.plan_clusters(settings)
    hosts = hardware.populate(settings, clusters)
    again = hardware.populate(settings, clusters)
    assert [(host.me.host_id, host.profile) for host in hosts] == [(host.me.host_id, host.profile) for host in again]
    for value in ("name", "me.host_id"):
        assert len({attrgetter(value)(host) for host in hosts}) == 12
    macs = [nic["mac_address"] for host in hosts for nic in host.inventory()["interfaces"]]
    assert len(set(macs)) == len(macs) and all(mac.startswith("02:") for mac in macs)
    assert [host.ip for host in hosts[3:6]] == ["10.0.0.13", "10.0.1.10", "10.0.1.11"]
    assert len({host.ip for host in hosts}) == 12
    assert {host.profile for host in hosts} == {"vm", "baremetal"}


def test_addresses_of_existing_clusters() -> None:
    settings = Settings("http://x", discover=True, hosts=3)
    found = {"id": "c", "name": "n", "api_vips": [{"ip": "192.168.111.12"}], "ingress_vips": [{"ip": "192.168.111.11"}]}
    cluster = hardware.existing_cluster(0, found, "ie", settings)
    assert [cluster.address(number) for number in range(3)] == ["192.168.111.10", "192.168.111.13", "192.168.111.14"]
    cluster = hardware.existing_cluster(0, {**found, "machine_networks": [{"cidr": "192.168.0.0/16"}]}, "ie", settings)
    assert cluster.network.prefixlen == 16 and cluster.masters == 3
    with pytest.raises(SwarmError, match="machine network fd00::/64 is not IPv4"):
        hardware.existing_cluster(0, {**found, "machine_networks": [{"cidr": "fd00::/64"}]}, "ie", settings)
    with pytest.raises(SwarmError, match="has too few addresses for 3 hosts"):
        hardware.existing_cluster(0, {**found, "machine_networks": [{"cidr": "192.168.111.0/29"}]}, "ie", settings)
    with pytest.raises(SwarmError, match="does not have enough addresses"):
        hardware.plan_clusters(Settings("http://x", clusters=40000))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"url": "ftp://x"}, "--url 'ftp://x': must be like http://HOST:PORT"),
        ({"url": "http://"}, "--url 'http://': must be like"),
        ({"url": "http://x:port"}, "--url 'http://x:port': must be like"),
        ({"topology": {"ring": 1, "ha": 1}}, "--topology ring: must be one of sno"),
        ({"topology": {"ha": 0}}, "--topology ha: must be one of .* shares above 0"),
        ({"topology": {"ha": float("nan")}}, "--topology ha: must be one of .* shares above 0"),
        ({"topology": {}}, "--topology nothing: must be one of sno"),
        ({"topology": {"sno": 1}, "hosts": 3}, "--hosts 3: topology sno needs 1$"),
        ({"topology": {"ha": 1, "sno": 1}, "hosts": 2}, "--hosts 2: topology ha needs 3 or more"),
        ({"topology": {"ha:2": 1}}, "--hosts 2: topology ha:2 needs 3 or more"),
        ({"topology": {"sno:2": 1}}, "--hosts 2: topology sno:2 needs 1$"),
        ({"topology": {"ha:many": 1}}, "--topology 'ha:many': must be NAME:HOSTS, e.g. ha:150"),
        ({"topology": {"ring:9": 1}}, "--topology ring:9: must be one of sno"),
        ({"topology": {"tna": 1}, "hosts": 2}, "--hosts 2: topology tna needs 3 or more"),
        ({"part": (3, 2)}, "--part 3/2: must be NUMBER/COUNT, with a number from 1 to the count"),
        ({"failures": {"fire": 0.1}}, "--failures fire: must be one of disk"),
        ({"failures": {"disk": -0.1}}, "--failures disk: must be one of disk, .* shares above 0"),
        ({"failures": {"disk": 0.7, "ntp": 0.7}}, "--failures: the shares add up to 1.4, the limit is 1"),
        ({"hardware": {"toaster": 1}}, "--hardware toaster: must be one of vm"),
        ({"hardware": {"vm": 0}}, "--hardware vm: must be one of vm, .* shares above 0"),
        ({"clusters": 0}, "--clusters 0: must be between 1 and 65000"),
        ({"hosts": -1}, "--hosts -1: must be between 0 and 65000"),
        ({"watch": 0}, "--watch 0: must be 0.01 or more"),
        ({"think_time": -1.0}, "--think-time -1.0: must be 0 or more"),
        ({"jitter": 2.0}, "--jitter 2.0: must be between 0 and 1"),
        ({"ramp_up": float("inf")}, "--ramp-up inf: must be 0 or more"),
        ({"connections": 0}, "--connections 0: must be between 1 and"),
        ({"name": "Swarm_1"}, "--name 'Swarm_1': must be lower-case letters"),
        ({"template": {"InfraEnv": {}}}, "--template: requires --kubeconfig"),
        ({"operators": ("lso",), "discover": True}, "--operators: cannot be used with --kubeconfig or --discover"),
    ],
)
def test_settings_that_make_no_sense(values: dict[str, Any], message: str) -> None:
    with pytest.raises(SwarmError, match=message):
        Settings(**{"url": "http://x", **values})


def test_shapes_and_parts() -> None:
    mixed = Settings("http://x", clusters=20, topology={"sno": 5, "compact": 8, "ha": 7})
    names = topologies(mixed)
    assert {name: names.count(name) for name in mixed.topology} == mixed.topology
    assert len(set(names[:3])) == 3
    whole = hardware.plan_clusters(mixed)
    assert sum(cluster.size for cluster in whole) == 5 * 1 + 8 * 3 + 7 * 5
    parts = [hardware.plan_clusters(replace(mixed, part=(number, 3))) for number in (1, 2, 3)]
    assert sorted((c for part in parts for c in part), key=attrgetter("number")) == whole
    kinds = replace(mixed, failures={"disk": 0.5})
    chosen = [(host.name, host.failure) for host in hardware.populate(kinds, whole)]
    assert chosen == sorted(
        ((host.name, host.failure) for part in parts for host in hardware.populate(kinds, part)), key=chosen.index
    )
    sizes = Settings("http://x", clusters=6, hosts=4, topology={"ha": 5, "ha:150": 1})
    assert sorted(cluster.size for cluster in hardware.plan_clusters(sizes)) == [4, 4, 4, 4, 4, 150]
    tna = hardware.plan_clusters(Settings("http://x", topology={"tna": 1}))[0]
    assert (tna.masters, tna.arbiters, tna.size) == (2, 1, 3)
    assert part_of("2/4") == (2, 4)
    with pytest.raises(SwarmError, match="--part '2': want NUMBER/COUNT"):
        part_of("2")


def test_shares() -> None:
    assert shares("disk=0.1, ntp", "x") == {"disk": 0.1, "ntp": 1.0}
    with pytest.raises(SwarmError, match="--failures 'disk=lots': want NAME=NUMBER"):
        shares("disk=lots", "--failures")


def test_every_step_has_an_answer() -> None:
    from ansible_collections.agentlab.ocp.payload.node_agent.steps import STEPS

    assert set(noop.ANSWERS) == set(STEPS)
    settings = Settings("http://x", topology={"compact": 1}, agent_version="a")
    host = hardware.populate(settings, hardware.plan_clusters(settings))[0]
    domains = [
        "api.swarm-0.swarm.test",
        "console-openshift-console.apps.swarm-0.swarm.test",
        "validateNoWildcardDNS.swarm-0.swarm.test.",
    ]
    args = {"domain-resolution": json.dumps({"domains": [{"domain_name": name} for name in domains]}), "free": ""}
    found = json.loads(
        noop.answer(host, {"step_type": "domain-resolution", "args": [args["domain-resolution"]]}).output
    )
    assert [entry["ipv4_addresses"] for entry in found["resolutions"]] == [["10.0.0.253"], ["10.0.0.254"], []]
    peers = json.dumps(
        [{"host_id": "p", "nics": [{"name": "eth0", "mac": "02:00:00:00:01:00", "ip_addresses": ["10.0.0.11"]}]}]
    )
    link = json.loads(noop.answer(host, {"step_type": "connectivity-check", "args": [peers]}).output)["remote_hosts"][0]
    assert link["l2_connectivity"][0]["outgoing_ip_address"] == "10.0.0.10" and link["l3_connectivity"][0]["successful"]
    free = noop.answer(host, {"step_type": "free-network-addresses", "args": ['["10.0.0.0/24","10.1.0.0/30"]']})
    assert "10.0.0.254" in json.loads(free.output)[0]["free_addresses"]
    assert noop.answer(host, {"step_type": "dance", "args": []}).exit_code == -1
    assert noop.answer(host, {"step_type": "verify-vips", "args": []}).exit_code == -1


def test_parts_on_several_machines(service: FakeAssisted, tmp_path: Path) -> None:
    """Two processes of the packed swarm, each with its part; their reports become one."""
    program = tmp_path / "swarm"
    assert main.main(["pack", str(program)]) == 0
    (tmp_path / "elsewhere").mkdir()
    flags = ["--think-time=0", "--watch=.1", "--controller-poll=.1", "--installer-poll=.05", "--write-reports=2", "--register-interval=.2",
             "--stall=20", "--logs-kib=1", "--clusters=4", "--topology=sno,compact", "--url", service.url]  # fmt: skip
    machines = [
        subprocess.Popen([sys.executable, program, *flags, f"--part={number}/2", f"--report={tmp_path}/{number}"],
                         cwd=tmp_path / "elsewhere", stdout=subprocess.DEVNULL)
        for number in (1, 2)
    ]  # fmt: skip
    assert [machine.wait(60) for machine in machines] == [0, 0]
    assert main.main(["merge", f"{tmp_path}/1", f"{tmp_path}/2", "--report", f"{tmp_path}/all"]) == 0
    one, two, whole = (report.load(tmp_path / name) for name in ("1", "2", "all"))
    assert whole["ends"] == {"installed": 4} and whole["machines"] == 2 and not service.errors
    assert whole["resources"]["peak_agents"] == one["resources"]["peak_agents"] + two["resources"]["peak_agents"] == 8
    for operation, summary in whole["operations"].items():
        both = [part["operations"][operation] for part in (one, two) if operation in part["operations"]]
        assert summary["count"] == sum(part["count"] for part in both)
        assert (
            min(part["p50_ms"] for part in both) * 0.97
            <= summary["p50_ms"]
            <= max(part["p50_ms"] for part in both) * 1.03
        )
        assert summary["max_ms"] == max(part["max_ms"] for part in both)
    last = whole["samples"][-1]
    assert last["hosts"] == {"installed": 8} and last["clusters"] == {"installed": 4}
    assert "from 2 machines" in (tmp_path / "all/report.html").read_text()
    (tmp_path / "1/report.json").write_text("[]")
    with pytest.raises(SwarmError, match=r"1/report\.json: is not a report of a swarm"):
        report.load(tmp_path / "1")


def test_samples_of_several_machines() -> None:
    def sample(at: float, **more: Any) -> dict[str, Any]:
        rates = dict.fromkeys(
            ("requests_per_s", "errors_per_s", "cpu_percent", "p50_ms", "p99_ms", "late_p99_ms", "rss_mib"), 0.0
        )
        return {"t": at, "active": 0, "hosts": {}, "clusters": {}, **rates, **more}

    early = [
        sample(0.9, active=2, requests_per_s=10, p99_ms=5, hosts={"known": 2}),
        sample(1.9, active=1, requests_per_s=4, hosts={"known": 1}),
    ]
    late = [sample(2.8, active=3, requests_per_s=7, p99_ms=9, hosts={"known": 3})]
    found = report.align_series([early, late, []])
    assert [(one["t"], one["active"], one["requests_per_s"], one["p99_ms"], one["hosts"]) for one in found] == [
        (1, 2, 10, 5, {"known": 2}), (2, 1, 4, 0, {"known": 1}), (3, 3, 7, 9, {"known": 4}),
    ]  # fmt: skip


def test_histogram() -> None:
    histogram = Histogram()
    for number in range(1, 1001):
        histogram.add(number / 1000)
    for percent in (50, 90, 99, 100):
        assert histogram.percentile(percent) == pytest.approx(percent / 100, rel=0.03)
    assert histogram.summary()["max_ms"] == 1000 and Histogram().percentile(99) == 0
    stats = Stats()
    stats.record("poll", 0.1, 500, "[500] no")
    stats.record("finalizing stage", 0.1, 400)
    assert stats.report()["errors"] == {"poll: 500": 1}


def test_samples_of_a_long_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stats_module, "MOST_SAMPLES", 8)
    stats = Stats()
    for number in range(100):
        stats.record("poll", 0.5 if number == 50 else 0.001, 200)
        stats.sample()
    assert len(stats.samples) <= 8 and max(sample["p99_ms"] for sample in stats.samples) == 500


HOSTILE = "<script>alert(1)</script>\"'&<img src=x onerror=alert(1)>"


def test_page_is_safe_and_complete(tmp_path: Path) -> None:
    stats = Stats(clusters=2)
    stats.sample()
    stats.record(HOSTILE, 0.1, 500, HOSTILE)
    stats.host_status[HOSTILE] = 3
    stats.gave_up[HOSTILE] = 1
    stats.ends["error"] = 1
    stats.fail(HOSTILE, "error", {"status": "error", "status_info": HOSTILE,
               "hosts": [{"id": "h", "requested_hostname": HOSTILE, "status": "error", "status_info": HOSTILE}]}, {"h": "disk"})  # fmt: skip
    stats.sample()
    whole = {"settings": Settings("http://x", name="a").public(), "stopped": False, "left": [HOSTILE], **stats.report()}
    shown = page.page(whole)
    tags = Tags()
    tags.feed(shown)
    assert not {"script", "img", "link"} & tags.seen and "http" not in " ".join(tags.addresses)
    for text in (
        "0 of 2 clusters installed, 1 error, with errors",
        "disk",
        "Clusters that were not installed",
        "could not be removed",
    ):
        assert text in shown


class Tags(HTMLParser):
    """Elements of a page, and what their attributes lead to."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href")]


@pytest.mark.parametrize(
    ("top", "marks"),
    [(1, [0, 0.25, 0.5, 0.75, 1]), (7, [0, 2, 4, 6, 8]), (1000, [0, 250, 500, 750, 1000]), (0.3, [0, 0.1, 0.2, 0.3])],
)
def test_ticks(top: float, marks: list[float]) -> None:
    assert page.ticks(top) == pytest.approx(marks)
    assert page.ticks(1, 1) == [0, 1]


@pytest.mark.parametrize(
    ("span", "last", "count"),
    [(3, "3 s", 4), (59, "50 s", 6), (360, "6 min", 7), (7200, "120 min", 5), (100_000, "24 h", 5)],
)
def test_time_ticks(span: float, last: str, count: int) -> None:
    found = page.time_ticks(span)
    assert (found[-1][1], len(found)) == (last, count)


def test_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["--url", "nowhere"]) == 2
    assert "--url 'nowhere': must be like http" in capsys.readouterr().err
    assert main.main(["--url", "http://127.0.0.1:9", "--report", "/proc/none"]) == 2
    assert capsys.readouterr().err == (
        "agentlab swarm: --report /proc/none: No such file or directory; must be a writable directory\n"
    )
    assert main.main(["--url", "http://x", "--pull-secret-file", "/no/such"]) == 2
    assert "--pull-secret-file /no/such: No such file" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main.main(["--help"])
    shown = " ".join(capsys.readouterr().out.split())
    assert all(name in shown for name in FAILURES)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["pack", "TMP/no/file"],
            "pack: TMP/no/file: No such file or directory; must be a file in an existing directory",
        ),
        (["pack", "TMP"], "pack: TMP: Is a directory; must be a file in an existing directory"),
        (
            ["merge", "TMP/no", "--report", "TMP/all"],
            "merge: TMP/no: No such file or directory; must be the directory of a report, or the log of a pod",
        ),
        (
            ["merge", "TMP", "--report", "TMP/all"],
            "merge: TMP/report.json: No such file or directory; must be the directory of a report, or the log of a pod",
        ),
        (["merge", "TMP/log", "--report", "TMP/all"], "merge: TMP/log: has no report of a swarm"),
        (["merge", "TMP/bad", "--report", "TMP/all"], "merge: TMP/bad/report.json:1:2: unexpected end of JSON input"),
        (
            ["merge", "TMP/good", "--report", "TMP/log"],
            "merge: --report TMP/log: File exists; must be a writable directory",
        ),
    ],
)
def test_paths_of_pack_and_merge(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """There was a traceback, or the path twice with the number of the error."""
    for name, text in (("bad", "{"), ("good", json.dumps({"histograms": {}}))):
        (tmp_path / name).mkdir()
        (tmp_path / name / "report.json").write_text(text)
    (tmp_path / "log").write_text("a line\n")
    assert main.main([word.replace("TMP", str(tmp_path)) for word in words]) == 2
    assert capsys.readouterr().err == f"agentlab swarm {message.replace('TMP', str(tmp_path))}\n"
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_a_failing_disk_fails_its_measurement() -> None:
    settings = Settings("http://x", topology={"compact": 1}, agent_version="a", failures={"disk": 1.0})
    host = hardware.populate(settings, hardware.plan_clusters(settings))[0]
    assert host.failure == "disk"
    found = noop.answer(host, {"step_type": "installation-disk-speed-check", "args": ['{"path":"/dev/sda"}']})
    assert (found.exit_code, bool(found.error)) == (1, True)
    host.failure = ""
    assert (
        noop.answer(host, {"step_type": "installation-disk-speed-check", "args": ['{"path":"/dev/sda"}']}).exit_code
        == 0
    )


def test_the_default_pull_secret_suits_a_real_service() -> None:
    auths = json.loads(Settings("http://x").pull_secret)["auths"]
    assert {"quay.io", "registry.redhat.io"} < set(auths)
    assert all(base64.b64decode(entry["auth"]).count(b":") == 1 for entry in auths.values())
