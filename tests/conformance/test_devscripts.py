"""dev-scripts' own templates, given its own variables, make the same input for the installer as agentlab; and what it has changed.

Needs a checkout of dev-scripts, in the variable AGENTLAB_DEVSCRIPTS. Its templates are rendered and its scripts are read as
text; none of them is run. docs/differences.md has what `THEIRS` and `OURS` leave out.
"""

from __future__ import annotations

import ipaddress
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jinja2
import pytest
import yaml
from ansible_collections.agentlab.ocp.plugins.module_utils.devscripts import importer, scenarios, variables
from ansible_collections.agentlab.ocp.plugins.module_utils.drift import devscripts as drift
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, configs, profile
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.model import Plan
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.topologies import TOPOLOGIES

CHECKOUT = Path(os.environ.get("AGENTLAB_DEVSCRIPTS") or "/nonexistent")
TEMPLATES = CHECKOUT / "agent/roles/manifests/templates"
pytestmark = pytest.mark.skipif(
    not TEMPLATES.is_dir(), reason="AGENTLAB_DEVSCRIPTS does not name a checkout of dev-scripts"
)

STACKS = ("IPV4", "IPV6", "IPV4V6")
SCENARIOS = [
    f"{row.scenario}_{stack}{mode}" for row in TOPOLOGIES.values() for stack in STACKS for mode in ("", "_DHCP")
]
CONFIGS = {
    "none": "AGENT_E2E_TEST_SCENARIO=COMPACT_IPV4\nAGENT_PLATFORM_TYPE=none",
    "external": "AGENT_E2E_TEST_SCENARIO=HA_IPV4\nAGENT_PLATFORM_TYPE=external",
    "external, named": "AGENT_E2E_TEST_SCENARIO=SNO_IPV4\nAGENT_PLATFORM_TYPE=external\nAGENT_PLATFORM_NAME=other",
    "features": "AGENT_E2E_TEST_SCENARIO=TNA_IPV4\nFEATURE_SET=CustomNoUpgrade\nFEATURE_GATES=A=true,B=false\n"
    "OS_IMAGE_STREAM=rhel-10\nFIPS_MODE=true",
    "workers of TNA": "AGENT_E2E_TEST_SCENARIO=TNA_IPV4V6\nNUM_WORKERS=3",
    "workers of TNF": "AGENT_E2E_TEST_SCENARIO=TNF_IPV6_DHCP\nNUM_WORKERS=2",
    "ranges": "AGENT_E2E_TEST_SCENARIO=COMPACT_IPV4V6\nEXTERNAL_SUBNET_V4=192.168.130.0/24\nEXTERNAL_SUBNET_V6=fd10::/64\n"
    "CLUSTER_SUBNET_V4=10.200.0.0/16\nCLUSTER_HOST_PREFIX_V6=65\nSERVICE_SUBNET_V4=172.29.0.0/16",
    "names": "AGENT_E2E_TEST_SCENARIO=HA_IPV4\nCLUSTER_NAME=two\nBASE_DOMAIN=example.com\nNETWORK_TYPE=Calico",
    "root device": "AGENT_E2E_TEST_SCENARIO=HA_IPV4\nAGENT_ROOT_DEVICE_HINTS=/dev/sda",
    "PXE": "AGENT_E2E_TEST_SCENARIO=SNO_IPV4\nAGENT_E2E_TEST_BOOT_MODE=PXE",
    "minimal ISO": "AGENT_E2E_TEST_SCENARIO=COMPACT_IPV6\nAGENT_MINIMAL_ISO=true",
    "bond": "AGENT_E2E_TEST_SCENARIO=COMPACT_IPV4V6\nBOND_CONFIG=active-backup",
    "bond of IPv6": "AGENT_E2E_TEST_SCENARIO=SNO_IPV6\nBOND_CONFIG=balance-xor",
    "proxy": "AGENT_E2E_TEST_SCENARIO=COMPACT_IPV4\nINSTALLER_PROXY=true",
    "hosts in install-config": "AGENT_E2E_TEST_SCENARIO=HA_IPV4\nAGENT_BM_HOSTS_IN_INSTALL_CONFIG=true",
    "nmstate with DHCP": "AGENT_E2E_TEST_SCENARIO=COMPACT_IPV4_DHCP\nAGENT_NMSTATE_DHCP=true",
}
SECRET, KEY = json.dumps({"auths": {"example.com": {"auth": "eDp5"}}}), "ssh-ed25519 AAAA me"


