"""The command line: a table of verbs. A verb's module is imported when it is called, so that starting is fast."""

from __future__ import annotations

import importlib
import os
import sys
from contextlib import nullcontext
from types import ModuleType
from typing import NamedTuple

from ..files import usual_umask
from ..terminal import drop, say
from ..vocabulary import Exit


class Verb(NamedTuple):
    """A verb: the line that help shows, the module in this package, and the function in it that takes the arguments.

    passes_on: its arguments are those of another program.
    """

    help: str
    module: str
    function: str = "main"
    passes_on: bool = False


_LAB = {
    "setup": "install the packages that a lab needs",
    "prepare": "create networks, machines, BMCs and services",
    "configure": "write install-config.yaml and agent-config.yaml",
    "image": "create the agent ISO",
    "boot": "boot the machines from the agent ISO",
    "wait": "wait until the cluster is installed",
    "validate": "check the installed cluster",
    "gather": "collect logs, and report the first cause of a failure",
    "deploy": "plan, prepare, configure, image, boot, wait and validate; rerun it to resume",
    "destroy": "remove everything that a run created",
}

LAB: dict[str, Verb] = {
    "plan": Verb("validate a profile and show its plan: as tables, YAML, JSON, a drawing or a page", "plan"),
    **{name: Verb(text, "lab", name) for name, text in _LAB.items()},
    "add-nodes": Verb("add the day-2 nodes to the installed cluster; rerun it to resume", "lab", "add_nodes"),
    "version": Verb("print the versions of agentlab and its components", "version"),
    "list": Verb("print the clusters of this checkout and of this host", "listing"),
    "status": Verb("print stages, machines, failing validations and the first cause of a cluster", "status"),
    "open": Verb("show the run page: what happened when, what failed first, and what to do next", "run_page"),
    "ssh": Verb("open a shell on a node, or run a command there", "node", "ssh"),
    "console": Verb("print, follow or attach to a node's serial console; read its screen", "node", "console"),
    "power": Verb("read or change a node's power state through its BMC", "node", "power"),
    "logs": Verb("print or follow journals, consoles and logs of the lab's services, merged by time", "logs"),
    "fault": Verb("inject a fault into a running lab, or undo it", "fault"),
    "capture": Verb("print or write the packets of a node or a network", "capture"),
    "kubectl": Verb("run kubectl in the cluster's network, with its kubeconfig", "api", "kubectl", passes_on=True),
    "oc": Verb("run oc in the cluster's network, with its kubeconfig", "api", "oc", passes_on=True),
    "kubeconfig": Verb("print a kubeconfig that works on this host, or merge it into the user's", "api", "kubeconfig"),
    "forward": Verb("make the API, the console and the service's page reachable on 127.0.0.1", "forward"),
    "ci": Verb("run a job as a step of OpenShift CI: ci run JOB or PROFILE, ci gather", "ci"),
    "matrix": Verb("run many jobs, as many at once as fit on this host: matrix run, matrix history", "matrix"),
    "conformance": Verb(
        "check what clients of an installation rely on: watch, patch, RBAC, leases, ...", "conformance"
    ),
    "doctor": Verb("check whether this host can run a lab, with a remedy for each problem", "doctor"),
    "prune": Verb("remove what your labs left behind: without a run directory, or never finished", "prune"),
    "snapshot": Verb(
        "save, restore or copy the whole lab: save, list, restore, copy, delete, export, import", "snapshot"
    ),
    "reload": Verb("replace a component of the lab payload in a running lab, by your build or this checkout", "reload"),
    "exec": Verb("run a command inside a cluster's sandbox", "exec"),
    "shell": Verb("open a shell inside a cluster's sandbox", "exec", "shell"),
}

TOOLS: dict[str, Verb] = {
    "create": Verb("create assets as openshift-install agent: image, cluster-manifests, ...", "create"),
    "graph": Verb("print the graph of assets", "create", "graph"),
    "compare": Verb("show how another build of openshift-install differs, on the same inputs", "compare"),
    "wait-for": Verb("wait as openshift-install agent: bootstrap-complete, install-complete", "wait_for"),
    "node-image": Verb("create the image of new nodes and follow them, as oc adm node-image", "node_image"),
    "monitor-add-nodes": Verb("follow nodes that join a cluster, as oc adm node-image monitor", "monitor_add_nodes"),
    "iso": Verb("inspect a live ISO, and change its Ignition config or kernel arguments", "coreos.iso"),
    "pxe": Verb("change the Ignition config and network settings of a PXE initramfs", "coreos.pxe"),
    "dev": Verb(
        "inspect images as coreos-installer: dev show iso, dev show initrd, dev extract initrd", "coreos.dev", "dev"
    ),
    "pack": Verb("pack images as coreos-installer: pack minimal-iso", "coreos.dev", "pack"),
    "nmstate": Verb("turn nmstate into NetworkManager keyfiles", "nmstate"),
    "swarm": Verb("load-test an assisted service (--url) with many agents", "swarm"),
    "serve": Verb("start one of the lab's simulators", "serve"),
    "reproduce": Verb("write a profile, with suggested faults, for what a failed run left", "reproduce"),
    "import": Verb("write the profile for a configuration of dev-scripts", "devscripts", "import_config"),
    "export": Verb("write the configuration of dev-scripts for a profile", "devscripts", "export_config"),
    "drift": Verb("report what has changed in upstream projects, and what of agentlab no longer agrees", "drift"),
    "completion": Verb("print the code that lets a shell complete verbs, options and names", "completion"),
    "payload": Verb("build and inspect the lab payload", "payload"),
    "mirror": Verb(
        "copy a release into the lab's registry or another one, and write its ImageDigestMirrorSet", "mirror"
    ),
}

VERBS = {**LAB, **TOOLS}


AGENT = ("create", "graph", "wait-for")
"""The verbs of `openshift-install agent`; `agentlab agent create image` is the same as without the word."""
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
        say(_help())
        return Exit.OK
    name, rest = argv[0], argv[1:]
    verb = VERBS.get(name) or VERBS.get(name.replace("-", "_"))
    if verb is None:
        import difflib

        near = difflib.get_close_matches(name, VERBS, n=1, cutoff=0.7)
        if name == "agent":
            name, hint = " ".join(argv[:2]), f"those of openshift-install are agent {', agent '.join(AGENT)}"
            say(f"agentlab: there is no verb {name!r}; {hint}", sys.stderr)
            return Exit.USAGE
        hint = _OTHER.get(name) or (f"did you mean {near[0]}?" if near else "`agentlab help` lists them")
        say(f"agentlab: there is no verb {name!r}; {hint}", sys.stderr)
        return Exit.USAGE
    from .. import signals

    module = _module(verb.module)
    try:
        # The lab's verbs end with the playbook that they run.
        with signals.raised() if name in TOOLS else nullcontext():
            status = int(getattr(module, verb.function)(rest))
            sys.stdout.flush()
            return status
    except signals.Terminated as error:
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
    for title, verbs in (("The lab", LAB), ("Tools, which need no lab", TOOLS)):
        lines += [f"{title}:", *(f"  {name:<10} {verb.help}" for name, verb in verbs.items()), ""]
    return "\n".join(lines).rstrip()
