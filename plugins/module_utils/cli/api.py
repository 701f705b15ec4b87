"""`agentlab kubectl ARGS`, `agentlab oc ARGS`, `agentlab kubeconfig [--merge]`: the cluster's API from this host."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from ..documents import load_yaml, read_file
from ..errors import LabError
from ..plan import rundir
from ..state import write_atomic
from ..terminal import write_line
from ..vocabulary import DEFAULT_CLUSTER, Exit
from . import forward
from .cluster import Cluster, add_cluster, become, find
from .output import add_output, print_failure, print_output

OC = "https://mirror.openshift.com/pub/openshift-v4/clients/ocp/stable/openshift-client-linux.tar.gz"
"""The archive with oc: OpenShift's public mirror."""
_INSTALL = {
    "kubectl": "install the package kubernetes-client or kubectl",
    "oc": f"Debian has no package of it: unpack {OC}, or use agentlab kubectl",
}


def kubectl(argv: list[str]) -> int:
    """Exec kubectl in the cluster's network, with its kubeconfig.

    argv: for kubectl, after a leading `--cluster NAME` of this verb. Returns only when it cannot be executed: `Exit.FAILED` or
    `NOT_FOUND`, after a message.
    """
    return _client("kubectl", argv)


def oc(argv: list[str]) -> int:
    """Exec oc in the cluster's network, with its kubeconfig.

    argv: for oc, after a leading `--cluster NAME` of this verb. Returns only when it cannot be executed, as `kubectl`.
    """
    return _client("oc", argv)


def _client(program: str, argv: list[str]) -> int:
    name, rest = _cluster(argv)
    if rest[:1] in (["-h"], ["--help"]):
        client_parser(program).print_help()
        return Exit.OK
    try:
        cluster = find(name)
        cluster.check_remote_owner()
        if not shutil.which(program):
            write_line(f"agentlab: {program} is not installed; {_INSTALL[program]}", sys.stderr)
            return Exit.NOT_FOUND
        os.environ["KUBECONFIG"] = str(cluster.kubeconfig)
        return become([*cluster.enter(os.getcwd()), program, *rest])
    except (LabError, ValueError, OSError) as error:
        return print_failure(error)


def client_parser(program: str) -> argparse.ArgumentParser:
    """Return the parser of `kubectl` or `oc`, for its help: what they are called with is parsed by the program."""
    parser = argparse.ArgumentParser(
        prog=f"agentlab {program}",
        usage=f"agentlab {program} [--cluster NAME] ARGUMENT ...",
        description=f"Run {program} in the cluster's network, with its kubeconfig. All but a leading --cluster is for {program}; "
        f"`agentlab {program} help` shows its own help.",
    )
    add_cluster(parser)
    parser.add_argument("argument", nargs="*", metavar="ARGUMENT", help=f"of {program}")
    return parser


def _cluster(argv: list[str]) -> tuple[str, list[str]]:
    """Parse a leading `--cluster NAME`, which is ours; kubectl has an option with that name for a context's cluster."""
    name, rest = os.environ.get("CLUSTER") or DEFAULT_CLUSTER, list(argv)
    if rest[:1] == ["--cluster"] and len(rest) > 1:
        name, rest = rest[1], rest[2:]
    elif rest and rest[0].startswith("--cluster="):
        name = rest.pop(0).partition("=")[2]
    return name, rest


def kubeconfig(argv: list[str]) -> int:
    """Print a kubeconfig that works on this host, or merge it into the user's."""
    parser = argparse.ArgumentParser(
        prog="agentlab kubeconfig",
        description="Print a kubeconfig that works on this host. For a cluster in a sandbox `agentlab forward` must run.",
    )
    add_cluster(parser)
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--merge",
        action="store_true",
        help="merge it into $KUBECONFIG or ~/.kube/config as the current context agentlab-NAME",
    )
    add_output(group, "the form in which it is printed (default: yaml)")
    args = parser.parse_args(argv)
    try:
        config = for_host(find(args.cluster))
        if not args.merge:
            print_output(config, args.output or "yaml")
            return Exit.OK
        path = Path(os.environ.get("KUBECONFIG", "").partition(os.pathsep)[0] or Path.home() / ".kube/config")
        content = rundir.dump(merge_kubeconfig(_read(path) if path.exists() else {}, config))
        write_atomic(Path(os.path.realpath(path)), content, 0o600)  # a link stays one
        write_line(f"{path}: context {config['current-context']}")
    except (LabError, ValueError, OSError) as error:
        return print_failure(error)
    return Exit.OK


def for_host(cluster: Cluster) -> dict[str, Any]:
    """Return the run's kubeconfig with names of its own, and a server that this host reaches.

    Cluster, user and context are named `agentlab-NAME`. In a sandbox without a route the server is the forwarded port
    on loopback, verified by the name in its certificate. Raises `LabError` if nothing is forwarded, or there is no
    kubeconfig yet.
    """
    found = _read(cluster.kubeconfig)
    name = f"agentlab-{cluster.name}"
    target = dict(found["clusters"][0]["cluster"])
    hypervisor = cluster.plan["hypervisor"]
    if hypervisor["kind"] == "sandbox" and not hypervisor["route"]:
        port = forward.ports(cluster).get("api")
        if port is None:
            raise LabError(
                f"cluster {cluster.name} is in a sandbox and its API is not forwarded; run: agentlab forward --cluster {cluster.name}"
            )
        target["server"] = f"https://{forward.LOOPBACK}:{port}"
        target["tls-server-name"] = forward.known_targets(cluster)["api"].host
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": target}],
        "users": [{"name": name, "user": found["users"][0]["user"]}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }


def merge_kubeconfig(before: dict[str, Any], config: dict[str, Any]) -> dict[str, Any]:
    """Return a kubeconfig with what `config` has in it, in place of entries of the same names.

    before: the decoded kubeconfig of the user, {} for none; config: as of `for_host`. The current context is that of
    `config`.
    """
    after = {"apiVersion": "v1", "kind": "Config", **before, "current-context": config["current-context"]}
    for kind in ("clusters", "users", "contexts"):
        names = {entry["name"] for entry in config[kind]}
        after[kind] = [entry for entry in before.get(kind) or [] if entry.get("name") not in names] + config[kind]
    return after


def _read(path: Path) -> dict[str, Any]:
    found = load_yaml(read_file(path), name=str(path))
    if not isinstance(found, dict):
        raise ValueError(f"{path}: is not a kubeconfig")
    return found
