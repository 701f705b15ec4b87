"""The table of operations against the API description, and the operations that no installation needs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.payload.api_server.api import BASE, OPERATIONS, Operation, Parameter, query_value
from ansible_collections.agentlab.ocp.payload.api_server.models import DOCUMENT, MODELS, STEP_OUTPUTS, Invalid
from ansible_collections.agentlab.ocp.payload.api_server.steps import DAY1, DAY2, PRODUCERS

from .description import Description
from .lab import DESCRIPTIONS, PULL_SECRET, SSH_KEY, V2, Agent, Lab
from .test_install import VIPS, drive


@pytest.mark.parametrize("description", DESCRIPTIONS)
def test_every_operation_is_there(description: Description) -> None:
    described = {
        (method.upper(), BASE + path)
        for path, operations in description.document["paths"].items()
        for method in operations
    }
    assert {(op.method, op.path) for op in OPERATIONS} == described


@pytest.mark.parametrize("description", DESCRIPTIONS)
@pytest.mark.parametrize("op", OPERATIONS, ids=lambda op: f"{op.method} {op.path.removeprefix(BASE)}")
def test_operation_is_as_described(op: Operation, description: Description) -> None:
    described = description.document["paths"][op.path.removeprefix(BASE)][op.method.lower()]
    security = described.get("security", description.document.get("security", ()))
    schemes = {name for entry in security for name in entry}
    assert set(op.schemes) == schemes & set(DOCUMENT["securityDefinitions"])
    assert str(op.status) in described["responses"]
    parameters = described.get("parameters", [])
    query = {entry["name"]: entry for entry in parameters if entry["in"] == "query"}
    assert {one.name for one in op.query} == set(query)
    for one in op.query:
        assert one.required == query[one.name].get("required", False), one.name
    body = [entry for entry in parameters if entry["in"] == "body"]
    assert bool(body) == bool(op.body)


def test_every_step_has_a_producer() -> None:
    kinds = {kind for table in (DAY1, DAY2) for steps in table.values() for kind in steps}
    assert kinds <= set(PRODUCERS)
    assert set(STEP_OUTPUTS) - {"upgrade-agent"} <= set(PRODUCERS)


BOOLEAN = {"type": "boolean"}
LETTER = {"type": "string", "enum": ["a", "b"]}


def value_of(node: dict[str, Any], texts: list[str], separator: str = "", multiple: bool = False) -> Any:
    one = Parameter("q", MODELS.compile(node), node["type"], separator=separator, multiple=multiple)
    return query_value(one, texts)


@pytest.mark.parametrize(
    ("node", "text", "value"),
    [
        *((BOOLEAN, text, value) for text, value in (("true", True), ("yes", True), ("0", False), ("maybe", False))),
        ({"type": "integer"}, "-3", -3),
        (LETTER, "b", "b"),
        ({"type": "string"}, "x", "x"),
    ],
)
def test_query_values(node: dict[str, Any], text: str, value: Any) -> None:
    assert value_of(node, [text]) == value


def test_lists_in_a_query() -> None:
    assert value_of(LETTER, ["a,b"], ",") == "a,b"
    assert value_of(LETTER, ["a", "b"], multiple=True) == ["a", "b"]
    with pytest.raises(Invalid, match=r"q\.1 in"):
        value_of(LETTER, ["a,c"], ",")


@pytest.mark.parametrize(
    ("node", "text"),
    [
        ({"type": "integer"}, "1.5"),
        ({"type": "integer", "minimum": 0}, "-1"),
        (LETTER, "c"),
        ({"type": "string", "format": "uuid"}, "x"),
    ],
)
def test_bad_query_values(node: dict[str, Any], text: str) -> None:
    with pytest.raises(Invalid, match=r"q in"):
        value_of(node, [text])


async def test_what_observers_read(tmp_path: Path) -> None:
    async with Lab(tmp_path) as lab:
        cluster, agents = await drive(lab, 3, "Rebooting", **VIPS)
        c, i = f"/clusters/{cluster['id']}", f"/infra-envs/{agents[0].infra_env_id}"
        for path in (
            "/clusters?with_hosts=true",
            "/clusters/default-config",
            "/component-versions",
            "/openshift-versions",
            "/release-sources",
            "/domains",
            "/supported-operators",
            "/operators/bundles",
            f"{c}/supported-platforms",
            f"{c}/preflight-requirements",
            f"{c}/credentials",
            f"{c}/install-config",
            f"{c}/manifests",
            f"{c}/ui-settings",
            f"{c}/monitored-operators",
            f"{c}/ignored-validations",
            f"{c}/hosts?role=master&with-inventory=true",
            f"{c}?exclude-hosts=true",
            i,
            f"{i}/hosts",
            agents[0].path,
            f"{agents[0].path}/ignition",
        ):
            await lab.call("GET", path)
        hosts = await lab.call("GET", f"{c}/hosts?role=master")
        assert len(hosts) == 3
        assert "inventory" not in hosts[0]
        assert await lab.call("GET", f"{c}/hosts?role=worker") == []
        found = await lab.call("GET", c)
        assert all(
            "free_addresses" not in host and host["progress_stages"] and host["requested_hostname"]
            for host in found["hosts"]
        )
        assert not (await lab.call("GET", f"{c}?exclude-hosts=true"))["hosts"]
        for name in ("_pull_secret", PULL_SECRET):
            __, raw, __ = await lab.raw("GET", c)
            assert name.encode() not in raw
        page = (await lab.raw("GET", "/"))[1].decode()
        assert not re.search(r"(src|href)=.?http", page)


async def test_changes_by_a_user(tmp_path: Path) -> None:
    async with Lab(tmp_path) as lab:
        cluster = await lab.cluster(**VIPS)
        infra_env = await lab.infra_env(cluster["id"])
        c, i = f"/clusters/{cluster['id']}", f"/infra-envs/{infra_env['id']}"
        agent = Agent(lab, infra_env["id"], 0)
        await agent.register()
        await agent.poll()
        assert (await lab.call("PATCH", c, {"name": "other", "ssh_public_key": SSH_KEY}, 201))["name"] == "other"
        await lab.call("PATCH", c, {"api_vips": [{"ip": "192.168.111.4"}]}, 400)
        await lab.call(
            "PATCH",
            i,
            {"ssh_authorized_key": SSH_KEY, "kernel_arguments": [{"operation": "append", "value": "a=b"}]},
            201,
        )
        host = await lab.call(
            "PATCH",
            agent.path,
            {"host_name": "master-0", "host_role": "master", "node_labels": [{"key": "a", "value": "b"}]},
            201,
        )
        assert (host["requested_hostname"], host["role"]) == ("master-0", "master")
        await lab.call("PATCH", agent.path, {"host_name": "localhost"}, 400)
        await lab.call(
            "PATCH", agent.path, {"disks_selected_config": [{"id": "/dev/not-found-by-hints", "role": "install"}]}, 409
        )
        await lab.call("PATCH", f"{agent.path}/installer-args", {"args": ["--append-karg", "a=b"]}, 201)
        await lab.call("PATCH", f"{agent.path}/installer-args", {"args": ["--rm"]}, 400)
        await lab.call("PATCH", f"{agent.path}/ignition", {"config": '{"ignition": {"version": "3.2.0"}}'}, 201)
        await lab.call("PATCH", f"{agent.path}/ignition", {"config": "{}"}, 400)
        await lab.call("PATCH", f"{agent.path}/actions/reset-validation/container-images-available", status=200)
        await lab.call("PATCH", f"{agent.path}/actions/reset-validation/nothing", status=400)
        await lab.call(
            "PUT",
            f"{c}/ignored-validations",
            {"host-validation-ids": '["ntp-synced"]', "cluster-validation-ids": "[]"},
            201,
        )
        shown = await lab.call("GET", c)
        assert shown["ignored_host_validations"] == '["ntp-synced"]' and "ignored_cluster_validations" not in shown
        await lab.call("PUT", f"{c}/ignored-validations", {"host-validation-ids": '["nothing"]'}, 400)
        await lab.call("PUT", f"{c}/ui-settings", "text", 200)
        await lab.call(
            "POST",
            "/events",
            {"severity": "info", "message": "m", "event_time": "2026-01-01T00:00:00Z", "cluster_id": cluster["id"]},
            201,
        )
        await lab.call("PUT", f"{agent.path}/logs-progress", {"logs_state": "requested"}, 204)
        await lab.call("PUT", f"{c}/logs-progress", {"logs_state": "collecting"}, 204)
        manifest = {"folder": "openshift", "file_name": "a.yaml", "content": "YTogMQ=="}
        await lab.call("POST", f"{c}/manifests", manifest, 201)
        await lab.call("POST", f"{c}/manifests", {**manifest, "content": "YTogWw=="}, 400)
        await lab.call(
            "PATCH",
            f"{c}/manifests",
            {"folder": "openshift", "file_name": "a.yaml", "updated_file_name": "b.yaml"},
            200,
        )
        assert [entry["file_name"] for entry in await lab.call("GET", f"{c}/manifests")] == ["b.yaml"]
        await lab.call("DELETE", f"{c}/manifests", query={"folder": "openshift", "file_name": "b.yaml"}, status=200)
        free = await lab.infra_env(None)
        lonely = Agent(lab, free["id"], 1)
        assert (await lonely.register())["status"] == "discovering-unbound"
        bind = (f"{lonely.path}/actions/bind", {"cluster_id": cluster["id"]})
        assert (await lab.call("POST", *bind, 409))["reason"] == "no condition found to run transition"
        await lonely.poll()
        host = await lab.until(lonely.path, lambda host: host["status"] == "known-unbound")
        assert host["status_info"] == "Host is ready to be bound to a cluster"
        assert json.loads(host["validations_info"])["hardware"]
        refused = await lab.call("PUT", f"{lonely.path}/progress", {"current_stage": "Rebooting"}, 400)
        assert refused["reason"] == f"host {host['id']} is not bound to any cluster, cannot update progress"
        assert (await lab.call("POST", *bind, 200))["status"] == "binding"
        assert (await lonely.poll())["post_step_action"] == "exit"
        assert (await lonely.register())["status"] == "discovering"
        assert "already bound" in (await lab.call("POST", *bind, 409))["reason"]
        unknown = {"cluster_id": "00000000-0000-4000-8000-00000000dead"}
        assert "already bound" in (await lab.call("POST", bind[0], unknown, 409))["reason"]
        assert await lab.call("GET", "/clusters", query={"ams_subscription_ids": "a,b"}) == []
        fields = {"name": "blank", "pull_secret": "", "cpu_architecture": "x86_64"}
        reason = "pull secret for new infraEnv is invalid: pull secret must be a well-formed JSON"
        assert (await lab.call("POST", "/infra-envs", fields, 400))["reason"] == reason
        assert (await lab.call("POST", f"{lonely.path}/actions/unbind", status=200))["status"] == "unbinding"
        assert (await lonely.poll())["post_step_action"] == "exit"
        assert (await lonely.register())["status"] == "discovering-unbound"
        lonely.inventory["memory"] = {"physical_bytes": 2**20, "usable_bytes": 2**20}
        await lonely.poll()
        host = await lab.until(lonely.path, lambda host: host["status"] == "insufficient-unbound")
        assert "does not meet the minimum hardware requirements" in host["status_info"]
        assert "already unbound" in (await lab.call("POST", f"{lonely.path}/actions/unbind", status=409))["reason"]
        await lab.call("DELETE", lonely.path, status=204)
        await lab.call("DELETE", f"/infra-envs/{free['id']}", status=204)
        await lab.call("POST", f"{c}/actions/install", status=409)
        await lab.call("DELETE", c, status=204)
        await lab.call("GET", c, status=404)
        assert await lab.call("GET", "/events", query={"cluster_id": cluster["id"]}) == []
        code, __, __ = await lab.raw("GET", f"{V2}/clusters")
        assert code == 200
