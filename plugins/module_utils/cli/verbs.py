"""The table of verbs, from which dispatch, help, completion, docs/verbs.md and the README's table are made."""

from __future__ import annotations

from enum import Flag, auto
from typing import NamedTuple


class Trait(Flag):
    """What holds for a verb beyond its options."""

    NONE = 0
    CLUSTER = auto()  # needs a cluster that others have made, or a profile
    FILES = auto()  # needs the files of a profile
    MACHINES = auto()  # makes machines, of a payload in which components can be replaced
    ADOPTS = auto()  # can take over the cluster of another
    GATHERS = auto()  # logs are gathered after a failure
    INSTALLS = auto()  # after it the cluster is installed
    PAGE = auto()  # writes the run page
    STARTS = auto()  # ends with the exit code of a program that it starts
    PASSES_ON = auto()  # its arguments are those of that program


class Verb(NamedTuple):
    """A verb: the line that help shows, the module in `cli`, and the function in it that takes the arguments.

    guide: the page about it, below `docs/`.
    """

    help: str
    module: str
    function: str = "main"
    traits: Trait = Trait.NONE
    guide: str = ""

    @property
    def sentence(self) -> str:
        """The line of help as a sentence."""
        return f"{self.help[0].upper()}{self.help[1:].removesuffix('.')}."


def _playbook(text: str, name: str, traits: Trait = Trait.NONE, guide: str = "") -> Verb:
    return Verb(text, "lab", name, traits, guide)


_INSTALLS = Trait.GATHERS | Trait.INSTALLS | Trait.PAGE

LAB: dict[str, Verb] = {
    "setup": _playbook("install the packages that a lab needs", "setup"),
    "plan": Verb(
        "validate a profile and show its plan: as tables, YAML, JSON, a drawing or a page", "plan", guide="profile.md"
    ),
    "prepare": _playbook(
        "create networks, machines, BMCs and services",
        "prepare",
        Trait.FILES | Trait.MACHINES | Trait.ADOPTS | Trait.PAGE,
    ),
    "configure": _playbook("write install-config.yaml and agent-config.yaml", "configure", Trait.FILES | Trait.PAGE),
    "image": _playbook(
        "build the lab payload if necessary, and create the agent ISO", "image", Trait.FILES | Trait.PAGE
    ),
    "boot": _playbook("boot the machines from the agent ISO", "boot", Trait.CLUSTER | Trait.GATHERS | Trait.PAGE),
    "wait": _playbook("wait until the cluster is installed", "wait", Trait.CLUSTER | _INSTALLS),
    "validate": _playbook("check the installed cluster", "validate", Trait.CLUSTER | _INSTALLS),
    "deploy": _playbook(
        "plan, prepare, configure, image, boot, wait and validate; rerun it to resume",
        "deploy",
        Trait.FILES | Trait.MACHINES | Trait.ADOPTS | _INSTALLS,
    ),
    "add-nodes": _playbook(
        "add the day-2 nodes to the installed cluster; rerun it to resume",
        "add_nodes",
        Trait.CLUSTER | _INSTALLS,
        "add-nodes.md",
    ),
    "gather": _playbook("collect logs, and report the first cause of a failure", "gather", Trait.CLUSTER | Trait.PAGE),
    "destroy": _playbook(
        "remove exactly what a run created, also with a profile alone when its run directory is lost",
        "destroy",
        Trait.CLUSTER | Trait.ADOPTS,
    ),
    "version": Verb("print the versions of agentlab and its components", "version"),
    "list": Verb("print the clusters of this checkout and of this host", "listing"),
    "status": Verb("print stages, machines, failing validations and the first cause of a cluster", "status"),
    "open": Verb(
        "show the run page: what happened when, what failed first, and what to do next", "run_page", guide="run-page.md"
    ),
    "ssh": Verb("open a shell on a node, or run a command there", "node", "ssh", Trait.STARTS, "access.md"),
    "console": Verb(
        "print, follow or attach to a node's serial console; read its screen",
        "node",
        "console",
        Trait.STARTS,
        "hosts.md#the-screen",
    ),
    "power": Verb("read or change a node's power state through its BMC", "node", "power"),
    "logs": Verb("print or follow journals, consoles and logs of the lab's services, merged by time", "logs"),
    "fault": Verb("inject a fault into a running lab, or undo it", "fault", guide="faults.md#in-a-running-lab"),
    "capture": Verb("print or write the packets of a node or a network", "capture", traits=Trait.STARTS),
    "kubectl": Verb(
        "run kubectl in the cluster's network, with its kubeconfig",
        "api",
        "kubectl",
        Trait.STARTS | Trait.PASSES_ON,
        "access.md",
    ),
    "oc": Verb(
        "run oc in the cluster's network, with its kubeconfig", "api", "oc", Trait.STARTS | Trait.PASSES_ON, "access.md"
    ),
    "kubeconfig": Verb(
        "print a kubeconfig that works on this host, or merge it into the user's",
        "api",
        "kubeconfig",
        guide="access.md",
    ),
    "forward": Verb(
        "make the API, the console and the service's page reachable on 127.0.0.1",
        "forward",
        guide="access.md#a-browser",
    ),
    "ci": Verb("run a job as a step of OpenShift CI: ci run JOB or PROFILE, ci gather", "ci", guide="ci.md"),
    "matrix": Verb(
        "run many jobs, as many at once as fit on this host: matrix run, matrix history",
        "matrix",
        guide="ci.md#a-machine-full-of-jobs",
    ),
    "conformance": Verb(
        "check what clients of an installation rely on: watch, patch, RBAC, leases",
        "conformance",
        guide="conformance.md",
    ),
    "doctor": Verb("check whether this host can run a lab, with a remedy for each problem", "doctor"),
    "prune": Verb("remove what your labs left behind: without a run directory, or never finished", "prune"),
    "snapshot": Verb(
        "save, restore or copy the whole lab: save, list, restore, copy, delete, export, import",
        "snapshot",
        guide="snapshots.md",
    ),
    "reload": Verb(
        "replace a component of the lab payload in a running lab, by your build or this checkout",
        "reload",
        guide="your-build.md#change-a-line-see-it",
    ),
    "exec": Verb("run a command inside a cluster's sandbox", "exec", traits=Trait.STARTS),
    "shell": Verb("open a shell inside a cluster's sandbox", "exec", "shell", Trait.STARTS),
}

