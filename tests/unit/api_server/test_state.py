"""State machines: re-registration, progress rules, timeouts, cancel and reset, endings, restart."""

from __future__ import annotations

import ast
import asyncio
import json
import shutil
import time
from collections.abc import Callable, Iterable
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.payload.api_server import engine, handlers, state
from ansible_collections.agentlab.ocp.payload.api_server.config import (
    DEFAULT_REQUIREMENTS,
    Config,
    requirements_for,
    seconds,
)
from ansible_collections.agentlab.ocp.payload.api_server.store import Store
from ansible_collections.agentlab.ocp.payload.api_server.tables import EVENTS, STAGES
from ansible_collections.agentlab.ocp.plugins.module_utils.installer import credentials
from ansible_collections.agentlab.ocp.plugins.module_utils.vocabulary import ClusterStatus, HostStatus

from .description import Description
from .lab import DESCRIPTIONS, Agent, Lab
from .test_install import VIPS, drive


class Clock:
    """A clock that a test sets forward."""

    def __init__(self) -> None:
        import time

        self.real, self.ahead = time.time, 0.0

    def __call__(self) -> float:
        return self.real() + self.ahead


async def one(lab: Lab, **fields: Any) -> tuple[str, Agent]:
    """A single-node cluster whose agent has not received any steps yet."""
    cluster = await lab.cluster(high_availability_mode="None", **fields)
    infra_env = await lab.infra_env(cluster["id"])
    agent = Agent(lab, infra_env["id"], 0)
    await agent.register()
    return f"/clusters/{cluster['id']}", agent


async def pump(lab: Lab, agent: Agent, status: str) -> dict[str, Any]:
    """Polls until the host is in a status; steps of an installation are not answered."""
    for __ in range(200):
        host = await lab.call("GET", agent.path)
        if host["status"] == status:
            return host
        steps = await lab.call("GET", f"{agent.path}/instructions", query={"timestamp": int(time.time())})
        for step in steps["instructions"]:
            if step["step_type"] != "install":
                await agent.answer(step)
        await asyncio.sleep(0.02)
    raise AssertionError(f"the host stayed {host['status']}: {host['status_info']} {host.get('validations_info')}")


async def installing(lab: Lab) -> tuple[str, Agent]:
    path, agent = await one(lab)
    await pump(lab, agent, "known")
    await lab.until(path, lambda found: found["status"] == "ready")
    await lab.call("POST", f"{path}/actions/install", status=202)
    await pump(lab, agent, "installing")
    return path, agent


async def until_host(lab: Lab, agent: Agent, good: Callable[[Any], bool]) -> Any:
    return await lab.until(agent.path, good)


async def test_steps_by_status(tmp_path: Path) -> None:
    async with Lab(tmp_path) as lab:
        path, agent = await one(lab)
        await pump(lab, agent, "known")
        await lab.until(path, lambda found: found["status"] == "ready")
        steps = await lab.call("GET", f"{agent.path}/instructions", query={"timestamp": int(time.time())})
        kinds = [step["step_type"] for step in steps["instructions"]]
        assert kinds == ["free-network-addresses", "inventory", "ntp-synchronizer", "domain-resolution"]
        assert (steps["next_instruction_seconds"], steps["post_step_action"]) == (1, "continue")
        assert len({step["step_id"] for step in steps["instructions"]}) == len(kinds)
        domains = [entry["domain_name"] for entry in json.loads(steps["instructions"][3]["args"][0])["domains"]]
        tail = "ostest.test.example"
        assert domains[:5] == [
            f"api.{tail}",
            f"api-int.{tail}",
            f"console-openshift-console.apps.{tail}",
            f"validateNoWildcardDNS.{tail}.",
            f"validateNoWildcardDNS.{tail}",
        ]
        await lab.call("POST", f"{path}/actions/install", status=202)
        host = await until_host(lab, agent, lambda found: found["status"] == "preparing-for-installation")
        steps = await lab.call("GET", f"{agent.path}/instructions", query={"timestamp": int(time.time())})
        assert [step["step_type"] for step in steps["instructions"]] == [
            "installation-disk-speed-check",
            "container-image-availability",
        ]
        assert steps["instructions"][0]["args"] == [
            json.dumps({"path": host["installation_disk_id"]}, separators=(",", ":")),
            "480.00",
        ]
        assert json.loads(steps["instructions"][1]["args"][0])["timeout"] == 960


