"""What is posted is validated then: nothing of it breaks a cluster later, and what an older service kept does not either."""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

import pytest
from ansible_collections.agentlab.ocp.payload.api_server import config, images, refusals, settings
from ansible_collections.agentlab.ocp.payload.api_server.document import tracked_document
from ansible_collections.agentlab.ocp.payload.api_server.errors import ApiError

from .lab import SSH_KEY, V2, Agent, Lab


def encoded(text: str | bytes) -> str:
    return base64.b64encode(text.encode() if isinstance(text, str) else text).decode()


def config_map(data: str, metadata: str = "{name: agentlab-settings}") -> str:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {metadata}\ndata: {data}\n"


#: Manifests that are YAML, and no settings where settings may be looked for.
ODD = [
    config_map("{}", "[agentlab-settings]"), config_map("{}", "agentlab-settings"), config_map("{}", "{name: [agentlab-settings]}"),
    config_map("{}", "null"), "kind: ConfigMap  # agentlab-settings", "- agentlab-settings", "agentlab-settings", "agentlab-settings: {agentlab-settings: 1}",
    "kind: [ConfigMap]\nmetadata: {name: agentlab-settings}", "kind: MachineConfig\nmetadata: [agentlab-settings]", "--- \n---\nagentlab-settings\n---\n",
    "kind: MachineConfig\nmetadata: {name: agentlab-settings, labels: [x]}\nspec: []", config_map("null"), config_map("{OTHER_NAME: x}"),
]  # fmt: skip
#: Invalid settings, and their messages.
BAD = {
    "[a]": "data.data should be a string, got list",
    "x": "data.data",
    "{HOST_MONITOR_INTERVAL: soon}": "data.HOST_MONITOR_INTERVAL: 'soon' is not a duration",
    "{AGENT_NEXT_INSTRUCTION_SECONDS: [5]}": "data.AGENT_NEXT_INSTRUCTION_SECONDS should be a string, got list",
    "{AGENT_NEXT_INSTRUCTION_SECONDS: null}": "should be a string, got NoneType",
    "{DISK_CHECK_TIMEOUT: '%s'}" % ("9" * 400): "is longer than 100 years",
    "{IMAGE_AVAILABILITY_TIMEOUT: -5}": "'-5' is not a duration",
    "{CONNECTIVITY_CHECKS_PER_MINUTE: many}": "is not a number of checks",
    "{CONNECTIVITY_CHECKS_PER_MINUTE: ٣}": "is not a number of checks",
    "{ENABLE_SOFT_TIMEOUTS: perhaps}": "is neither true nor false",
    '{OTHER: "a\\nb"}': "should be one line",
}


async def test_no_manifest_stops_the_hosts(tmp_path: Path) -> None:
    async with Lab(tmp_path) as lab:
        cluster = await lab.cluster()
        path = f"/clusters/{cluster['id']}/manifests"
        agent = Agent(lab, (await lab.infra_env(cluster["id"]))["id"], 0)
        await agent.register()
        for number, text in enumerate(ODD):
            await lab.call("POST", path, {"file_name": f"m{number}.yaml", "content": encoded(text)}, 201)
            await lab.call("GET", f"{agent.path}/instructions", query={"timestamp": 1})
        for data, problem in BAD.items():
            refused = await lab.call("POST", path, {"file_name": "bad.yaml", "content": encoded(config_map(data))}, 400)
            assert "has invalid settings: " in refused["reason"] and problem in refused["reason"], data
            refused = await lab.call(
                "PATCH",
                path,
                {"folder": "manifests", "file_name": "m0.yaml", "updated_content": encoded(config_map(data))},
                400,
            )
            assert problem in refused["reason"], data
        large = config_map("{A: '%s'}" % ("x" * 1000)) + "# " + "x" * settings.MOST_BYTES
        assert (
            "the limit of a manifest with settings is"
            in (await lab.call("POST", path, {"file_name": "bad.yaml", "content": encoded(large)}, 400))["reason"]
        )
        good = config_map(
            "{AGENT_NEXT_INSTRUCTION_SECONDS: 7, ENABLE_SOFT_TIMEOUTS: true, HOST_MONITOR_INTERVAL: 1m30s}"
        )
        await lab.call("POST", path, {"file_name": "a.yaml", "content": encoded(good)}, 201)
        await lab.call("GET", f"{agent.path}/instructions", query={"timestamp": 1})
        assert lab.engine.settings(cluster["id"])["AGENT_NEXT_INSTRUCTION_SECONDS"] == "7"
        assert lab.engine.config.flag("ENABLE_SOFT_TIMEOUTS", lab.engine.settings(cluster["id"]))


