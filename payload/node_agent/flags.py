"""Command-line flags in the style of Go's `flag` package, which upstream's programs use.

`-name` and `--name` are the same; a value follows as `=value` or as the next argument; a boolean takes `=value` or none.
"""

from __future__ import annotations

import json
import os
import sys
import time
from types import SimpleNamespace
from typing import NamedTuple, NoReturn


class Flag(NamedTuple):
    """`default` gives the type: str, int or bool."""

    name: str
    default: str | int | bool
    help: str


class Dry(NamedTuple):
    """A dry run: the machine is not changed, and reported as another one. `marker`: the file that simulates its reboot."""

    enabled: bool = False
    host_id: str = ""
    ipv4: str = ""
    mac: str = ""
    hostname: str = ""
    marker: str = ""


def dry_flags() -> tuple[Flag, ...]:
    """Flags of a dry run; their defaults are in the environment."""
    enabled = os.environ.get("DRY_ENABLE") or "false"
    if enabled not in TRUE | FALSE:
        fatal(f"DRY_ENABLE: {enabled!r} is neither true nor false")
    values = {name: os.environ.get(variable, "") for name, variable in DRY_VARIABLES.items()}
    return (
        Flag(
            "dry-run",
            enabled in TRUE,
            "Communicate with the service as usual, but only simulate changes of the machine",
        ),
        Flag("force-id", values["force-id"], "In a dry run: the host's id"),
        Flag("force-mac", values["force-mac"], "In a dry run: the MAC address of the only reported interface"),
        Flag("force-hostname", values["force-hostname"], "In a dry run: the host's name"),
        Flag("forced-ipv4", values["forced-ipv4"], "In a dry run: the address of the only reported interface"),
        Flag(
            "fake-reboot-marker-path",
            values["fake-reboot-marker-path"],
            "In a dry run: the file that simulates the reboot when it appears",
        ),
    )


def dry(options: SimpleNamespace) -> Dry:
    return Dry(
        options.dry_run, options.force_id, options.forced_ipv4, options.force_mac, options.force_hostname,
        options.fake_reboot_marker_path,
    )  # fmt: skip


def fatal(text: str) -> NoReturn:
    """Exit as upstream's program does after a fatal error."""
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    print(f'time="{stamp}" level=fatal msg={json.dumps(text, ensure_ascii=False)}', file=sys.stderr)
    raise SystemExit(1)


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
    Flag(
        "agent-version", "", "Full image reference of the agent, for example 'quay.io/edge-infrastructure/agent:v2.5.2'"
    ),
    Flag("interval", 60, "Interval between steps polling in seconds"),
    Flag("cacert", "", "Path to custom CA certificate in PEM format"),
    Flag("insecure", False, "Do not validate TLS certificate"),
    Flag("host-id", "", "Host identification"),
)

HELP = Flag("help", False, "Help message")
DRY_VARIABLES = {
    "force-id": "DRY_HOST_ID", "force-mac": "DRY_FORCED_MAC_ADDRESS", "force-hostname": "DRY_FORCED_HOSTNAME",
    "forced-ipv4": "DRY_FORCED_HOST_IPV4", "fake-reboot-marker-path": "DRY_FAKE_REBOOT_MARKER_PATH",
}  # fmt: skip
TRUE = {"1", "t", "T", "TRUE", "true", "True"}
FALSE = {"0", "f", "F", "FALSE", "false", "False"}


def usage(program: str, flags: tuple[Flag, ...]) -> str:
    lines = [f"Usage of {program}:"]
    for flag in sorted((*flags, HELP)):
        kind = "" if isinstance(flag.default, bool) else " int" if isinstance(flag.default, int) else " string"
        shown = (
            f' (default "{flag.default}")'
            if isinstance(flag.default, str)
            else f" (default {str(flag.default).lower()})"
        )
        lines += [f"  -{flag.name}{kind}", f"    \t{flag.help}{shown if flag.default else ''}"]
    return "\n".join(lines)


def parse(program: str, flags: tuple[Flag, ...], argv: list[str] | None = None) -> SimpleNamespace:
    """Return flags as attributes (dashes become underscores), the rest in `args`, explicitly set flags in `given`.

    Exits as Go does: 0 after `--help`, 2 with the usage text after a flag that is unknown or has an invalid value.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    known = {flag.name: flag for flag in (*flags, HELP)}
    values: dict[str, str | int | bool] = {name: flag.default for name, flag in known.items()}
    given: set[str] = set()

    def fail(text: str) -> None:
        print(f"{text}\n{usage(program, flags)}", file=sys.stderr)
        raise SystemExit(2)

    while words and words[0].startswith("-") and words[0] != "-":
        word = words.pop(0)
        if word == "--":
            break
        name, equals, value = word.removeprefix("-").removeprefix("-").partition("=")
        if not name or name.startswith("-"):
            fail(f"bad flag syntax: {word}")
        if name == "h":
            name, equals = "help", ""
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
                try:
                    values[name] = int(value, 0)
                except ValueError:
                    fail(f'invalid value "{value}" for flag -{name}: parse error')
            else:
                values[name] = value
        given.add(name)
    if values.pop("help"):
        print(usage(program, flags), file=sys.stderr)
        raise SystemExit(0)
    return SimpleNamespace(**{name.replace("-", "_"): value for name, value in values.items()}, args=words, given=given)
