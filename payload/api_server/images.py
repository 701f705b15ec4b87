"""Parts of an infra-env's discovery images: URLs of the image service, Ignition config, iPXE script, network files.

The service creates no ISO: it returns the URL at which the image service would have one. The parts of the image are real.
"""

from __future__ import annotations

import io
import json
import re
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit, urlunsplit

from ...plugins.module_utils.documents import load_json
from ...plugins.module_utils.ignition.config import Config
from ...plugins.module_utils.vocabulary import Status
from . import inventory as inv
from . import prepare, releases
from .bodies import StaticNetwork
from .calls import Call
from .engine import Engine
from .errors import ApiError
from .objects import InfraEnv
from .tables import AFTER_REBOOT

#: Lifetime of an infra-env's image URL after a change (IMAGE_EXPIRATION_TIME of upstream).
IMAGE_SECONDS = 4 * 3600.0
_ISO = {"full-iso": "full.iso", "minimal-iso": "minimal.iso", "disconnected-iso": "disconnected.iso"}
_KARGS = (
    "random.trust_cpu=on rd.luks.options=discard ignition.firstboot ignition.platform.id=metal console=tty1 console=ttyS1,115200n8 "
    'coreos.inst.persistent-kargs="console=tty1 console=ttyS1,115200n8"'
)
_NETWORK = "/etc/assisted/network"
# What the agent ISO has, too: the script that gives NetworkManager the keyfiles of this host, and the unit that runs it.
_LIVE = Path(__file__).resolve().parents[2] / "roles/agent_image/files/live"
_NETWORK_SCRIPT = "pre-network-manager-config.sh"
_NETWORK_UNIT = "pre-network-manager-config.service"
# In the initrd of a minimal image.
_INITRD_UNIT = """[Unit]
Description=Static network configuration of this host
Before=nm-initrd.service
DefaultDependencies=no

[Service]
Type=oneshot
ExecStart=/usr/local/bin/pre-network-manager-config.sh

[Install]
WantedBy=multi-user.target
"""


_WORD = re.compile(r"[!-~]+")


def _url(base: str, path: str, query: Mapping[str, str] | None = None) -> str:
    parts = urlsplit(base)
    return urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/") + path, urlencode(query or {}), ""))


def _os_version(e: Engine, infra_env: InfraEnv) -> str:
    """Version of the OS image of an infra-env: the one it names, else the newest; ApiError 400 without one."""
    cpu, wanted = str(infra_env.get("cpu_architecture", "x86_64")), str(infra_env.get("openshift_version", ""))
    what = f"No OS image for Openshift version {wanted}" if wanted else "Failed to get latest OS image for"
    try:
        return str(releases.os_image(e.config.os_images(), wanted, cpu).get("openshift_version"))
    except ApiError as err:
        raise ApiError(400, f"{what} and architecture {cpu}: {err.reason}".replace("for and", "for")) from None


def download_url(e: Engine, infra_env: InfraEnv) -> str:
    """Return the URL of an infra-env's discovery image; ApiError 400 without image service or image.

    The path names infra-env, version of the OS image, architecture and type of the ISO, as upstream's image service has
    it. There is no token in it: it does not expire.
    """
    base = e.config.get("IMAGE_SERVICE_BASE_URL")
    if not base:
        raise ApiError(400, "image service is disabled")
    cpu, version = infra_env.get("cpu_architecture", "x86_64"), _os_version(e, infra_env)
    return _url(base, f"/byid/{infra_env['id']}/{version}/{cpu}/{_ISO[infra_env.get('type', 'full-iso')]}")


def files_url(e: Engine, infra_env: InfraEnv, query: Mapping[str, str]) -> str:
    """Return the URL of one of an infra-env's files; `query` names it."""
    path = f"/api/assisted-install/v2/infra-envs/{infra_env['id']}/downloads/files"
    return _url(e.config.get("SERVICE_BASE_URL"), path, query)


def network_archive(infra_env: InfraEnv) -> bytes:
    """`network_files` as a tar archive, empty without any."""
    buffer = io.BytesIO()
    files = network_files(infra_env)
    if not files:
        return b""
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for path, text in files.items():
            member = tarfile.TarInfo(f"{_NETWORK}/{path}")
            member.size, member.mode = len(text.encode()), 0o600
            archive.addfile(member, io.BytesIO(text.encode()))
    return buffer.getvalue()


def static_networks(entries: Sequence[StaticNetwork]) -> list[dict[str, str]]:
    """Return the files for each host of a static network config: a dictionary of name -> text per entry.

    They are NetworkManager keyfiles and the map of MAC addresses. ValueError describes the problem, in the words of
    nmstate as far as possible; the handler of infra-envs returns it as 400.
    """
    from ...plugins.module_utils.installer.network import static_files
    from ...plugins.module_utils.nmstate import NmstateError, load

    specs = []
    for entry in entries:
        nics = [
            {"macAddress": pair["mac_address"], "name": pair["logical_nic_name"]} for pair in entry["mac_interface_map"]
        ]
        try:
            specs.append({"config": load(entry.get("network_yaml", "")), "interfaces": nics})
        except NmstateError as err:
            raise ValueError(f"network_yaml: {err}") from None
    return static_files(specs)


