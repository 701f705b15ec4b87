"""Services at the gateway address of a lab: BMCs, registry, files, time, proxy, load balancer. Rendered from a plan.

`lifecycle` starts what is rendered here, and asks whether it answers. Everything is in
`<state_dir>/services/<name>/`; mirroring a payload fills `registry/storage`, publishing a file `http/root`.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import pwd
import shutil
import socket
import sys
import urllib.parse
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .._deps import optional
from ..addresses import in_url, version
from ..boot import peers as forwarding
from ..boot import sessions, simulator
from ..errors import LabError
from ..plan import hypervisors, names
from ..plan.balancers import of_sandbox
from ..plan.machines import own_machines
from ..plan.model import BmcService, Plan, Registry
from . import balancer, httpd, iscsi, processes, uplink
from .lifecycle import Service, ask_time, get

if TYPE_CHECKING:
    import bcrypt
else:
    bcrypt = optional("bcrypt")

NAMES = ("bmc", "registry", "http", "ntp")
"""The services that every lab has."""
PROXY = "proxy"
BALANCER = "balancer"
_PROXY_USERS = ("proxy", "squid")  # of Debian, of Fedora: squid never writes as root
# A line of the proxy's log, in logfmt as the registry's.
_PROXY_LINE = 'time="%{%Y-%m-%dT%H:%M:%S}tg.%03tuZ" client=%>a method=%rm url=%>ru status=%>Hs bytes=%<st ms=%tr'
PROTOCOLS = {"scsi": "SAS", "sata": "SATA", "virtio": "PCIe", "iscsi": "iSCSI"}
"""What a BMC reports of a disk, by its bus in the plan."""
BCRYPT_ROUNDS = 5
NTP_STRATUM = 8


def names_of(plan: Plan) -> tuple[str, ...]:
    """Return the names of the services of a lab with this plan."""
    if plan["hypervisor"].get("further"):
        return (hypervisors.SERVICE,)
    more = (PROXY,) if plan["services"].get("proxy") else ()
    more = (*more, iscsi.NAME) if plan["services"].get("iscsi") else more
    return (*NAMES, *more, BALANCER) if of_sandbox(plan) else (*NAMES, *more)


def render(
    plan: Plan, tls: Mapping[str, str], *, private: bool, http_secret: str, wanted: Collection[str] | None = None
) -> dict[str, Service]:
    """Return the services of `plan` by name: those that are `wanted`, or all of `names_of`.

    tls: PEM text of `ca`, `certificate` and `key`; private: whether the network namespace is a sandbox's, where they listen on
    every address; elsewhere only on the machine network's gateway addresses. http_secret: the registry's signing key.
    """
    base = Path(plan["services"]["directory"])
    addresses = [subnet["gateway"] for subnet in plan["networks"][0]["subnets"]]
    makers: dict[str, Callable[[Path], Service]] = {
        "bmc": lambda folder: _bmc(plan, tls, folder, addresses, private),
        "registry": lambda folder: _registry(plan, tls, folder, addresses, private, http_secret),
        "http": lambda folder: _http(plan, folder, addresses, private),
        "ntp": lambda folder: _ntp(plan, folder, addresses, private),
        PROXY: lambda folder: _proxy(plan, folder),
        iscsi.NAME: lambda folder: iscsi.render(
            plan, folder, find_program("tgtd", "tgt"), find_program("tgtadm", "tgt")
        ),
        BALANCER: lambda folder: balancer.render(plan, folder, find_program("haproxy", "haproxy")),
    }
    chosen = names_of(plan) if wanted is None else wanted
    return {name: make(base / name) for name, make in makers.items() if name in chosen}


def errors(plan: Plan) -> dict[str, str]:
    """Return why each service that `plan`'s nodes need does not answer: an error message, or an empty string.

    Keys are the services that the plan uses; a registry that is not the lab's payload is left out. It takes at most 5 s
    for each.
    """
    wanted = plan["services"]
    ports = {
        "bmc": wanted["bmc"]["port"],
        "registry": wanted["registry"]["port"],
        "http": wanted["http"]["port"],
        "ntp": wanted["ntp"]["port"],
    }
    if proxy := wanted.get("proxy"):
        ports[PROXY] = proxy["port"]
    if balanced := wanted.get("balancer"):
        ports[BALANCER] = balanced["frontends"][0]["port"]
    addresses = {BALANCER: balanced["addresses"][0]} if balanced else {}
    if targets := wanted.get("iscsi"):
        ports[iscsi.NAME], addresses[iscsi.NAME] = targets["port"], targets["address"]
    found: dict[str, str] = {}
    for name in ports:
        address = addresses.get(name, wanted["address"])
        used = {"registry": plan["release"]["payload"] == "lab", "ntp": address in plan["installer"]["ntp_sources"]}
        if used.get(name, True):
            found[name] = ""
            try:
                if name == "ntp":
                    ask_time(address, ports[name])
                else:
                    socket.create_connection((address, ports[name]), timeout=5).close()
            except (OSError, ValueError) as error:
                found[name] = f"{address} port {ports[name]}: {getattr(error, 'strerror', None) or error}"
    return found | _further_problems(plan)


def _further_problems(plan: Plan) -> dict[str, str]:
    """Return for each further hypervisor (`hypervisor NAME`) why its BMCs do not answer, or an empty string."""
    found = {}
    for one in plan.get("hypervisors") or []:
        at = urllib.parse.urlsplit((one.get("further") or {"bmc": ""})["bmc"])
        name = f"hypervisor {hypervisors.name_of(one)}"
        found[name] = ""
        try:
            socket.create_connection((str(at.hostname), at.port or 0), timeout=5).close()
        except OSError as error:
            found[name] = f"{at.netloc}: {error.strerror or error}"
    return found


def _storage(plan: Plan) -> dict[str, object]:
    """Return what the BMCs report of the machines' disks: one controller each, without RAID volumes."""
    controller = {"MemberId": "0", "Name": "Disks", "SpeedGbps": 12}
    found: dict[str, dict[object, object]] = {"STORAGE": {}, "DRIVES": {}, "VOLUMES": {}}
    for node in own_machines(plan["nodes"]):
        place, disks = (node["uuid"], "1"), node["disks"]
        drives = [disk["target"] for disk in disks]
        found["STORAGE"][node["uuid"]] = [
            {"Id": "1", "Name": "Disks", "StorageControllers": [controller], "Drives": drives}
        ]
        found["DRIVES"][place] = [
            {
                "Id": disk["target"],
                "Name": disk["name"],
                "CapacityBytes": disk["size_gib"] << 30,
                "Protocol": PROTOCOLS[disk["bus"]],
            }
            for disk in disks
        ]
        found["VOLUMES"][place] = []
    return {**found}


