"""openshift/installer: the integration cases of `openshift-install agent`, and the targets that they create."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator

from .checkout import CheckoutError, Tree
from .facts import Disagreement, Facts, disagreements_in, facts_of_names

CASES = "cmd/openshift-install/testdata/agent/"
_TARGET = re.compile(r"openshift-install agent (create [a-z-]+|graph|wait-for [a-z-]+)")
_CHECK = re.compile(r"^!? ?([a-z][A-Za-z0-9]+)", re.MULTILINE)


def facts(tree: Tree) -> Facts:
    """Return the facts of a checkout; CheckoutError if it has no cases."""
    cases, targets, checks = dict[str, str](), set[str](), set[str]()
    for path in tree.matching(f"{CASES}*.txt"):
        text = tree.read(path)
        cases[path.removeprefix(CASES)] = hashlib.sha256(text.encode()).hexdigest()[:12]
        script = text.partition("\n-- ")[0]
        targets.update(_TARGET.findall(script))
        checks.update(_CHECK.findall(script))
    if not cases:
        raise CheckoutError(
            f"{tree.repository}: commit {tree.commit[:12]} has no cases in {CASES}; they may have been moved"
        )
    return {"cases": cases, "targets": facts_of_names(targets), "checks": facts_of_names(checks)}


def own_facts(targets: set[str]) -> Facts:
    """Return the facts of our command line: its targets, as `create image`."""
    return {"targets": facts_of_names(targets)}


def disagreements(upstream: Facts, known: Facts) -> Iterator[Disagreement]:
    """Yield targets that a case creates and ours do not have. Cases are reported as changes; `tests/conformance` runs them."""
    yield from disagreements_in("targets", upstream["targets"], known["targets"], gone=False)
