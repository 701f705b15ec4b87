"""The e2e jobs of `ci/jobs.yml`: a profile, the stages to run, and what must come out."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict, cast

from ..documents import load_yaml
from ..plan import typed
from ..plan.fields import OneOf
from ..plan.options import Profile
from ..vocabulary import RUN_STAGES

Stage = Annotated[str, OneOf(RUN_STAGES)]


class _Failure(TypedDict):
    exit_code: int
    """The class of the failure: docs/ci.md lists them."""
    cause: str
    """A regular expression for the first cause: of the report after a wait, else of the stage's error."""
    log: list[str]
    """Texts in the log of the wait."""


class Expect(_Failure, total=False):
    """The failure that a job must end with."""

    stage: Stage
    """The stage that fails; `wait` unless given."""


class _ProfiledJob(TypedDict):
    profile: str | Profile
    """A profile: its path, its name in config_examples, a scenario of dev-scripts, or its fields. Relative paths in it start from the
    folder of this file."""


class ListedJob(_ProfiledJob, total=False):
    """A job: a profile, the stages to run, and what must come out."""

    programs: dict[str, str]
    """Fields of the profile, such as `release.installer.binary`, each with the environment variable that has the path of a real
    program. The job is skipped while one is not set; see docs/your-build.md."""
    stages: list[Stage]
    """The stages to run, all by default."""
    variables: dict[str, Any]
    """Ansible variables that are not the default."""
    again: bool
    """Whether a second run must change nothing."""
    verbs: bool
    """Whether every verb is driven on the installed cluster."""
    fencing: bool
    """Whether one of two nodes is frozen, and fenced by the other."""
    foreign: bool
    """Whether the existing machine of the plan is made in a second sandbox."""
    mirrored: bool
    """Whether `agentlab mirror` copies the release into the lab's registry first; `installer.mirrors_file` is then what it wrote."""
    by_hand: bool
    """Whether a program boots the machines, as a user does."""
    live_page: bool
    """Whether the page of the rendezvous host is requested through `agentlab forward` during the wait."""
    ironic: bool
    """Whether a real Ironic provisions the first machine; see docs/ironic.md."""
    day2: bool
    """Whether the day-2 nodes are added after the stages."""
    gather: bool
    """Whether logs are collected after a success, too; after a failure they always are."""
    command: Annotated[str, "word"]
    """Runs on the installed cluster as `agentlab ci exec` does, with KUBECONFIG and JUNIT_DIR; its JUnit is kept."""
    expect: Expect | None
    """The failure with which the job passes."""
    idle_minutes: float
    """How long one task may be silent."""
    timeout_minutes: float
    """How long the job may take."""


class _Jobs(TypedDict):
    jobs: dict[str, ListedJob]
    """The jobs by name."""


class Table(_Jobs, total=False):
    """The e2e jobs. Run one with `ci/run-job JOB`, or `agentlab ci run JOB --jobs FILE`."""

    every_change: list[str]
    """The jobs of `make test`."""


class Job(ListedJob, total=False):
    """A job with its defaults: `DEFAULTS` has the values of fields that a job leaves out."""

    folder: str
    """From where relative paths of a profile in the job start: the folder of the table."""


DEFAULTS: Job = {
    "profile": "",
    "programs": {},
    "stages": list(RUN_STAGES),
    "variables": {},
    "again": False,
    "verbs": False,
    "fencing": False,
    "foreign": False,
    "mirrored": False,
    "by_hand": False,
    "live_page": False,
    "ironic": False,
    "day2": False,
    "gather": False,
    "command": "",
    "expect": None,
    # One task may be silent for the whole wait, which has its own limits.
    "idle_minutes": 60,
    "timeout_minutes": 90,
}


MEANWHILE: Mapping[str, Literal["by_hand", "live_page"]] = {"boot": "by_hand", "wait": "live_page"}
"""The program that runs during a stage, by the field that asks for it."""
# The programs that run after `prepare`, with their arguments, by the field that asks for them.
_PREPARED: Mapping[Literal["foreign", "mirrored"], tuple[str, ...]] = {
    "foreign": ("foreign", "start"),
    "mirrored": ("mirrored",),
}
# What runs on an installed cluster, in this order, by the field that asks for it.
_AFTER: dict[Literal["day2", "again", "verbs", "fencing", "ironic", "command", "gather"], tuple[str, ...]] = {
    "day2": ("add_nodes", "validate-day2", "again-add_nodes"),
    "again": ("again",),
    "verbs": ("verbs",),
    "fencing": ("fencing",),
    "ironic": ("ironic",),
    "command": ("command",),
    "gather": ("gather",),
}