# ------------------------------------------------------------------------------------------------------------- the input


@pytest.mark.parametrize("name", [*SCENARIOS, *CONFIGS])
def test_same_input(name: str) -> None:
    text = CONFIGS.get(name, f"AGENT_E2E_TEST_SCENARIO={name}")
    found = importer.read([("config.sh", text)], {})
    cluster = found.options.get("cluster", "ostest")
    plan = build.build(profile.complete(found.raw), cluster)
    for node in plan["nodes"]:
        node["bmc"]["password"] = "password"
    plan["installer"]["image_digest_sources"] = []  # of the lab payload
    given = variables_of(text, plan)
    ours = configs.install_config(plan, pull_secret=json.loads(SECRET), ssh_key=KEY, trust_bundle="")
    kind = given["platform_type"]
    template = "install-config_baremetal_yaml.j2" if kind == "baremetal" else "install-config_yaml.j2"
    assert normal_install(ours, plan) == normal_install(render(template, given), plan)
    bonded = given["agent_bond_config"] != "none"
    theirs = render("agent-config_bond_yaml.j2" if bonded else "agent-config_yaml.j2", given)
    assert normal_agent(configs.agent_config(plan), plan) == normal_agent(theirs, plan)


def normal_install(config: dict[str, Any], plan: Plan) -> dict[str, Any]:
    """Return install-config.yaml without what is deliberately different, or the same as the default."""
    if "proxy" in config:
        near = set(config["proxy"].pop("noProxy").split(","))
        assert {subnet["cidr"] for subnet in plan["networks"][0]["subnets"]} <= near
        config["proxy"] = {name: url.rpartition(":")[0] for name, url in config["proxy"].items()}
    platform = config["platform"].get("baremetal", {})
    for name in [name for name in platform if name.startswith("provisioning")]:
        del platform[name]
    for host in platform.get("hosts", ()):
        host.pop("role", None)
        __, __, host["bmc"]["address"] = host["bmc"]["address"].partition("+")
        normal_network(host, plan)
    config["metadata"].pop("namespace", None)
    if config.get("fips") is False:
        del config["fips"]
    for pool in (config["controlPlane"], *config["compute"], *([config["arbiter"]] if "arbiter" in config else [])):
        pool.pop("hyperthreading", None)
    config["pullSecret"] = sorted(json.loads(config["pullSecret"])["auths"])[:1]
    return config


def normal_agent(config: dict[str, Any], plan: Plan) -> dict[str, Any]:
    """Return agent-config.yaml, likewise."""
    config.pop("kind", None)
    config["apiVersion"] = "v1"
    config["metadata"].pop("namespace", None)
    config.pop("additionalNTPSources", None)
    config.setdefault("hosts", None)
    # dev-scripts gives a minimal ISO a server only where images are mirrored.
    if plan["boot"]["mode"] == "minimal":
        config.pop("bootArtifactsBaseURL", None)
    for host in config["hosts"] or ():
        host.pop("role", None)
        normal_network(host, plan)
    return config


def normal_network(host: dict[str, Any], plan: Plan) -> None:
    """Remove from the nmstate of a host what is the same as the default."""
    network = host.get("networkConfig")
    if network is None:
        return
    if plan["cluster"]["addressing"] == "dhcp":
        del host["networkConfig"]
        return
    for interface in network["interfaces"]:
        for family in ("ipv4", "ipv6"):
            if interface.get(family) == {"enabled": False}:
                del interface[family]
        if interface.get("mtu") == 1500:
            del interface["mtu"]
        # How often the link is checked, without which a bond never fails over, and the MAC that the first NIC gives it.
        interface.get("link-aggregation", {}).pop("options", None)
        interface.pop("copy-mac-from", None)
    if any(interface["type"] == "bond" for interface in network["interfaces"]):
        network["interfaces"].sort(key=lambda interface: interface["name"])
        for interface in network["interfaces"]:
            interface.pop("mac-address", None)


