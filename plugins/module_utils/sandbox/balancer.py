"""The load balancer of a lab (haproxy): its configuration and its start."""

from __future__ import annotations

import socket
from pathlib import Path

from ..addresses import in_url
from ..errors import LabError
from ..plan import names
from ..plan.balancer import Balancer
from ..plan.balancers import STATS_PORT
from ..plan.model import Plan
from . import processes
from .lifecycle import Service

_PROGRAM = "balancer"
_DEFAULTS = """\
global
  stats socket {stats} level user
  log stdout format raw local0 info
  maxconn 2000
defaults
  mode tcp
  log global
  option tcplog
  option dontlognull
  timeout connect 5s
  timeout client 1h
  timeout server 1h
  timeout check 5s
  default-server inter 2s fall 3 rise 1 on-marked-down shutdown-sessions
"""


def config(balancer: Balancer) -> str:
    """Return haproxy.cfg. Connections pass through as they are: TLS ends on the nodes, whose health is asked every 2 s.

    The connections of a node that is down are closed: the bootstrap host reboots without a word, and its clients would wait
    for `timeout client`.
    """
    stats = f"{balancer['stats']} mode 600"
    if balancer.get("machine"):
        stats = f"{in_url(balancer['addresses'][0])}:{STATS_PORT}"
    lines = [_DEFAULTS.format(stats=stats)]
    for front in balancer["frontends"]:
        lines.append(f"listen {front['name']}\n")
        lines += [f"  bind {in_url(address)}:{front['port']}\n" for address in balancer["addresses"]]
        lines.append("  balance roundrobin\n")
        if front["health"]:
            lines.append(f"  option httpchk GET {front['health']}\n")  # 2xx: the machine-config server answers 204
        how = "check check-ssl verify none" if front["health"] else "check"
        lines += [f"  server {node['name']} {in_url(node['ip'])}:{front['port']} {how}\n" for node in front["backends"]]
    return "".join(lines)


def render(plan: Plan, base: Path, haproxy: str) -> Service:
    """Return the service. base: its directory; haproxy: the program.

    Raises `LabError` for a plan without a load balancer.
    """
    balancer = plan["services"].get("balancer")
    if not balancer or balancer.get("machine"):
        raise LabError(
            "the sandbox of this plan has no load balancer: nodes or a machine have the addresses of API and ingress"
        )
    path, first = base / "haproxy.cfg", balancer["frontends"][0]

    def healthy() -> None:
        socket.create_connection((balancer["addresses"][0], first["port"]), timeout=5).close()

    return Service(
        # A failing check ends the shell, with what is wrong in the log.
        processes.Program(
            _PROGRAM,
            ["/bin/sh", "-c", f'"{haproxy}" -c -f "{path}" && exec "{haproxy}" -db -f "{path}"'],
            base / names.SERVICE_LOG,
            {},
            (path,),
        ),
        {path: (config(balancer), 0o644)},
        first["port"],
        "tcp",
        healthy,
        leftovers=(Path(balancer["stats"]),),
    )
