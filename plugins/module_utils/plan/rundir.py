"""The run directory's first files: `profile.yaml`, `plan.yaml` with its schema, `inventory.yml`, `secrets.json`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import state
from .._deps import optional
from ..documents import Document, DocumentError, decode_text, load_yaml, read_file, read_yaml
from ..redact import redact
from ..redact_shapes import HIDDEN
from ..state import owner
from ..vocabulary import RunFile
from . import files as named
from . import hypervisors, profile, schema, secrets
from .build import build
from .model import Cluster, Plan
from .problems import Finding, Problem, ProfileError
from .stored import PlanError, check_plan, missing, part

if TYPE_CHECKING:
    import yaml
else:
    yaml = optional("yaml", "PyYAML")

PLAN = RunFile.PLAN
SCHEMA = RunFile.PLAN_SCHEMA
PROFILE = RunFile.PROFILE
INVENTORY = RunFile.INVENTORY
SSH_ARGUMENTS = "-o StrictHostKeyChecking=yes -o ServerAliveInterval=15 -o ServerAliveCountMax=4"
"""Options of ssh to a hypervisor: it gets TLS keys and passwords, so never an unknown one; one that goes away is noticed in a minute."""
_HOW = "agentlab plan PROFILE --write"
_IMAGE_SET = "cluster-manifests/cluster-image-set.yaml"
_MODES = {PLAN: 0o600, SCHEMA: 0o644, PROFILE: 0o600, INVENTORY: 0o644, secrets.FILE: 0o600}


class Change(NamedTuple):
    """One file that is not as it should be: its text before (empty when it is new) and after (empty: it is removed).

    `mode` is the mode that the file is to have. Texts are whole files, secrets included: show `diff`, not these.
    """

    path: Path
    before: str
    after: str
    mode: int

    def diff(self) -> dict[str, str]:
        """Return the change as Ansible shows it, without secrets.

        Keys are `before`, `after` and their headers. Of `secrets.json` only REDACTED is shown, of the schema what it is,
        of other files all but what `redact` hides.
        """
        name = str(self.path)
        hide = {secrets.FILE: _hidden, SCHEMA: _titled}.get(self.path.name, redact)
        return {
            "before": hide(self.before),
            "after": hide(self.after),
            "before_header": name,
            "after_header": name,
        }


def _hidden(text: str) -> str:
    return f"{HIDDEN}\n" if text else ""


def _titled(text: str) -> str:
    return f"the JSON schema of {PLAN}\n" if text else ""


class Literal(str):
    """A text that Ansible must not evaluate; `dump` gives it the tag `!unsafe`.

    Ansible evaluates other strings of an inventory as templates, so what comes from a plan must not be a plain string.
    """


class RunError(ValueError):
    """A run directory that cannot be used as asked.

    The text names the file, and the command that helps.
    """


def prepare(
    run_dir: Path,
    name: str | None,
    folder: Path | None,
    cluster: str,
    *,
    refuse: bool = True,
    here: bool = False,
    files: bool = False,
    adopt: bool = False,
    components: Mapping[str, str] = MappingProxyType({}),
    verify: Callable[[Plan], Iterable[Finding]] | None = None,
) -> tuple[Plan, list[Change]]:
    """Return the plan of the run in `run_dir`, without passwords, and what would have to change there.

    name, here, files, components: the profile (as `profile.load`); None: the plan in the run directory, as users left it. verify:
    yields what else is wrong with the profile of a plan (`contradictions.prepare` has it).
    Raises `ProfileError` for a profile that is wrong, `RunError` when there is no plan, or another one than that of a
    cluster which still exists, and `OwnerError` when the cluster on this host has another owner and this is not to `adopt` it. With
    `refuse` off, to look only, existing clusters do not matter.
    """
    if name is None:
        plan = load_plan(run_dir)
        if plan["cluster"]["name"] != cluster:
            raise RunError(
                f"{run_dir / PLAN}: cluster.name is {plan['cluster']['name']!r}: this is the run directory of cluster {cluster!r}"
            )
        wanted = {}
        problems = [Problem.of(str(run_dir / PLAN), *finding) for finding in named.check(plan)] if files else []
        if problems:
            raise ProfileError(problems)
    else:
        text = _text(name, folder, components)
        plan = build(profile.load(name, folder, cluster, here=here, files=files, components=components), cluster)
        if found := list(verify(plan)) if verify else []:
            source = profile.read(name, folder)
            raise ProfileError([source.problem(*finding) for finding in found])
        wanted = {PROFILE: text, PLAN: plan_text(plan), SCHEMA: schema.text(schema.plan())}
        if refuse:
            _refuse_other(run_dir, plan, name)
    for seen in hypervisors.views(secrets.without_passwords(plan)).values():
        if refuse and seen["hypervisor"]["kind"] != "ssh":
            owner.verify(Path(seen["hypervisor"]["state_dir"]), owner.caller(seen, run_dir, adopt=adopt))
    wanted[INVENTORY] = dump(inventory(plan, run_dir))
    wanted[secrets.FILE] = secrets.dump(secrets.planned_passwords(plan, run_dir))
    changes = []
    for file, text in wanted.items():
        path = run_dir / file
        before = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
        if before != text:
            changes.append(Change(path, before, text, _MODES[file]))
    return secrets.without_passwords(plan), changes


def write(changes: list[Change]) -> None:
    """Write what was found to be different.

    Each file is replaced atomically, with the mode that it is to have. Changes come from `prepare`.
    """
    for change in changes:
        if change.after:
            state.write_atomic(change.path, change.after, change.mode)
        else:
            change.path.unlink(missing_ok=True)


def plan_text(plan: Plan) -> str:
    """Return the text of `plan.yaml`. Its first line names the schema for editors, by a path that is valid wherever the directory is."""
    return f"# yaml-language-server: $schema={SCHEMA}\n{dump(plan)}"


def load_plan(run_dir: Path) -> Plan:
    """Return the plan of the run in `run_dir`, validated. Raises `RunError` with all that is wrong.

    Passwords are null unless the profile sets them. A file of another version of agentlab, which lacks fields, has a
    message of its own.
    """
    path = run_dir / PLAN
    try:
        found = _read(path)
    except FileNotFoundError:
        raise RunError(f"{path}: there is no plan yet; make one: {_HOW}") from None
    again = f"Correct it, or make it again: {_plan_command(run_dir)}"
    try:
        return check_plan(found.value, str(path), found.positions, again)
    except PlanError as error:
        if _older(found.value):
            lacking = ", ".join(missing(found.value))
            raise RunError(f"{path}: another version of agentlab made it, it lacks {lacking}. {again}") from None
        raise RunError(str(error)) from None


def release_image(run_dir: Path) -> str:
    """Return the pullspec of the release that the image of a run directory installs; "" while there is none."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        return str(load_yaml(read_file(run_dir / _IMAGE_SET), name=_IMAGE_SET)["spec"]["releaseImage"])
    return ""


