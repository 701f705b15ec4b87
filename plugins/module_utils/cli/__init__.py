"""The command line: a table of verbs. A verb's module is imported when it is called, so that starting costs little."""

from __future__ import annotations

import importlib
import sys
from contextlib import nullcontext
from typing import NamedTuple

from .terminal import say


class Verb(NamedTuple):
    """A verb: the line that help shows, the module in this package, and the function in it that takes the arguments."""

    help: str
    module: str
    function: str = "main"


_LAB = {
    "setup": "install the packages that a lab needs",
    "prepare": "make networks, machines, BMCs and services",
    "configure": "write install-config.yaml and agent-config.yaml",
    "image": "make the agent ISO",
    "boot": "start the machines from the agent ISO",
    "wait": "wait until the cluster is installed",
    "validate": "check the installed cluster",
    "gather": "collect logs, and name the first cause of a failure",
    "deploy": "plan, prepare, configure, image, boot, wait, validate",
    "destroy": "remove all that a run created",
}

LAB: dict[str, Verb] = {
    "plan": Verb("show the plan of a profile: --format table, yaml or svg", "plan"),
    **{name: Verb(text, "lab", name) for name, text in _LAB.items()},
    "exec": Verb("run a command inside a cluster's sandbox", "exec"),
    "shell": Verb("open a shell inside a cluster's sandbox", "exec", "shell"),
}

TOOLS: dict[str, Verb] = {
    "create": Verb("the installer's verb: create image, cluster-manifests, ...", "create"),
    "graph": Verb("the installer's verb: its assets as a graph", "create", "graph"),
    "wait-for": Verb("the installer's verb: wait-for bootstrap-complete, install-complete", "wait_for"),
    "iso": Verb("look into a live ISO, and change its Ignition config or kernel arguments", "iso"),
    "pxe": Verb("change what a PXE boot embeds", "pxe"),
    "dev": Verb("coreos-installer's verb: dev show iso, dev show initrd, dev extract initrd", "iso", "dev"),
    "pack": Verb("coreos-installer's verb: pack minimal-iso", "iso", "pack"),
    "nmstate": Verb("turn nmstate into NetworkManager keyfiles", "nmstate"),
    "swarm": Verb("load an assisted service (--url) with many agents", "swarm"),
    "serve": Verb("start one of the lab's stand-ins by itself", "serve"),
    "payload": Verb("build the lab payload, and look into it", "payload"),
}

VERBS = {**LAB, **TOOLS}


def _verb_first(argv: list[str]) -> list[str]:
    """`--dir D --log-level L create image`, as openshift-install takes it, with the verb in front."""
    at = 0
    while at < len(argv) and argv[at].partition("=")[0] in ("--dir", "--log-level"):
        at += 1 if "=" in argv[at] else 2
    return [*argv[at : at + 1], *argv[:at], *argv[at + 1 :]]


def main(argv: list[str]) -> int:
    """Run the verb in `argv` and return its exit status."""
    argv = _verb_first(argv)
    if not argv or argv[0] in ("-h", "--help", "help"):
        say(_help())
        return 0
    name, rest = argv[0], argv[1:]
    verb = VERBS.get(name) or VERBS.get(name.replace("-", "_"))
    if verb is None:
        import difflib

        near = difflib.get_close_matches(name, VERBS, n=1)
        hint = f"did you mean {near[0]}?" if near else "`agentlab help` lists them"
        say(f"agentlab: there is no verb {name!r}; {hint}", sys.stderr)
        return 2
    from .. import signals

    module = importlib.import_module(f".{verb.module}", __package__)
    try:
        # The lab's verbs end with the playbook that they run.
        with signals.raised() if name in TOOLS else nullcontext():
            return int(getattr(module, verb.function)(rest))
    except signals.Terminated as error:
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        sys.stdout = None
        return 141


def _help() -> str:
    lines = [
        "usage: agentlab VERB [PROFILE or path] [--cluster NAME] [options]",
        "       agentlab VERB --help says more",
        "",
    ]
    for title, verbs in (("The lab", LAB), ("Tools, which need no lab", TOOLS)):
        lines += [f"{title}:", *(f"  {name:<10} {verb.help}" for name, verb in verbs.items()), ""]
    return "\n".join(lines).rstrip()