def names(path: Path) -> list[str]:
    """The jobs of a table; none when there is no such file, as in an installed collection.

    path: of `ci/jobs.yml`; the names are sorted. Raises `OSError`, `DocumentError`, and `ProfileError` for a wrong table.
    """
    return sorted(_table(path)) if path.exists() else []


def load(name: str, path: Path) -> Job:
    """Return a job of a table with defaults. ValueError lists the existing jobs.

    name: of the job; path: as for `names`.
    """
    table = _table(path)
    if name not in table:
        raise ValueError(f"{path.name}: no job {name!r}; there are: {', '.join(sorted(table))}")
    job = cast(Job, {**DEFAULTS, **table[name]})
    if isinstance(job["profile"], dict):
        job["folder"] = str(path.absolute().parent)
    return job


def later_steps(job: Job) -> list[str]:
    """Return the names of what a job runs after its stages, in order; `add_nodes` adds the day-2 nodes."""
    return [name for field, names in _AFTER.items() if job[field] for name in names]


def preparation_programs(job: Job) -> list[tuple[str, ...]]:
    """Return the programs of `ci` that a job runs after `prepare`, each with its arguments."""
    return [words for field, words in _PREPARED.items() if job[field]]


def cases(job: Job) -> list[str]:
    """Return the names of the cases in the JUnit of a job that passes, in order.

    Those of programs have their names: `foreign-start` and `mirrored` after `prepare`, or that of `MEANWHILE` before its stage.
    """
    stages = job["stages"]
    if job["expect"]:
        stages = stages[: stages.index(failing_stage(job["expect"])) + 1]
    before = {stage: [field] for stage, field in MEANWHILE.items() if job[field]}
    then = {"prepare": ["-".join(words) for words in preparation_programs(job)]}
    return [
        *(case for name in stages for case in (*before.get(name, []), name, *then.get(name, []))),
        *([] if job["expect"] else later_steps(job)),
        "destroy",
        *(["foreign-end"] if job["foreign"] else []),
    ]


def failing_stage(expect: Expect) -> str:
    """Return the stage that a job with `expect` must fail in."""
    return expect.get("stage", "wait")


def unset(job: Job, environment: Mapping[str, str]) -> list[str]:
    """Return the variables that name the job's real programs and are not set; without them it cannot run."""
    return sorted({variable for variable in job["programs"].values() if not environment.get(variable)})


def with_programs(values: Mapping[str, object], job: Job, environment: Mapping[str, str]) -> Profile:
    """Return the profile of a job with its real programs. ValueError names the variables that are not set.

    values: the profile as plain data, which is not changed; environment: such as `os.environ`. What a variable has is
    checked with the profile, and when the payload is built.
    """
    if missing := unset(job, environment):
        raise ValueError(
            f"{', '.join(missing)} not set: each must be the checkout with your build, an image or a program "
            "(docs/your-build.md)"
        )
    return place_fields(values, {field: environment[variable] for field, variable in job["programs"].items()})


def check_stages(stages: Sequence[str], where: str) -> None:
    """Raise ValueError for a name that is not a stage; where: what has the list.

    The stages are those of `RUN_STAGES`, in any order.
    """
    if unknown := [stage for stage in stages if stage not in RUN_STAGES]:
        raise ValueError(f"{where} has {', '.join(unknown)}; stages are {', '.join(RUN_STAGES)}")


def settle(values: Mapping[str, object], assignments: list[str]) -> Profile:
    """Return a profile with `a.b=value` laid over it; values are YAML. ValueError names an assignment that is not one.

    values: the profile as plain data, which is not changed; assignments: texts. Missing mappings on the path are added.
    """
    fields: dict[str, Any] = {}
    for text in assignments:
        path, equals, value = text.partition("=")
        if not equals or not all(path.strip().split(".")):
            raise ValueError(f"--set {text!r}: is not of the form field.field=value")
        fields[path.strip()] = load_yaml(value, name=f"--set {path}")
    try:
        return place_fields(values, fields)
    except ValueError as error:
        raise ValueError(f"--set {error}") from None


def place_fields(values: Mapping[str, object], fields: Mapping[str, object]) -> Profile:
    """Return a profile with other values of fields, by their names such as `release.installer.binary`.

    values: the profile as plain data, which is not changed. Missing mappings on the path are added. ValueError names
    a field below something that is not a mapping.
    """
    result: dict[str, Any] = copy.deepcopy(dict(values))
    for field, value in fields.items():
        *parents, last = field.split(".")
        place = result
        for name in parents:
            place = place.setdefault(name, {})
            if not isinstance(place, dict):
                raise ValueError(f"{field!r}: {name} is not a mapping in the profile")
        place[last] = value
    return cast(Profile, result)


def _table(path: Path) -> dict[str, ListedJob]:
    table: Table = typed.load(path, Table)
    return table["jobs"]