def _read(path: Path) -> Document:
    """Return a plan as it stands. Raises `FileNotFoundError`, and `RunError` for one that cannot be read."""
    try:
        return read_yaml(read_file(path), name=str(path))
    except FileNotFoundError:
        raise
    except OSError as error:
        raise RunError(
            f"{path}: cannot be read: {error.strerror}; make it again: {_plan_command(path.parent)}"
        ) from None
    except DocumentError as error:
        raise RunError(
            f"{error.name}:{error.line}:{error.column}: not valid YAML: {error.problem}\n"
            f"Correct it, or make it again: {_plan_command(path.parent)}"
        ) from None


def _plan_command(run_dir: Path) -> str:
    """Return the command that makes the plan again, from the profile of the run if it is there."""
    profile = run_dir / PROFILE
    return f"agentlab plan {profile} --cluster {run_dir.name} --write" if profile.exists() else _HOW


def _older(plan: object) -> bool:
    """Return whether nothing is wrong with a plan but that it lacks fields: those that are newer than it."""
    return isinstance(plan, Mapping) and not part(plan.get("cluster"), Cluster) and bool(missing(plan))


def inventory(plan: Plan, run_dir: Path) -> dict[str, Any]:
    """Return the inventory of a run: `hypervisors` carry the machines, `observers` reach them and see the run directory.

    What comes from the plan is `Literal`: Ansible takes every other text of an inventory for a template.
    """
    cluster, first = plan["cluster"]["name"], plan["hypervisor"]["kind"]
    local = {"ansible_connection": "local", "ansible_python_interpreter": "{{ ansible_playbook_python }}"}
    carriers: dict[str, dict[str, Any]] = {}
    for name, seen in hypervisors.views(plan).items():
        hypervisor = seen["hypervisor"]
        hosts: dict[str, dict[str, Any]] = {
            "sandbox": {
                **local,
                "ansible_connection": "agentlab.ocp.sandbox",
                "agentlab_sandbox": Literal(cluster),
                "agentlab_state_dir": Literal(hypervisor["state_dir"]),
            },
            "local": local,
            "ssh": {
                **{
                    f"ansible_{key}": Literal(hypervisor[key])
                    for key in ("host", "user")
                    if hypervisor[key] is not None
                },
                # No prompt during a run. Options of users (ANSIBLE_SSH_COMMON_ARGS) stand before these, and so win.
                "ansible_ssh_extra_args": SSH_ARGUMENTS,
            },
        }
        carriers[name] = hosts[hypervisor["kind"]]
        if hypervisor.get("further"):
            carriers[name] |= {"agentlab_hypervisor": Literal(name)}
    return {
        "all": {
            "vars": {"agentlab_cluster": Literal(cluster), "agentlab_run_dir": Literal(run_dir.absolute())},
            "children": {
                "hypervisors": {"hosts": carriers},
                "observers": {"hosts": {"observer": local} if first == "ssh" else {hypervisors.FIRST: None}},
            },
        }
    }


