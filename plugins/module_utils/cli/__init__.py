"""The command line. A verb's module is imported when it is called, so that starting is fast."""

from __future__ import annotations

import importlib
import os
import sys
from contextlib import nullcontext
from types import ModuleType

from ..files import usual_umask
from ..terminal import drop, write_line
from ..vocabulary import Exit
from .verbs import AGENT, GROUPS, TOOLS, VERBS

_HELP_WORDS = ("-h", "--help", "help")
# Verbs of other tools -> our verb, or what to do.
_OTHER = {
    **dict.fromkeys(
        ("up", "start", "run", "install", "resume"), "`agentlab deploy` installs a cluster, or resumes where it stopped"
    ),
    **dict.fromkeys(
        ("down", "stop", "rm", "remove", "delete", "clean"), "`agentlab destroy` removes what a run created"
    ),
    "ls": "`agentlab list` prints the clusters of this checkout and of this host",
    "check": "`agentlab plan` validates a profile, `agentlab validate` an installed cluster",
}


def _verb_first(argv: list[str]) -> list[str]:
    """Normalize `agent --dir D --log-level L create image`, openshift-install's order, to the verb first and without `agent`."""
    at, before = 0, []
    while at < len(argv):
        if argv[at].partition("=")[0] in ("--dir", "--log-level"):
            taken = 1 if "=" in argv[at] else 2
            before += argv[at : at + taken]
            at += taken
        elif argv[at] == "agent" and "agent" not in argv[:at]:
            at += 1
        else:
            break
    # `agent` alone, or before a verb that openshift-install does not have, is an unknown verb.
    if "agent" in argv[:at] and argv[at : at + 1] and argv[at] not in AGENT and argv[at] not in _HELP_WORDS:
        return argv
    return [*argv[at : at + 1], *before, *argv[at + 1 :]]


def main(argv: list[str]) -> int:
    """Run the verb in `argv` and return its exit status.

    argv: without the program's name; `agent` before a verb of openshift-install is skipped. Usage errors of a verb
    raise `SystemExit`, as argparse does. The statuses are those of `Exit`; a verb that executes a program has that
    program's.
    """
    if "_ARGCOMPLETE" in os.environ:
        _module("completion").complete()
    usual_umask()
    argv = _verb_first(argv)
    if argv[:1] in (["--version"], ["version"]):
        from .version import main as version

        return version(argv[1:])
    if argv[:1] == ["help"] and argv[1:] and not argv[1].startswith("-"):
        argv = [*argv[1:], "--help"]
    if not argv or argv[0] in _HELP_WORDS:
        write_line(_help())
        return Exit.OK
    name, rest = argv[0], argv[1:]
    verb = VERBS.get(name) or VERBS.get(name.replace("-", "_"))
    if verb is None:
        import difflib

        near = difflib.get_close_matches(name, VERBS, n=1, cutoff=0.7)
        if name == "agent":
            name, hint = " ".join(argv[:2]), f"those of openshift-install are agent {', agent '.join(AGENT)}"
            write_line(f"agentlab: there is no verb {name!r}; {hint}", sys.stderr)
            return Exit.USAGE
        hint = _OTHER.get(name) or (f"did you mean {near[0]}?" if near else "`agentlab help` lists them")
        write_line(f"agentlab: there is no verb {name!r}; {hint}", sys.stderr)
        return Exit.USAGE
    from .. import signals

    module = _module(verb.module)
    try:
        # The lab's verbs end with the playbook that they run.
        with signals.raise_terminated() if name in TOOLS else nullcontext():
            status = int(getattr(module, verb.function)(rest))
            sys.stdout.flush()
            return status
    except signals.Termination as error:
        return error.exit_code
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except BrokenPipeError:
        drop(sys.stdout)
        return Exit.PIPE


def _module(name: str) -> ModuleType:
    """Import a module of this package by its name, as the table of verbs has it."""
    return importlib.import_module(f".{name}", __package__)


def _help() -> str:
    lines = [
        "usage: agentlab VERB [PROFILE or path] [--cluster NAME] [options]",
        "       agentlab help VERB, or VERB --help, shows the options of a verb; agentlab --version",
        "",
    ]
    for title, verbs in GROUPS.items():
        lines += [f"{title}:", *(f"  {name:<10} {verb.help}" for name, verb in verbs.items()), ""]
    return "\n".join(lines).rstrip()
