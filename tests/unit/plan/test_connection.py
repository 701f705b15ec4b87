"""network.connection: what a lab's machines reach, and what follows from it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import (
    build,
    certificates,
    checks,
    configs,
    created,
    profile,
    proxied,
)
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import services

PROFILES = Path(__file__).resolve().parents[3] / "config_examples"


def chosen(name: str = "compact_ipv4", **network: Any) -> Any:
    found: Any = profile.load(name, PROFILES)
    found["network"] |= network
    return found


@pytest.mark.parametrize(
    ("connection", "egress", "leaves", "routed", "proxied"),
    [
        (None, False, False, False, False),
        (None, True, True, True, False),
        ("disconnected", False, False, False, False),
        ("connected", False, True, True, False),
        ("proxied", False, True, False, True),
        ("proxied", True, True, False, True),
    ],
)
def test_what_follows(connection: str | None, egress: bool, leaves: bool, routed: bool, proxied: bool) -> None:
    given = chosen(connection=connection)
    given["hypervisor"]["egress"] = egress
    plan = build.build(given, "lab")
    assert plan["hypervisor"]["egress"] == leaves
    assert plan["networks"][0]["nat"] == routed
    assert bool(plan["services"].get("proxy")) == proxied
    assert ("proxy" in services.names_of(plan)) == proxied
    assert ({"kind": "service", "name": "proxy", "host": "h"} in created.items(plan, "h")) == proxied
    config = configs.install_config(plan, pull_secret={"auths": {}}, ssh_key="", trust_bundle="")
    assert ("proxy" in config) == proxied


@pytest.mark.parametrize(
    ("name", "url", "near"),
    [
        ("compact_ipv4", "http://192.168.111.1:3128", "192.168.111.0/24"),
        ("compact_ipv6", "http://[fd2e:6f44:5dd8:c956::1]:3128", "fd2e:6f44:5dd8:c956::/120"),
        ("compact_dualstack", "http://192.168.111.1:3128", "192.168.111.0/24,fd2e:6f44:5dd8:c956::/120"),
    ],
)
def test_install_config_names_the_proxy_and_what_is_near(name: str, url: str, near: str) -> None:
    plan = build.build(chosen(name, connection="proxied"), "lab")
    config = configs.install_config(plan, pull_secret={"auths": {}}, ssh_key="", trust_bundle="")
    assert config["proxy"] == {
        "httpProxy": url,
        "httpsProxy": url,
        "noProxy": f"{plan['cluster']['domain']},{near}",
    }


def test_the_lab_payload_is_behind_the_proxy() -> None:
    """Without mirrors the machines need the proxy for each pull: it alone knows the registry's name."""
    plan = build.build(chosen(connection="proxied"), "lab")
    assert plan["installer"]["image_digest_sources"] == []
    assert proxied.registry(plan["services"]) == "registry.agentlab.test"
    config = configs.install_config(plan, pull_secret={"auths": {}}, ssh_key="", trust_bundle="")
    assert "imageDigestSources" not in config
    auths = json.loads(config["pullSecret"])["auths"]
    assert auths["registry.agentlab.test"] == auths[f"{plan['services']['host']}:5000"]
    assert "registry.agentlab.test" in certificates.served_names(plan)
    assert "registry.agentlab.test" not in json.dumps(plan["networks"])


def test_a_lab_with_mirrors_or_another_payload_has_no_registry_behind_the_proxy() -> None:
    mirrored, real = chosen(connection="proxied"), chosen("sno_ipv4_ocp", connection="proxied")
    mirrored["installer"]["image_digest_sources"] = [{"source": "a.test/b", "mirrors": ["c.test/b"]}]
    for given in (mirrored, real, chosen(connection="connected")):
        plan = build.build(given, "lab")
        assert proxied.registry(plan["services"]) is None
        assert "registry.agentlab.test" not in certificates.served_names(plan)


def test_contradictions_are_named() -> None:
    def found(given: Any) -> list[tuple[str, str]]:
        return [(".".join(map(str, path)), text) for path, __, text in checks.check(given, "lab")]

    given = chosen(connection="disconnected")
    given["hypervisor"]["egress"] = True
    assert ("network.connection", "contradicts `hypervisor.egress: true`: remove one of them") in found(given)
    given = chosen(connection="proxied", nat=True)
    given["hypervisor"]["kind"] = "local"
    given["services"]["http"]["port"] = 3128
    only = "must be false: with `network.connection: proxied` the proxy is the only way out"
    assert set(found(given)) >= {
        ("network.connection", "requires `hypervisor.kind: sandbox`, not local"),
        ("network.nat", only),
        ("services.http.port", "is that of the proxy: choose another one"),
    }
    assert not found(chosen(connection="proxied"))
