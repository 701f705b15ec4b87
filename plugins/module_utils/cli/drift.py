"""`agentlab drift`: what has changed in checkouts of upstream projects, and what of ours no longer agrees with them."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path

from ..documents import load_yaml, read_file
from ..drift import agent, assisted, canary, devscripts, installer
from ..drift.checkout import CheckoutError, Tree
from ..drift.facts import Change, Disagreement, Facts, changes, facts_of_names
from ..drift.report import Comparison, page
from ..errors import AgentlabError
from ..files import new_file
from ..terminal import write_line
from ..vocabulary import Exit
from .output import print_failure
from .places import ROOT

TABLE = ROOT / "ci/canary.yml"
_FACTS = {
    "installer": installer.facts,
    "assisted-service": assisted.facts,
    "agent": agent.facts,
    "dev-scripts": devscripts.facts,
}


def main(argv: list[str]) -> int:
    """Compare each given checkout; FAILED if one no longer agrees or cannot be compared.

    argv: after `drift`. The page is written to a file, or printed.
    """
    parser = _parser()
    args = parser.parse_args(argv)
    try:
        table = canary.read(args.canary)
        checkouts, since = _pairs(args.checkout, "--checkout"), _pairs(args.since, "--since")
        found = [_compare(name, Path(path), table, since.get(name)) for name, path in checkouts.items()]
        text = page(found)
        if args.page:
            with new_file(args.page, overwrite=True, mode=0o644) as out:
                out.write(text.encode())
            for one in found:
                write_line(
                    one.problem or f"{one.source}: {len(one.changes)} changes, {len(one.disagreements)} disagreements"
                )
        else:
            write_line(text.rstrip())
    except (AgentlabError, ValueError, OSError) as error:
        return print_failure(error)
    return Exit.FAILED if any(one.problem or one.disagreements for one in found) else Exit.OK


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="agentlab drift",
        description="Report what has changed in checkouts of upstream projects, and what of agentlab no longer agrees. Files are read "
        "with git, and nothing is run. Exit status: 0 if all agrees, 1 if something does not.",
    )
    parser.add_argument(
        "--checkout",
        action="append",
        required=True,
        metavar="SOURCE=PATH[@COMMIT]",
        help=f"a git checkout, and the commit to look at (default: HEAD); sources are {', '.join(canary.SOURCES)} (repeatable)",
    )
    parser.add_argument(
        "--since",
        action="append",
        default=[],
        metavar="SOURCE=COMMIT",
        help="report the changes since this commit (default: the one in the table; repeatable)",
    )
    parser.add_argument("--page", type=Path, metavar="FILE", help="write the page, in Markdown, instead of printing it")
    parser.add_argument(
        "--canary",
        type=Path,
        default=TABLE,
        metavar="FILE",
        help="table of commits and accepted differences (default: ci/canary.yml)",
    )
    return parser


def _pairs(given: Iterable[str], option: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in given:
        name, __, value = text.partition("=")
        if name not in canary.SOURCES or not value:
            raise ValueError(f"{option} {text}: must be SOURCE=VALUE; sources are {', '.join(canary.SOURCES)}")
        found[name] = value
    return found


def _compare(name: str, given: Path, table: canary.Canary, since: str | None) -> Comparison:
    """Compare one source; a checkout that cannot be read is the problem of the result."""
    path, __, commit = str(given).rpartition("@") if "@" in str(given) else (str(given), "", "")
    try:
        tree = Tree(Path(path), commit or "HEAD")
        upstream = _FACTS[name](tree)
        base, changed = _changes(
            name, tree, upstream, since or (table.sources[name].commit if name in table.sources else ""), given=since
        )
    except CheckoutError as error:
        return Comparison(name, problem=str(error))
    found = list(_disagreements(name, upstream))
    open_ones, accepted = table.split(name, found)
    commits = (f"{base.commit[:12]} ({base.date})" if base else "", f"{tree.commit[:12]} ({tree.date})")
    return Comparison(name, commits, changed, open_ones, accepted, table.unused(name, found))


def _changes(
    name: str, tree: Tree, upstream: Facts, since: str, *, given: str | None
) -> tuple[Tree | None, list[Change]]:
    """Return the tree of the earlier commit and the changes; none for the table's commit in a shallow checkout."""
    if not since:
        return None, []
    try:
        base = Tree(tree.repository, since)
    except CheckoutError:
        if given:
            raise
        return None, []
    return base, [c for c in changes(_FACTS[name](base), upstream) if c.section != "named"]


def _disagreements(name: str, upstream: Facts) -> Iterator[Disagreement]:
    if name == "dev-scripts":
        yield from devscripts.disagreements(upstream)
    elif name == "agent":
        yield from agent.disagreements(upstream, _agent())
    elif name == "assisted-service":
        yield from assisted.disagreements(upstream, _service())
    else:
        yield from installer.disagreements(upstream, _targets())


def _agent() -> Facts:
    from ....payload.node_agent import flags, inventory, logs_sender, program
    from ....payload.node_agent.steps import STEPS

    known = (
        *flags.CONNECTION,
        *flags.logging_flags(text=False),
        *flags.dry_flags(),
        flags.HELP,
        *inventory.FLAGS,
        *logs_sender.FLAGS,
        program.REQUEST,
    )
    return agent.own_facts({flag.name for flag in known}, set(STEPS))


def _service() -> Facts:
    from ....payload.api_server.state.clusters import CLUSTER_RULES
    from ....payload.api_server.state.hosts import HOST_RULES
    from ....payload.api_server.state.machine import SAME

    path = ROOT / "payload/api_server/data/swagger.yaml"
    found = assisted.description_facts(load_yaml(read_file(path), name=str(path)))
    for name, rules in (("host", HOST_RULES), ("cluster", CLUSTER_RULES)):
        moves = {
            " -> ".join(state.replace("-", "") for state in (source, rule.dest))
            for rule in rules
            for source in rule.sources - {rule.dest}
            if rule.dest != SAME
        }
        found[f"{name} transitions"] = facts_of_names(moves)
    return found


def _targets() -> Facts:
    from .create import TARGETS

    return installer.own_facts(
        {f"create {name}" for name in TARGETS} | {"graph", "wait-for bootstrap-complete", "wait-for install-complete"}
    )