def render(name: str, given: dict[str, Any]) -> dict[str, Any]:
    """Render a template as Ansible does."""
    loader = jinja2.FileSystemLoader(TEMPLATES)
    environment = jinja2.Environment(loader=loader, trim_blocks=True, undefined=jinja2.StrictUndefined)
    environment.tests["ansible.utils.ipv6"] = lambda text: ":" in str(text)
    environment.globals.update(given)
    loaded = yaml.safe_load(environment.get_template(name).render())
    assert isinstance(loaded, dict)
    return loaded


def variables_of(text: str, plan: Plan) -> dict[str, Any]:
    """Return what `agent/05_agent_configure.sh` gives to the templates for a configuration.

    Addresses and names follow from its own rules; MACs and BMCs, which are random there, are those of the plan.
    """
    given = dict(line.partition("=")[::2] for line in text.splitlines())
    topology, stack, *mode = given["AGENT_E2E_TEST_SCENARIO"].split("_")
    dhcp, families = mode == ["DHCP"], {"IPV4": "v4", "IPV6": "v6", "IPV4V6": "v4v6"}[stack]
    row = preset(topology)
    counts = {role: int(row.get(f"NUM_{role}S", "0")) for role in ("MASTER", "ARBITER", "WORKER")}
    if topology in ("TNA", "TNF"):
        counts["WORKER"] = int(given.get("NUM_WORKERS", "0"))
    defaults = network_defaults()
    subnets = {
        version: given.get(f"EXTERNAL_SUBNET_{version}") or defaults[f"EXTERNAL_SUBNET_{version}"]
        for version in ("V4", "V6")
    }
    total = sum(counts.values())

    def nth(version: str, index: int) -> str:
        return str(ipaddress.ip_network(subnets[version])[index])

    def nodes(version: str) -> str:
        used = version[1] in families
        return ",".join(nth(version, (20 if dhcp else 80) + index) for index in range(total)) if used else ""

    def both(index: int) -> str:
        return ",".join(nth(version, index) for version in ("V4", "V6") if version[1] in families)

    names = [f"{role.lower()}-{index}" for role, count in counts.items() for index in range(count)]
    bmcs = [node["bmc"] for node in plan["nodes"]]
    # BMC_DRIVER=redfish, which fencing needs.
    addresses = [bmc["address"].replace("redfish-virtualmedia+", "redfish+") for bmc in bmcs]
    bmc = {
        "addresses": addresses,
        "usernames": [one["username"] for one in bmcs],
        "passwords": [str(one["password"]) for one in bmcs],
        "verify_cas": ["False"] * len(bmcs),
    }
    masters, bonded = counts["MASTER"], given.get("BOND_CONFIG", "none") != "none"
    proxy = f"http://{nth('V4', 1)}:8215" if given.get("INSTALLER_PROXY") else ""
    sno = topology in ("SNO", "SNOMIN")
    low = {name.lower(): value for name, value in {**defaults, **given}.items()}
    return {
        "base_domain": given.get("BASE_DOMAIN", "test.metalkube.org"),
        "num_masters": str(masters),
        "num_workers": str(counts["WORKER"]),
        "num_arbiters": str(counts["ARBITER"]),
        "goCPUArchitecture": "amd64",
        "feature_set": given.get("FEATURE_SET", ""),
        "feature_gates": given.get("FEATURE_GATES", ""),
        "os_image_stream": given.get("OS_IMAGE_STREAM", ""),
        "fips_mode": given.get("FIPS_MODE") == "true",
        "cluster_name": given.get("CLUSTER_NAME", "ostest"),
        "cluster_namespace": "cluster0",
        "boot_mode": given.get("AGENT_E2E_TEST_BOOT_MODE", "ISO"),
        "ip_stack": families,
        "networking_mode": "DHCP" if dhcp else "",
        "network_type": given.get("NETWORK_TYPE", "OVNKubernetes"),
        "platform_type": given.get("AGENT_PLATFORM_TYPE", "none" if sno else "baremetal"),
        "platform_name": given.get("AGENT_PLATFORM_NAME", "oci"),
        **{name: low[name] for name in low if re.match(r"(cluster_subnet|cluster_host_prefix|service_subnet)_v", name)},
        **{f"external_subnet_{version.lower()}": subnets[version] for version in subnets},
        **{f"external_subnet_{version.lower()}_prefixlen": subnets[version].partition("/")[2] for version in subnets},
        "api_vips": both(5),
        "ingress_vips": both(4),
        "provisioning_host_external_ip": nth("V6" if families == "v6" else "V4", 1),
        "provisioning_host_external_ip_dualstack": nth("V6", 1),
        "agent_nodes_hostnames": ",".join(names),
        "agent_nodes_macs": ",".join(nic["mac"] for node in plan["nodes"] for nic in node["nics"][: 1 + bonded]),
        "agent_nodes_ips": nodes("V4"),
        "agent_nodes_ipsv6": nodes("V6"),
        **{f"agent_nodes_bmc_{key}": ",".join(values) for key, values in bmc.items()},
        **{f"agent_master_bmc_{key}": ",".join(values[:masters]) for key, values in bmc.items()},
        "agent_master_hostnames": ",".join(names[:masters]),
        "agent_bond_config": given.get("BOND_CONFIG", "none"),
        "agent_install_config_bm_hosts": given.get("AGENT_BM_HOSTS_IN_INSTALL_CONFIG", "false"),
        "cluster_provisioning_ip": both(8),
        "cluster_provisioning_interface": "",
        "provisioning_network": "172.22.0.0/24",
        "provisioning_network_profile": "Disabled",
        "agent_test_cases": "",
        "agent_root_device_hints": given.get("AGENT_ROOT_DEVICE_HINTS", ""),
        "agent_minimal_iso": given.get("AGENT_MINIMAL_ISO", "false"),
        "agent_nmstate_dhcp": given.get("AGENT_NMSTATE_DHCP", "false"),
        "boot_server_url": f"http://{nth('V4', 1)}:8089",
        "enable_two_node_fencing": topology == "TNF",
        "pull_secret_contents": json.dumps(SECRET),
        "ssh_pub_key": KEY,
        "mirror_images": False,
        "enable_local_registry": False,
        "http_proxy": proxy,
        "https_proxy": proxy,
        "no_proxy": f"{subnets['V4']},9999" if proxy else "",
    }


