"""Command-line flags in the form of Go's `flag` package, which the programs' namesakes use.

`-name` and `--name` are the same; a value follows as `=value` or as the next argument; a boolean takes `=value` or none.
"""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import NamedTuple


class Flag(NamedTuple):
    """`default` gives the type: str, int or bool."""

    name: str
    default: str | int | bool
    help: str


def logging_flags(text: bool) -> tuple[Flag, ...]:
    return (
        Flag("with-journal-logging", True, "Use journal logging"),
        Flag("with-text-logging", text, "Use text logging"),
        Flag("with-stdout-logging", False, "Use stdout logging"),
    )


CONNECTION = (
    Flag("url", "", "The target URL, including a scheme and optionally a port"),
    Flag("infra-env-id", "", "The value of infra-env-id"),
    Flag("cluster-id", "", "The value of cluster-id"),
    Flag("agent-version", "", "Full image reference of the agent, for example 'quay.io/edge-infrastructure/agent:v2.5.2'"),
    Flag("interval", 60, "Interval between steps polling in seconds"),
    Flag("cacert", "", "Path to custom CA certificate in PEM format"),
    Flag("insecure", False, "Do not validate TLS certificate"),
    Flag("host-id", "", "Host identification"),
)

TRUE = {"1", "t", "T", "TRUE", "true", "True"}
FALSE = {"0", "f", "F", "FALSE", "false", "False"}


def usage(program: str, flags: tuple[Flag, ...]) -> str:
    lines = [f"Usage of {program}:"]
    for flag in sorted(flags):
        kind = "" if isinstance(flag.default, bool) else " int" if isinstance(flag.default, int) else " string"
        shown = f' (default "{flag.default}")' if isinstance(flag.default, str) else f" (default {str(flag.default).lower()})"
        lines += [f"  -{flag.name}{kind}", f"    \t{flag.help}{shown if flag.default else ''}"]
    return "\n".join([*lines, "  -help", "    \tHelp message"])


def parse(program: str, flags: tuple[Flag, ...], argv: list[str] | None = None) -> SimpleNamespace:
    """Flags as attributes (dashes become underscores), the rest in `args`, what was given in `given`.

    Exits as Go does: 0 after `--help`, 2 with the usage text after a flag that is unknown or has no good value.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    known = {flag.name: flag for flag in flags}
    values: dict[str, str | int | bool] = {flag.name: flag.default for flag in flags}
    given: set[str] = set()

    def fail(text: str) -> None:
        print(f"{text}\n{usage(program, flags)}", file=sys.stderr)
        raise SystemExit(2)

    while words and words[0].startswith("-") and words[0] != "-":
        word = words.pop(0)
        if word == "--":
            break
        name, equals, value = word.lstrip("-").partition("=")
        if name in ("help", "h"):
            print(usage(program, flags), file=sys.stderr)
            raise SystemExit(0)
        flag = known.get(name)
        if flag is None:
            fail(f"flag provided but not defined: -{name}")
        elif isinstance(flag.default, bool):
            value = value if equals else "true"
            if value not in TRUE | FALSE:
                fail(f'invalid boolean value "{value}" for -{name}: parse error')
            values[name] = value in TRUE
        else:
            if not equals:
                if not words:
                    fail(f"flag needs an argument: -{name}")
                value = words.pop(0)
            if isinstance(flag.default, int):
                if not value.lstrip("-").isdigit():
                    fail(f'invalid value "{value}" for flag -{name}: parse error')
                values[name] = int(value)
            else:
                values[name] = value
        given.add(name)
    return SimpleNamespace(**{name.replace("-", "_"): value for name, value in values.items()}, args=words, given=given)
