"""From a run directory to the document of its page.

All that is shown is in `report/` when the page is: logs of the run directory are copied there without secrets. A file that is
missing, cut or damaged is named on the page, and the rest is shown.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from ... import state
from ...errors import AgentlabError
from ...files import explain
from ...plan import drawing, rundir
from ...plan.access import Access
from ...plan.machines import virtual
from ...plan.model import Plan
from ...redact import redact
from ...state.events import FILE, Event, event, moment, printable, read
from ...vocabulary import RunFile, Status
from ..gather import copy_redacted, give_to_owner, private
from ..hypervisor_logs import SCREEN, service_log
from ..secrets import of_run
from . import connectivity, history, intervals, leases, logs, pulls, timeline
from .model import Cause, Connection, File, Lane, Mark, Result, Run, Screen, Source, Verdict

LINES = 2000
"""Lines of a log on the page, and as many around the first cause."""
ALL_LINES = 40_000
"""Lines of all logs together: with hundreds of hosts each has fewer."""
_LEAST = 50
REPORT = "report"
PAGE, DOCUMENT, JUNIT = "index.html", "run.json", "junit.xml"
_COPIED = ("logs/*.log", "logs/*.jsonl", RunFile.INSTALLER_LOG, RunFile.LAST_EVENTS, RunFile.PROFILE)
_EVENTS, _RECORD = "assisted/events.json", f"run/{RunFile.LAST_EVENTS}"
_MOST_FILES = 5000
_SCREEN_BYTES = 300_000
"""Of all pictures on the page."""
_ENDS = {
    Status.INSTALLED: "#3d7317",
    Status.KNOWN: "#3d7317",
    Status.ERROR: "#b1380b",
    Status.CANCELLED: "#b1380b",
    Status.DISCONNECTED: "#b1380b",
    "": "#707070",
}


@dataclass
class Collector:
    """Reads the run in `run_dir`. live: the run is in progress. lines: see `LINES`. clock: the time.

    What cannot be read is in `missing` afterwards, a line for each file with the reason.
    """

    run_dir: Path
    live: bool = False
    lines: int = LINES
    clock: Callable[[], float] = time.time

    def __post_init__(self) -> None:
        self.report = self.run_dir / REPORT
        self.secrets = of_run(self.run_dir)
        self.missing: list[str] = []

    def run(self) -> Run:
        """Return the document of the page. Raises `OSError` when the report cannot be written.

        It also copies logs of the run directory into the report, and a finished installation into the history of its
        profile.
        """
        now = int(self.clock() * 1000)
        self._copy()
        plan, events = self._plan(), self._events()
        times = [at for one in events if (at := moment(one["time"])) is not None]
        end = now if self.live else max(times, default=None)
        found = timeline.Timeline(events, plan, end or now, live=self.live)
        files = self._files()
        verdict = self._verdict(plan, events, found, files)
        verdict["start"], verdict["end"] = min(times, default=None), end
        year = datetime.fromtimestamp((verdict["start"] or now) / 1000, UTC).year
        made: Run = {
            "version": "1",
            "live": self.live,
            "generated": now,
            "verdict": verdict,
            "lanes": self._lanes(found, plan),
            "validations": found.validations(),
            "connections": self._connections(),
            "checks": list(found.checks.values()),
            "steps": found.steps,
            "polls": found.polls(),
            "former": 0,
            "changes": [],
            "sources": list(self._sources(files, year, verdict["moment"], plan)),
            "topology": drawing.svg(plan, self._ends(plan, found, verdict)) if plan else "",
            "screens": list(self._screens(files, plan)),
            "files": files,
            "missing": self.missing,
        }
        try:
            history.compare(self.run_dir, made, self.secrets)
        except OSError as error:
            self.missing.append(explain(error))
        return made

    def _lanes(self, found: timeline.Timeline, plan: Plan | None) -> list[Lane]:
        """Return the rows of the timeline, with those of the lab's services after the hosts."""
        rows = found.lanes()
        served: list[Lane] = []
        try:
            served = [*leases.lanes(self.report, plan), *pulls.lanes(self.report, plan)]
        except OSError as error:
            self.missing.append(explain(error))
        after = sum(row["group"] != "operators" for row in rows)
        return [*rows[:after], *served, *rows[after:]]

    def _connections(self) -> list[Connection]:
        try:
            return list(connectivity.connections(self.run_dir, self.report))
        except OSError as error:
            self.missing.append(explain(error))
        except ValueError as error:
            self.missing.append(_line(f"connectivity: {error}"))
        return []

    def _copy(self) -> None:
        """Copy the logs of the run directory into the report, without secrets; gather's copies are overwritten."""
        private(self.report)
        for pattern in _COPIED:
            for path in sorted(self.run_dir.glob(pattern)):
                inside = path.relative_to(self.run_dir)
                target = self.report / "run" / inside
                try:
                    if path.is_file() and not (target.exists() and target.stat().st_mtime > path.stat().st_mtime):
                        with path.open("rb") as source:
                            copy_redacted(source, self.report, f"run/{inside}", self.secrets)
                except OSError as error:
                    self.missing.append(f"{inside}: {error.strerror or error}")
        give_to_owner(self.report)

    def _plan(self) -> Plan | None:
        try:
            return rundir.load_plan(self.run_dir)
        except (AgentlabError, ValueError) as error:
            self.missing.append(f"the plan: {_line(str(error).splitlines()[0])}")
            return None

    def _events(self) -> list[Event]:
        try:
            found = read(self.run_dir / FILE)
        except OSError as error:
            self.missing.append(explain(error))
            return []
        if found.damaged:
            self.missing.append(f"{FILE}: {found.damaged} lines are not events")
        if found.cut:
            self.missing.append(f"{FILE}: the first {found.cut} bytes were left out")
        if any(one["kind"] == "stage" for one in found.events):
            return found.events
        return [*self._of_state(), *found.events]

    def _of_state(self) -> Iterator[Event]:
        """Yield the stages as state.json has them: a run of an earlier release has no events."""
        stages: dict[str, state.Stage] = {}
        try:
            stages = state.load(self.run_dir)["stages"]
        except (state.StateError, OSError) as error:
            self.missing.append(_line(str(error).splitlines()[0]))
        for name, stage in sorted(stages.items(), key=lambda item: item[1]["start"]):
            for key, result in (("start", "started"), ("end", stage["result"] or "")):
                at = moment(str(stage.get(key)))
                if at is not None:
                    yield event("stage", name, result, at=at / 1000)

    def _verdict(
        self, plan: Plan | None, events: Sequence[Event], found: timeline.Timeline, files: Sequence[File]
    ) -> Verdict:
        programs = [one for one in events if one["kind"] == "run"]
        result = self._result(found)
        causes = _causes(events, plan, self.run_dir) if result in ("failed", "interrupted") else []
        about = ""
        if plan:
            cluster = plan["cluster"]
            about = (
                f"{cluster['topology']}, {cluster['stack']}, {cluster['addressing']}, platform {cluster['platform']}"
            )
        return {
            "cluster": plan["cluster"]["name"] if plan else self.run_dir.name,
            "profile": next((one["subject"] for one in reversed(programs) if one["subject"]), ""),
            "about": about,
            "payload": _line(rundir.release_image(self.run_dir)),
            "program": programs[-1]["text"] if programs else "",
            "result": result,
            "start": None,
            "end": None,
            "causes": causes,
            "moment": timeline.first(events, causes[0]["text"]) if causes else None,
            "evidence": _evidence(causes[0]["text"], plan, files) if causes else None,
            "faults": [*found.faults, *_planned(plan, found.faults)],
        }

    @staticmethod
    def _result(found: timeline.Timeline) -> Result:
        results = list(found.stages.values())
        if "running" in results:
            return "running"
        if "interrupted" in results:
            return "interrupted"
        if "failed" in results:
            return "failed"
        return "installed" if "ok" in (found.stages.get("wait"), found.stages.get("validate")) else "stopped"

    def _files(self) -> list[File]:
        found: list[File] = []
        for path in sorted(self.report.rglob("*")):
            inside = str(path.relative_to(self.report))
            if (
                path.is_file()
                and not path.is_symlink()
                and inside.isprintable()
                and inside not in (PAGE, DOCUMENT, JUNIT, intervals.FILE)
            ):
                found.append({"path": inside, "size": path.stat().st_size})
        if len(found) > _MOST_FILES:
            self.missing.append(f"{len(found) - _MOST_FILES} of {len(found)} files are not listed")
        return found[:_MOST_FILES]

    def _sources(self, files: Sequence[File], year: int, at: int | None, plan: Plan | None) -> Iterator[Source]:
        nodes = {node["domain"]: node["name"] for node in virtual(plan["nodes"])} if plan else {}
        listed = [file["path"] for file in files]
        # What gather asked the service for is as new as what the wait has left, or newer.
        older = {_RECORD} if _EVENTS in listed else set()
        readable = [path for path in listed if _is_log(path) and path not in older]
        limit = min(self.lines, max(_LEAST, ALL_LINES // max(1, len(readable)))) if self.lines else 0
        for name in readable:
            path = self.report / name
            try:
                if path.suffix == ".json":
                    yield logs.service_events(path, name, limit)
                else:
                    host, shown = _host_of(name, nodes)
                    yield logs.source(
                        path, name=shown, host=host, shown=name, year=year, at=at, limit=limit, secrets=self.secrets
                    )
            except (OSError, ValueError) as error:
                self.missing.append(_line(f"{name}: {error}"))

    def _screens(self, files: Sequence[File], plan: Plan | None) -> Iterator[Screen]:
        nodes = {node["domain"]: node["name"] for node in virtual(plan["nodes"])} if plan else {}
        left = _SCREEN_BYTES
        for file in files:
            path = Path(file["path"])
            if path.parent.name != SCREEN or path.suffix != ".png":
                continue
            left -= file["size"]
            try:
                png = base64.b64encode((self.report / path).read_bytes()).decode() if left >= 0 else ""
            except OSError as error:
                self.missing.append(explain(error))
                continue
            yield {"host": nodes.get(path.stem, path.stem), "path": file["path"], "png": png}

    @staticmethod
    def _ends(plan: Plan, found: timeline.Timeline, verdict: Verdict) -> dict[str, drawing.End]:
        """Return the end state of each node, and its colour."""
        ends = {}
        for node in plan["nodes"]:
            status = found.last(node["name"])
            if verdict["result"] == "installed":
                status = "installed"
            colour = _ENDS.get(status, "#0066cc")
            if any(name in cause["text"] for cause in verdict["causes"][:1] for name in (node["name"], node["domain"])):
                colour = _ENDS["error"]
            ends[node["name"]] = drawing.End(_line(status) or "not registered", colour)
        return ends


def _causes(events: Sequence[Event], plan: Plan | None, run_dir: Path) -> list[Cause]:
    """Return the causes that gather found after the last stage began; without any, the failure of that stage."""
    found: list[Cause] = []
    failure: Event | None = None
    for one in events:
        if one["kind"] == "cause":
            found.append({"text": one["text"], "next": one.get("next", "")})
        elif one["kind"] == "stage" and one["state"] == "started":
            found, failure = [], failure if one["subject"] == "gather" else None
        elif one["kind"] == "stage" and one["subject"] != "gather" and one["state"] == "failed":
            failure = one
    if found or not failure or not failure["text"]:
        return found
    step = ""
    if plan:
        checked = failure["subject"] == "validate"
        verb, what = ("validate", "checks again") if checked else ("gather", "collects the logs of all hosts")
        step = f"{Access(plan, run_dir).verb(verb)}  # {what}"
    return [{"text": failure["text"], "next": step}]


def _planned(plan: Plan | None, injected: Sequence[Mark]) -> Iterator[Mark]:
    """Yield the faults of the profile that the log of injected ones does not have: they are part of machines and images, or did not happen."""
    for fault in plan["faults"] if plan else ():
        if not any(one["text"].startswith(fault["kind"]) for one in injected):
            text = ", ".join(f"{key} {value}" for key, value in fault.items() if value is not None)
            yield {"at": 0, "level": "info", "text": _line(text)}


def _evidence(cause: str, plan: Plan | None, files: Sequence[File]) -> str | None:
    """Return the file that shows a cause best."""
    paths = [file["path"] for file in files]
    wanted = []
    for node in plan["nodes"] if plan else ():
        if node["domain"] in cause or node["name"] in cause:
            wanted += [f"hosts/{node['name']}/", f"console/{node['domain']}"]
            if node["domain"] in cause:
                wanted.reverse()
    if "validation" in cause:
        wanted.insert(0, "assisted/cluster.json")
    if "registry" in cause:
        wanted.insert(0, service_log("registry"))
    if "token" in cause or "assisted" in cause:
        wanted.append("assisted/")
    for start in (*wanted, "summary.txt", f"run/{RunFile.WAIT_LOG}", f"run/{RunFile.INSTALLER_LOG}"):
        for path in paths:
            if path.startswith(start) and (_is_log(path) or not start.endswith("/")):
                return path
    return None


def _is_log(path: str) -> bool:
    name = path.rpartition("/")[2]
    return path.endswith(".log") or path in (_EVENTS, _RECORD) or name == "service-log"


def _host_of(path: str, nodes: Mapping[str, str]) -> tuple[str, str]:
    """Return the host that a log of the report is from, and its name on the page. nodes: domain to node."""
    parts = path.split("/")
    file = parts[-1].removesuffix(".log").lstrip(".")
    if parts[0] == "hosts" and len(parts) > 2:
        return parts[1], f"{parts[1]} {file}"
    if parts[0] == "console" and file in nodes:
        return nodes[file], f"{nodes[file]} console"
    return "", f"{parts[0]} {file}" if parts[0] != "run" else file


def _line(text: str) -> str:
    return printable(redact(text)).replace("\n", " ")