# ------------------------------------------------------------------------------------------------------ what has changed


def scripts() -> Iterator[str]:
    """Yield the scripts that the agent flow reads."""
    for path in [*(CHECKOUT / name for name in drift.SCRIPTS), *sorted((CHECKOUT / "agent").glob("*.sh"))]:
        yield path.read_text(encoding="utf-8")


def defaults_of_scripts() -> dict[str, set[str]]:
    """Return the default values of each variable, as the scripts have them."""
    found: dict[str, set[str]] = {}
    for text in scripts():
        for name, value in drift.DEFAULT.findall(text):
            if "$" not in value:
                found.setdefault(name, set()).add(value.strip('"'))
    return found


def network_defaults() -> dict[str, str]:
    found = defaults_of_scripts()
    return {
        name: next(value for value in found[name] if value)
        for kind in ("EXTERNAL_SUBNET", "CLUSTER_SUBNET", "CLUSTER_HOST_PREFIX", "SERVICE_SUBNET")
        for name in (f"{kind}_V4", f"{kind}_V6")
    }


def preset(topology: str) -> dict[str, str]:
    """Return what a scenario sets: the branch of the `case` in common.sh."""
    text = (CHECKOUT / "common.sh").read_text(encoding="utf-8")
    branch = re.search(rf'^ +"{topology}" \)\n(.*?)^ +;;', text, re.DOTALL | re.MULTILINE)
    assert branch, f"common.sh has no scenario {topology}"
    assigned = re.findall(r"export ([A-Z_]+)=\"?(?:\$\{\1:-)?\"?([A-Za-z0-9]+)", branch[1])
    return dict(assigned)