def hosts(plan: Plan, run_dir: Path) -> list[dict[str, Any]]:
    """Return the hosts of `inventory` one by one: `name`, `groups` and `variables`, without those that only the controller knows.

    As the module `plan` returns them, for `add_host`. The variable left out is `ansible_python_interpreter`, the
    template of which only the controller can evaluate.
    """
    everything = inventory(plan, run_dir)["all"]
    found: dict[str, dict[str, Any]] = {}
    for group, members in everything["children"].items():
        for name, variables in members["hosts"].items():
            host = found.setdefault(name, {"name": name, "groups": [], "variables": {}})
            host["groups"].append(group)
            host["variables"] |= {**everything["vars"], **(variables or {})}
    for host in found.values():
        host["variables"].pop("ansible_python_interpreter", None)
    return list(found.values())


def dump(data: object) -> str:
    """Return readable YAML: in the order of the data, without aliases.

    Strings of several lines are written as blocks, and `Literal` gets the tag `!unsafe`. Lines are up to 120 characters
    wide where they can be folded.
    """

    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, data: object) -> bool:
            return True

        def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
            super().increase_indent(flow, False)

    Dumper.add_representer(str, _text_node)
    Dumper.add_representer(Literal, lambda dumper, value: dumper.represent_scalar("!unsafe", str(value)))
    return str(yaml.dump(data, Dumper=Dumper, sort_keys=False, width=120))


def _text_node(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


def _text(name: str, folder: Path | None, components: Mapping[str, str]) -> str:
    path, source = profile.find(name, folder), profile.overridden(profile.read(name, folder), components)
    whole = profile.rooted_source(source)
    if path and not components and whole.raw == source.raw:
        return decode_text(read_file(path), name=str(path))
    # Paths of the copy must not start from its own folder.
    return dump(whole.raw)


def _refuse_other(run_dir: Path, plan: Plan, name: str) -> None:
    if not (run_dir / PLAN).exists():
        return
    exists = bool(state.load(run_dir)["created"])
    try:
        found = _read(run_dir / PLAN).value
    except RunError:
        if exists:
            raise
        return  # it is made again
    entry = found.get("cluster") if isinstance(found, Mapping) else None
    other = entry.get("name") if isinstance(entry, Mapping) else None
    if isinstance(other, str) and other != plan["cluster"]["name"]:
        raise RunError(
            f"{run_dir / PLAN}: cluster.name is {other!r}: cluster {plan['cluster']['name']} needs a run directory of its own"
        )
    if not exists:
        return
    # Nothing of a cluster depends on its tests.
    if isinstance(found, Mapping) and {**found, "tests": None} == {**plan, "tests": None}:
        return
    if _older(found) and _is_within(found, plan):
        return
    cluster, older = plan["cluster"]["name"], " with the version that made it" if _older(found) else ""
    raise RunError(
        f"{run_dir / PLAN}: the cluster {cluster} exists with another plan than profile {name} gives: "
        f"remove it first{older} (agentlab destroy --cluster {cluster}), or choose another name (CLUSTER=, --cluster)"
    )


def _is_within(old: object, new: object) -> bool:
    """Return whether `new` is `old` with more fields."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        return all(key in new and _is_within(value, new[key]) for key, value in old.items())
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(_is_within(*pair) for pair in zip(old, new, strict=True))
    return old == new