async def test_register_reply(tmp_path: Path) -> None:
    async with Lab(tmp_path) as lab:
        __, agent = await one(lab)
        reply = await agent.register()
        command = reply["next_step_runner_command"]
        assert json.loads(command["args"][0]) == {
            "infra_env_id": agent.infra_env_id,
            "host_id": agent.id,
            "agent_version": agent.headers["discovery_agent_version"],
        }


async def test_wrong_boot_order(tmp_path: Path) -> None:
    async with Lab(tmp_path) as lab:
        path, agent = await installing(lab)
        for stage in STAGES["sno"][:6]:
            await agent.stage(stage)
        await agent.register()
        host = await lab.call("GET", agent.path)
        assert host["status"] == "installing-pending-user-action"
        assert host["status_info"].startswith(
            "Expected the host to boot from disk, but it booted the installation image"
        )
        assert (await agent.register(403))["message"] == "Host is required to be booted from disk"
        await lab.until(path, lambda found: found["status"] == "installing-pending-user-action")
        await agent.stage("Joined")
        await lab.until(path, lambda found: found["status"] == "installing")


async def test_restart_during_installation_is_an_error(tmp_path: Path) -> None:
    async with Lab(tmp_path) as lab:
        path, agent = await installing(lab)
        await agent.stage("Installing")
        await agent.register()
        host = await lab.call("GET", agent.path)
        assert (host["status"], host["status_info"]) == ("error", state.RESTARTED)
        found = await lab.until(path, lambda found: found["status"] == "error")
        assert found["status_info"] == "cluster has hosts in error"
        steps = await lab.call("GET", f"{agent.path}/instructions", query={"timestamp": int(time.time())})
        assert [step["step_type"] for step in steps["instructions"]] == ["logs-gather", "stop-installation"]
        assert steps["next_instruction_seconds"] == 2


async def test_progress_rules(tmp_path: Path) -> None:
    async with Lab(tmp_path) as lab:
        path, agent = await one(lab)
        reply = await agent.stage("Installing", status=409)
        assert reply["reason"] == "Can't set progress <Installing> to host in status <discovering>"
        await pump(lab, agent, "known")
        await lab.until(path, lambda found: found["status"] == "ready")
        await lab.call("POST", f"{path}/actions/install", status=202)
        await pump(lab, agent, "installing")
        await agent.stage("Installing", "bootstrap")
        host = await lab.call("GET", agent.path)
        assert (host["status"], host["status_info"], host["progress"]["installation_percentage"]) == (
            "installing-in-progress",
            "Installing",
            25,
        )
        started = host["progress"]["stage_started_at"]
        await agent.stage("Installing", "again")
        host = await lab.call("GET", agent.path)
        assert (host["progress"]["progress_info"], host["progress"]["stage_started_at"]) == ("again", started)
        assert "lower stage" in (await agent.stage("Starting installation", status=409))["reason"]
        assert (
            "isn't available for host role master bootstrap true"
            in (await agent.stage("Waiting for ignition", status=409))["reason"]
        )
        await agent.stage("Rebooting")
        await agent.stage("Failed", "it broke")
        host = await lab.call("GET", agent.path)
        assert (host["status"], host["status_info"], host["progress"]["current_stage"]) == (
            "error",
            "Failed - it broke",
            "Rebooting",
        )


