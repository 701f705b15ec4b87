"""The rules of OpenShift's step registry, for `ci/step-registry`: what its loader and validator refuse, and our own conventions.

Source of the rules: ci-tools, pkg/load/load.go (file names and prefixes) and pkg/validation/test.go (steps).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

KINDS = {"ref": "-ref.yaml", "chain": "-chain.yaml", "workflow": "-workflow.yaml"}
FIELDS = {
    "ref": {
        "as", "from", "from_image", "commands", "resources", "timeout", "grace_period", "credentials", "env", "dependencies", "leases",
        "dnsConfig", "optional_on_success", "best_effort", "no_kubeconfig", "cli", "observers", "run_as_script", "node_architecture",
        "documentation",
    },
    "chain": {"as", "steps", "env", "leases", "documentation"},
    "workflow": {"as", "steps", "documentation"},
    "steps": {
        "pre", "test", "post", "env", "dependencies", "cluster_profile", "leases", "dnsConfig", "observers", "allow_skip_on_success",
        "allow_best_effort_post_steps", "dependency_overrides",
    },
}  # fmt: skip
PHASES = ("pre", "test", "post")
_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")
_QUANTITY = re.compile(r"\d+(?:\.\d+)?(?:m|k|Ki|M|Mi|G|Gi|T|Ti)?")
_OBJECT = re.compile(r"[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?")
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*")
_TRAP = re.compile(r"^\s*trap\s+", re.MULTILINE)


def seconds(text: str) -> float:
    """A duration as Go spells it. ValueError for another text."""
    found = _DURATION.fullmatch(text)
    if not found or not any(found.groups()):
        raise ValueError(f"{text!r} is not a duration such as 1h30m0s")
    hours, minutes, rest = (int(part or 0) for part in found.groups())
    return float(hours * 3600 + minutes * 60 + rest)


@dataclass
class Registry:
    """Entries by name; `problems` is everything that is wrong. `external` names entries that stand elsewhere."""

    root: Path
    external: frozenset[str] = frozenset()
    refs: dict[str, dict[str, Any]] = field(default_factory=dict)
    chains: dict[str, dict[str, Any]] = field(default_factory=dict)
    workflows: dict[str, dict[str, Any]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    @classmethod
    def load(cls, root: Path, external: frozenset[str] = frozenset()) -> Registry:
        made = cls(root, external)
        for path in sorted(path for path in root.rglob("*") if path.is_file()):
            made.problems += [f"{path.relative_to(root)}: {problem}" for problem in made._file(path)]
        for folder in [root, *(path for path in root.rglob("*") if path.is_dir())]:
            if not (folder / "OWNERS").is_file():
                made.problems.append(f"{folder.relative_to(root)}: has no OWNERS")
        for phase, name, entry in made._uses():
            made.problems += [f"{phase}: {problem}" for problem in made._reference(name, entry)]
        for name in made.workflows:
            made.problems += [f"{name}: {problem}" for problem in made._workflow(name)]
        return made

    def steps(self, entries: list[dict[str, str]]) -> list[str]:
        """The names of refs that a list leads to, chains resolved; those that stand elsewhere keep their names."""
        found: list[str] = []
        for entry in entries:
            name = entry.get("ref") or entry["chain"]
            found += self.steps(self.chains[name]["steps"]) if "chain" in entry and name in self.chains else [name]
        return found

    def _file(self, path: Path) -> Iterator[str]:
        if path.name == "OWNERS":
            data = yaml.safe_load(path.read_text())
            if not isinstance(data, dict) or not data.get("approvers") or not data.get("reviewers"):
                yield "has no approvers and reviewers"
            return
        if path.suffix == ".md":
            return
        prefix = "-".join(path.relative_to(self.root).parent.parts)
        if not path.name.startswith(prefix):
            yield f"the prefix should be {prefix}"
        kind = next((kind for kind, suffix in KINDS.items() if path.name.endswith(suffix)), None)
        if kind is None:
            if path.stem.endswith("-commands"):
                if not (path.parent / f"{prefix}{KINDS['ref']}").exists():
                    yield "belongs to no ref"
            else:
                yield "invalid file name"
            return
        data = yaml.safe_load(path.read_text())
        if list(data) != [kind]:
            yield f"should have {kind} alone"
            return
        entry = data[kind]
        if entry.get("as") != prefix or path.name != f"{prefix}{KINDS[kind]}":
            yield f"the name of the {kind} should be {prefix}"
        if unknown := sorted(entry.keys() - FIELDS[kind]):
            yield f"unknown fields: {', '.join(unknown)}"
        if not entry.get("documentation"):
            yield "has no documentation"
        {"ref": self.refs, "chain": self.chains, "workflow": self.workflows}[kind][entry["as"]] = entry
        if kind == "ref":
            yield from self._ref(path, prefix, entry)

    def _ref(self, path: Path, prefix: str, ref: dict[str, Any]) -> Iterator[str]:
        if ref.get("commands") != f"{prefix}-commands.sh" or not (path.parent / ref["commands"]).is_file():
            yield f"commands should be the file {prefix}-commands.sh"
            return
        commands = (path.parent / ref["commands"]).read_text()
        if ("from" in ref) == ("from_image" in ref):
            yield "one of from and from_image is required"
        for part in str(ref.get("from", "")).split(":"):
            if "from" in ref and not _OBJECT.fullmatch(part):
                yield f"from: {part!r} is not a valid name"
        if (
            missing := {"namespace", "name", "tag"}
            - (ref.get("from_image") or {"namespace": 1, "name": 1, "tag": 1}).keys()
        ):
            yield f"from_image lacks {', '.join(sorted(missing))}"
        if _TRAP.search(commands) and "grace_period" not in ref:
            yield "commands have a trap, but there is no grace_period"
        if ref.get("best_effort") and "timeout" not in ref:
            yield "best_effort without timeout"
        for name in ("timeout", "grace_period"):
            try:
                seconds(ref.get(name, "1s"))
            except ValueError as error:
                yield f"{name}: {error}"
        yield from _resources(ref.get("resources") or {})
        yield from _credentials(ref.get("credentials") or [])
        yield from _environment(ref.get("env") or [], commands)
        names = [one.get("env") for one in ref.get("dependencies") or []]
        for one in ref.get("dependencies") or []:
            if not one.get("name") or one["name"].count(":") > 1 or not _VARIABLE.fullmatch(one.get("env") or ""):
                yield f"dependency {one} needs a name (tag or stream:tag) and an env"
        if len(set(names)) != len(names):
            yield "two dependencies with one env"

    def _uses(self) -> Iterator[tuple[str, str, dict[str, str]]]:
        for name, chain in self.chains.items():
            yield from ((name, kind, entry) for entry in chain["steps"] for kind in entry)
        for name, workflow in self.workflows.items():
            for phase in PHASES:
                yield from (
                    (f"{name}.{phase}", kind, entry) for entry in workflow["steps"].get(phase) or [] for kind in entry
                )

    def _reference(self, kind: str, entry: dict[str, str]) -> Iterator[str]:
        known = {"ref": self.refs, "chain": self.chains}.get(kind)
        if known is None or len(entry) != 1:
            yield f"{entry}: should be one ref or chain"
        elif entry[kind] not in known and entry[kind] not in self.external:
            yield f"there is no {kind} {entry[kind]}"

    def _workflow(self, name: str) -> Iterator[str]:
        steps = self.workflows[name]["steps"]
        if unknown := sorted(steps.keys() - FIELDS["steps"]):
            yield f"unknown fields: {', '.join(unknown)}"
        found = [(phase, ref) for phase in PHASES for ref in self.steps(steps.get(phase) or [])]
        names = [ref for __, ref in found]
        if twice := sorted({ref for ref in names if names.count(ref) > 1}):
            yield f"duplicated names: {', '.join(twice)}"
        declared = dict(steps.get("env") or {})
        used = {one["name"] for ref in names for one in self.refs.get(ref, {}).get("env") or []}
        if unused := sorted(declared.keys() - used):
            yield f"no step has the parameters {', '.join(unused)}"
        for phase, ref in found:
            step = self.refs.get(ref, {})
            for flag in ("optional_on_success", "best_effort"):
                if step.get(flag) is not None and phase != "post":
                    yield f"{ref}: {flag} is only for post"
            if step.get("best_effort") and not steps.get("allow_best_effort_post_steps"):
                yield f"{ref}: is best_effort, which the workflow does not allow"


def _resources(resources: dict[str, Any]) -> Iterator[str]:
    if not resources.get("requests") and not resources.get("limits"):
        yield "resources should have at least one request or limit"
    for kind, values in resources.items():
        if kind not in ("requests", "limits"):
            yield f"resources: unknown field {kind}"
            continue
        for name, value in values.items():
            if name not in ("cpu", "memory", "ci-operator.openshift.io/shm"):
                yield f"resources.{kind}: unknown resource {name}"
            elif not isinstance(value, str) or not _QUANTITY.fullmatch(value):
                yield f"resources.{kind}.{name}: {value!r} is not a quantity in quotes"


def _credentials(credentials: list[dict[str, str]]) -> Iterator[str]:
    paths: list[Path] = []
    for one in credentials:
        path = Path(one.get("mount_path") or "")
        if not one.get("name") or not one.get("namespace") or not path.is_absolute():
            yield f"credential {one} needs a name, a namespace and an absolute mount_path"
        if any(path == other or path in other.parents or other in path.parents for other in paths):
            yield f"credential {one}: mounts in the place of another"
        paths.append(path)


def _environment(env: list[dict[str, str]], commands: str) -> Iterator[str]:
    names = [one.get("name", "") for one in env]
    if len(set(names)) != len(names):
        yield "a parameter is there twice"
    for one in env:
        name = one.get("name", "")
        if not _VARIABLE.fullmatch(name):
            yield f"{name!r} is not the name of a variable"
        if one.keys() - {"name", "default", "documentation"}:
            yield f"{name}: unknown fields"
        if not isinstance(one.get("default"), str):
            yield f"{name}: the default should be a string in quotes"
        if not one.get("documentation"):
            yield f"{name}: has no documentation"
        if name not in commands:
            yield f"{name}: commands do not use it"
    for name in sorted(set(re.findall(r"\$\{(AGENTLAB_\w+|DEVSCRIPTS_\w+)", commands)) - set(names)):
        yield f"commands use {name}, which is not a parameter"
