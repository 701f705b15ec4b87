"""nodes-config.yaml: the hosts that are to join an installed cluster (openshift/installer `pkg/asset/agent/joiner`)."""

from __future__ import annotations

from typing import TypedDict

from ..addresses import static_ips
from ..log import Log
from ..releases import ReleaseProfile
from .agent_config import hosts_of
from .errors import FieldErrors, InstallerError
from .models import Host
from .rules.general import check_ssh_key
from .schema import STR, Struct, decode_file
from .shapes import AGENT_HOST, TYPE_META

FILENAME = "nodes-config.yaml"
_SHAPE = Struct(
    "Config",
    {**TYPE_META, "cpuArchitecture": STR, "sshKey": STR, "bootArtifactsBaseURL": STR, "hosts": [AGENT_HOST]},
    "joiner",
)


class NodesConfig(TypedDict, total=False):
    """nodes-config.yaml; what is absent is taken from the cluster. cpuArchitecture: as in `amd64`."""

    cpuArchitecture: str
    sshKey: str
    bootArtifactsBaseURL: str
    hosts: list[Host]


def load_nodes_config(text: str | bytes, profile: ReleaseProfile, log: Log) -> NodesConfig:
    """Parse and validate nodes-config.yaml; hosts have the rules of agent-config.

    Unknown fields are warnings, since upstream passes them over. Raises `InstallerError`.
    """
    strays: list[str] = []
    config: NodesConfig = decode_file(text, FILENAME, _SHAPE, unknown=strays)
    for stray in strays:
        log.warning(f"{FILENAME}: {stray.removeprefix('json: ')}")
    errors = FieldErrors()
    if not config.get("hosts"):
        errors.required("hosts", "at least one host must be defined")
    check_ssh_key(config.get("sshKey", ""), errors)
    if errors:
        raise InstallerError(errors.text())
    config["hosts"] = hosts_of({"hosts": config["hosts"]}, None, profile, log)
    return config


def addresses_of(config: NodesConfig) -> list[str]:
    """The first static address of each host, in their order.

    Raises `InstallerError` for a host without one, such as a host that gets its address from DHCP.
    """
    found = []
    for index, host in enumerate(config["hosts"]):
        addresses = static_ips(host.get("networkConfig"))
        if not addresses:
            raise InstallerError(
                f"{FILENAME}: hosts[{index}] {host.get('hostname', '')} has no static address in its networkConfig; give "
                "the addresses of all nodes as arguments"
            )
        found.append(addresses[0])
    return found