@pytest.mark.parametrize(
    ("stage", "ahead", "status", "text"),
    [
        ("", 21 * 60, "error", ""),
        (
            "Writing image to disk",
            31 * 60,
            "error",
            "Host failed to install because its installation stage Writing image to disk did not sufficiently progress in the last 30m0s.",
        ),
        (
            "Waiting for bootkube",
            61 * 60,
            "error",
            "Host failed to install because its installation stage Waiting for bootkube took longer than expected 1h0m0s",
        ),
        ("Rebooting", 79 * 60, "installing-in-progress", "Rebooting"),
        (
            "Rebooting",
            81 * 60,
            "installing-pending-user-action",
            "Host timed out when pulling the configuration files.",
        ),
    ],
)
async def test_timeouts(tmp_path: Path, stage: str, ahead: float, status: str, text: str) -> None:
    async with Lab(tmp_path, {"HOST_MAX_DISCONNECTION_TIME": "24h"}) as lab:
        clock = lab.engine.clock = Clock()
        __, agent = await installing(lab)
        if stage:
            await agent.stage(stage)
        clock.ahead = ahead
        await asyncio.sleep(0.1)
        host = await until_host(lab, agent, lambda found: found["status"] == status)
        assert host["status_info"].startswith(text)


async def test_disconnected_and_back(tmp_path: Path) -> None:
    async with Lab(tmp_path) as lab:
        clock = lab.engine.clock = Clock()
        __, agent = await one(lab)
        await pump(lab, agent, "known")
        clock.ahead = 320  # a bootstrap host, as the single node is from the start, has two minutes more
        host = await until_host(lab, agent, lambda found: found["status"] == "disconnected")
        await pump(lab, agent, "known")
        await agent.reply({"step_type": "inventory", "step_id": "x"}, None, code=256)
        host = await lab.call("GET", agent.path)
        assert (host["status"], host["media_status"]) == ("disconnected", "disconnected")
        await pump(lab, agent, "known")


async def test_preparation_fails_and_is_tried_again(tmp_path: Path) -> None:
    async with Lab(tmp_path) as lab:
        path, agent = await one(lab)
        await pump(lab, agent, "known")
        await lab.until(path, lambda found: found["status"] == "ready")
        agent.do_container_image_availability = lambda args: {
            "images": [{"name": name, "result": "failure"} for name in json.loads(args[0])["images"]]
        }
        await lab.call("POST", f"{path}/actions/install", status=202)
        for __ in range(100):
            await agent.poll()
            if (await lab.call("GET", path))["status"] == "ready":
                break
            await asyncio.sleep(0.02)
        await pump(lab, agent, "known")
        events = [event["message"] for event in await lab.call("GET", "/events")]
        assert any(
            "from preparing-for-installation to preparing-failed (Host failed to prepare for installation due to"
            in text
            for text in events
        )
        assert "Updated status of the cluster to ready" in events[-3:]
        del agent.do_container_image_availability
        await lab.until(path, lambda found: found["status"] == "ready")
        await lab.call("POST", f"{path}/actions/install", status=202)
        await pump(lab, agent, "installing")


async def test_render_fails(tmp_path: Path) -> None:
    async with Lab(tmp_path, {"DUMMY_IGNITION": "false", "RELEASE_IMAGES": ""}) as lab:
        path, agent = await one(lab)
        await pump(lab, agent, "known")
        await lab.until(path, lambda found: found["status"] == "ready")
        await lab.call("POST", f"{path}/actions/install", status=202)
        found = await lab.until(path, lambda found: found["last-installation-preparation"]["status"] == "failed", 20)
        assert "EPHEMERAL_INSTALLER_CLUSTER_TLS_CERTS_OVERRIDE_DIR" in found["last-installation-preparation"]["reason"]


async def test_cancel_and_reset(tmp_path: Path) -> None:
    async with Lab(tmp_path) as lab:
        path, agent = await installing(lab)
        await agent.stage("Installing")
        await lab.call("POST", f"{path}/actions/cancel", status=202)
        assert (await lab.call("GET", path))["status"] == "cancelled"
        assert (await lab.call("GET", agent.path))["status"] == "cancelled"
        await lab.call("POST", f"{path}/actions/cancel", status=409)
        await lab.call("POST", f"{path}/actions/reset", status=202)
        host = await lab.call("GET", agent.path)
        assert host["status"] == "resetting-pending-user-action"
        await agent.register()
        await pump(lab, agent, "known")
        await lab.until(path, lambda found: found["status"] == "ready")