def _bmc(plan: Plan, tls: Mapping[str, str], base: Path, addresses: Sequence[str], private: bool) -> Service:
    settings = plan["services"]["bmc"]
    listen = _listen(addresses, private)
    config = {
        "HOST": plan["services"]["host"],
        "LISTEN_IP": listen,
        "LISTEN_PORT": settings["port"],
        "SSL_CERT": f"{base}/server.crt",
        "SSL_KEY": f"{base}/server.key",
        "AUTH_FILE": f"{base}/htpasswd",
        "STATE_DIR": f"{base}/state",
        "LIBVIRT_URI": "qemu:///system",
        "STORAGE_POOL": plan["hypervisor"]["pool"],
        "VMEDIA_VERIFY_SSL": False,
        "ALLOWED_INSTANCES": [node["uuid"] for node in own_machines(plan["nodes"])],
        "VMEDIA_DEVICES": {"Cd": {"Name": "Virtual CD", "MediaTypes": ["CD", "DVD"]}},
        **_storage(plan),
    }
    if peers := hypervisors.bmcs(plan):
        config |= {"PEERS": peers, "PEERS_CA": f"{base}/ca.crt"}
    files = {
        **(
            {base / "ca.crt": (tls["ca"], 0o644), base / "peers.py": (inspect.getsource(forwarding), 0o644)}
            if peers
            else {}
        ),
        base / "emulator.py": (simulator.source(), 0o644),
        base / "httpd.py": (inspect.getsource(httpd), 0o644),
        base / "sessions.py": (inspect.getsource(sessions), 0o644),
        base / "emulator.conf": (
            "".join(f"SUSHY_EMULATOR_{key} = {value!r}\n" for key, value in config.items()),
            0o644,
        ),
        **_protected(base, settings, tls),
    }
    program = processes.Program(
        "bmc",
        [sys.executable, "-I", f"{base}/emulator.py", f"{base}/emulator.conf"],
        base / names.SERVICE_LOG,
        {"TMPDIR": f"{base}/tmp", "no_proxy": "*", "NO_PROXY": "*"},
        tuple(files),
    )
    return Service(
        program,
        files,
        settings["port"],
        "tcp",
        lambda: get(settings["url"], tls["ca"], settings["username"], settings["password"] or ""),
        (base / "state", base / "tmp"),
    )


