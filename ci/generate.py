"""Write what is made of the types of profile and plan, and of tables in the code: `ci/generate.py`. A lint test fails when one of the files is not current."""

from __future__ import annotations

import functools
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ansible_collections.agentlab.ocp.ci.fields import Proof
from ansible_collections.agentlab.ocp.payload.api_server.validations import HOST
from ansible_collections.agentlab.ocp.payload.api_server.validations.base import Gate
from ansible_collections.agentlab.ocp.plugins.module_utils.ci.jobs import Table
from ansible_collections.agentlab.ocp.plugins.module_utils.cli import parsers
from ansible_collections.agentlab.ocp.plugins.module_utils.devscripts import reference as devscripts
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import (
    build,
    drawing,
    faults,
    profile,
    reference,
    rundir,
    schema,
    short,
    tests,
)
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.arguments import argument, arguments
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.model import Plan
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.modes import MODES
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.options import ServicesOptions
from ansible_collections.agentlab.ocp.plugins.module_utils.report.page.model import Run
from ansible_collections.agentlab.ocp.plugins.module_utils.report.status import Status
from ansible_collections.agentlab.ocp.plugins.module_utils.state.events import Event
from ansible_collections.agentlab.ocp.plugins.module_utils.vocabulary import DEFAULT_CLUSTER

ROOT = Path(__file__).resolve().parents[1]
# Options of modules and roles that work without a plan: their types and descriptions.
SHORT: dict[str, tuple[object, str]] = {
    "networks": (list[short.ShortNetwork], "The networks."),
    "nodes": (list[short.ShortNode], "The machines."),
    "machines": (list[short.ShortMachine], "The machines that are switched on."),
    "services": (
        ServicesOptions,
        "The services at the gateway of the first network. Those that are named run, with the defaults of a profile.",
    ),
    "faults": (list[faults.Fault], "What goes wrong on purpose. Which fields a fault has depends on its kind."),
    "tests": (
        list[tests.TestOptions],
        "The tests. Each has one of C(run), C(http) and C(console). In a playbook C(on) is quoted: it would be a boolean.",
    ),
    "hosts": (
        list[short.ShortHost],
        "The hosts. By default those in C(hosts) of the directory, which dev-scripts writes, or else the rendezvous host.",
    ),
}
ROLES = {"networks": ("networks",), "nodes": ("nodes",), "boot": ("nodes",), "services": ("services", "networks", "nodes"),
         "gather": ("hosts",)}  # fmt: skip
MARK = "      # What follows is written by ci/generate.py.\n"
FRAGMENT = '''"""Options of the modules that work without a plan, in a few lines each; ci/generate.py writes this file."""

from __future__ import annotations


class ModuleDocFragment:
    """One for each option."""
'''
VALIDATIONS = '''"""Host validations of the assisted service that the report treats in a way of their own.

Those of `payload/api_server/validations`, which the collection's side does not import; ci/generate.py writes this file.
"""

from __future__ import annotations

'''


def fragment() -> str:
    """Return the documentation fragment with the options of `SHORT`.

    It is Python source, formatted as the file in the tree: the test compares it with that.
    """
    parts = [
        f'    {name.upper()} = r"""\n{rundir.dump({"options": {name: _option(name, suboptions="suboptions")}})}"""\n'
        for name in SHORT
    ]
    return "\n".join([FRAGMENT, *parts])


def role(name: str) -> str:
    """Return the argument_specs.yml of a role: what stands before `MARK`, and its options of `SHORT`.

    name: of a key of `ROLES`. Raises `OSError` for a role without the file.
    """
    kept = (ROOT / f"roles/{name}/meta/argument_specs.yml").read_text(encoding="utf-8").partition(MARK)[0]
    found = {f"agentlab_{name}_{option}": _default(_option(option, suboptions="options")) for option in ROLES[name]}
    return kept + MARK + textwrap.indent(rundir.dump(found), 6 * " ")


def picture() -> str:
    """Return the drawing of the README, as `agentlab plan compact_dualstack --format svg` prints it."""
    return drawing.svg(build.build(profile.load("compact_dualstack", ROOT / "config_examples"), DEFAULT_CLUSTER))


def plan_module_source() -> str:
    """Return the source of the module `plan`, with the sections of a plan in its RETURN."""
    text = (ROOT / "plugins/modules/plan.py").read_text(encoding="utf-8")
    before, mark, rest = text.partition("  contains: # written by ci/generate.py\n")
    shown = ("description", "type", "elements")
    found = {
        name: {key: option[key] for key in shown if key in option}
        for name, option in arguments(Plan, documented=True).items()
    }
    return before + mark + textwrap.indent(rundir.dump(found), 4 * " ") + rest[rest.index("run_dir:\n") :]