CERT = credentials.signer("ingress")["crt"]


async def finalize(lab: Lab, path: str) -> dict[str, Any]:
    """What the controller of a new cluster does over REST."""
    await lab.until(path, lambda found: found["status"] == "finalizing")
    for stage in ("Waiting for cluster operators", "Adding router ca", "Done"):
        await lab.call("PUT", f"{path}/progress", {"finalizing_stage": stage}, 200)
    for operator in await lab.call("GET", f"{path}/monitored-operators"):
        await lab.call(
            "PUT",
            f"{path}/monitored-operators",
            {"name": operator["name"], "status": "available", "version": "4.22.0"},
            200,
        )
    found = await lab.call("GET", path)
    assert (found["status"], found["progress"]["total_percentage"]) == ("finalizing", 95)
    await lab.call("POST", f"{path}/uploads/ingress-cert", "no pem", 400)
    await lab.call("POST", f"{path}/uploads/ingress-cert", CERT, 201)
    await lab.call("POST", f"{path}/actions/complete-installation", {"is_success": True}, 202)
    return await lab.until(path, lambda found: found["status"] == "installed")


async def test_hub_continues_to_installed(tmp_path: Path) -> None:
    async with Lab(tmp_path, {"INSTALL_INVOKER": "", "CHECK_CLUSTER_VERSION": "true"}) as lab:
        cluster, agents = await drive(lab, 5, "Done", **VIPS)
        path = f"/clusters/{cluster['id']}"
        found = await finalize(lab, path)
        assert (found["status_info"], found["progress"]["total_percentage"]) == ("Cluster is installed", 100)
        assert "install_completed_at" in found
        credentials = await lab.call("GET", f"{path}/credentials")
        assert credentials["username"] == "kubeadmin"
        assert credentials["console_url"] == "https://console-openshift-console.apps.ostest.test.example"
        for name in ("kubeconfig", "kubeconfig-noingress", "kubeadmin-password"):
            code, raw, __ = await lab.raw("GET", f"{path}/downloads/credentials?file_name={name}")
            assert code == 200
            assert raw
        for name in (
            "bootstrap.ign",
            "master.ign",
            "worker.ign",
            "metadata.json",
            "install-config.yaml",
            "custom_manifests.json",
        ):
            code, raw, __ = await lab.raw("GET", f"{path}/downloads/files?file_name={name}")
            assert code == 200, name
        assert (await agents[0].register(409))["reason"].startswith(
            "Host is trying to register after the cluster has already been installed."
        )
        events = await lab.call("GET", "/events", query={"cluster_id": cluster["id"]})
        names = [event["name"] for event in events]
        order = [
            "cluster_registration_succeeded",
            "host_registration_succeeded",
            "host_bootstrap_set",
            "cluster_prepare_installation_started",
            "host_install_progress_updated",
            "cluster_finalizing_stage_updated",
            "cluster_operator_status",
            "cluster_installation_completed",
        ]
        assert sorted(names.index(name) for name in order) == [names.index(name) for name in order]
        assert {name for name in names if name not in EVENTS} == set()
        statuses = [event["message"].rsplit(" ", 1)[1] for event in events if event["name"] == "cluster_status_updated"]
        assert statuses[-4:] == ["preparing-for-installation", "installing", "finalizing", "installed"]
        day2 = await lab.call("POST", f"{path}/actions/allow-add-hosts", status=202)
        assert (day2["status"], day2["kind"]) == ("adding-hosts", "AddHostsCluster")


