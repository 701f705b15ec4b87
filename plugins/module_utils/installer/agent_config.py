"""agent-config.yaml, and the hosts that it or the install-config defines."""

from __future__ import annotations

from typing import Any

from ..addresses import static_ips
from ..log import Log
from ..releases import ReleaseProfile
from ..vocabulary import RunFile
from . import check
from .errors import FieldErrors, InstallerError
from .models import AgentConfig, Host, InstallConfig, Manifest, Section
from .rules.hosts import check_device_name
from .schema import decode
from .shapes import AGENT_CONFIG
from .yamlio import load

FILENAME = RunFile.AGENT_CONFIG

TEMPLATE = """\
#
# Note: This is a sample AgentConfig file showing
# which fields are available to aid you in creating your
# own agent-config.yaml file.
#
apiVersion: v1beta1
kind: AgentConfig
metadata:
  name: example-agent-config
  namespace: cluster0
# All fields are optional
rendezvousIP: your-node0-ip
bootArtifactsBaseURL: http://user-specified-infra.com
minimalISO: false
additionalNTPSources:
- 0.rhel.pool.ntp.org
- 1.rhel.pool.ntp.org
hosts:
# If a host is listed, then at least one interface
# needs to be specified.
- hostname: change-to-hostname
  role: master
  # For more information about rootDeviceHints:
  # https://docs.openshift.com/container-platform/4.10/installing/installing_bare_metal_ipi/ipi-install-installation-workflow.html#root-device-hints_ipi-install-installation-workflow
  rootDeviceHints:
    deviceName: /dev/sda
  # interfaces are used to identify the host to apply this configuration to
  interfaces:
    - macAddress: 00:00:00:00:00:00
      name: host-network-interface-name
  # networkConfig contains the network configuration for the host in NMState format.
  # See https://nmstate.io/examples.html for examples.
  networkConfig:
    interfaces:
      - name: eth0
        type: ethernet
        state: up
        mac-address: 00:00:00:00:00:00
        ipv4:
          enabled: true
          address:
            - ip: 192.168.122.2
              prefix-length: 23
          dhcp: false
"""


def load_agent_config(text: str, log: Log) -> AgentConfig:
    """Parse and validate agent-config.yaml; the result has canonical keys and `apiVersion: v1beta1`.

    The `spec:` form of the 4.11 preview is taken with a warning. Raises `InstallerError`.
    """
    raw, position = load(text, FILENAME)
    if isinstance(raw, dict) and isinstance(raw.get("spec"), dict):
        log.warning(f"{FILENAME}: the spec field is deprecated, its content belongs at the top level")
        spec = raw.pop("spec")
        clash = sorted(set(spec) & set(raw))
        if clash:
            raise InstallerError(f"{FILENAME}: {', '.join(clash)} are both at the top level and in spec")
        raw |= spec
        position = position.raised("spec")
        raw.setdefault("apiVersion", "v1beta1")
        if str(raw["apiVersion"]).startswith("agent-install.openshift.io/"):
            raw["apiVersion"] = "v1beta1"
    config: AgentConfig = decode(raw, FILENAME, AGENT_CONFIG, position)
    errors = FieldErrors()
    version = config.get("apiVersion", "")
    if not version:
        errors.required("apiVersion", "no version was provided")
    elif version not in ("v1alpha1", "v1beta1"):
        errors.invalid("apiVersion", version, f"cannot upconvert from version {version}")
    if errors:
        raise InstallerError(errors.text())
    config["apiVersion"] = "v1beta1"

    rendezvous = config.get("rendezvousIP", "")
    if rendezvous and check.address(rendezvous) is None:
        errors.invalid("rendezvousIP", rendezvous, f'"{rendezvous}" is not a valid IP')
    for source in config.get("additionalNTPSources", []):
        if check.address(source) is None and check.domain_name(source):
            errors.invalid("additionalNTPSources", source, "NTP server is not a valid IP or domain name")
    base = config.get("bootArtifactsBaseURL", "").strip("/")
    why = check.uri(base) if base else None
    if why:
        errors.invalid("bootArtifactsBaseURL", config["bootArtifactsBaseURL"], why)
    errors.check("invalid Agent Config configuration")
    return config