async def test_what_an_older_service_kept(tmp_path: Path) -> None:
    """Each of these manifests once got 201. After a restart hosts are still answered, and other settings still count."""
    good = config_map("{AGENT_NEXT_INSTRUCTION_SECONDS: '7'}")
    kept = [
        *ODD,
        *(config_map(data) for data in BAD),
        "agentlab-settings: " + "[" * 5000,
        "agentlab-settings: &a [*a]",
        "\0agentlab-settings",
    ]
    for number, text in enumerate(kept):
        async with Lab(tmp_path / str(number)) as lab:
            cluster = await lab.cluster()
            agent = Agent(lab, (await lab.infra_env(cluster["id"]))["id"], 0)
            await agent.register()
            lab.engine.store.put_file(cluster["id"], "manifest/manifests/a.yaml", text.encode())
            lab.engine.store.put_file(cluster["id"], "manifest/manifests/b.yaml", good.encode())
            lab.engine.settings_changed(cluster["id"])
            await lab.call("GET", f"{agent.path}/instructions", query={"timestamp": 1})
            assert all(isinstance(value, str) for value in lab.engine.settings(cluster["id"]).values())
            if "kind: ConfigMap" not in text:
                assert lab.engine.settings(cluster["id"]) == {"AGENT_NEXT_INSTRUCTION_SECONDS": "7"}, text
            await lab.call("GET", f"/clusters/{cluster['id']}")
            await lab.call("GET", f"/clusters/{cluster['id']}/manifests")
            assert lab.engine.peers(lab.engine.hosts[agent.id]) is None
            lab.engine.config.number("CONNECTIVITY_CHECKS_PER_MINUTE", lab.engine.settings(cluster["id"]))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.yaml", "a: 1" + ":10" * 300 + ".5"),
        ("x.yaml", "a: " + "9" * 5000),
        ("x.yaml", "a: 0x" + "f" * 5000),
        ("x.yaml", "a: 1e99999"),
        ("x.yaml", "a: 2001-99-99"),
        ("x.yaml", "- " * 30000 + "a"),
        ("x.yaml", "[" * 40000),
        ("x.yaml", "&a [*a]"),
        ("x.yaml", "a: 1:10" + ":10" * 100_000),
        ("x.yaml", "a1: &a1 {<<: [*a1]}"),
        ("x.json", "9" * 5000),
        ("x.json", '{"a": 1e99999}'),
        ("x.json", "[" * 100_000),
        ("x.json", '"\\ud800"'),
        ("x.yaml", "\ud800".encode("utf-8", "surrogatepass").decode("latin-1")),
    ],
    ids=lambda value: value[:24],
)
async def test_manifests_that_no_reader_survived(tmp_path: Path, name: str, text: str) -> None:
    async with Lab(tmp_path) as lab:
        cluster = await lab.cluster()
        body = {"file_name": name, "content": encoded(text.encode("utf-8", "surrogatepass"))}
        async with lab.session.post(lab.url(f"/clusters/{cluster['id']}/manifests"), json=body) as answer:
            assert answer.status in (201, 400), await answer.text()
        await lab.call("GET", f"/clusters/{cluster['id']}")


# -- what reaches units, environments and scripts -----------------------------------------------------------------------

EVIL = "ExecStartPre=/bin/evil"
BREAKS = ("\n", "\r\n", "\r", "\0", "\x0b", "\x0c", "\x85", "\u2028")


