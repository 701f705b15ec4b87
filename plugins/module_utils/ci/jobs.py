"""The e2e jobs of `ci/jobs.yml`: a profile, the stages to run, and what must come out."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict, cast

from ..documents import load_yaml, read_file
from ..shapes import Shape, check, named
from ..vocabulary import RUN_STAGES


class Expect(TypedDict):
    """The failure that a job must end with: the stage, its class, texts in the log of the wait, the first cause as a regular expression.

    Texts and expression are searched as `Runner.check_result` does: the cause from the start of the report's first
    line after a wait, otherwise of the error.
    """

    stage: NotRequired[str]
    """`wait` unless given."""
    exit_code: int
    cause: str
    log: list[str]


class Job(TypedDict):
    """A job with its defaults; `ci/jobs.yml` has the meaning of each field.

    `DEFAULTS` has the values of fields that a job leaves out. programs: field of the profile, such as
    `release.installer.binary` -> environment variable that has its value, the path of a real program.
    """

    profile: str | dict[str, Any]
    programs: dict[str, str]
    stages: list[str]
    variables: dict[str, Any]
    again: bool
    verbs: bool
    fencing: bool
    foreign: bool
    by_hand: bool
    ironic: bool
    day2: bool
    gather: bool
    command: str
    expect: Expect | None
    idle_minutes: float
    timeout_minutes: float
    folder: NotRequired[str]
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
    "by_hand": False,
    "ironic": False,
    "day2": False,
    "gather": False,
    "command": "",
    "expect": None,
    # One task may be silent for the whole wait, which has its own limits.
    "idle_minutes": 60,
    "timeout_minutes": 90,
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

_JOB: Shape = {
    **{name: bool for name, value in DEFAULTS.items() if isinstance(value, bool)},
    "programs": {"*": str}, "stages": [str], "variables": dict, "command": str,
    "expect": {"stage": str, "exit_code!": int, "cause!": str, "log!": [str]},
}  # fmt: skip
_EITHER = (
    ("profile", (str, dict), "a name or a mapping"), ("idle_minutes", (int, float), "a number"),
    ("timeout_minutes", (int, float), "a number"),
)  # fmt: skip


def names(path: Path) -> list[str]:
    """The jobs of a table; none when there is no such file, as in an installed collection.

    path: of `ci/jobs.yml`; the names are sorted. Raises `OSError`, and `ValueError` for a damaged table.
    """
    return sorted(_table(path)) if path.exists() else []


def load(name: str, path: Path) -> Job:
    """Return a job of a table with defaults. ValueError lists the existing jobs, or the stages.

    name: of the job; path: as for `names`. A field that is not one of `Job` is a ValueError, too.
    """
    table = _table(path)
    if name not in table:
        raise ValueError(f"{path.name}: no job {name!r}; there are: {', '.join(sorted(table))}")
    if unknown := sorted(table[name].keys() - DEFAULTS.keys()):
        raise ValueError(f"{path.name}: jobs.{name} has {', '.join(unknown)}; fields are {', '.join(DEFAULTS)}")
    job = cast(Job, {**DEFAULTS, **table[name]})
    if isinstance(job["profile"], dict):
        job["folder"] = str(path.absolute().parent)
    check_stages(job["stages"], f"{path.name}: jobs.{name}.stages")
    if job["expect"]:
        check_stages([failing(job["expect"])], f"{path.name}: jobs.{name}.expect.stage")
    return job


def after(job: Job) -> list[str]:
    """Return the names of what a job runs after its stages, in order; `add_nodes` adds the day-2 nodes."""
    return [name for field, names in _AFTER.items() if job[field] for name in names]


def cases(job: Job) -> list[str]:
    """Return the names of the cases in the JUnit of a job that passes, in order.

    Those of programs have their names: `foreign-start`, or `by_hand` before the `boot` that waits for it.
    """
    stages = job["stages"]
    if job["expect"]:
        stages = stages[: stages.index(failing(job["expect"])) + 1]
    before = {"boot": ["by_hand"]} if job["by_hand"] else {}
    then = {"prepare": ["foreign-start"]} if job["foreign"] else {}
    return [
        *(case for name in stages for case in (*before.get(name, []), name, *then.get(name, []))),
        *([] if job["expect"] else after(job)),
        "destroy",
        *(["foreign-end"] if job["foreign"] else []),
    ]


def failing(expect: Expect) -> str:
    """Return the stage that a job with `expect` must fail in."""
    return expect.get("stage", "wait")


def unset(job: Job, environment: Mapping[str, str]) -> list[str]:
    """Return the variables that name the job's real programs and are not set; without them it cannot run."""
    return sorted({variable for variable in job["programs"].values() if not environment.get(variable)})


def with_programs(values: Mapping[str, object], job: Job, environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the profile of a job with its real programs. ValueError names the variables that are not set.

    values: the profile as plain data, which is not changed; environment: such as `os.environ`. What a variable has is
    checked with the profile, and when the payload is built.
    """
    if missing := unset(job, environment):
        raise ValueError(
            f"{', '.join(missing)} not set: each must be the checkout with your build, an image or a program "
            "(docs/your-build.md)"
        )
    return placed(values, {field: environment[variable] for field, variable in job["programs"].items()})


def check_stages(stages: Sequence[str], where: str) -> None:
    """Raise ValueError for a name that is not a stage; where: what has the list.

    The stages are those of `RUN_STAGES`, in any order.
    """
    if unknown := [stage for stage in stages if stage not in RUN_STAGES]:
        raise ValueError(f"{where} has {', '.join(unknown)}; stages are {', '.join(RUN_STAGES)}")


def settle(values: Mapping[str, object], assignments: list[str]) -> dict[str, Any]:
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
        return placed(values, fields)
    except ValueError as error:
        raise ValueError(f"--set {error}") from None


def placed(values: Mapping[str, object], fields: Mapping[str, object]) -> dict[str, Any]:
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
    return result


def _table(path: Path) -> dict[str, dict[str, Any]]:
    table = load_yaml(read_file(path), name=path.name)
    check(table, {"jobs!": {"*": _JOB}}, path.name)
    for name, job in table["jobs"].items():
        for field, kinds, what in _EITHER:
            if field in job and (not isinstance(job[field], kinds) or isinstance(job[field], bool)):
                raise ValueError(f"{path.name}.jobs[{name!r}].{field} is {named(job[field])}, not {what}")
    return cast(dict[str, dict[str, Any]], table["jobs"])
