"""Nodes of a profile and how they boot, from variables of dev-scripts: the scenario, counts, sizes, networks of single nodes."""

from __future__ import annotations

import re
from pathlib import Path

from ..documents import DocumentError, load_yaml
from ..plan import files, profile
from ..plan.formats import FORMATS, fits
from ..plan.modes import MODES
from ..plan.topologies import TOPOLOGIES, Topology
from . import scenarios, variables
from .builder import Builder

_MOST = 100  # of a role, in a profile
_SIZE = re.compile(r"([1-9][0-9]{0,8})[gG](?:i?[bB])?")


def nodes(b: Builder) -> None:
    """Map the scenario, counts and sizes. What a scenario sets, the configuration cannot change.

    Sets `b.topology`, `b.scenario` and `b.counts`, which later steps read. A size that the scenario or the topology has
    already is not set again.
    """
    _stack(b)
    given = {role: _count(b, f"NUM_{prefix}S") for role, prefix in variables.ROLE_PREFIXES.items()}
    if b.topology is None:
        for role, prefix in variables.ROLE_PREFIXES.items():
            number = given[role]
            b.counts[role] = int(variables.MAPPED[f"NUM_{prefix}S"].default) if number is None else number
        b.topology = scenarios.topology_of(**b.counts)
        b.put(
            "topology",
            b.topology,
            *(f"NUM_{p}S" for r, p in variables.ROLE_PREFIXES.items() if given[r] is not None),
        )
        if b.boolean("ENABLE_TWO_NODE_FENCING") and TOPOLOGIES[b.topology].fencing:
            b.put("topology", b.topology, "ENABLE_TWO_NODE_FENCING")
        fixed: tuple[str, ...] = ()
    else:
        fixed = scenarios.forced_roles(b.topology)
        b.counts = {role: TOPOLOGIES[b.topology].group(role).number for role in variables.ROLE_PREFIXES}
        if TOPOLOGIES[b.topology].fencing and "ENABLE_TWO_NODE_FENCING" in b.set:
            b.ignored["ENABLE_TWO_NODE_FENCING"] = f"the scenario {b.scenario} sets it"
    row = TOPOLOGIES[b.topology]
    if row.fencing and b.value("BMC_DRIVER").lower() not in ("", "redfish"):
        b.refuse("BMC_DRIVER", "only redfish is supported for two-node fencing")
    for role, prefix in variables.ROLE_PREFIXES.items():
        name, number = f"NUM_{prefix}S", given[role]
        if role in fixed:
            if name in b.set and not b.is_refused(name):
                b.ignored[name] = f"the scenario {b.scenario} sets it to {b.counts[role]}"
        elif number is not None or b.scenario is None:
            b.counts[role] = b.counts[role] if number is None else number
            if b.counts[role] != row.group(role).number:
                b.put(f"{role}.count", b.counts[role], *([name] if number is not None else []))
    _machines(b, row)
    _existing(b)


def _existing(b: Builder) -> None:
    platform = b.value("NODES_PLATFORM").lower()
    if platform == "baremetal":
        if b.value("NODES_FILE"):
            b.put("machines_from", b.path("NODES_FILE"), "NODES_PLATFORM", "NODES_FILE")
        else:
            b.refuse("NODES_PLATFORM", "requires NODES_FILE, the inventory of the machines")
    elif platform not in ("", "libvirt"):
        b.refuse("NODES_PLATFORM", "must be libvirt or baremetal")
    elif b.value("NODES_FILE"):
        b.ignored["NODES_FILE"] = "dev-scripts writes it for VMs, as does `agentlab export devscripts --files`"


def _count(b: Builder, name: str) -> int | None:
    number = b.integer(name)
    if number is not None and number > _MOST:
        b.refuse(name, f"must be from 0 to {_MOST}")
        return None
    return number