@pytest.mark.parametrize(
    "text",
    [
        *(f"{start}{gap}{EVIL}" for gap in BREAKS for start in ("*", "a,*")),
        "* a",
        "a b",
        "*.example",
        "fe80::1%\nx",
        "a,,b",
        'a"b',
    ],
    ids=ascii,
)
def test_no_proxy_is_a_list(text: str) -> None:
    with pytest.raises(ApiError, match="is not a valid no_proxy entry"):
        refusals.proxies(None, None, text)


@pytest.mark.parametrize("text", ["*", "a,*", ".example,10.0.0.0/8,fd00::/8,::1,a_b"])
def test_good_no_proxy(text: str) -> None:
    refusals.proxies(None, None, text)


def rendered(lab: Lab, infra_env: dict[str, Any]) -> str:
    """Everything that a host would be given, decoded, to look for injected lines."""
    found = []
    for kind in ("full-iso", "minimal-iso"):
        made = images.discovery(lab.engine, infra_env, kind)
        for entry in made["storage"]["files"]:
            header, __, data = entry["contents"]["source"].partition(",")
            found.append((base64.b64decode(data) if header.endswith("base64") else unquote_to_bytes(data)).decode())
        found += [unit["contents"] for unit in made["systemd"]["units"]]
        found += made["passwd"]["users"][0]["sshAuthorizedKeys"]
    found.append(images._proxy_lines(infra_env))
    return "\n".join(found)


async def test_no_value_becomes_a_line(tmp_path: Path) -> None:
    """Each field of an infra-env with each kind of line break: refused, or harmless in all that is made of it."""
    fields: dict[str, Any] = {
        "additional_ntp_sources": "ntp.example{}", "ntp_sources": "ntp.example,fe80::1%{}", "ssh_authorized_key": f"{SSH_KEY} me{{}}",
        "proxy": [{"http_proxy": "http://h:1/{}"}, {"https_proxy": "https://u:{}@h:1"}, {"no_proxy": "a,{}"}, {"no_proxy": "*{}"}, {"no_proxy": "fe80::1%{}"}],
        "kernel_arguments": [[{"operation": "append", "value": "a={}"}], [{"operation": "append", "value": 'a="{}"'}]],
        "openshift_version": "4.22{}", "rendezvous_ip": "192.168.111.20{}", "name": "env{}", "cpu_architecture": "x86_64{}",
    }  # fmt: skip

    def put(value: Any, text: str) -> Any:
        if isinstance(value, dict):
            return {key: put(inner, text) for key, inner in value.items()}
        return [put(inner, text) for inner in value] if isinstance(value, list) else value.replace("{}", text)

    async with Lab(
        tmp_path,
        {"OS_IMAGES": json.dumps([{"openshift_version": "4.22", "cpu_architecture": "x86_64", "url": "http://x/i"}])},
    ) as lab:
        cluster = await lab.cluster()
        infra_env = await lab.infra_env(cluster["id"])
        document = lab.engine.infra_envs[infra_env["id"]]
        for name, forms in fields.items():
            for form in forms if name in ("proxy", "kernel_arguments") else [forms]:
                for gap in BREAKS:
                    value = put(form, f"{gap}{EVIL}{gap}")
                    async with lab.session.patch(
                        lab.url(f"/infra-envs/{infra_env['id']}"), json={name: value}
                    ) as answer:
                        assert answer.status in (200, 201, 400, 422), (name, gap, await answer.text())
                    for line in rendered(lab, dict(document)).splitlines():
                        assert not line.strip().startswith(EVIL), (name, gap)
                    # The same in the store of an older service.
                    older = dict(document) | {name: json.dumps(value) if name == "kernel_arguments" else value}
                    if name not in ("ssh_authorized_key",):
                        for line in rendered(lab, older).splitlines():
                            assert not line.strip().startswith(EVIL), (name, gap, "kept")