def check_unconfigured(config: AgentConfig) -> None:
    """Raise `InstallerError` when `config` has more than a rendezvousIP, all that `unconfigured-ignition` takes.

    The text names the first field that is too much: hosts, additionalNTPSources, bootArtifactsBaseURL or minimalISO.
    """
    start = f"{FILENAME} for unconfigured-ignition workflow must not"
    if config.get("hosts"):
        raise InstallerError(f"{start} contain hosts. Hosts configuration should be provided via nmstateconfig.yaml")
    for field, verb in (
        ("additionalNTPSources", "contain"),
        ("bootArtifactsBaseURL", "contain"),
        ("minimalISO", "set"),
    ):
        if config.get(field):
            raise InstallerError(f"{start} {verb} {field}. Only rendezvousIP is allowed")


def hosts_of(
    config: AgentConfig | None, install_config: InstallConfig | None, profile: ReleaseProfile, log: Log
) -> list[Host]:
    """The hosts of agent-config, or else of the baremetal platform, validated.

    Each has `hostname`, `role`, `interfaces` ([{name, macAddress}]) and, where given, `rootDeviceHints`, `networkConfig`, `BMC`.
    """
    baremetal = ((install_config or {}).get("platform", {}).get("baremetal") or {}).get("hosts") or []
    hosts = (config or {}).get("hosts") or []
    if baremetal and not profile.install_config_hosts:
        log.warning(
            f"Platform.Baremetal.Hosts is ignored by release {profile.name}, which takes hosts from {FILENAME} alone"
        )
        baremetal = []
    if hosts:
        log.debug(f"Using hosts from {FILENAME}")
        if baremetal:
            log.warning("hosts from install-config.yaml are ignored")
    elif baremetal:
        hosts = [_from_baremetal(host, log) for host in baremetal]
        log.debug("Using hosts from install-config.yaml")
    errors = FieldErrors() if profile.lower_host_paths else FieldErrors(path=_go_host_path)
    roles = ["master", "worker", *(["arbiter"] if profile.arbiter_nodes else [])]
    macs: set[str] = set()
    for index, host in enumerate(hosts):
        _check_host(host, f"hosts[{index}]", roles, macs, (config or {}).get("rendezvousIP", ""), errors)
    errors.check("invalid Hosts configuration")
    return hosts


def _from_baremetal(host: Section, log: Log) -> Host:
    boot_mac = host.get("bootMACAddress", "")
    if not boot_mac:
        raise InstallerError("invalid host definition in install-config.yaml: host bootMACAddress is required")
    network = host.get("networkConfig") or {}
    interfaces = [
        {"name": nic["name"], "macAddress": nic["mac-address"]}
        for nic in (network.get("interfaces") or [] if isinstance(network, dict) else [])
        if isinstance(nic, dict) and nic.get("name") and nic.get("mac-address")
    ]
    if interfaces and boot_mac.lower() not in [nic["macAddress"].lower() for nic in interfaces]:
        log.warning(f"For host {host.get('name', '')}, BootMACAddress {boot_mac} is not in NetworkConfig")
    found: Section = {
        "hostname": host.get("name", ""),
        "role": host.get("role", ""),
        "interfaces": interfaces or [{"name": "boot", "macAddress": boot_mac}],
        "rootDeviceHints": host.get("rootDeviceHints"),
        "networkConfig": host.get("networkConfig"),
        "BMC": host.get("bmc"),
    }
    given: Any = {key: value for key, value in found.items() if value or (key == "networkConfig" and value is not None)}
    return given


def _go_host_path(path: str) -> str:
    """A host's field as releases up to 4.17 name it."""
    start, dot, rest = path.partition(".")
    return f"H{start[1:]}{dot}" + ("Host" if rest == "role" else rest.replace("interfaces", "Interfaces"))


