"""The parsers of all verbs, for shell completion and for docs/verbs.md."""

from __future__ import annotations

import argparse
import importlib
import textwrap
from collections.abc import Iterator

from ..vocabulary import Exit
from .verbs import GROUPS, VERBS, Trait

_WIDTH = 120  # of lines in the documentation
_METHODS = ("parse_args", "parse_intermixed_args")


class _ParserFound(BaseException):
    """The parser that a verb was about to use."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self.parser = parser


def parser_of(name: str) -> argparse.ArgumentParser | None:
    """Return the parser that a verb builds; None for one that passes its arguments on to another program.

    The verb is called, but does not get past `parse_args`.
    """
    verb = VERBS[name]
    if Trait.PASSES_ON in verb.traits:
        return None
    function = getattr(importlib.import_module(f".{verb.module}", __package__), verb.function)
    kept = {method: getattr(argparse.ArgumentParser, method) for method in _METHODS}
    for method in _METHODS:
        setattr(argparse.ArgumentParser, method, _built)
    try:
        function([])
    except _ParserFound as found:
        return found.parser
    finally:
        for method, before in kept.items():
            setattr(argparse.ArgumentParser, method, before)
    raise TypeError(f"the verb {name} has no parser; let it parse its arguments before anything else")


def _built(parser: argparse.ArgumentParser, *__: object) -> None:
    raise _ParserFound(parser)


def page() -> str:
    """Return docs/verbs.md.

    It is made of the parsers of all verbs, with their exit codes; `ci/generate.py` writes it, and a test compares it.
    """
    started = [f"`{name}`" for name, verb in VERBS.items() if Trait.STARTS in verb.traits]
    lines = [
        "# Verbs",
        "",
        "Made by `make generate` from the command line itself; `agentlab help VERB` prints the same.",
        "",
        "- [Exit codes](#exit-codes)",
        "- [Common arguments](#common-arguments)",
        *(f"- [{title}](#{title.lower().replace(' ', '-').replace(',', '')})" for title in GROUPS),
        "",
        "## Exit codes",
        "",
        "| code | meaning |",
        "|---|---|",
        *(f"| {code.value} | {code.meaning} |" for code in Exit),
        "",
        f"{', '.join(started[:-1])} and {started[-1]} end with the exit code of the program that they start.",
        "",
        "## Common arguments",
        "",
        "| verb | profile | cluster | node | `-o` |",
        "|---|---|---|---|---|",
        *(f"| {' | '.join(_common(name))} |" for name in VERBS),
    ]
    for title, verbs in GROUPS.items():
        lines += ["", f"## {title}"]
        for name in verbs:
            lines += ["", f"### {name}", "", *_section(name)]
    return "\n".join(lines) + "\n"


def rows() -> list[str]:
    """Return the rows of the README's table of verbs."""
    guides = {name: f" ([guide](docs/{verb.guide}))." if verb.guide else "." for name, verb in VERBS.items()}
    return [f"| `{name}` | {verb.sentence.removesuffix('.')}{guides[name]} |" for name, verb in VERBS.items()]


def _parser(name: str) -> argparse.ArgumentParser:
    from .api import client_parser  # completion, which is to be quick, does not need it

    return parser_of(name) or client_parser(name)


def _common(name: str) -> Iterator[str]:
    """Yield the cells of a verb in the table of common arguments; those of its subcommands count."""
    actions = list(_actions(_parser(name)))
    named = {word for action in actions for word in (action.dest, *str(action.metavar).lower().split("|"))}
    forms = [str(form) for action in actions if "-o" in action.option_strings for form in action.choices or ()]
    yield f"[`{name}`](#{name})"
    yield from ("yes" if wanted in named else "-" for wanted in ("profile", "cluster", "node"))
    yield ", ".join(dict.fromkeys(forms)) or "-"


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for sub in action.choices.values():
                yield from _actions(sub)


def _section(name: str) -> Iterator[str]:
    text, parser = VERBS[name].sentence, _parser(name)
    if not _plain(parser.description or "").startswith(_plain(text)):
        yield from (text, "")
    yield from _usage(parser)


def _usage(parser: argparse.ArgumentParser, about: str = "") -> Iterator[str]:
    """Yield what the help of a parser prints, its arguments as a table, then its subcommands.

    about: its line in the help above it, which is there already.
    """
    if parser.description and _plain(parser.description) != _plain(about):
        yield from (parser.description, "")
    usage = " ".join(parser.format_usage().removeprefix("usage: ").split())
    yield from textwrap.wrap(
        usage,
        _WIDTH,
        initial_indent=" " * 4,
        subsequent_indent=" " * 8,
        break_long_words=False,
        break_on_hyphens=False,
    )
    rows = [
        action
        for action in parser._actions
        if not isinstance(action, argparse._HelpAction | argparse._SubParsersAction)
        and action.help != argparse.SUPPRESS
    ]
    formatter = parser._get_formatter()
    if rows:
        yield from ("", "| argument | meaning |", "|---|---|")
    for action in rows:
        what = ", ".join(f"`{option}`" for option in action.option_strings) or f"`{action.metavar or action.dest}`"
        values = action.metavar if action.option_strings and isinstance(action.metavar, str) else ""
        if action.choices and not action.metavar:
            values = ", ".join(map(str, action.choices))
        meaning = formatter._expand_help(action) if action.help else ""
        what, meaning = (text.replace("|", "\\|") for text in (f"{what} {values}".rstrip(), meaning))
        yield f"| {what} | {meaning} |"
    if parser.epilog:
        # One with line breaks of its own is shown as it is.
        raw = isinstance(formatter, argparse.RawDescriptionHelpFormatter)
        yield from ("", textwrap.indent(parser.epilog, "    ") if raw else parser.epilog)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {choice.dest: choice.help or "" for choice in action._choices_actions}
            for name, sub in action.choices.items():
                about = helps.get(name, "")
                yield from ("", f"**{sub.prog.removeprefix('agentlab ')}**: {about}", "")
                yield from _usage(sub, about)


def _plain(text: str) -> str:
    """Return a sentence for comparisons: a line of help has no capital letter and no full stop."""
    return text.rstrip(".").lower()
