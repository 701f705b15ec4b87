"""The bootstrap machine: the lab's base ISO with bootstrap.ign, in a domain that is removed when the masters lead.

As openshift-install's (pkg/infrastructure/baremetal/bootstrap.go): `<infraID>-bootstrap`, a live ISO with the embedded config. The
lab's live system needs no scratch disk.
"""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from ...plugins.module_utils.coreos.iso import LiveIso
from ...plugins.module_utils.libvirt import connection, domain
from ...plugins.module_utils.plan.machines import Node
from ...plugins.module_utils.state import owner
from .lab import Lab


def create(lab: Lab, config: Mapping[str, object]) -> None:
    """Create and start the machine, unless it runs already. config: bootstrap.ign. Raises `LabError` and `CoreosError`."""
    given = lab.bootstrap
    image = Path(given["image"])
    with connection.connect() as libvirt:
        known = connection.lookup(libvirt, "lookupByName", given["domain"])
        if known is not None and known.isActive():
            return
        with LiveIso(lab.payload["iso"]) as iso:
            iso.ignition = json.dumps(config).encode()
            iso.save_as(image, grow=True, overwrite=True)
        first = libvirt.lookupByName(lab.plan["nodes"][0]["domain"])
        found = owner.read(Path(lab.plan["hypervisor"]["state_dir"]))
        if found is None:
            raise ValueError(f"{lab.plan['hypervisor']['state_dir']} has no owner: run the stage prepare first")
        tree = domain.render(
            _node(lab),
            found,
            pool=lab.plan["hypervisor"]["pool"],
            domain_type=ET.fromstring(first.XMLDesc()).get("type", "qemu"),
            console=Path(given["console"]),
        )
        domain.apply(libvirt, [tree])
        domain.set_media(libvirt, given["domain"], [str(image)])
        libvirt.lookupByName(given["domain"]).create()


def destroy(lab: Lab) -> None:
    """Remove the machine. Raises `LabError`, also where there is none."""
    found, given = owner.read(Path(lab.plan["hypervisor"]["state_dir"])), lab.bootstrap
    with connection.connect() as libvirt:
        if found is None or not domain.remove(libvirt, given["domain"], found.mark):
            raise ValueError(f"there is no domain {given['domain']}")
    Path(given["image"]).unlink(missing_ok=True)


def _node(lab: Lab) -> Node:
    """The machine as a node of a plan, which the definition is made from."""
    given, network = lab.bootstrap, lab.plan["networks"][0]["name"]
    return cast(
        Node,
        {
            "name": given["name"],
            "domain": given["domain"],
            "role": "bootstrap",
            "uuid": given["uuid"],
            "vcpus": given["vcpus"],
            "memory_mib": given["memory_mib"],
            "firmware": "uefi",
            "tpm": False,
            "disks": [],
            "nics": [{"name": "eth0", "network": network, "mac": given["mac"], "addresses": []}],
        },
    )