def lab_boot_source() -> str:
    """Return the source of the module `lab_boot`, with the boot modes in its DOCUMENTATION."""
    before, mark, rest = (ROOT / "plugins/modules/lab_boot.py").read_text(encoding="utf-8").partition("  mode:\n")
    texts = [re.sub("`(.+?)`", r"C(\1)", f"V({name}) - {mode.meaning}.") for name, mode in MODES.items()]
    option = {
        "description": [*texts, "With O(nodes) it must be V(cdrom)."],
        "type": "str",
        "choices": [*MODES],
        "default": "redfish",
    }
    return before + mark + textwrap.indent(rundir.dump(option), 4 * " ") + rest[rest.index("  secrets:\n") :]


def fault_tables() -> str:
    """Return the page about faults with the tables of its kinds."""
    kinds = [f"| `{name}` | {', '.join(kind.names())} | {kind.effect} |" for name, kind in faults.KINDS.items()]
    symptoms = [f"| `{name}` | {kind.symptom} |" for name, kind in faults.KINDS.items()]
    return _with_tables("docs/faults.md", {"| kind | fields | what it does |": kinds, "| kind | symptom |": symptoms})


def readme() -> str:
    """Return the README with the table of verbs."""
    return _with_tables("README.md", {"| verb | what it does |": parsers.rows()})


def _with_tables(name: str, tables: Mapping[str, Sequence[str]]) -> str:
    """Return a page with other rows in the tables that have these headings; the rest is kept."""
    text = (ROOT / name).read_text(encoding="utf-8")
    for columns, rows in tables.items():
        before, mark, rest = text.partition(f"{columns}\n")
        line, *__ = rest.partition("\n")
        text = before + mark + "\n".join([line, *rows]) + "\n\n" + rest.partition("\n\n")[2]
    return text


def validations() -> str:
    """Return the module of validations that the report treats in a way of its own, as formatted source."""
    warnings = [one.ident for one in HOST if one.gate is Gate.WARNING]
    lasting = [one.ident for one in HOST if one.lasting]
    parts = [
        _frozenset("They fail without holding a host back.", "WARNINGS", warnings),
        _frozenset("Waiting does not change them.", "LASTING", lasting),
    ]
    return VALIDATIONS + "".join(parts)


def _frozenset(text: str, name: str, members: list[str]) -> str:
    lines = "".join(f'        "{one}",\n' for one in sorted(members))
    return f"#: {text}\n{name} = frozenset(\n    {{\n{lines}    }}\n)\n"


def _default(option: dict[str, Any]) -> dict[str, Any]:
    return {**option, "default": [] if option["type"] == "list" else {}}


def _option(name: str, *, suboptions: str) -> dict[str, Any]:
    wanted, text = SHORT[name]
    return _renamed(argument(wanted, f"{text} Not used with a plan.", documented=True), suboptions)


def _renamed(option: dict[str, Any], suboptions: str) -> dict[str, Any]:
    """Return an option whose own options are called `suboptions`, as in DOCUMENTATION, or `options`, as in argument_specs.yml."""
    inner = option.pop("options", None)
    if inner is None:
        return option
    return {**option, suboptions: {name: _renamed(one, suboptions) for name, one in inner.items()}}


FILES: dict[str, Callable[[], str]] = {
    "config_examples/profile.schema.json": lambda: schema.text(schema.profile()),
    "docs/plan.schema.json": lambda: schema.text(schema.plan()),
    "docs/events.schema.json": lambda: schema.text(schema.document("event", Event)),
    "docs/run.schema.json": lambda: schema.text(schema.document("run", Run)),
    "docs/status.schema.json": lambda: schema.text(schema.document("status", Status)),
    "docs/jobs.schema.json": lambda: schema.text(schema.document("jobs", Table, has_profiles=True)),
    "ci/proof.schema.json": lambda: schema.text(schema.document("proof", Proof)),
    "README.md": readme,
    "docs/faults.md": fault_tables,
    "docs/profile.md": reference.page,
    "docs/dev-scripts.md": devscripts.page,
    "docs/verbs.md": parsers.page,
    "docs/images/compact_dualstack.svg": picture,
    "plugins/doc_fragments/short.py": fragment,
    "plugins/modules/lab_boot.py": lab_boot_source,
    "plugins/modules/plan.py": plan_module_source,
    "plugins/module_utils/assisted/validations.py": validations,
    **{f"roles/{name}/meta/argument_specs.yml": functools.partial(role, name) for name in ROLES},
}


def main() -> None:
    for name, text in FILES.items():
        (ROOT / name).write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    main()