#: udev's names of physical interfaces, which need no MAC address.
_PREDICTABLE = re.compile("en[PsvxXbucaipod]")


def unmapped_interface(text: str, names: frozenset[str]) -> str:
    """Return the first interface of a network config that neither a MAC address nor its name maps to hardware; "" if there is none.

    `names`: the interfaces of the MAC address map. The config is one that `static_networks` takes.
    """
    from ...plugins.module_utils.nmstate import load

    found = load(text).get("interfaces") or []
    by_mac = {nic.get("name") for nic in found if nic.get("identifier") == "mac-address"}

    def tied(name: str) -> bool:
        return name in names or name in by_mac or bool(_PREDICTABLE.match(name))

    for nic in found:
        ports = [nic["name"]] if nic.get("type") in ("ethernet", "802-3-ethernet") else []
        if nic.get("type") == "bond":
            ports = [str(port) for port in (nic.get("link-aggregation") or {}).get("port") or ()]
        if not all(tied(port) for port in ports):
            return str(nic["name"])
    return ""


def network_files(infra_env: InfraEnv) -> dict[str, str]:
    """Return the files of `static_networks` by `host<N>/<name>`, N from 0; empty without a static network config.

    The live system takes the directory whose MAC addresses it has (`pre-network-manager-config.sh`).
    """
    entries = load_json(infra_env.get("static_network_config") or "[]", name="static_network_config")
    if not entries:
        return {}
    return {
        f"host{number}/{name}": text
        for number, files in enumerate(static_networks(entries))
        for name, text in files.items()
    }


def ipxe(e: Engine, infra_env: InfraEnv, call: Call) -> str:
    """Return the iPXE script that boots a host from the image service's files.

    With `boot-order-control` and no MAC it asks again with the host's MAC. ApiError 404 then stops a host that is
    installed or past its reboot, so that it boots from its disk; the texts are upstream's.
    """
    mac = call.query.get("mac", "")
    if not mac and call.query.get("ipxe_script_type") == "boot-order-control":
        return f"#!ipxe\nchain {files_url(e, infra_env, {'file_name': 'ipxe-script'})}&mac=${{net0/mac}}\n"
    for host in e.hosts.values() if mac else ():
        stage = host.get("progress", {}).get("current_stage", "")
        if host["infra_env_id"] == infra_env["id"] and inv.has_mac(e.inventories.get(host["id"], {}), mac):
            where = f"InfraEnv {infra_env['id']}: host {host['id']} having mac {mac}"
            if host["status"] == Status.INSTALLED:
                raise ApiError(404, f"IPXE booting skipped. {where} is already installed")
            if host["status"] == Status.IN_PROGRESS and stage in AFTER_REBOOT:
                raise ApiError(404, f"IPXE booting skipped. {where} is in stage {stage}")
    base = e.config.get("IMAGE_SERVICE_BASE_URL")
    query = {"arch": infra_env.get("cpu_architecture", "x86_64"), "version": _os_version(e, infra_env)}
    initrd = _url(base, f"/images/{infra_env['id']}/pxe-initrd", query)
    kernel, rootfs = (_url(base, f"/boot-artifacts/{name}", query) for name in ("kernel", "rootfs"))
    more = "".join(
        f" {entry['value']}"
        for entry in load_json(infra_env.get("kernel_arguments") or "[]", name="kernel_arguments")
        if entry.get("operation", "append") == "append" and entry.get("value") and str(entry["value"]).isprintable()
    )
    return f"#!ipxe\ninitrd --name initrd {initrd}\nkernel {kernel} initrd=initrd coreos.live.rootfs_url={rootfs} {_KARGS}{more}\nboot\n"


def _ignition_proxy(infra_env: InfraEnv) -> dict[str, Any]:
    """The proxy with which Ignition itself fetches; empty without one."""
    proxy = infra_env.get("proxy") or {}
    found: dict[str, Any] = {
        "httpProxy": proxy.get("http_proxy"),
        "httpsProxy": proxy.get("https_proxy"),
        "noProxy": [name for name in str(proxy.get("no_proxy") or "").split(",") if name],
    }
    return {name: value for name, value in found.items() if value}


def _proxy_lines(infra_env: InfraEnv) -> str:
    proxy = infra_env.get("proxy") or {}
    values = {name: str(proxy.get(name) or "") for name in ("http_proxy", "https_proxy", "no_proxy")}
    # A value that an older service accepted may have several words: it must not add lines to a unit.
    pairs = [(name, text.replace("%", "%%") if _WORD.fullmatch(text) else "") for name, text in values.items()]
    if not any(value for __, value in pairs):
        return ""
    return "[Service]\n" + "".join(f"Environment={n}={v}\nEnvironment={n.upper()}={v}\n" for n, v in pairs)


