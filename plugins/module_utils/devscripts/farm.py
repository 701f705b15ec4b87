"""A run under the names of dev-scripts, for scripts that were written for it: links, `hosts` and `ironic_nodes.json`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from ..bmc import kinds
from ..documents import read_file
from ..plan import disks, inputs
from ..plan.inventory import HINTS
from ..plan.machines import Node
from ..plan.model import Plan
from ..plan.short import ShortHost
from ..state import write_atomic
from ..vocabulary import BOOT_ARTIFACTS, RunFile

HOSTS = "hosts"
# Below ocp/<cluster>, and in the run directory. Links may be ahead of their files: a stage writes these later.
_LINKS = {
    RunFile.INSTALL_CONFIG: RunFile.INSTALL_CONFIG,
    f"{RunFile.INSTALL_CONFIG}.save": f"{inputs.LAST}/{RunFile.INSTALL_CONFIG}",
    RunFile.AGENT_CONFIG: RunFile.AGENT_CONFIG,
    "cluster-manifests": "cluster-manifests",
    "mirror": "mirror",
    "openshift": "openshift",
    BOOT_ARTIFACTS: BOOT_ARTIFACTS,
    "auth": "auth",
    RunFile.INSTALLER_LOG: RunFile.INSTALLER_LOG,
    RunFile.INSTALLER_STATE: RunFile.INSTALLER_STATE,
}


_HINTS = {field: name for name, field in HINTS.items()}


def hosts(directory: Path) -> list[ShortHost]:
    """Return the hosts in the file `hosts` of `ocp/<cluster>`, whose lines are `ADDRESS NAME`; none without such a file.

    The name is without its domain. Raises `OSError`, and `DocumentError` for a file that is too large.
    """
    path = directory / HOSTS
    if not path.is_file():
        return []
    lines = [line.split() for line in read_file(path).decode(errors="replace").splitlines()]
    return [{"address": words[0], "name": words[1].partition(".")[0]} for words in lines if len(words) > 1]


class FarmError(ValueError):
    """A directory in which there is something that agentlab has not made.

    The text names the first such file. Nothing has been written when it is raised.
    """


def write(plan: Plan, run_dir: Path, folder: Path) -> list[Path]:
    """Write `ocp/<cluster>/` and `<cluster>/ironic_nodes.json` below `folder`; return what has changed.

    plan: with its passwords. Raises `FarmError` before anything is written where something else has one of the names.
    """
    name = plan["cluster"]["name"]
    ocp, nodes = folder / "ocp" / name, folder / name / "ironic_nodes.json"
    image = plan["boot"]["image"]
    links = {ocp / link: run_dir / target for link, target in {**_LINKS, image: image}.items()}
    first = next(iter(links))
    ours = first.is_symlink() and Path(os.readlink(first)) == links[first]
    others = [path for path in links if os.path.lexists(path) and not path.is_symlink()]
    others += [path for path in (ocp / HOSTS, nodes) if path.exists() and not ours]
    if others:
        raise FarmError(f"{others[0]}: was not made by agentlab from {run_dir}; choose another directory")
    ocp.mkdir(parents=True, exist_ok=True)
    changed = []
    for path, target in links.items():
        if path.is_symlink() and Path(os.readlink(path)) == target:
            continue
        path.unlink(missing_ok=True)
        path.symlink_to(target)
        changed.append(path)
    hosts = "".join(f"{node['nics'][0]['addresses'][0]['ip']} {node['name']}\n" for node in plan["nodes"])
    ironic = json.dumps({"nodes": [_ironic(node, name) for node in plan["nodes"]]}, indent=2) + "\n"
    changed += [
        path
        for path, text, mode in ((ocp / HOSTS, hosts, 0o644), (nodes, ironic, 0o600))
        if write_atomic(path, text, mode)
    ]
    return changed


def _ironic(node: Node, cluster: str) -> dict[str, Any]:
    """Return a node as Ironic's `baremetal create` takes it, and dev-scripts keeps it."""
    bmc = node["bmc"]
    kind = kinds.of_address(bmc["address"]) or kinds.default()
    hints = {_HINTS[key]: value for key, value in disks.given_hints(node.get("root_device_hints")).items()}
    hints |= {"name": node["root_device"]} if node["root_device"] else {}
    return {
        **({"agentlab_quirks": bmc["quirks"]} if bmc.get("quirks") else {}),
        "name": f"{cluster}-{node['name']}",
        "driver": kind.drivers[0],
        "resource_class": "baremetal",
        "driver_info": {
            "username": bmc["username"],
            "password": bmc["password"],
            "address": bmc["address"],
            # The lab's BMCs have an authority of the lab's.
            kind.ca_key: bmc.get("ca_file") or str(bool(node.get("bare_metal") and bmc.get("verify_ca") is not False)),
        },
        "ports": [{"address": nic["mac"], "pxe_enabled": not index} for index, nic in enumerate(node["nics"])],
        "properties": {
            "local_gb": str(node["disks"][0]["size_gib"]),
            "cpu_arch": "x86_64",
            "boot_mode": "uefi" if node["firmware"] == "uefi" else "legacy",
            **({"root_device": hints} if hints else {}),
        },
    }
