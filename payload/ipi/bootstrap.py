"""The bootstrap machine: the lab's base ISO with bootstrap.ign, in a domain that is removed when the masters lead.

As openshift-install's (pkg/infrastructure/baremetal/bootstrap.go): `<infraID>-bootstrap`, a live ISO with the embedded config. The
lab's live system needs no scratch disk.
"""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from ...plugins.module_utils.coreos.iso import LiveIso
from ...plugins.module_utils.libvirt import connection, domain
from ...plugins.module_utils.plan import ipi, names
from ...plugins.module_utils.plan.machines import Node
from ...plugins.module_utils.state import owner
from .lab import Lab

IMAGE = "bootstrap.iso"
"""File in the cluster's state directory, where libvirt gives it to QEMU's user."""


def domain_name(lab: Lab) -> str:
    """Return the name of the machine in libvirt."""
    return f"{lab.plan['cluster']['name']}-bootstrap"


def console(lab: Lab) -> Path:
    """Return the file with the machine's serial console."""
    return Path(names.console(lab.plan["hypervisor"]["state_dir"], domain_name(lab)))


def create(lab: Lab, config: Mapping[str, object]) -> None:
    """Create and start the machine, unless it runs already. config: bootstrap.ign. Raises `LabError` and `CoreosError`."""
    image = _image(lab)
    with connection.connect() as libvirt:
        known = connection.lookup(libvirt, "lookupByName", domain_name(lab))
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
            console=console(lab),
        )
        domain.apply(libvirt, [tree])
        domain.set_media(libvirt, domain_name(lab), [str(image)])
        libvirt.lookupByName(domain_name(lab)).create()


def destroy(lab: Lab) -> None:
    """Remove the machine. Raises `LabError`, also where there is none."""
    found = owner.read(Path(lab.plan["hypervisor"]["state_dir"]))
    with connection.connect() as libvirt:
        if found is None or not domain.remove(libvirt, domain_name(lab), found.mark):
            raise ValueError(f"there is no domain {domain_name(lab)}")
    _image(lab).unlink(missing_ok=True)


def _image(lab: Lab) -> Path:
    return Path(lab.plan["hypervisor"]["state_dir"]) / IMAGE


def _node(lab: Lab) -> Node:
    """The machine as a node of a plan, which the definition is made from."""
    given: Mapping[str, Any] = ipi.bootstrap(lab.plan) or {}
    cluster, network = lab.plan["cluster"]["name"], lab.plan["networks"][0]["name"]
    return cast(
        Node,
        {
            "name": "bootstrap",
            "domain": domain_name(lab),
            "role": "bootstrap",
            "uuid": names.node_uuid(cluster, "bootstrap"),
            "vcpus": given["vcpus"],
            "memory_mib": given["memory_mib"],
            "firmware": "uefi",
            "tpm": False,
            "disks": [],
            "nics": [{"name": "eth0", "network": network, "mac": given["mac"], "addresses": []}],
        },
    )
