"""An image of another run: whose tokens the service of this one did not sign."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.payload.api_server.auth import Local, RefusedCall
from ansible_collections.agentlab.ocp.plugins.module_utils.coreos.iso import LiveIso
from ansible_collections.agentlab.ocp.plugins.module_utils.ignition.config import Config, dumps, files_of
from ansible_collections.agentlab.ocp.plugins.module_utils.installer import credentials, foreign
from ansible_collections.agentlab.ocp.plugins.module_utils.installer.errors import InstallerError


def agent_image(path: Path, base: Path, env: str) -> None:
    config = Config()
    config.file(foreign.ENV, env, 0o600)
    config.file("/etc/other", "as it is\n", 0o644)
    with LiveIso(base) as iso:
        iso.ignition = dumps(config.to_dict())
        iso.save_as(path, mode=0o644)


def files(path: Path) -> dict[str, str]:
    with LiveIso(path) as iso:
        assert iso.ignition
        return {name: data.decode() for name, data in files_of(json.loads(iso.ignition)).items()}


def test_the_service_refuses_its_tokens(tmp_path: Path, base_iso: Path) -> None:
    own = credentials.tokens()
    env = f"NODE_ZERO_IP=192.0.2.1\nPULL_SECRET_TOKEN={own['AgentAuthToken']}\nUSER_AUTH_TOKEN={own['UserAuthToken']}\n"
    source, target = tmp_path / "agent.iso", tmp_path / "other.iso"
    agent_image(source, base_iso, env)
    foreign.image(source, target)
    assert target.stat().st_mode & 0o777 == 0o644
    found = files(target)
    assert found["/etc/other"] == "as it is\n"
    values = dict(line.split("=", 1) for line in found[foreign.ENV].splitlines())
    assert list(values) == ["NODE_ZERO_IP", "PULL_SECRET_TOKEN", "USER_AUTH_TOKEN"]
    assert values["NODE_ZERO_IP"] == "192.0.2.1"
    service = Local(own["PublicKey"])
    assert service.authorize(["agentAuth"], {"X-Secret-Key": own["AgentAuthToken"]}) == "agentAuth"
    for scheme, header, name in (
        ("agentAuth", "X-Secret-Key", "PULL_SECRET_TOKEN"),
        ("userAuth", "Authorization", "USER_AUTH_TOKEN"),
    ):
        with pytest.raises(RefusedCall) as refused:
            service.authorize([scheme], {header: values[name]})
        assert refused.value.status == 401


def test_it_is_made_once_for_each_image(tmp_path: Path, base_iso: Path) -> None:
    source, target = tmp_path / "agent.iso", tmp_path / "other.iso"
    agent_image(source, base_iso, "PULL_SECRET_TOKEN=a\n")
    foreign.image(source, target)
    first = files(target)
    foreign.image(source, target)
    assert files(target) == first
    source.unlink()
    agent_image(source, base_iso, "PULL_SECRET_TOKEN=b\n")
    foreign.image(source, target)
    assert files(target) != first


def test_an_image_without_tokens_is_refused(tmp_path: Path, base_iso: Path) -> None:
    source = tmp_path / "agent.iso"
    agent_image(source, base_iso, "PULL_SECRET_TOKEN=\n")
    with pytest.raises(InstallerError, match="has no tokens"):
        foreign.image(source, tmp_path / "other.iso")
    assert not (tmp_path / "other.iso").exists()
