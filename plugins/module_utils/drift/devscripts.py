"""dev-scripts: the variables that its agent flow reads, their defaults, and the presets of its scenarios."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ..devscripts import scenarios, variables
from ..plan.topologies import TOPOLOGIES
from .checkout import Tree
from .facts import Disagreement, Facts, disagreements_in, facts_of_names

SCRIPTS = ("common.sh", "network.sh", "logging.sh", "utils.sh", "ocp_install_env.sh", "01_install_requirements.sh",
           "02_configure_host.sh", "oc_mirror.sh", "validation.sh", "release_info.sh")  # fmt: skip
"""The scripts that the agent flow reads, in addition to those in `agent/`."""
INTERNAL = {
    "API_VIPS_V4", "API_VIPS_V6", "DIGEST", "HOSTS_SWAP_DEFINITION", "INGRESS_VIPS_V4", "INGRESS_VIPS_V6", "LOGPREFIX",
    "PROVISIONING_URL_HOST", "PULL_SECRET", "XDG_RUNTIME_DIR",
}  # fmt: skip
"""Variables that the scripts set for themselves."""
OTHERS = ("*.sh", "agent/*", "docs/*.md", "Makefile", "*.yml", "assets/*")
DEFAULT = re.compile(r"\$\{([A-Z][A-Z0-9_]+):?[-=](\"[^\"]*\"|[^}]*)\}")
WRITTEN = re.compile(r"^# ?(?:export )?([A-Z][A-Z0-9_]+)=", re.MULTILINE)
_SCENARIO = re.compile(r'^ +"([0-9A-Z]+)" \)\n(.*?)^ +;;', re.DOTALL | re.MULTILINE)
_PRESET = re.compile(r"export ([A-Z_]+)=\"?(?:\$\{\1:-)?\"?([A-Za-z0-9]+)")


def facts(tree: Tree) -> Facts:
    """Return the facts of a checkout; CheckoutError without common.sh."""
    paths = [path for path in tree.paths if path in SCRIPTS or re.fullmatch(r"agent/[^/]+\.sh", path)]
    found: dict[str, set[str]] = {}
    for path in paths:
        for name, value in DEFAULT.findall(tree.read(path)):
            found.setdefault(name, set())
            if "$" not in value:
                found[name].add(value.strip('"'))
    for name in WRITTEN.findall(tree.read("config_example.sh")):
        found.setdefault(name, set())
    named = {name for path in tree.matching(*OTHERS) for name in re.findall(r"[A-Z][A-Z0-9_]{2,}", tree.read(path))}
    presets = {
        f"{scenario} {name}": value
        for scenario, branch in _SCENARIO.findall(tree.read("common.sh"))
        for name, value in _PRESET.findall(branch)
        if re.match(r"NUM_|(MASTER|ARBITER|WORKER)_(VCPU|MEMORY|DISK)$", name)
    }
    read = {name: " or ".join(sorted(filter(None, values))) for name, values in found.items() if name not in INTERNAL}
    return {"variables": dict(sorted(read.items())), "presets": presets, "named": facts_of_names(named)}


def disagreements(upstream: Facts) -> Iterator[Disagreement]:
    """Yield variables without a row, rows without a variable, and other defaults and presets than ours."""
    for name, value in upstream["variables"].items():
        if variables.find(name) is None:
            yield Disagreement(
                "variables", name, f"agentlab has no row for it{f'; its default is {value}' if value else ''}"
            )
    for name, row in variables.VARIABLES.items():
        value = upstream["variables"].get(name, "")
        if name not in upstream["variables"] and name not in upstream["named"]:
            yield Disagreement("variables", name, "agentlab has a row for it, upstream no longer names it")
        elif row.default and value and row.default not in value.split(" or "):
            yield Disagreement("defaults", name, f"upstream: {value}; agentlab: {row.default}")
    yield from disagreements_in("presets", upstream["presets"], _presets(upstream["presets"]))


def _presets(upstream: Mapping[str, str]) -> dict[str, str]:
    """Return our presets, of the names that upstream sets, and of counts that are not zero."""
    found: dict[str, str] = {}
    for row in TOPOLOGIES.values():
        sizes = scenarios.sizes(row)
        for role, prefix in variables.ROLE_PREFIXES.items():
            number, key = row.group(role).number, f"{row.scenario} NUM_{prefix}S"
            if number or key in upstream:
                found[key] = str(number)
            for suffix, field in variables.SIZES.items():
                key = f"{row.scenario} {prefix}_{suffix}"
                if key in upstream:
                    found[key] = str(getattr(sizes[role], field))
    return found