def _registry(
    plan: Plan, tls: Mapping[str, str], base: Path, addresses: Sequence[str], private: bool, secret: str
) -> Service:
    settings = plan["services"]["registry"]
    address = "" if private else in_url(addresses[0])
    config = {
        "version": 0.1,
        "log": {"level": "info", "accesslog": {"disabled": True}},  # a line in logfmt for each response
        "storage": {"filesystem": {"rootdirectory": settings["storage"]}, "delete": {"enabled": True}},
        "http": {
            "addr": f"{address}:{settings['port']}",
            "secret": secret,
            "tls": {"certificate": f"{base}/server.crt", "key": f"{base}/server.key"},
        },
        "auth": {"htpasswd": {"realm": "agentlab", "path": f"{base}/htpasswd"}},
    }
    files = {
        base / "config.yml": (json.dumps(config, indent=1) + "\n", 0o600),
        **_protected(base, settings, tls),
    }
    argv = [find_program("docker-registry", "docker-registry", "registry"), "serve", f"{base}/config.yml"]
    program = processes.Program("registry", argv, base / names.SERVICE_LOG, {}, tuple(files))
    url = f"https://{in_url(addresses[0])}:{settings['port']}/v2/"
    return Service(
        program,
        files,
        settings["port"],
        "tcp",
        lambda: get(url, tls["ca"], settings["username"], settings["password"] or ""),
        (Path(settings["storage"]),),
    )


def _protected(base: Path, settings: Registry | BmcService, tls: Mapping[str, str]) -> dict[Path, tuple[str, int]]:
    """Return the files of a service with TLS and users: content and mode of each file in `base`."""
    return {
        base / "htpasswd": (_htpasswd(base / "htpasswd", settings), 0o600),
        base / "server.crt": (tls["certificate"], 0o644),
        base / "server.key": (tls["key"], 0o600),
    }


def _http(plan: Plan, base: Path, addresses: Sequence[str], private: bool) -> Service:
    port = plan["services"]["http"]["port"]
    files = {base / "httpd.py": (inspect.getsource(httpd), 0o644)}
    argv = [
        sys.executable,
        "-I",
        f"{base}/httpd.py",
        plan["services"]["http"]["root"],
        str(port),
        plan["services"]["host"],
        *([] if private else addresses),
    ]
    return Service(
        processes.Program("http", argv, base / names.SERVICE_LOG, {}, tuple(files)),
        files,
        port,
        "tcp",
        lambda: get(f"{plan['services']['http']['url']}/"),
        (Path(plan["services"]["http"]["root"]),),
    )


def _ntp(plan: Plan, base: Path, addresses: Sequence[str], private: bool) -> Service:
    port, pidfile = plan["services"]["ntp"]["port"], base / "chronyd.pid"
    lines = [
        f"local stratum {NTP_STRATUM}",
        "allow",
        f"port {port}",
        "cmdport 0",
        "bindcmdaddress /",
        f"pidfile {pidfile}",
        *([] if private else [f"bindaddress {address}" for address in addresses]),
    ]
    files = {base / "chrony.conf": ("\n".join(lines) + "\n", 0o644)}
    # -x: chronyd only serves the host's clock and never sets it.
    argv = [find_program("chronyd", "chrony"), "-x", "-d", "-u", "root", "-f", f"{base}/chrony.conf"]
    return Service(
        processes.Program("ntp", argv, base / names.SERVICE_LOG, {}, tuple(files)),
        files,
        port,
        "udp",
        lambda: ask_time(addresses[0], port),
        leftovers=(pidfile,),
    )


