"""The state of an import: which variables a configuration sets, and what became of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..plan import checks, profile
from ..plan.options import Profile
from ..plan.problems import Path as FieldPath
from ..plan.shapes import mismatches
from ..redact import redact
from ..redact_words import is_secret_key
from . import variables
from .shell import Assignment

_OFF = ("", "false")


class Refusal(NamedTuple):
    """A variable that cannot be mapped, with its place and the reason; `variable` is empty for what is not an assignment.

    `where` is `file:line` of the assignment; `str()` gives the line for a report, with the variable and its value in
    the reason.
    """

    variable: str
    where: str
    reason: str

    def __str__(self) -> str:
        return f"{self.where}: {self.reason}"


class Builder:
    """A profile in the making, and what became of each variable of the configuration.

    `raw` is the profile, `options` are those of the command line; `mapped` and `ignored` say what became of a variable,
    by name, and `refused` lists what is wrong. `folder` is what relative paths are relative to.
    """

    def __init__(self, assignments: Mapping[str, Assignment], folder: Path | None) -> None:
        self.set, self.folder = assignments, folder
        self.raw: dict[str, Any] = {}
        self.options: dict[str, str] = {}
        self.mapped: dict[str, str] = {}
        self.ignored: dict[str, str] = {}
        self.refused: list[Refusal] = []
        self.origin: dict[FieldPath, str] = {}
        self.counts: dict[str, int] = {}
        self.scenario: str | None = None
        self.topology: str | None = None

    def common(self) -> None:
        """Refuse what no variable may have, and what has no counterpart.

        The first step: later ones find no value of a variable that is refused here. A value must be one line of
        printable characters.
        """
        for name, given in self.set.items():
            if not given.value.isprintable():
                self.refuse(name, "must be one line of printable characters")
            elif given.file and name != "SSH_PUB_KEY":
                self.refuse(name, "a command substitution, `$(...)`, is not run; write its result", show=False)
            else:
                found = variables.find(name)
                if found is None:
                    meant = variables.nearest_variable(name)
                    hint = f"; did you mean {meant}?" if meant else ""
                    self.ignored[name] = f"dev-scripts' agent flow does not read it{hint}"
                elif found[1].use == "ignored":
                    self.ignored[name] = found[1].text
                elif found[1].use == "refused":
                    self.without_counterpart(name, found[1])

    def without_counterpart(self, name: str, row: variables.Row) -> None:
        value = self.set[name].value
        released = "OPENSHIFT_RELEASE_IMAGE" in self.set and name in (
            "OPENSHIFT_RELEASE_STREAM",
            "OPENSHIFT_RELEASE_TYPE",
        )
        defaults = {"", row.default.lower(), *(_OFF if row.kind == "boolean" else ()), *self.other_defaults(name)}
        if released:
            self.ignored[name] = "OPENSHIFT_RELEASE_IMAGE names the release"
        elif value.lower() in defaults:
            self.ignored[name] = "the default"
        else:
            hint = (
                " (any text turns it on, `false` too)" if row.kind == "non-empty" and value.lower() == "false" else ""
            )
            self.refuse(name, f"{row.text}{hint}")

    def other_defaults(self, name: str) -> tuple[str, ...]:
        """Return the values of a variable that mean the default because of other variables.

        In lower case, as they are compared. Nothing for a variable whose default is the same everywhere.
        """
        if name == "LOCAL_REGISTRY_DNS_NAME":
            domain = self.value("BASE_DOMAIN") or variables.MAPPED["BASE_DOMAIN"].default
            return (f"virthost.{self.cluster_name()}.{domain}".lower(),)
        if name == "HOST_IP_STACK":
            scenario = re.fullmatch(r"[0-9A-Z]+_IP(V4V6|V4|V6)(_DHCP)?", self.value("AGENT_E2E_TEST_SCENARIO").upper())
            return ((scenario[1] if scenario else self.value("IP_STACK") or "v6").lower(),)
        return ()

    def value(self, name: str) -> str:
        """Return the value of a variable; nothing when it is not set, or refused.

        An empty value is the same as none, as in dev-scripts.
        """
        return self.set[name].value if name in self.set and not self.is_refused(name) else ""

    def is_refused(self, name: str) -> bool:
        return any(refusal.variable == name for refusal in self.refused)

    def boolean(self, name: str) -> bool | None:
        """Return a variable that is `true` or `false`; None when it is not set.

        Any other value is refused here, so a caller needs no check of its own.
        """
        text = self.value(name).lower()
        if text in ("true", "false"):
            return text == "true"
        if text:
            self.refuse(name, "must be true or false: dev-scripts reads any other value as false")
        return None

    def integer(self, name: str) -> int | None:
        text = self.value(name)
        if re.fullmatch(r"[0-9]{1,9}", text):
            return int(text)
        if text:
            self.refuse(name, "must be an integer")
        return None

    def refuse(self, name: str, reason: str, *, show: bool = True) -> None:
        given = self.set[name]
        value = "" if not show or is_secret_key(name) else f" is {_shown(repr(given.value))}"
        self.refused.append(Refusal(name, given.where, f"{name}{value}: {reason}"))
        self.mapped.pop(name, None)

    def put(self, place: str, value: object, *sources: str) -> None:
        """Set a field of the profile, because of the variables `sources`.

        `place` is the path of the field with dots; mappings on the way are made. A later value replaces an earlier one.
        """
        path: FieldPath = tuple(place.split("."))
        holder: Any = self.raw
        for key in path[:-1]:
            holder = holder.setdefault(key, {})
        holder[path[-1]] = value
        for name in sources:
            self.origin[path] = name
            shown = f"{place}: {_shown(value)}"
            self.mapped[name] = f"{self.mapped[name]}, {shown}" if name in self.mapped else shown

    def text(self, name: str, place: str, convert: Callable[[str], object] = str) -> None:
        """Map a variable to a field unless it is empty, which is dev-scripts' default.

        `name` is the variable, `place` the field's path with dots; `convert` makes the value of the text.
        """
        if self.value(name):
            self.put(place, convert(self.value(name)), name)

    def number(self, name: str, place: str) -> None:
        number = self.integer(name)
        if number is not None:
            self.put(place, number, name)

    def remaining(self, name: str) -> None:
        """Say why a variable with a counterpart changed nothing.

        Empty values and dev-scripts' default change nothing; anything else has no effect in this configuration.
        """
        found = variables.find(name)
        row = found[1] if found else variables.Row("ignored", "")
        if not self.value(name) or self.value(name).lower() == row.default.lower():
            self.ignored[name] = "the default"
        elif row.kind == "boolean" and self.value(name).lower() in _OFF:
            self.ignored[name] = "off"
        else:
            self.ignored[name] = f"without effect here; otherwise {row.text}"

    def cluster_name(self) -> str:
        return self.value("CLUSTER_NAME") or variables.MAPPED["CLUSTER_NAME"].default

    @property
    def real(self) -> bool:
        """Whether the configuration names a release.

        Then the payload is that of its distribution; without one the lab payload is installed.
        """
        return bool(self.value("OPENSHIFT_RELEASE_IMAGE"))

    def set_everywhere(self, field: str, value: object, *names: str) -> None:
        """Set a field of the machines of every role that there is.

        `field` is of `MachineOptions`, `names` are the variables that it comes from. Nothing is set for the value None.
        """
        if value is None:
            return
        for role, count in self.counts.items():
            if count:
                self.put(f"{role}.{field}", value, *names)

    def path(self, name: str) -> str:
        """Return a path that means the same in every directory.

        Relative to the folder of the configuration; An absolute path and one with `~` stay as they are.
        """
        text = self.value(name)
        if not text or text.startswith(("/", "~")) or self.folder is None:
            return text
        return str(self.folder.absolute() / text)

    def finish(self) -> None:
        """Note the variables that changed nothing, and validate the profile.

        The last step: afterwards each variable is in `mapped`, `ignored` or `refused`.
        """
        for name in self.set:
            if name not in self.mapped and name not in self.ignored and not self.is_refused(name):
                self.remaining(name)
        self.validate()

    def validate(self) -> None:
        """Refuse the variables whose values the profile does not allow.

        The checks of profiles run only if nothing else is wrong. A problem without a variable of its own is refused for
        the place `profile`.
        """
        wrong = [(one.path, one.value, one.remedy) for one in mismatches(self.raw, Profile)]
        if not wrong and not self.refused:
            wrong = checks.check(profile.complete(self.raw), self.cluster_name())
        for path, value, remedy in wrong:
            source = self.source(path)
            field = ".".join(str(part) for part in path)
            if source:
                given = self.set[source]
                self.refused.append(
                    Refusal(
                        source,
                        given.where,
                        f"{source} is {given.value!r}: {field} {'' if value is None else f'is {value!r}: '}{remedy}",
                    )
                )
                self.mapped.pop(source, None)
            else:
                self.refused.append(Refusal("", "profile", f"{field}: {remedy}"))

    def source(self, path: Sequence[object]) -> str | None:
        """Return the variable that a field comes from, or one below or above it.

        `path` is the path of a field in the profile. None for one that no variable has set.
        """
        if path[:1] == ("cluster",) and "CLUSTER_NAME" in self.set:
            return "CLUSTER_NAME"
        for length in range(len(path), 0, -1):
            name = self.origin.get(tuple(path[:length]))
            if name:
                return name
        return next((name for place, name in self.origin.items() if place[: len(path)] == tuple(path)), None)


def _shown(value: object) -> str:
    text = redact(str(value))
    return text if len(text) <= 60 else f"{text[:57]}..."