async def test_an_old_kernel_argument_is_not_an_ipxe_command(tmp_path: Path) -> None:
    async with Lab(tmp_path, {"OS_IMAGES": json.dumps([{"openshift_version": "4.22", "cpu_architecture": "x86_64", "url": "http://x/i"}]),
                              "IMAGE_SERVICE_BASE_URL": "http://images.example"}) as lab:  # fmt: skip
        infra_env = await lab.infra_env((await lab.cluster())["id"])
        bad = [{"operation": "append", "value": '"a\nshell"'}, {"operation": "append", "value": "good=1"}]
        refused = await lab.call("PATCH", f"/infra-envs/{infra_env['id']}", {"kernel_arguments": bad}, 400)
        assert "has control characters" in refused["reason"]
        lab.engine.infra_envs[infra_env["id"]]["kernel_arguments"] = json.dumps(bad)
        async with lab.session.get(
            lab.url(f"/infra-envs/{infra_env['id']}/downloads/files"), params={"file_name": "ipxe-script"}
        ) as answer:
            lines = (await answer.text()).splitlines()
        assert [line.split()[0] for line in lines] == ["#!ipxe", "initrd", "kernel", "boot"] and "good=1" in lines[2]


@pytest.mark.parametrize("expect", [b"\xff", b"100-continu\xe9", b"\x80" * 1000, b"other", b"100-Continue"])
@pytest.mark.parametrize(
    "line",
    [
        b"GET /health",
        b"GET /nowhere",
        b"POST /health",
        b"GET " + V2.encode() + b"/clusters",
        b"PUT " + V2.encode() + b"/clusters",
    ],
)
async def test_expect_headers(tmp_path: Path, expect: bytes, line: bytes) -> None:
    async with Lab(tmp_path) as lab:
        reader, writer = await asyncio.open_connection("127.0.0.1", lab.server.port)
        writer.write(line + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\nExpect: " + expect + b"\r\n\r\n")
        answer = await asyncio.wait_for(reader.read(), 20)
        writer.close()
    status = int(answer.removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n").split()[1])
    if expect.lower() != b"100-continue":
        assert status == 417
    else:
        assert status == {b"GET /health": 200, b"GET /nowhere": 404, b"POST /health": 405}.get(
            line, 405 if line.startswith(b"PUT") else 200
        )


# -- steps --------------------------------------------------------------------------------------------------------------


async def test_a_step_is_not_ordered_while_its_reply_is_outstanding(tmp_path: Path) -> None:
    async with Lab(tmp_path, {"AGENT_NEXT_INSTRUCTION_SECONDS": "5"}) as lab:
        engine = lab.engine
        now = engine.clock()
        engine.clock = lambda: now
        cluster = await lab.cluster(high_availability_mode="None")
        agent = Agent(lab, (await lab.infra_env(cluster["id"]))["id"], 0)
        await agent.register()
        host = engine.hosts[agent.id]
        await engine.stop()
        for kind, status in (
            ("installation-disk-speed-check", "preparing-for-installation"), ("container-image-availability", "preparing-for-installation"),
            ("install", "installing"), ("logs-gather", "error"),
        ):  # fmt: skip
            tracked_document(host).set(status=status, _status_at=now, installation_disk_id="/dev/sda")

            def ordered(kind: str = kind) -> bool:
                steps = [
                    {"step_type": kind, "step_id": "x", "args": ["y"]},
                    {"step_type": "inventory", "step_id": "z", "args": []},
                ]
                return kind in [step["step_type"] for step in engine._due(host, steps)]

            assert ordered()
            now += 5
            assert not ordered(), kind
            engine.replied(host["id"], kind, 1)
            assert ordered(), "what failed is ordered again"
            engine.replied(host["id"], kind, 0)
            assert ordered() == (kind != "install")
            assert not ordered()
            engine.ask_again(host["id"])
            assert ordered(), "a new agent was given nothing"
            now += 2 * 3600
            assert ordered(), "the step's time is over"
            now += 5
            tracked_document(host).set(status="known", _status_at=now)
            assert ordered(), "the host started over"
            assert not ordered()


def test_durations_are_bounded() -> None:
    with pytest.raises(ValueError, match="is longer than 100 years"):
        config.seconds("9" * 400)
    assert config.seconds("1h30m") == 5400
