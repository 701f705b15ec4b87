"""The parsers of all verbs, for shell completion and for docs/verbs.md."""

from __future__ import annotations

import argparse
import importlib
import textwrap
from collections.abc import Iterator

from ..vocabulary import Exit
from . import LAB, TOOLS, VERBS

_METHODS = ("parse_args", "parse_intermixed_args")


class _Built(BaseException):
    """The parser that a verb was about to use."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self.parser = parser


def parser_of(name: str) -> argparse.ArgumentParser | None:
    """Return the parser that a verb builds; None for one that passes its arguments on to another program.

    The verb is called, but does not get past `parse_args`.
    """
    verb = VERBS[name]
    if verb.passes_on:
        return None
    function = getattr(importlib.import_module(f".{verb.module}", __package__), verb.function)
    kept = {method: getattr(argparse.ArgumentParser, method) for method in _METHODS}
    for method in _METHODS:
        setattr(argparse.ArgumentParser, method, _built)
    try:
        function([])
    except _Built as found:
        return found.parser
    finally:
        for method, before in kept.items():
            setattr(argparse.ArgumentParser, method, before)
    raise TypeError(f"the verb {name} has no parser; let it parse its arguments before anything else")


def _built(parser: argparse.ArgumentParser, *__: object) -> None:
    raise _Built(parser)


def page() -> str:
    """Return docs/verbs.md.

    It is made of the parsers of all verbs, with their exit codes; `ci/generate.py` writes it, and a test compares it.
    """
    lines = [
        "# Verbs",
        "",
        "Made by `make generate` from the command line itself; `agentlab help VERB` prints the same.",
        "",
        "- [Exit codes](#exit-codes)",
        *(f"- [{title}](#{title.lower().replace(' ', '-').replace(',', '')})" for title in _TITLES),
        "",
        "## Exit codes",
        "",
        "| code | meaning |",
        "|---|---|",
        *(f"| {code.value} | {code.meaning} |" for code in Exit),
        "",
        "`ssh`, `exec`, `shell`, `kubectl`, `oc`, `console` and `capture` end with the exit code of the program that they start.",
    ]
    for title, verbs in _TITLES.items():
        lines += ["", f"## {title}"]
        for name in verbs:
            lines += ["", f"### {name}", "", *_section(name)]
    return "\n".join(lines) + "\n"


_TITLES = {"The lab": LAB, "Tools, which need no lab": TOOLS}


def _section(name: str) -> Iterator[str]:
    from .api import client_parser  # completion, which is to be quick, does without

    text = VERBS[name].help
    parser = parser_of(name) or client_parser(name)
    if not _plain(parser.description or "").startswith(_plain(text)):
        yield from (f"{text[:1].upper()}{text[1:]}.", "")
    yield from _usage(parser)


def _usage(parser: argparse.ArgumentParser, about: str = "") -> Iterator[str]:
    """Yield what the help of a parser prints, its arguments as a table, then its subcommands.

    about: its line in the help above it, which is there already.
    """
    if parser.description and _plain(parser.description) != _plain(about):
        yield from (parser.description, "")
    yield f"    {' '.join(parser.format_usage().removeprefix('usage: ').split())}"
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