def _proxy(plan: Plan, base: Path) -> Service:
    """Squid: a proxy for the lab's networks alone, without a cache. It resolves names as the host does."""
    settings = plan["services"].get("proxy")
    if not settings:
        raise LabError("this plan has no proxy: network.connection must be proxied")
    registry = settings.get("registry")
    users = [entry.pw_name for entry in pwd.getpwall() if entry.pw_name in _PROXY_USERS]
    if not users:
        raise LabError("the user of squid does not exist on the hypervisor: install squid")
    resolvers = uplink.forwarders(Path(plan["hypervisor"]["state_dir"]))
    lines = [
        f"http_port {settings['port']}",
        *(f"acl lab src {subnet['cidr']}" for network in plan["networks"] for subnet in network["subnets"]),
        *(_to_registry(registry, plan["services"]["registry"]["port"]) if registry else []),
        "http_access deny to_localhost",
        "http_access allow lab",
        "http_access deny all",
        *([f"dns_nameservers {' '.join(resolvers)}"] if resolvers else []),
        f"visible_hostname {plan['services']['host']}",
        f"cache_effective_user {users[0]}",
        f"logformat lab {_PROXY_LINE}",
        f"access_log stdio:{base / names.SERVICE_LOG} logformat=lab",
        "buffered_logs off",
        "cache deny all",
        "cache_log /dev/null",
        "pid_filename none",
        "pinger_enable off",
        "netdb_filename none",
        "shutdown_lifetime 1 second",
    ]
    files = {base / "squid.conf": ("\n".join(lines) + "\n", 0o644)}
    # -d 0: fatal errors go to stderr, too, which is the log; the cache log, where they would be, is not kept.
    argv = [find_program("squid", "squid"), "-N", "-d", "0", "-f", f"{base}/squid.conf"]
    return Service(
        processes.Program(PROXY, argv, base / names.SERVICE_LOG, {}, tuple(files)),
        files,
        settings["port"],
        "tcp",
        lambda: socket.create_connection((plan["services"]["address"], settings["port"]), timeout=5).close(),
        written={base / names.SERVICE_LOG: users[0]},
    )


def _to_registry(name: str, port: int) -> list[str]:
    """Lines of squid's configuration: connections to port 443 of `name`, which no DNS server knows, are to the lab's registry."""
    to = find_program("sed", "sed")
    return [
        f"acl registry dstdomain -n {name}",
        "acl https port 443",
        "http_access allow CONNECT lab registry https",
        "http_access deny registry",
        # Squid asks for the place of each connection in a line; the sandbox's own loopback is where the registry is next to it.
        rf"url_rewrite_program {to} -u s/.*/OK\x20rewrite-url=127.0.0.1:{port}/",
        "url_rewrite_children 1",
        "url_rewrite_access allow CONNECT registry https",
        "url_rewrite_access deny all",
    ]


def _listen(addresses: Sequence[str], private: bool) -> str:
    if not private:
        return addresses[0]
    return "::" if any(version(address) == 6 for address in addresses) else "0.0.0.0"


def find_program(name: str, package: str, other: str = "") -> str:
    """Return the path of program `name`, or of `other`, its name on another distribution."""
    folders = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    path = shutil.which(name, path=folders) or (other and shutil.which(other, path=folders))
    if not path:
        raise LabError(f"the program {name} is not installed on the hypervisor: install {package}")
    return path


def _htpasswd(path: Path, settings: Registry | BmcService) -> str:
    """Return the line for a user; the existing one in `path` if its hash matches, because each new hash differs."""
    user, password = settings["username"], (settings["password"] or "").encode()
    with contextlib.suppress(FileNotFoundError, ValueError):
        text = path.read_text()
        name, __, digest = text.strip().partition(":")
        if name == user and bcrypt.checkpw(password, digest.encode()):
            return text
    # docker-registry knows the prefix 2y, as htpasswd(1) writes it, and 2b.
    return f"{user}:{bcrypt.hashpw(password, bcrypt.gensalt(BCRYPT_ROUNDS)).decode()}\n"
