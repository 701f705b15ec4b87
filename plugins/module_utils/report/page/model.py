"""The data of a run page: one document, `report/run.json`, which the page embeds. Its JSON schema is docs/run.schema.json.

Times are integers, milliseconds since the epoch. Texts come from logs, hosts and services: printable, without secrets, never markup.
"""

from __future__ import annotations

from typing import Literal, TypedDict

from ...state.events import Level

Result = Literal["installed", "failed", "interrupted", "running", "stopped"]


class Cause(TypedDict):
    """Why the installation did not continue.

    The document has at most the causes that gather found after the last stage began, else the failure of that stage.
    """

    text: str
    """What is wrong, naming what it is wrong with."""
    next: str
    """What to do next; empty if nothing is known."""


class Mark(TypedDict):
    """Something at one moment.

    Marks are drawn on a row of the timeline; those of the verdict are the injected faults.
    """

    at: int
    """When."""
    level: Level
    """How serious it is."""
    text: str
    """What happened."""


class Verdict(TypedDict):
    """What was asked, and how it ended.

    It is what the head of the page shows. Parts of a plan that cannot be read are empty.
    """

    cluster: str
    """Name of the cluster."""
    profile: str
    """Name of the profile; empty when only its plan is known."""
    about: str
    """Topology, address families, addressing and platform."""
    payload: str
    """The release image with its digest."""
    program: str
    """Version and commit of agentlab."""
    result: Result
    """`stopped`: all stages that were asked for are done, and the installation is not among them."""
    start: int | None
    """When the first stage began."""
    end: int | None
    """When the last event happened; now while the run continues."""
    causes: list[Cause]
    """Why it failed, the first cause first."""
    moment: int | None
    """When the first cause showed first."""
    evidence: str | None
    """The file that shows it best, relative to the page."""
    faults: list[Mark]
    """Faults that were injected; those of the profile that were not yet have the time 0."""


class Interval(TypedDict):
    """A state from one moment to another.

    What is open when the document is made ends at its end; `end` is never before `start`.
    """

    start: int
    """When it began."""
    end: int
    """When it ended."""
    state: str
    """The state, such as a host's status."""
    text: str
    """Its message."""


class Lane(TypedDict):
    """A row of the timeline.

    `states` of the row `Stages` are the stages of the run: the name in `state`, the result or message in `text`.
    """

    name: str
    """Name of the host, the operator, or what is in the row."""
    group: Literal["run", "hosts", "services", "operators"]
    """The part of the timeline that it is in."""
    states: list[Interval]
    """Its states, one after the other."""
    stages: list[Interval]
    """Installation stages of a host."""
    failing: list[Interval]
    """While validations of a host failed, with their names."""
    marks: list[Mark]
    """What happened at one moment: faults, actions of BMCs, warnings."""


class Validation(TypedDict):
    """A validation of a host or of the cluster, over the run.

    It is known by `id` and `host` together. The words of `now` are those of the assisted service.
    """

    id: str
    """Its identifier, such as `ntp-synced`."""
    host: str
    """Name of the host; empty for the cluster."""
    now: str
    """Its last status: success, failure, pending, error, disabled."""
    first_failed: int | None
    """When it failed first; null if never."""
    first_passed: int | None
    """When it passed first; null if never."""
    message: str
    """Its last message."""


class Connection(TypedDict):
    """What a host has found out about its connection to another one."""

    host: str
    """Name of the host that reports."""
    to: str
    """Name of the other host."""
    ok: bool
    """Whether each address of the other host was reached, in layers 2 and 3."""
    text: str
    """The result for each address, with round-trip time and loss."""


class Check(TypedDict):
    """A check of `agentlab validate`."""

    name: str
    """What was checked."""
    ok: bool
    """Whether it is right."""
    found: str
    """What was found."""
    seconds: int
    """How long a test of the profile took, rounded up; 0 of other checks."""


class Line(TypedDict):
    """A line of a log."""

    at: int | None
    """When it was written; null if the line does not say."""
    level: Level
    """How serious it is, by its own level or its words."""
    unit: str
    """The unit or program that wrote it; empty if the line does not say."""
    text: str
    """The line without its time."""


class Source(TypedDict):
    """A log."""

    name: str
    """What it is, such as `master-0 journal`."""
    host: str
    """The host that it is from; empty for the lab's own."""
    path: str
    """The whole file, relative to the page."""
    left_out: int
    """Bytes of the file that are before the first of these lines."""
    lines: list[Line]
    """Its last lines, and those around the first cause."""


class Step(TypedDict):
    """A part of a stage: a task, or a phase of the installation."""

    stage: str
    """The stage that it is part of."""
    name: str
    """Name of the task or the phase; empty for the stage itself."""
    start: int
    """When it began."""
    end: int
    """When it ended."""
    median: int | None
    """Median of former runs of the profile on this machine in milliseconds; null without any."""


class Change(TypedDict):
    """What differs from the last good run of the profile on this machine."""

    file: str
    """The file in the run directory; `payload` for the release image."""
    diff: list[str]
    """Lines of the unified difference."""


class File(TypedDict):
    """A file next to the page."""

    path: str
    """Its path, relative to the page."""
    size: int
    """Its size in bytes."""


class Screen(TypedDict):
    """A picture of a machine's screen."""

    host: str
    """Name of the node."""
    path: str
    """The file in the report."""
    png: str
    """The picture, in base64; empty where the page would become too large."""


class Run(TypedDict):
    """A run of agentlab on one cluster."""

    version: Literal["1"]
    """Version of this schema."""
    live: bool
    """Whether the run is in progress, and the page is served with its changes."""
    generated: int
    """When this document was made."""
    verdict: Verdict
    lanes: list[Lane]
    """Rows of the timeline, from top to bottom."""
    validations: list[Validation]
    """Every validation that was reported, by host."""
    connections: list[Connection]
    """Which host reaches which; of more than 20 hosts only what fails."""
    checks: list[Check]
    """What the last validate found."""
    steps: list[Step]
    """Where the time went, in the order of time."""
    polls: int
    """How long the wait had not noticed yet what it waited for, as it asks at intervals: in milliseconds, of the cluster's
    states and of the last ClusterOperator."""
    former: int
    """How many installed runs of the profile on this machine the medians are of."""
    changes: list[Change]
    """What differs from the last good run of the profile on this machine: payload, profile, manifests."""
    sources: list[Source]
    """The logs."""
    topology: str
    """Drawing of the machines and networks as SVG, coloured by the end state; empty without a plan."""
    screens: list[Screen]
    """Pictures of the machines' screens when logs were gathered."""
    files: list[File]
    """Everything that was collected."""
    missing: list[str]
    """What could not be read, and why; the rest is complete."""
