"""Names of fields as releases up to 4.18 write them."""

from __future__ import annotations

import re


def go_path(path: str) -> str:
    """A field as releases up to 4.18 name it when the agent-based installer finds it wrong.

    path: as in install-config, `controlPlane.replicas`; returns Go's names, `ControlPlane.Replicas`. vCenters lose
    their index.
    """
    if path.startswith("platform.vsphere."):
        rest = re.sub(r"vcenters\[\d+\]\.", "", path.removeprefix("platform.vsphere."))
        return "Platform.VSphere." + ("vcenter" if rest == "server" else re.sub(r"\[\d+\]", "", rest))
    if path.startswith("platform.baremetal."):
        return "Platform.BareMetal." + path.removeprefix("platform.baremetal.")
    return ".".join(part[:1].upper() + part[1:] for part in path.split("."))


def go_notice(text: str) -> str:
    """The notice of an ignored field with the path as releases up to 4.18 have it.

    text: `path: value is ignored` or `path is ignored`.
    """
    path = re.split(r":? ", text, maxsplit=1)[0]
    shown = ".".join(part[:1].upper() + part[1:] for part in path.split("."))
    return shown.replace("Platform.Vsphere.", "Platform.VSphere.") + text.removeprefix(path)