def test_defaults_are_the_same() -> None:
    """A changed default would give a configuration another meaning."""
    found = defaults_of_scripts()
    changed = []
    for name, row in variables.VARIABLES.items():
        if row.default and row.default not in found.get(name, {row.default}):
            changed.append(f"{name}: {row.default} is now {' or '.join(sorted(found[name]))}")
    assert changed == []


def test_every_variable_has_a_row() -> None:
    """A new variable of dev-scripts would be reported as one that its agent flow does not read."""
    written = set(
        re.findall(r"^# ?(?:export )?([A-Z][A-Z0-9_]+)=", (CHECKOUT / "config_example.sh").read_text(), re.MULTILINE)
    )
    new = sorted(name for name in {*defaults_of_scripts(), *written} - drift.INTERNAL if variables.find(name) is None)
    gone = sorted(
        name for name in variables.VARIABLES if not any(name in text for text in [*scripts(), *other_texts()])
    )
    assert (new, gone) == ([], [])


def other_texts() -> Iterator[str]:
    for pattern in ("*.sh", "agent/**/*", "docs/*.md", "Makefile", "*.yml", "assets/**/*"):
        for path in CHECKOUT.glob(pattern):
            if path.is_file():
                yield path.read_text(encoding="utf-8", errors="replace")


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_presets_are_the_same(topology: str) -> None:
    row = TOPOLOGIES[topology]
    found, sizes = preset(row.scenario), scenarios.sizes(row)
    for role, prefix in variables.ROLE_PREFIXES.items():
        assert int(found.get(f"NUM_{prefix}S", "0")) == row.group(role).number
        for suffix, field in variables.SIZES.items():
            if f"{prefix}_{suffix}" in found:
                assert int(found[f"{prefix}_{suffix}"]) == getattr(sizes[role], field)
    forced = {prefix for role, prefix in variables.ROLE_PREFIXES.items() if role in scenarios.forced_roles(topology)}
    text = (CHECKOUT / "common.sh").read_text(encoding="utf-8")
    branch = re.search(rf'^ +"{row.scenario}" \)\n(.*?)^ +;;', text, re.DOTALL | re.MULTILINE)
    assert branch
    assert ("WORKER" in forced) == ("NUM_WORKERS:-" not in branch[1])


def test_no_scenario_is_new() -> None:
    text = (CHECKOUT / "common.sh").read_text(encoding="utf-8")
    cases = re.findall(r'^ +"([0-9A-Z]+)" \)$', text, re.MULTILINE)
    assert sorted(set(cases)) == sorted(row.scenario for row in TOPOLOGIES.values())


def test_sizes_without_a_scenario() -> None:
    text = (CHECKOUT / "common.sh").read_text(encoding="utf-8")
    for role, prefix in variables.ROLE_PREFIXES.items():
        for suffix, field in variables.SIZES.items():
            name = f"{prefix}_{suffix}"
            last = re.findall(rf"export {name}=\$\{{{name}:-([0-9]+)\}}", text)[-1]
            assert int(last) == getattr(scenarios.PLAIN[role], field), name


def test_the_example_is_imported() -> None:
    """With each of its commented lines switched on, alone: what is not accepted is refused by name."""
    example = (CHECKOUT / "config_example.sh").read_text(encoding="utf-8")
    lines = re.findall(r"^# ?((?:export )?[A-Z][A-Z0-9_]+=.*)$", example, re.MULTILINE)
    assert len(lines) > 100
    unknown = []
    for line in lines:
        try:
            found = importer.read([("config.sh", example), ("line", line)], {"HOME": "~", "USER": "me"})
        except ValueError as error:
            name = line.removeprefix("export ").partition("=")[0]
            assert name in str(error) or "is not run" in str(error) or "is not understood" in str(error), line
        else:
            unknown += [name for name, note in found.ignored.items() if "does not read it" in note]
    assert sorted(set(unknown)) == []
