"""assisted-installer-agent: the flags of its programs and the steps that it knows."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .checkout import Tree
from .facts import Disagreement, Facts, disagreements_in, facts_of_names

ACTIONS = "src/commands/actions/action.go"
_FLAG = re.compile(r"flag\.(?:String|Bool|Int|Int64|Duration)(?:Var)?\((?:&[\w.]+,\s*)?\"([a-z0-9-]+)\",\s*([^,]+),")
_STEP = re.compile(r"models\.StepType(\w+):\s*\{")


def facts(tree: Tree) -> Facts:
    """Return the facts of a checkout; CheckoutError without the table of steps."""
    flags: dict[str, str] = {}
    for path in tree.matching("src/*.go"):
        if not path.endswith("_test.go"):
            flags.update({name: default.strip() for name, default in _FLAG.findall(tree.read(path))})
    steps = {name.lower() for name in _STEP.findall(tree.read(ACTIONS))}
    return {"flags": flags, "steps": facts_of_names(steps)}


def own_facts(flags: set[str], steps: set[str]) -> Facts:
    """Return the facts of the agent simulator: names of its flags and of its steps."""
    return {"flags": facts_of_names(flags), "steps": facts_of_names({step.replace("-", "") for step in steps})}


def disagreements(upstream: Facts, simulated: Facts) -> Iterator[Disagreement]:
    """Yield flags and steps that one of both does not have."""
    for section in ("flags", "steps"):
        yield from disagreements_in(section, facts_of_names(set(upstream[section])), simulated[section])