TOOLS: dict[str, Verb] = {
    "create": Verb("create assets as openshift-install agent: image, cluster-manifests and others", "create"),
    "graph": Verb("print the graph of assets", "create", "graph"),
    "compare": Verb(
        "show how another build of openshift-install differs, on the same inputs",
        "compare",
        guide="your-build.md#what-your-build-does-differently",
    ),
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
    "swarm": Verb("load-test an assisted service (--url) with many agents", "swarm", guide="swarm.md"),
    "serve": Verb("start one of the lab's simulators, or replay a run", "serve", guide="replay.md"),
    "reproduce": Verb(
        "write a profile, with suggested faults, for what a failed run left", "reproduce", guide="reproduce.md"
    ),
    "import": Verb(
        "write the profile for a configuration of dev-scripts", "devscripts", "import_config", guide="dev-scripts.md"
    ),
    "export": Verb(
        "write the configuration of dev-scripts for a profile", "devscripts", "export_config", guide="dev-scripts.md"
    ),
    "drift": Verb(
        "report what has changed in upstream projects, and what of agentlab no longer agrees", "drift", guide="drift.md"
    ),
    "completion": Verb(
        "print the code that lets a shell complete verbs, options and names", "completion", guide="access.md#completion"
    ),
    "payload": Verb("build and inspect the lab payload", "payload"),
    "mirror": Verb(
        "copy a release into the lab's registry or another one, and write its ImageDigestMirrorSet",
        "mirror",
        guide="mirror.md",
    ),
}

GROUPS = {"The lab": LAB, "Tools, which need no lab": TOOLS}
VERBS = {**LAB, **TOOLS}

AGENT = ("create", "graph", "wait-for")
"""The verbs of `openshift-install agent`; `agentlab agent create image` is the same as without the word."""