async def test_event_filters(tmp_path: Path) -> None:
    async with Lab(tmp_path) as lab:
        cluster, [agent] = await drive(lab, 1, "Rebooting", high_availability_mode="None")
        everything = await lab.call("GET", "/events")
        __, raw, headers = await lab.raw("GET", "/events", params={"limit": 2, "offset": 1, "order": "descending"})
        assert [event["message"] for event in json.loads(raw)] == [event["message"] for event in everything[::-1][1:3]]
        assert (
            int(headers["Event-Count"])
            == int(headers["Severity-Count-Info"]) + int(headers["Severity-Count-Warning"])
            == len(everything)
        )
        mine = await lab.call("GET", "/events", query={"infra_env_id": agent.infra_env_id})
        assert any(
            event["message"] == "Host: node-0, reached installation stage Writing image to disk: 50%" for event in mine
        )
        assert not any(event["name"] == "cluster_status_updated" for event in mine)
        of_none = await lab.call("GET", "/events", query={"cluster_level": "true"})
        assert of_none == [event for event in everything if "host_id" not in event]
        assert "image_info_updated" in {event["name"] for event in of_none}
        assert await lab.call("GET", "/events", query={"deleted_hosts": "true"}) == []
        assert await lab.call("GET", "/events", query={"deleted_hosts": "false"}) == everything
        await lab.call("PATCH", f"{agent.path}/ignition", {"config": '{"ignition": {"version": "3.1.0"}}'}, status=201)
        [applied] = await lab.call("GET", "/events", query={"message": "custom discovery ignition"})
        assert applied["host_id"] == agent.id and "cluster_id" not in applied
        await lab.call("POST", f"/clusters/{cluster['id']}/actions/cancel", status=202)
        await lab.call("DELETE", agent.path, status=204)
        gone = await lab.call("GET", "/events", query={"deleted_hosts": "true"})
        assert {event["host_id"] for event in gone} == {agent.id}
        of_none = await lab.call("GET", "/events", query={"cluster_level": "true"})
        both = await lab.call("GET", "/events", query={"deleted_hosts": "true", "cluster_level": "true"})
        assert len(both) == len(gone) + len(of_none)
        assert await lab.call("GET", "/events", query={"severities": "critical"}) == []
        found = await lab.call("GET", "/events", query={"message": "REBOOTING"})
        assert [event["name"] for event in found] == ["host_install_progress_updated"]


async def test_abi_ending_is_reported(tmp_path: Path) -> None:
    async with Lab(tmp_path) as lab:
        told: list[str] = []
        lab.engine.on_bootstrap_reboot = lambda cluster: told.append(cluster["id"])
        cluster, __ = await drive(lab, 3, "Rebooting", **VIPS)
        assert told == [cluster["id"]]
        code, raw, __ = await lab.raw(
            "GET", f"/clusters/{cluster['id']}/downloads/credentials?file_name=kubeconfig-noingress"
        )
        assert code == 200
        assert b"https://api.ostest.test.example:6443" in raw


async def test_restart_keeps_everything(tmp_path: Path) -> None:
    async with Lab(tmp_path) as lab:
        path, agent = await installing(lab)
        await agent.stage("Installing", "bootstrap")
        before = await lab.call("GET", path)
        events = await lab.call("GET", "/events")
        # What was answered is committed.
        other = as_killed(lab.engine.store, tmp_path / "copy")
        assert other.kinds["host"][agent.id]["progress"]["current_stage"] == "Installing"
        other.close()
    async with Lab(tmp_path) as lab:
        agent.lab = lab
        after = await lab.call("GET", path)
        assert (await lab.call("GET", "/events"))[: len(events)] == events
        for cluster in (before, after):
            for host in cluster["hosts"]:
                for name in ("checked_in_at", "validations_info", "connection_timed_out"):
                    host.pop(name, None)
        assert after == before
        await agent.stage("Rebooting")
        steps = await lab.call("GET", f"{agent.path}/instructions", query={"timestamp": int(time.time())})
        assert steps["instructions"] == []