def _stack(b: Builder) -> None:
    scenario = b.value("AGENT_E2E_TEST_SCENARIO").upper()
    mode = b.value("NETWORKING_MODE").upper()
    if mode not in ("", "DHCP"):
        b.refuse("NETWORKING_MODE", "must be DHCP or empty")
    if scenario:
        found = profile.scenario(scenario) if "_IP" in scenario else None
        if found is None or found["stack"] == "v6v4":
            b.refuse(
                "AGENT_E2E_TEST_SCENARIO",
                f"must be {', '.join(row.scenario for row in TOPOLOGIES.values())} with _IPV4, _IPV6 or _IPV4V6, and _DHCP or nothing",
            )
            return
        b.scenario, b.topology = scenario, found["topology"]
        if mode == "DHCP" and found["addressing"] != "dhcp":
            found["addressing"] = "dhcp"
            b.put("addressing", "dhcp", "NETWORKING_MODE")
        for key, value in found.items():
            b.put(key, value, "AGENT_E2E_TEST_SCENARIO")
        if b.value("IP_STACK"):
            b.ignored["IP_STACK"] = f"the scenario {scenario} sets it"
        return
    stack = (b.value("IP_STACK") or variables.MAPPED["IP_STACK"].default).lower()
    if stack not in scenarios.STACKS:
        b.refuse("IP_STACK", f"must be one of {', '.join(scenarios.STACKS)}")
        return
    b.put("stack", scenarios.STACKS[stack], *(["IP_STACK"] if b.value("IP_STACK") else []))
    # Without a scenario it is the IPI flow, whose nodes use DHCP.
    b.put("addressing", "dhcp", *(["NETWORKING_MODE"] if mode == "DHCP" else []))


def _machines(b: Builder, row: Topology) -> None:
    presets = scenarios.sizes(row if b.scenario else None)
    for role, prefix in variables.ROLE_PREFIXES.items():
        for suffix, field in variables.SIZES.items():
            name = f"{prefix}_{suffix}"
            number = b.integer(name)
            if not b.counts[role]:
                if name in b.set and not b.is_refused(name):
                    b.ignored[name] = f"there are no {role}s"
            elif number is not None:
                b.put(f"{role}.{field}", number, name)
            elif b.real and getattr(presets[role], field) != getattr(row.group(role).real, field):
                b.put(f"{role}.{field}", getattr(presets[role], field))
        _names(b, role, f"{prefix}_HOSTNAME_FORMAT")
    b.set_everywhere("root_device", b.value("AGENT_ROOT_DEVICE_HINTS") or None, "AGENT_ROOT_DEVICE_HINTS")
    b.set_everywhere("tpm", bool(b.value("VM_TPM_EMULATOR")) or None, "VM_TPM_EMULATOR")
    if b.boolean("VM_EXTRADISKS"):
        wanted = b.value("VM_EXTRADISKS_SIZE") or variables.MAPPED["VM_EXTRADISKS_SIZE"].default
        size = _SIZE.fullmatch(wanted)
        if size is None:
            b.refuse("VM_EXTRADISKS_SIZE", "must be a number of gigabytes, such as 8G")
            return
        disks = (b.value("VM_EXTRADISKS_LIST") or variables.MAPPED["VM_EXTRADISKS_LIST"].default).split()
        found = [{"size_gib": int(size[1]), "bus": "virtio"} for _disk in disks]
        own = [name for name in ("VM_EXTRADISKS_LIST", "VM_EXTRADISKS_SIZE") if b.value(name)]
        b.set_everywhere("extra_disks", found, "VM_EXTRADISKS", *own)


def _names(b: Builder, role: str, name: str) -> None:
    text = b.value(name)
    if not text:
        return
    if not fits("name_format", text):
        b.refuse(name, f"must be {FORMATS['name_format'].meaning}")
    elif b.counts[role]:
        b.put(f"{role}.name_format", text, name)
    else:
        b.ignored[name] = f"there are no {role}s"


