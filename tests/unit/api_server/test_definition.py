"""A cluster that a lab defines over REST: hosts without a cluster are bound, named and installed by the service simulator."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.assisted.definition import Definition, Host
from ansible_collections.agentlab.ocp.plugins.module_utils.assisted.user import RefusedError, User
from ansible_collections.agentlab.ocp.plugins.module_utils.errors import LabError

from .lab import Agent, Lab
from .test_client import KEY, LOCAL, TOKENS, manifests

pytestmark = pytest.mark.asyncio
EXTRA = {"99-settings-0.yaml": b"kind: ConfigMap\n"}


def hosts(count: int) -> list[Host]:
    return [Host(f"control-{index}", "master", frozenset({f"52:54:00:00:00:{index:02x}"})) for index in range(count)]


def definition(
    lab: Lab, folder: Path, count: int, seconds: float, reported: list[str], token: str | None = None
) -> Definition:
    api = User("127.0.0.1", TOKENS["userAuth"] if token is None else token, "user", lab.server.port or 0)
    return Definition(
        api, folder, EXTRA, hosts(count), reported.append, seconds=seconds, sleep=lambda _seconds: time.sleep(0.05)
    )


class Restarted(Agent):
    """An agent that is restarted when it ends, as by systemd."""

    async def poll(self) -> dict[str, Any]:
        steps = await super().poll()
        if steps.get("post_step_action") == "exit":
            await self.register()
        return steps


async def test_three_hosts(tmp_path: Path) -> None:
    manifests(tmp_path / "m")
    async with Lab(tmp_path, LOCAL) as lab:
        lab.headers = {"Authorization": TOKENS["userAuth"], "X-Secret-Key": TOKENS["agentAuth"]}
        infra_env = await lab.infra_env(None)
        headers = {"X-Secret-Key": TOKENS["agentAuth"]}
        agents = [Restarted(lab, infra_env["id"], index, headers=headers) for index in range(4)]  # one is of no cluster
        tasks = [asyncio.create_task(agent.run()) for agent in agents]
        reported: list[str] = []
        found = await asyncio.to_thread(definition(lab, tmp_path / "m", 3, 60, reported).install)
        assert {*found} == {"kubeconfig", "kubeadmin-password"} and all(found.values())
        [cluster] = await lab.call("GET", "/clusters")
        whole = await lab.call("GET", f"/clusters/{cluster['id']}")
        assert sorted((host["requested_hostname"], host["role"]) for host in whole["hosts"]) == [
            (f"control-{index}", "master") for index in range(3)
        ]
        assert whole["install_config_overrides"]
        names = [entry["file_name"] for entry in await lab.call("GET", f"/clusters/{cluster['id']}/manifests")]
        assert names == [*EXTRA]
        # A second run finds all done, and gets the same.
        assert await asyncio.to_thread(definition(lab, tmp_path / "m", 3, 60, reported).install) == found
        assert reported[-1] == f"Cluster {cluster['id']} is registered already"
        assert reported.count("Started the installation") == 1
        for task in tasks:
            task.cancel()


async def test_hosts_that_do_not_come_are_named(tmp_path: Path) -> None:
    manifests(tmp_path / "m", masters=1, platformType="None", apiVIPs=[], apiVIP="", ingressVIPs=[], ingressVIP="")
    async with Lab(tmp_path, LOCAL) as lab:
        with pytest.raises(
            LabError, match=r"not being installed after 0\.3 s: no service answers, or it has no infra-env"
        ):
            await asyncio.to_thread(definition(lab, tmp_path / "m", 1, 0.3, []).install)
        lab.headers = {"Authorization": TOKENS["userAuth"]}
        await lab.infra_env(None)
        with pytest.raises(LabError, match=r"after 0\.3 s: control-0: not registered yet"):
            await asyncio.to_thread(definition(lab, tmp_path / "m", 1, 0.3, []).install)


async def test_a_wrong_token_is_not_waited_for(tmp_path: Path) -> None:
    manifests(tmp_path / "m")
    async with Lab(tmp_path, {**LOCAL, "EC_PUBLIC_KEY_PEM": KEY}) as lab:
        with pytest.raises(RefusedError, match="HTTP 403") as error:
            await asyncio.to_thread(definition(lab, tmp_path / "m", 3, 60, [], TOKENS["agentAuth"]).install)
        assert error.value.status == 403