async def test_restart_while_preparing(tmp_path: Path) -> None:
    async with Lab(tmp_path) as lab:
        path, agent = await one(lab)
        await pump(lab, agent, "known")
        await lab.until(path, lambda found: found["status"] == "ready")
        lab.engine.start_preparation = lambda cluster: None
        await lab.call("POST", f"{path}/actions/install", status=202)
    async with Lab(tmp_path) as lab:
        agent.lab = lab
        await pump(lab, agent, "installing")


@pytest.mark.parametrize(
    ("hosts", "control", "good"),
    [
        ([("master", "installed")], 1, True),
        ([("master", "installed")] * 2 + [("master", "installing")], 3, False),
        ([("master", "installed")] * 3 + [("worker", "installing")], 3, True),
        ([("master", "installed")] * 3 + [("worker", "installed"), ("worker", "error")], 3, False),
        ([("master", "installed")] * 3 + [("worker", "installed")] * 2 + [("worker", "error")], 3, True),
        ([("master", "installed")] * 2 + [("arbiter", "installing")], 2, False),
        ([("master", "installed")] * 2 + [("arbiter", "installed")], 2, True),
        ([("master", "installed")] * 2, 2, True),
    ],
)
def test_enough_installed(hosts: list[tuple[str, str]], control: int, good: bool) -> None:
    assert state.enough_installed(hosts, control) is good


@pytest.mark.parametrize("description", DESCRIPTIONS)
def test_statuses_are_those_of_the_description(description: Description) -> None:
    for model, statuses in (("host", set(HostStatus) - {HostStatus.INITIAL}), ("cluster", set(ClusterStatus))):
        assert set(description.definitions[model]["properties"]["status"]["enum"]) == statuses


def test_rules_name_known_statuses() -> None:
    for rules, statuses in ((state.HOST_RULES, HostStatus), (state.CLUSTER_RULES, ClusterStatus)):
        for rule in rules:
            assert rule.sources | {rule.dest} <= {*statuses, state.SAME}, rule


@pytest.mark.parametrize(
    ("text", "value"), [("90m", 5400), ("1h30m", 5400), ("8s", 8), ("250ms", 0.25), ("5", 5), ("1.5", 1.5)]
)
def test_durations(text: str, value: float) -> None:
    assert seconds(text) == value


def test_bad_duration() -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        seconds("soon")


@pytest.mark.parametrize(("version", "cpus"), [("4.21.3", 8), ("4.22.0-lab", 4), ("4.22", 4), ("5.0.1", 4), ("", 8)])
def test_thresholds_per_release(version: str, cpus: int) -> None:
    assert requirements_for(DEFAULT_REQUIREMENTS, version)["sno"]["cpu_cores"] == cpus


def test_thresholds_of_the_payload_override_those_of_the_installer() -> None:
    installer = [{"version": "default", "sno": {"cpu_cores": 8, "ram_mib": 16384}}]
    payload = [{"version": "default", "sno": {"cpu_cores": 1}}]
    config = Config(
        {"HW_VALIDATOR_REQUIREMENTS": json.dumps(installer), "PAYLOAD_HW_REQUIREMENTS": json.dumps(payload)}
    )
    assert requirements_for(config.requirements(), "4.20.0")["sno"] == {"cpu_cores": 1, "ram_mib": 16384}


@pytest.mark.parametrize("name", ["HW_VALIDATOR_REQUIREMENTS", "PAYLOAD_HW_REQUIREMENTS"])
def test_thresholds_that_are_not_a_list_of_objects(name: str) -> None:
    with pytest.raises(ValueError, match=f"environment variable {name} should hold a JSON list of objects"):
        Config({name: '{"version": "default"}'}).check()


def test_store_drops_what_was_deleted(tmp_path: Path) -> None:
    store = Store(tmp_path / "state.sqlite")
    host = store.create("host", "h", {"status": "known"})
    store.commit()
    host.touch("checked_in_at", "now")
    store.delete("host", "h")
    host.flush()
    host["status"] = "error"
    store.commit()
    store.close()
    assert Store(tmp_path / "state.sqlite").kinds["host"] == {}


