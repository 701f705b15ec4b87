"""Which host reaches which, as the assisted service knows it: the `connectivity` of its hosts (assisted-service's ConnectivityReport)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ...documents import load_json, read_file
from ...redact import redact
from ...state.events import printable
from ...vocabulary import RunFile
from .model import Connection

GATHERED = "assisted/cluster.json"
MANY = 20
"""Of more hosts, only the connections that fail are shown: their number grows with the square."""


def connections(run_dir: Path, report: Path) -> Iterator[Connection]:
    """Yield a connection for each pair of hosts of which one has reported on the other.

    Raises `OSError` and `ValueError` for a record that cannot be read; without a record there are none.
    """
    path = next((path for path in (report / GATHERED, run_dir / RunFile.LAST_CLUSTER) if path.is_file()), None)
    if path is None:
        return
    cluster = load_json(read_file(path), name=path.name)
    hosts = [host for host in _list(cluster, "hosts") if isinstance(host, dict)]
    names = {str(host.get("id")): _text(host.get("requested_hostname") or host.get("id")) for host in hosts}
    for host in hosts:
        report_of = host.get("connectivity")
        found = load_json(report_of, name="connectivity") if isinstance(report_of, str) and report_of else {}
        for remote in _list(found, "remote_hosts"):
            if isinstance(remote, dict):
                one = _connection(names[str(host.get("id"))], remote, names)
                if len(hosts) <= MANY or not one["ok"]:
                    yield one


def _connection(host: str, remote: Mapping[str, object], names: Mapping[str, str]) -> Connection:
    to = str(remote.get("host_id"))
    parts, good = [], []
    for layer, key in (("layer 2", "l2_connectivity"), ("layer 3", "l3_connectivity")):
        for entry in _list(remote, key):
            if isinstance(entry, dict):
                good.append(entry.get("successful") is True)
                loss, delay = entry.get("packet_loss_percentage"), entry.get("average_rtt_ms")
                facts = [
                    "ok" if good[-1] else "fails",
                    *([f"{delay:.1f} ms"] if isinstance(delay, int | float) and delay else []),
                    *([f"{loss:.0f} % lost"] if isinstance(loss, int | float) and loss else []),
                ]
                parts.append(f"{entry.get('remote_ip_address')} {layer}: {' '.join(facts)}")
    return {
        "host": host,
        "to": names.get(to, _text(to)),
        "ok": bool(good) and all(good),
        "text": _text(", ".join(parts) or "nothing reported"),
    }


def _list(found: object, key: str) -> list[Any]:
    value = found.get(key) if isinstance(found, dict) else None
    return value if isinstance(value, list) else []


def _text(value: object) -> str:
    return printable(redact(str(value))).replace("\n", " ")[:600]