def initrd(infra_env: InfraEnv) -> bytes:
    """An archive with what the live system of a minimal ISO needs before it has its root file system; empty when that is nothing."""
    from ...plugins.module_utils.coreos import cpio

    files: dict[str, cpio.File | bytes] = {
        f"{_NETWORK[1:]}/{path}": cpio.File(text.encode(), 0o600) for path, text in network_files(infra_env).items()
    }
    if files:
        unit = f"etc/systemd/system/{_NETWORK_UNIT}"
        files[f"usr/local/bin/{_NETWORK_SCRIPT}"] = cpio.File((_LIVE / _NETWORK_SCRIPT).read_bytes(), 0o755)
        files[unit] = cpio.File(_INITRD_UNIT.encode(), 0o644)
        # The archive has files only: the .wants directory has a copy of the unit where upstream has a link.
        files[f"etc/systemd/system/initrd.target.wants/{_NETWORK_UNIT}"] = files[unit]
    lines = _proxy_lines(infra_env)
    if lines:
        files["etc/systemd/system/coreos-livepxe-rootfs.service.d/10-proxy.conf"] = cpio.File(lines.encode(), 0o644)
    if not files:
        return b""
    return cpio.compress(cpio.archive(files))


# -- discovery.ign ----------------------------------------------------------------------------------------------------


def discovery(e: Engine, infra_env: InfraEnv, iso_type: str) -> dict[str, Any]:
    """Return the Ignition config (3.1) of the live system that runs the agent of an infra-env.

    The user's override is merged. `iso_type` `full-iso` includes the static network config; a minimal ISO has it in its
    initrd instead. It has the pull secret and a token: credentials.
    """
    image, url = e.config.get("AGENT_DOCKER_IMAGE"), e.config.get("SERVICE_BASE_URL").rstrip("/")
    token = e.config.get("PULL_SECRET_TOKEN")
    sources = infra_env.get("ntp_sources") or infra_env.get("additional_ntp_sources") or ""
    quoted = quote(image, safe="/:@._-")
    agent = (
        "[Unit]\nDescription=Agent that answers to the assisted service\nWants=network-online.target\nAfter=network-online.target\n\n"
        f"[Service]\nType=simple\nRestart=always\nRestartSec=3\nTimeoutStartSec=3000\nEnvironment=PULL_SECRET_TOKEN={token}\n"
        f"ExecStartPre=/usr/bin/podman run --privileged --rm -v /usr/local/bin:/hostbin {quoted} cp /usr/bin/agent /hostbin\n"
        f"ExecStart=/usr/local/bin/agent --url {url} --infra-env-id {infra_env['id']} --agent-version {quoted} --insecure=true\n\n"
        "[Install]\nWantedBy=multi-user.target\n"
    )
    made = Config()
    keys = [line for line in str(infra_env.get("ssh_authorized_key") or "").splitlines() if line.strip()]
    made.user("core", keys, "!", ("sudo",))
    motd = "\n  This host is being installed by the assisted installer. `journalctl -u agent` shows what its agent does.\n\n"
    made.file("/etc/motd", motd, 0o644)
    made.file("/root/.docker/config.json", str(infra_env.get("_pull_secret", "")), 0o644)
    made.file("/etc/NetworkManager/conf.d/01-ipv6.conf", "[connection]\nipv6.dhcp-iaid=mac\nipv6.dhcp-duid=ll\n", 0o644)
    made.unit("agent.service", agent, enabled=True)
    if infra_env.get("additional_trust_bundle"):
        made.file(prepare.TRUST_ANCHOR, str(infra_env["additional_trust_bundle"]), 0o644)
    if sources:
        lines = "".join(
            f"server {name.strip()} iburst\n" for name in sources.split(",") if _WORD.fullmatch(name.strip())
        )
        made.file("/etc/chrony.d/assisted.conf", lines, 0o644)
    lines = _proxy_lines(infra_env).replace("[Service]", "[Manager]").replace("Environment=", "DefaultEnvironment=")
    if lines:
        made.file("/etc/systemd/system.conf.d/10-default-env.conf", lines, 0o644)
    if iso_type == "full-iso" and infra_env.get("static_network_config"):
        for path, keyfile in network_files(infra_env).items():
            made.file(f"{_NETWORK}/{path}", keyfile, 0o600)
        made.file(f"/usr/local/bin/{_NETWORK_SCRIPT}", (_LIVE / _NETWORK_SCRIPT).read_bytes(), 0o755)
        made.unit(_NETWORK_UNIT, (_LIVE / "units" / _NETWORK_UNIT).read_text(encoding="utf-8"), enabled=True)
    config = made.to_dict("3.1.0")
    if proxy := _ignition_proxy(infra_env):
        config["ignition"]["proxy"] = proxy
    text = infra_env.get("ignition_config_override")
    merged: dict[str, Any] = (
        load_json(prepare.override(json.dumps(config).encode(), text), name="ignition_config_override")
        if text
        else config
    )
    return merged