def as_killed(store: Store, folder: Path) -> Store:
    """The store as it is found when its service is killed now."""
    folder.mkdir()
    for file in Path(store.path).parent.glob(f"{Path(store.path).name}*"):
        shutil.copy(file, folder)
    return Store(folder / Path(store.path).name)


def test_store_writes_touched_fields_with_the_next_change(tmp_path: Path) -> None:
    store = Store(tmp_path / "state.sqlite")
    host = store.create("host", "h", {"status": "known"})
    store.commit()
    host.touch("checked_in_at", "now")
    store.commit()
    assert "checked_in_at" not in as_killed(store, tmp_path / "first").kinds["host"]["h"]
    host["status"] = "error"
    store.commit()
    kept = as_killed(store, tmp_path / "second").kinds["host"]["h"]
    assert (kept["status"], kept["checked_in_at"]) == ("error", "now")
    assert (tmp_path / "state.sqlite").stat().st_mode & 0o777 == 0o600


def test_conditions_and_effects_are_known_on_both_sides() -> None:
    """Each condition of a rule is evaluated and each effect is applied; nothing is prepared that no rule uses."""
    functions = {
        node.name: node
        for path in (*Path(engine.__file__).parent.glob("*.py"), Path(handlers.hosts.__file__))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }

    def member(node: ast.expr) -> StrEnum:
        """`HostCondition.DAY2` and its like."""
        assert isinstance(node, ast.Attribute), ast.unparse(node)
        found: StrEnum = getattr(state, ast.unparse(node.value))[node.attr]
        return found

    def keys(function: str, name: str) -> set[StrEnum]:
        """The keys of the dict of this name."""
        found: set[StrEnum] = set()
        for node in ast.walk(functions[function]):
            if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Dict):
                target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
                if ast.unparse(target) == name:
                    found |= {member(key) for key in node.value.keys if key is not None}
        return found

    def effects(function: str) -> set[StrEnum]:
        """What `effect` is compared with, or is looked for in `rule.effects`."""
        found: set[StrEnum] = set()
        for node in ast.walk(functions[function]):
            if isinstance(node, ast.Compare):
                right = node.comparators[0]
                if ast.unparse(right) == "rule.effects":
                    found.add(member(node.left))
                elif ast.unparse(node.left) == "effect":
                    found |= {member(each) for each in (right.elts if isinstance(right, ast.Tuple) else [right])}
        return found

    def asked(rules: Iterable[state.Rule[Any, Any, Any, Any]]) -> set[StrEnum]:
        return {condition for rule in rules for condition in (*rule.when, *rule.unless)}

    def done(rules: Iterable[state.Rule[Any, Any, Any, Any]]) -> set[StrEnum]:
        return {effect for rule in rules for effect in rule.effects}

    host, cluster = (
        {trigger: [rule for rule in rules if rule.trigger == trigger] for trigger in triggers}
        for rules, triggers in ((state.HOST_RULES, state.HostTrigger), (state.CLUSTER_RULES, state.ClusterTrigger))
    )
    assert all(host.values()) and all(cluster.values())
    bound = [rule for rule in host["refresh"] if not all(status.endswith("unbound") for status in rule.sources)]
    assert asked(cluster["refresh"]) == keys("refresh_cluster", "conditions")
    assert asked(host["progress"]) == keys("progress", "facts")
    assert asked(host["refresh"]) == keys("_host_conditions", "conditions")
    assert asked(rule for rule in host["refresh"] if rule not in bound) <= keys("refresh_unbound", "conditions")
    assert asked(state.HOST_RULES) == set(state.HostCondition) and asked(state.CLUSTER_RULES) == set(
        state.ClusterCondition
    )
    assert done(state.HOST_RULES) == effects("_host_effect") | effects("trigger") == set(state.HostEffect)
    assert done(state.CLUSTER_RULES) == effects("_cluster_effect") == set(state.ClusterEffect)
