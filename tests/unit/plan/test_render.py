from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, profile, render

PROFILES = Path(__file__).resolve().parents[3] / "config_examples"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("name", ["sno_ipv4", "ha_dualstack_static", "5CONTROL_IPV6", "tna_ipv4"])
def test_the_drawing_has_everything_inside_its_edges(name: str) -> None:
    plan = build.build(profile.load(name, PROFILES), "ostest")
    root = ElementTree.fromstring(render.svg(plan))
    width, height = float(root.get("width", "")), float(root.get("height", ""))
    texts = [element.text or "" for element in root.iter(f"{SVG}text")]
    for node in plan["nodes"]:
        for wanted in (node["name"], node["uuid"], f"eth0  {node['nics'][0]['mac']}"):
            assert wanted in texts
        for address in node["nics"][0]["addresses"]:
            assert any(f"{address['ip']}/" in text for text in texts)
    assert any(plan["networks"][0]["name"] in text for text in texts)
    for box in root.iter(f"{SVG}rect"):
        assert float(box.get("x", 0)) + float(box.get("width", "")) <= width
        assert float(box.get("y", 0)) + float(box.get("height", "")) <= height


def test_the_table_names_what_matters() -> None:
    plan = build.build(profile.load("ha_dualstack", PROFILES), "ostest")
    table = render.table(plan, 120)
    for wanted in (
        "ha, dualstack, dhcp",
        "192.168.111.5",
        "fd2e:6f44:5dd8:c956::18/120",
        "5 nodes, 8 vCPUs, 13312 MiB",
    ):
        assert wanted in table
    assert max(len(line) for line in table.splitlines()) <= 120