def _check_host(host: Host, path: str, roles: list[str], macs: set[str], rendezvous: str, errors: FieldErrors) -> None:
    if not host.get("interfaces"):
        errors.required(f"{path}.interfaces", "at least one interface must be defined for each node")
    for index, nic in enumerate(host.get("interfaces", [])):
        at, mac = f"{path}.interfaces[{index}].macAddress", nic.get("macAddress", "")
        if not mac:
            errors.required(at, "each interface must have a MAC address defined")
            continue
        why = check.mac(mac)
        if why:
            errors.invalid(at, mac, why)
        # Stricter than upstream: hosts are matched without regard to case, so duplicates are found so too.
        if mac.lower() in macs:
            errors.invalid(at, mac, "duplicate MAC address found")
        macs.add(mac.lower())
    # Stricter than upstream: the name becomes that of a file and of a folder on the host.
    name = host.get("hostname", "")
    if name in (".", "..") or any(c == "/" or not c.isprintable() for c in name):
        errors.invalid(f"{path}.hostname", name, "must not have a slash or unprintable characters, or be . or ..")
    hints = host.get("rootDeviceHints") or {}
    check_device_name(hints.get("deviceName", ""), f"{path}.rootDeviceHints", errors)
    if hints.get("wwnWithExtension"):
        errors.forbidden(
            f"{path}.rootDeviceHints.wwnWithExtension", "WWN extensions are not supported in root device hints"
        )
    if hints.get("wwnVendorExtension"):
        errors.forbidden(
            f"{path}.rootDeviceHints.wwnVendorExtension", "WWN vendor extensions are not supported in root device hints"
        )
    role = host.get("role", "")
    if role and role not in roles and errors.path is _go_host_path:
        errors.forbidden(f"{path}.role", "host role has incorrect value. Role must either be 'master' or 'worker'")
    elif role and role not in roles:
        errors.unsupported(f"{path}.role", role, roles)
    if role == "worker" and rendezvous and rendezvous in static_ips(host.get("networkConfig")):
        errors.forbidden(
            f"{path}.role",
            f"Host {host.get('hostname', '')} has role 'worker' and has the rendezvousIP assigned to it. "
            "The rendezvousIP must be assigned to a control plane host.",
        )


def rendezvous_ip(config: AgentConfig | None, hosts: list[Host], nmstate_configs: list[Manifest]) -> str:
    """The address of node zero, in canonical form.

    agent-config's, or else the first static one of a master or arbiter, then of a host without a role, then of an NMStateConfig manifest.
    """
    text = (config or {}).get("rendezvousIP", "")
    if not text:
        ordered = [host for host in hosts if host.get("role") in ("master", "arbiter")]
        ordered += [host for host in hosts if not host.get("role")]
        states = [host.get("networkConfig") for host in ordered]
        if not hosts:
            states += [(doc.get("spec") or {}).get("config") for doc in nmstate_configs]
        text = next((ip for state in states for ip in static_ips(state)), "")
    if not text:
        raise InstallerError(
            "missing rendezvousIP in agent-config, at least one host networkConfig, or at least one NMStateConfig "
            "manifest: invalid NMState configurations provided, no interface IPs set"
        )
    found = check.address(text)
    if found is None:
        raise InstallerError(f"invalid rendezvous IP: {text}")
    return str(found)


def check_host_counts(hosts: list[Host], replicas: dict[str, int], log: Log) -> None:
    """Compare hosts with `replicas` ({master, arbiter, worker}): more is an error, fewer a warning.

    Hosts without a role fill up masters, then arbiters, and count as workers after that. No hosts at all are right.
    Raises `InstallerError` for the first role that has too many.
    """
    if not hosts:
        return
    counts = {role: sum(host.get("role") == role for host in hosts) for role in ("master", "arbiter", "worker")}
    free = sum(not host.get("role") for host in hosts)
    for role in ("master", "arbiter"):
        taken = min(free, max(0, replicas[role] - counts[role]))
        counts[role] += taken
        free -= taken
    counts["worker"] += free
    pools = {"master": "ControlPlane", "arbiter": "Arbiter", "worker": "Compute"}
    for role, pool in pools.items():
        if counts[role] > replicas[role]:
            raise InstallerError(
                f"the number of {role} hosts defined ({counts[role]}) exceeds the configured {pool} replicas "
                f"({replicas[role]})"
            )
        if 0 < counts[role] < replicas[role]:
            log.warning(
                f"not enough {role} hosts defined ({counts[role]}) to support all the configured {pool} replicas "
                f"({replicas[role]})"
            )
