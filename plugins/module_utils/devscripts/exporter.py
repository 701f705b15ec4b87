"""From a profile to a configuration of dev-scripts, and what that cannot say."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..plan import inventory, iscsi, overrides, profile
from ..plan.modes import MODES
from ..plan.options import Profile
from ..plan.presets import DEFAULTS, MACHINE
from ..plan.topologies import TOPOLOGIES, preset
from ..releases import LATEST, RELEASES
from ..releases.distributions import of_version
from . import scenarios, variables
from .configuration import Export, ExportError, LostField
from .mapping import BOND, BONDED, STATE
from .overlay import leaves, overlaid
from .shell import LIMIT, NAME

# No scenario has IPv6 first.
_STACKS = {"ipv4": "IPV4", "ipv6": "IPV6", "dualstack": "IPV4V6", "v6v4": "IPV4V6"}


def config(given: Profile, cluster: str, more: Mapping[str, str] | None = None) -> Export:
    """Return the configuration for a complete and valid profile, whose inventory is read.

    more: variables that are added, or replace those of the profile: what dev-scripts needs and a profile does not have.
    Raises `ExportError` for a value of several lines.
    """
    exporter = _Exporter(given, cluster)
    exporter.export()
    for name, value in (more or {}).items():
        if not re.fullmatch(NAME, name):
            raise ExportError(f"{name!r} is not the name of a variable")
        exporter.put(name, value, "given in addition to the profile")
    return Export(exporter.values, exporter.fields, exporter.lost, tuple(exporter.files & set(exporter.values)))


class _Exporter:
    def __init__(self, given: Profile, cluster: str) -> None:
        self.profile, self.cluster = given, cluster
        self.given: dict[str, Any] = {**given}
        self.real = given["release"]["payload"] != "lab"
        self.row = TOPOLOGIES[given["topology"]]
        self.roles = [role for role in variables.ROLE_PREFIXES if self.given[role]["count"]]
        self.values: dict[str, str] = {}
        self.fields: dict[str, str] = {}
        self.files: set[str] = set()
        self.lost: list[LostField] = []

    def put(self, name: str, value: object, field: str) -> None:
        text = str(value)
        if not text.isprintable() or len(text) > LIMIT:
            raise ExportError(f"{field}: {name} must be one line of printable characters")
        self.values[name], self.fields[name] = text, field
        self.files.discard(name)

    def lose(self, field: str, reason: str = "dev-scripts has no variable for it") -> None:
        self.lost.append(LostField(field, reason))

    def default(self, *path: str) -> Any:
        value: Any = DEFAULTS
        for key in path:
            value = value[key]
        return value

    def field(self, path: str) -> Any:
        value: Any = self.given
        for key in path.split("."):
            value = value[key]
        return value

    def simple(self, path: str, name: str) -> None:
        """Export a field of its own that differs from the default, which is dev-scripts' too."""
        if self.field(path) != self.default(*path.split(".")):
            self.put(name, self.field(path), path)

    def only_default(self, *paths: str) -> None:
        for path in paths:
            if self.field(path) != self.default(*path.split(".")):
                self.lose(path)

    def export(self) -> None:
        if self.cluster != variables.MAPPED["CLUSTER_NAME"].default:
            self.put("CLUSTER_NAME", self.cluster, "--cluster")
        self.simple("base_domain", "BASE_DOMAIN")
        self.nodes()
        self.machines()
        self.release()
        self.networks()
        self.boot()
        self.installer()
        self.overlay()
        self.simple("services.registry.port", "LOCAL_REGISTRY_PORT")
        self.simple("services.registry.username", "REGISTRY_USER")
        self.simple("services.http.port", "AGENT_BOOT_SERVER_PORT")
        self.only_default(
            "flow", "network.vlan", "network.routes", "machines", "outside_networks", "snapshots", "tests"
        )
        self.only_default("arch", "services.bmc.port", "services.bmc.username", "vips.api", "vips.ingress")
        for path in ("services.registry.password", "services.bmc.password"):
            if self.field(path) is not None:
                self.lose(path, "a secret is not written into a configuration")
        existing = inventory.nodes(self.profile) if self.given["machines_from"] else {}
        if existing:
            self.put("NODES_PLATFORM", "baremetal", "machines_from")
            self.put("NODES_FILE", self.given["machines_from"], "machines_from")
        for name in self.given["nodes"]:
            if self.given["nodes"][name] == existing.get(name):
                continue
            self.lose(f"nodes.{name}", "dev-scripts configures no single node")
        for index, fault in enumerate(self.given["faults"]):
            self.lose(f"faults.{index}", f"dev-scripts has no fault {fault['kind']}")

    def nodes(self) -> None:
        p = self.given
        dhcp = "_DHCP" if p["addressing"] == "dhcp" else ""
        scenario = f"{self.row.scenario}_{_STACKS[p['stack']]}{dhcp}"
        self.put("AGENT_E2E_TEST_SCENARIO", scenario, "topology, stack, addressing")
        if p["addressing"] == "slaac":
            self.lose("addressing", "dev-scripts has no SLAAC without DHCPv6")
        if p["stack"] == "v6v4":
            self.lose("stack", "scenarios of dev-scripts have IPv4 first")
        fixed = scenarios.forced_roles(p["topology"])
        for role, prefix in variables.ROLE_PREFIXES.items():
            count, number = p[role]["count"], self.row.group(role).number
            if role not in fixed and count != number:
                self.put(f"NUM_{prefix}S", count, f"{role}.count")
            elif count != number:
                self.lose(f"{role}.count", f"the scenario {scenario} has {number}")
        platform = p["platform"]
        if platform == "nutanix":
            self.lose("platform", "dev-scripts has baremetal, none, external and vsphere")
        elif platform is not None:
            self.put("AGENT_PLATFORM_TYPE", platform, "platform")
        if platform == "external":
            name, manager = p["external"]["platform_name"], p["external"]["cloud_controller_manager"]
            self.put("AGENT_PLATFORM_NAME", name, "external.platform_name")
            if manager not in (None, "External" if name == "oci" else "None"):
                self.lose("external.cloud_controller_manager", "dev-scripts has External with the name oci alone")
        if self.row.fencing:
            self.put("BMC_DRIVER", "redfish", "topology; two-node fencing needs it")

    def machines(self) -> None:
        presets = scenarios.sizes(self.row)
        own = preset(self.given["topology"], self.given["release"]["payload"])
        for role in self.roles:
            for suffix, field in variables.SIZES.items():
                usual = getattr(presets[role], field) if self.real else own[role][field]
                if self.given[role][field] != usual:
                    self.put(f"{variables.ROLE_PREFIXES[role]}_{suffix}", self.given[role][field], f"{role}.{field}")
            if self.given[role].get("name_format"):
                self.put(
                    f"{variables.ROLE_PREFIXES[role]}_HOSTNAME_FORMAT",
                    self.given[role]["name_format"],
                    f"{role}.name_format",
                )
            if self.given[role]["root_device_hints"]:
                self.lose(f"{role}.root_device_hints", "dev-scripts has the hint deviceName alone")
            if self.given[role]["secure_boot"]:
                self.lose(f"{role}.secure_boot", "dev-scripts boots without it")
            if self.given[role]["disk_bus"] != MACHINE["disk_bus"]:
                self.lose(f"{role}.disk_bus")
        device = self.common_value("root_device")
        if device is not None:
            self.put("AGENT_ROOT_DEVICE_HINTS", device, "root_device")
        if self.common_value("tpm"):
            self.put("VM_TPM_EMULATOR", "true", "tpm")
        disks = self.common_value("extra_disks")
        if disks:
            sizes = {disk["size_gib"] for disk in disks}
            buses = {disk.get("bus", MACHINE["disk_bus"]) for disk in disks}
            if any(set(disk) - {"size_gib", "bus"} for disk in disks):
                self.lose("extra_disks", "dev-scripts' disks report what QEMU's disks do")
            if len(sizes) > 1 or buses != {"virtio"} or len(disks) > 25:
                self.lose("extra_disks", "dev-scripts has up to 25 extra disks of one size, on the bus virtio")
            else:
                self.put("VM_EXTRADISKS", "true", "extra_disks")
                names = " ".join(f"vd{chr(ord('b') + index)}" for index in range(len(disks)))
                self.put("VM_EXTRADISKS_LIST", names, "extra_disks")
                self.put("VM_EXTRADISKS_SIZE", f"{sizes.pop()}G", "extra_disks[].size_gib")

    def common_value(self, field: str) -> Any:
        """Return the value that a field has for all machines; the default, and a loss, if there are several."""
        found = [self.given[role][field] for role in self.roles]
        if all(value == found[0] for value in found):
            return found[0]
        self.lose(f"{', '.join(self.roles)}: {field}", "dev-scripts has one value for all machines")
        return MACHINE[field]

    def release(self) -> None:
        p = self.given["release"]
        line = ".".join((p["version"] or "").split(".")[:2])
        if p["profile"] != (line if line in RELEASES else LATEST.name):
            self.lose("release.profile")
        self.build()
        if self.real:
            self.put("OPENSHIFT_RELEASE_IMAGE", p["image"], "release.image")
            if of_version(p["image"]).payload != p["payload"]:
                self.lose("release.payload", "the tag of OPENSHIFT_RELEASE_IMAGE does not have a version of OKD")
            if p["version"]:
                self.put("OPENSHIFT_VERSION", p["version"], "release.version")
            if p["payload_overrides"]:
                self.lose("release.payload_overrides", "a component of a real payload is not replaced")
        else:
            self.lose(
                "release.payload", "dev-scripts installs a real release: set OPENSHIFT_RELEASE_IMAGE and CI_TOKEN"
            )
            usual = profile.complete(
                {"topology": self.given["topology"], "release": {"payload_overrides": p["payload_overrides"]}}
            )
            if p["version"] != usual["release"]["version"]:
                self.lose("release.version")
            for name in sorted(
                key for key, value in self.given["settings"].items() if usual["settings"].get(key) != value
            ):
                self.lose(f"settings.{name}", "a setting of the lab payload's programs")
            for name, source in p["payload_overrides"].items():
                if "@sha256:" in source and overrides.kind(source) is overrides.Kind.PULLSPEC:
                    self.put(
                        f"{name.upper().replace('-', '_')}_LOCAL_IMAGE", source, f"release.payload_overrides.{name}"
                    )
                else:
                    self.lose(f"release.payload_overrides.{name}", "dev-scripts takes the pullspec of an image")
        if self.real:
            self.only_default("settings")
        self.way_out()
        self.only_default(*(f"hypervisor.{name}" for name in ("kind", "host", "user", "route", "domain_type")))
        for one in self.given["hypervisors"]:
            self.lose(f"hypervisors.{one['name']}", "dev-scripts has one hypervisor")
        state = self.given["hypervisor"]["state_dir"]
        if state != self.default("hypervisor", "state_dir"):
            base, _slash, last = state.rpartition("/")
            if base and last == STATE:
                self.put("WORKING_DIR", base, "hypervisor.state_dir")
            else:
                self.lose(
                    "hypervisor.state_dir", f"WORKING_DIR is of dev-scripts; a state directory in it ends with /{STATE}"
                )

    def build(self) -> None:
        p = self.given["release"]["installer"]
        if p["binary"]:
            self.lose("release.installer.binary", "dev-scripts builds openshift-install from a repository")
        source, ref = p["git"], p["ref"]
        if source and source.startswith(("/", "~/")) and ref == self.default("release", "installer", "ref"):
            self.put("KNI_INSTALL_FROM_GIT", "true", "release.installer.git")
            self.put("OPENSHIFT_INSTALL_PATH", source, "release.installer.git")
        elif source:
            self.lose("release.installer.git", "dev-scripts builds what is in a directory, as it is")

    def way_out(self) -> None:
        connection, egress = self.given["network"]["connection"], self.given["hypervisor"]["egress"]
        if connection == "proxied":
            self.put("INSTALLER_PROXY", "true", "network.connection")
        elif connection not in (None, "connected" if egress else "disconnected"):
            self.lose("network.connection", "dev-scripts has AGENT_ISOLATED_NETWORK, which is hypervisor.egress")
        if egress != self.real:
            self.put("AGENT_ISOLATED_NETWORK", str(not egress).lower(), "hypervisor.egress")

    def networks(self) -> None:
        p = self.given["network"]
        if p["bridge"] is not None:
            self.put("BAREMETAL_NETWORK_NAME", p["bridge"], "network.bridge")
        self.simple("network.lease_minutes", "DHCP_LEASE_EXPIRY")
        for version in ("4", "6"):
            self.simple(f"network.ipv{version}", f"EXTERNAL_SUBNET_V{version}")
            self.simple(f"installer.service_network.ipv{version}", f"SERVICE_SUBNET_V{version}")
            self.cluster_network(version)
        self.only_default("network.mtu", "network.nat", *(f"network.offsets.{name}" for name in p["offsets"]))
        self.bond()
        names: list[str] = []
        for name in self.given["segments"]:
            self.lose(f"segments.{name}")
        luns = iscsi.networks(self.given)
        for index, extra in enumerate(self.given["extra_networks"]):
            if extra["name"] in luns[1:]:  # lost with boot.paths
                continue
            if extra["name"] in luns:
                self.put("ISCSI_NETWORK_SUBNET", extra["ipv4"].rpartition(".")[0], f"extra_networks.{index}.ipv4")
                if not extra["ipv4"].endswith(".0/24"):
                    self.lose(f"extra_networks.{index}.ipv4", "dev-scripts has three octets, of a network with 24 bits")
                continue
            variable = extra["name"].upper()
            taken = {name.upper() for name in names}
            if not re.fullmatch(NAME, variable) or variable in taken:
                self.lose(
                    f"extra_networks.{index}",
                    "its name must be that of a variable, and not differ from another in case only",
                )
                continue
            names.append(extra["name"])
            for version in ("4", "6"):
                if extra.get(f"ipv{version}"):
                    self.put(
                        f"{variable}_NETWORK_SUBNET_V{version}",
                        extra[f"ipv{version}"],
                        f"extra_networks.{index}.ipv{version}",
                    )
            for key in ("bridge", "interface", "mtu", "nat", "roles", "vlan"):
                if extra.get(key):
                    self.lose(f"extra_networks.{index}.{key}")
        if names:
            self.put("EXTRA_NETWORK_NAMES", " ".join(names), "extra_networks")

    def bond(self) -> None:
        bonds, interface = self.given["bonds"], self.given["network"]["interface"]
        known = bonds.get(BOND, {})
        if interface == BOND and len(bonds) == 1 and tuple(known["nics"]) == BONDED:
            self.put("BOND_CONFIG", known["mode"], "bonds")
        else:
            self.only_default("bonds", *([] if interface in bonds else ["network.interface"]))

    def cluster_network(self, version: str) -> None:
        path = f"installer.cluster_network.ipv{version}"
        found, usual = self.field(path), self.default(*path.split("."))[0]
        if len(found) != 1:
            self.lose(path, "dev-scripts has one range of a family")
            return
        if found[0]["cidr"] != usual["cidr"]:
            self.put(f"CLUSTER_SUBNET_V{version}", found[0]["cidr"], f"{path}[0].cidr")
        if found[0]["host_prefix"] != usual["host_prefix"]:
            self.put(f"CLUSTER_HOST_PREFIX_V{version}", found[0]["host_prefix"], f"{path}[0].host_prefix")

    def boot(self) -> None:
        mode, firmware = MODES[self.given["boot"]["mode"]], self.common_value("firmware")
        if name := mode.devscripts.get("AGENT_E2E_TEST_BOOT_MODE"):
            if firmware != "bios":
                self.lose("firmware", f"{name} in a scenario of dev-scripts has bios")
        elif firmware != MACHINE["firmware"]:
            self.put("LIBVIRT_FIRMWARE", firmware, "firmware")
        self.only_default("boot.eject", "boot.paths")
        for variable, value in mode.devscripts.items():
            self.put(variable, value, "boot.mode")
        if mode.lost:
            self.lose("boot.mode", mode.lost)

    def installer(self) -> None:
        p = self.given["installer"]
        key = p["ssh_key_file"]
        if key is not None:
            self.put("SSH_KEY_FILE", key, "installer.ssh_key_file")
            if re.fullmatch(r"(~?/)[\w./@+-]+", key):
                self.put("SSH_PUB_KEY", key, "installer.ssh_key_file")
                self.files.add("SSH_PUB_KEY")
            else:
                self.lose("SSH_PUB_KEY", "the path of the key is not letters, digits and ./@+-; set the key itself")
        if p["pull_secret_file"] is not None:
            if self.real:
                self.put("PERSONAL_PULL_SECRET", p["pull_secret_file"], "installer.pull_secret_file")
            else:
                self.lose("installer.pull_secret_file", "it needs a release image")
        if p["network_type"] != self.default("installer", "network_type"):
            self.put("NETWORK_TYPE", p["network_type"], "installer.network_type")
        if p["fips"]:
            self.put("FIPS_MODE", "true", "installer.fips")
        if p["ntp_sources"]:
            self.put("NTP_SERVERS", ";".join(p["ntp_sources"]), "installer.ntp_sources")
        elif p["ntp_sources"] is not None:
            self.lose("installer.ntp_sources", "dev-scripts has no empty list of time servers")
        self.only_default("installer.image_digest_sources")
        self.only_default("installer.mirrors_file")
        self.only_default("installer.manifests")
        if p["manifests_dir"] is not None:
            self.put("ASSETS_EXTRA_FOLDER", p["manifests_dir"], "installer.manifests_dir")
        if p["hosts_in"] == "install-config":
            self.put("AGENT_BM_HOSTS_IN_INSTALL_CONFIG", "true", "installer.hosts_in")
        if p["fencing_by"] == "macAddress":
            self.put("FENCING_CREDENTIAL_IDENTIFIER", "macAddress", "installer.fencing_by")
        for name in p["agent_config"]:
            self.lose(f"installer.agent_config.{name}")

    def overlay(self) -> None:
        """Export what dev-scripts has a variable for, of the fields that are laid over install-config.yaml."""
        done = set()
        for path, value in leaves(self.given["installer"]["install_config"]):
            name, text = overlaid(path, value)
            if name is None or (name == "ADDITIONAL_CAPABILITIES" and "BASELINE_CAPABILITY_SET" not in done):
                self.lose(f"installer.install_config.{'.'.join(path)}")
            else:
                self.put(name, text, f"installer.install_config.{'.'.join(path)}")
                done.add(name)
