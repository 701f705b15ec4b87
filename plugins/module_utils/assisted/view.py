"""Live view of an installation on a terminal: a line per host."""

from __future__ import annotations

import time
from typing import Any, Self

from .._deps import optional
from ..log import visible
from .monitor import host_name

rich_console = optional("rich.console", "rich")
rich_live = optional("rich.live", "rich")
rich_table = optional("rich.table", "rich")

COLUMNS = ("HOST", "ROLE", "STATUS", "STAGE", "", "INFO")


def rows(cluster: dict[str, Any]) -> list[tuple[str, ...]]:
    """Return the columns of each host, in the order of COLUMNS.

    cluster: as the service returns it, with its hosts; the rows are sorted by host name. Unknown cells are empty, and
    texts are printable.
    """
    return [tuple(visible(cell) for cell in _row(host)) for host in sorted(cluster.get("hosts") or [], key=host_name)]


def _row(host: dict[str, Any]) -> tuple[str, ...]:
    progress = host.get("progress") or {}
    percentage = progress.get("installation_percentage") or 0
    role = "bootstrap" if host.get("bootstrap") else host.get("role") or ""
    info = progress.get("progress_info") or (host.get("status_info") or "")[:60]
    return (
        host_name(host),
        role,
        host["status"],
        progress.get("current_stage") or "",
        f"{percentage}%" if percentage else "",
        info,
    )


class LiveView:
    """A table below the log lines; `print` puts a line above it. Use as a context manager.

    It is drawn on stderr and disappears at the end. `show` gets the cluster, as `show` of `BootstrapWatcher`. The
    constructor raises `MissingLibrary` without rich.
    """

    def __init__(self) -> None:
        self.cluster: dict[str, Any] = {}
        self.started = time.monotonic()
        # What hosts and the service send is text: neither markup nor emoji.
        self.console = rich_console.Console(stderr=True, highlight=False, markup=False, emoji=False)
        self.live = rich_live.Live(
            console=self.console, refresh_per_second=1, transient=True, get_renderable=self._table
        )

    def __enter__(self) -> Self:
        self.live.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.live.stop()

    def print(self, line: str) -> None:
        self.console.out(line, highlight=False)

    def show(self, cluster: dict[str, Any], events: object) -> None:
        self.cluster = cluster

    def _table(self) -> Any:
        minutes, seconds = divmod(int(time.monotonic() - self.started), 60)
        title = (
            f"{self.cluster.get('name', 'cluster')}: {self.cluster.get('status', 'waiting')}  {minutes}m{seconds:02d}s"
        )
        table = rich_table.Table(*COLUMNS, title=visible(title), title_justify="left", box=None, pad_edge=False)
        for row in rows(self.cluster):
            table.add_row(*row)
        return table