def boot(b: Builder) -> None:
    """Map how the machines boot.

    Modes of dev-scripts are ISO, PXE and ISCSI; other ones (disk images) are refused, as are BMC drivers other than
    Redfish.
    """
    mode = b.value("AGENT_E2E_TEST_BOOT_MODE").upper()
    ours = {one.devscripts.get("AGENT_E2E_TEST_BOOT_MODE"): name for name, one in MODES.items()}.get(mode)
    firmware = b.value("LIBVIRT_FIRMWARE").lower()
    if ours:
        b.put("boot.mode", ours, "AGENT_E2E_TEST_BOOT_MODE")
        if b.scenario and b.value("LIBVIRT_FIRMWARE"):
            b.ignored["LIBVIRT_FIRMWARE"] = f"the boot mode {mode} sets it to bios"
        if b.scenario:
            b.set_everywhere("firmware", "bios", "AGENT_E2E_TEST_BOOT_MODE")
    elif mode not in ("", "ISO"):
        reasons = {
            "DISKIMAGE": "the appliance's disk image cannot be built or booted; there are ISO, PXE and ISCSI",
            "ISO_NO_REGISTRY": "the ISO without a registry (OVE) cannot be built; there are ISO, PXE and ISCSI",
        }
        b.refuse("AGENT_E2E_TEST_BOOT_MODE", reasons.get(mode, "must be ISO, PXE or ISCSI"))
    minimal, appliance = b.boolean("AGENT_MINIMAL_ISO"), b.boolean("AGENT_USE_APPLIANCE_MODEL")
    if appliance and mode in ("", "ISO"):
        b.put("boot.mode", "config-image", "AGENT_USE_APPLIANCE_MODEL")
    elif minimal and mode in ("", "ISO"):
        b.put("boot.mode", "minimal", "AGENT_MINIMAL_ISO")
    elif minimal and mode == "ISCSI":
        b.mapped["AGENT_MINIMAL_ISO"] = "boot.mode: iscsi, whose image always is minimal"
    if firmware and not (ours and b.scenario):
        b.set_everywhere("firmware", firmware, "LIBVIRT_FIRMWARE")
    driver = b.value("BMC_DRIVER").lower()
    if driver == "redfish-virtualmedia":
        b.mapped["BMC_DRIVER"] = "boot.mode: redfish, the default"
    elif driver == "mixed":
        b.mapped["BMC_DRIVER"] = "all BMCs are Redfish: dev-scripts' agent flow boots no machine through its BMC"
    elif driver not in ("", "redfish"):
        b.refuse("BMC_DRIVER", "BMCs support Redfish only; there are redfish and redfish-virtualmedia")


def nmstate_dhcp(b: Builder) -> None:
    """Give the nodes the nmstate of dev-scripts for DHCP; with IPv6 they have it anyway.

    For AGENT_NMSTATE_DHCP. The nmstate is that of one interface, eth0, with IPv4 by DHCP and without IPv6.
    """
    if b.raw.get("stack") != "ipv4":
        b.mapped["AGENT_NMSTATE_DHCP"] = "nodes with IPv6 by DHCP always have nmstate"
        return
    auto = {"enabled": True, "dhcp": True, "auto-dns": True, "auto-gateway": True, "auto-routes": True}
    interface = {"name": "eth0", "type": "ethernet", "state": "up", "ipv4": auto, "ipv6": {"enabled": False}}
    for role, count in b.counts.items():
        for index in range(count):
            b.put(f"nodes.{role}-{index}.network_config", {"interfaces": [interface]})
    b.mapped["AGENT_NMSTATE_DHCP"] = "nodes.NAME.network_config"


def network_configs(b: Builder) -> None:
    """Read the nmstate of single nodes from the folder that the configuration names.

    For NETWORK_CONFIG_FOLDER. A node's file is `<cluster>-<role>-<index>.yaml` with the key `networkConfig`; a node may
    have none, but one of them must.
    """
    folder, name, found = Path(b.path("NETWORK_CONFIG_FOLDER")).expanduser(), "NETWORK_CONFIG_FOLDER", 0
    if (folder / "hosts.yaml").exists():
        b.refuse(name, "its hosts.yaml has DNS records, which a profile cannot add")
    for role, count in b.counts.items():
        for index in range(count):
            path = folder / f"{b.cluster_name()}-{role}-{index}.yaml"
            if not path.exists():
                continue
            try:
                document = load_yaml(files.read(str(path)), name=str(path))
            except (files.FileError, DocumentError) as error:
                b.refuse(name, f"{path}: {error}")
                continue
            config = document.get("networkConfig") if isinstance(document, dict) else None
            if not isinstance(config, dict):
                b.refuse(name, f"{path}: has no networkConfig")
                continue
            b.put(f"nodes.{role}-{index}.network_config", config)
            found += 1
    if not b.is_refused(name):
        if found:
            b.mapped[name] = f"nodes.NAME.network_config of {found} nodes"
        else:
            b.refuse(name, f"has no file {b.cluster_name()}-master-0.yaml or of another node")
