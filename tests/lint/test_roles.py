"""What roles have in common: names of variables, and their documentation."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.agentlab.ocp.plugins.module_utils.vocabulary import RunFile

ROOT = Path(__file__).resolve().parents[2]
ROLES = sorted(path.name for path in (ROOT / "roles").iterdir() if path.is_dir())
# Facts and settings of a run, which several roles read, and what they give to roles/plan/tasks/given.yml.
SHARED = {
    f"agentlab_{name}"
    for name in ("cluster", "profile", "run_dir", "plan", "planned", "hosts", "owner", "payload", "needs", "instead")
}
# Directories of a run, and a path below a variable that names one: `agentlab_run_dir + '/x'`, `{{ agentlab_gather_directory }}/x`.
FOLDERS = {"add-nodes", "logs", "report"}
OF_A_RUN = re.compile(r"agentlab_\w*(run_dir|directory|logs)\b(?: \| default\(''\))? ?(?:\}\}|[+~] ')/([\w./-]+)")
# Ansible's own variables that a task may set for itself.
ANSIBLES = {"ansible_connection", "ansible_python_interpreter"}


def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def specification(role: str) -> dict[str, Any]:
    found: dict[str, Any] = load(ROOT / f"roles/{role}/meta/argument_specs.yml")["argument_specs"]["main"]
    return found


def names(role: str) -> Iterator[tuple[str, str]]:
    """Yield each variable that the role sets or documents, with the file that does."""
    folder = ROOT / "roles" / role
    for kind in ("defaults", "vars"):
        for path in sorted((folder / kind).glob("*.yml")):
            yield from ((name, f"{kind}/{path.name}") for name in load(path) or {})
    yield from ((name, "meta/argument_specs.yml") for name in specification(role).get("options", {}))
    for path in sorted((folder / "tasks").glob("*.yml")):
        for task in tasks(load(path)):
            # What is for a role that the task includes has that one's prefix.
            included = task.get("ansible.builtin.include_role", {}).get("name", "").rpartition(".")[2]
            found = [
                *(name for name in task.get("vars", {}) if not (included and name.startswith(f"agentlab_{included}_"))),
                *task.get("ansible.builtin.set_fact", {}),
                *([task["register"]] if "register" in task else []),
            ]
            yield from ((name, f"tasks/{path.name}") for name in found)


def tasks(listed: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for task in listed:
        yield task
        for part in ("block", "rescue", "always"):
            yield from tasks(task.get(part, []))


@pytest.mark.parametrize("role", ROLES)
def test_variables_have_the_prefix_of_the_role(role: str) -> None:
    """Variables of roles have a prefix, so that they do not collide with those of other roles."""
    allowed = SHARED | ANSIBLES
    assert [
        (name, place) for name, place in names(role) if not (name.startswith(f"agentlab_{role}_") or name in allowed)
    ] == []


@pytest.mark.parametrize("role", ROLES)
def test_variables_are_documented(role: str) -> None:
    """Each default that a user may set is an option, with the same value where it is a plain one."""
    options = specification(role).get("options", {})
    path = ROOT / f"roles/{role}/defaults/main.yml"
    defaults = (load(path) or {}) if path.exists() else {}
    assert sorted(set(defaults) - set(options) - SHARED) == []
    documented = {name: option["default"] for name, option in options.items() if "default" in option}
    given = {name: value for name, value in defaults.items() if not (isinstance(value, str) and "{{" in value)}
    assert {name: given.get(name, documented[name]) for name in documented} == documented


@pytest.mark.parametrize("role", ROLES)
def test_roles_of_a_plan_run_for_each_plan_of_a_play(role: str) -> None:
    """Ansible calls a role once in a play, even if another cluster was planned since, unless its metadata allow more."""
    folder = ROOT / "roles" / role
    texts = [path.read_text() for part in ("defaults", "tasks") for path in sorted((folder / part).glob("*.yml"))]
    planned = re.search(r"agentlab_(plan|run_dir)\b", "".join(texts)) is not None
    assert load(folder / "meta/main.yml").get("allow_duplicates", False) == planned


@pytest.mark.parametrize("role", sorted({*ROLES} - {"plan"}))
def test_roles_read_the_run_directory_of_the_plan(role: str) -> None:
    """The default of the role plan is not visible to a role in a later play, or after an included one."""
    used = any("agentlab_run_dir" in path.read_text() for path in (ROOT / "roles" / role).rglob("*.yml"))
    path = ROOT / "roles" / role / "defaults/main.yml"
    found = load(path).get("agentlab_run_dir") if path.exists() else None
    assert found == ("{{ agentlab_planned.run_dir | default('') }}" if used else None)


def test_files_of_a_run_have_the_names_that_its_writers_give_them() -> None:
    """Whatever a path names below the run directory, or a directory that is this one unless another is set."""
    known = {value for name, value in vars(RunFile).items() if name.isupper()}
    texts = [path.read_text() for folder in ("roles", "playbooks") for path in sorted((ROOT / folder).rglob("*.yml"))]
    paths = [path for text in texts for path in OF_A_RUN.findall(text)]
    found = {f"logs/{name}" if what == "logs" else name.rstrip("/") for what, name in paths}
    assert {RunFile.STATE, RunFile.CA, RunFile.LAB_PAYLOAD, RunFile.WAIT_LOG, RunFile.KUBECONFIG} <= found
    assert found - known - FOLDERS == set()


def conditions(found: Any) -> Iterator[str]:
    """Each `when` in what a file has."""
    for value in found if isinstance(found, list) else [found]:
        if isinstance(value, dict):
            given = value.get("when", [])
            yield from (str(one) for one in (given if isinstance(given, list) else [given]))
            yield from (one for key, part in value.items() if key != "when" for one in conditions(part))


def test_roles_decide_by_what_is_derived_from_the_plan() -> None:
    """`plan/derived.py` has it, once: a condition on a field of the plan would derive it again."""
    assert list(conditions([{"when": ["a"], "block": [{"when": "b"}]}])) == ["a", "b"]
    paths = [path for folder in ("roles", "playbooks") for path in sorted((ROOT / folder).rglob("*.yml"))]
    kind = [path for path in paths if "hypervisor.kind" in path.read_text()]
    fields = re.compile(r"agentlab_(?:\w+_)?plan\.")
    found = [
        f"{path}: {one}"
        for path in paths
        if "/meta/" not in str(path)
        for one in conditions(load(path))
        if fields.search(one)
    ]
    assert not kind and not found, (kind, found)


@pytest.mark.parametrize("role", ROLES)
def test_metadata(role: str) -> None:
    """Galaxy shows it, and a specification that only refers to another page is of no use."""
    meta, spec = load(ROOT / f"roles/{role}/meta/main.yml"), specification(role)
    assert meta["galaxy_info"]["description"] == spec["short_description"]
    assert spec["author"] == "The agentlab authors"
    assert not re.search(r"See the module", " ".join(spec["description"]))
    assert [name for name, option in spec.get("options", {}).items() if not option.get("description")] == []


def test_execution_environment_is_of_this_version() -> None:
    """It names the archive that `make build` makes, and the versions of Ansible that requirements.txt allows."""
    definition, galaxy = load(ROOT / "execution-environment.yml"), load(ROOT / "galaxy.yml")
    archive = f"{galaxy['namespace']}-{galaxy['name']}-{galaxy['version']}.tar.gz"
    assert [entry["src"] for entry in definition["additional_build_files"]] == [f"build/{archive}"]
    assert any(archive in step for step in definition["additional_build_steps"]["prepend_galaxy"])
    wanted = [definition["dependencies"][name]["package_pip"] for name in ("ansible_core", "ansible_runner")]
    assert set(wanted) <= set((ROOT / "requirements.txt").read_text().splitlines())


@pytest.mark.parametrize("role", ROLES)
def test_readme_is_current(role: str) -> None:
    """`ci/role_readmes.py` writes it; its example is a play with this role, which sets documented variables only."""
    spec = importlib.util.spec_from_file_location("role_readmes", ROOT / "ci/role_readmes.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    text = (ROOT / f"roles/{role}/README.md").read_text()
    assert text == module.render(role), "run ci/role_readmes.py"
    examples = re.findall(r"```yaml\n(.*?)```", text.partition(module.EXAMPLE)[2], re.DOTALL)
    plays = [play for example in examples for play in yaml.safe_load(example)]
    used = [entry if isinstance(entry, dict) else {"role": entry} for play in plays for entry in play["roles"]]
    assert f"agentlab.ocp.{role}" in [entry["role"] for entry in used]
    known = SHARED.union(*(specification(entry["role"].rpartition(".")[2])["options"] for entry in used))
    assert {name for entry in [*plays, *used] for name in entry.get("vars", {})} - known - {
        "ansible_python_interpreter"
    } == set()
