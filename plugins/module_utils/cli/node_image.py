"""`agentlab node-image create` and `monitor`: the verbs of `oc adm node-image`, on this host instead of in a pod of the cluster."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from .._deps import MissingLibrary
from ..addresses import MAC
from ..cluster import node_image, node_task
from ..errors import AgentlabError, ClusterError
from ..installer import run
from ..installer.errors import InstallerError
from ..installer.nodes_config import FILENAME
from ..log import LEVELS, Log, level_of
from ..plan.rundir import dump
from ..state import write_atomic
from ..vocabulary import ARCHITECTURES, BOOT_ARTIFACTS, Exit, boot_file
from .create import ASSETS
from .monitor_add_nodes import follow
from .output import message

# Flags of `oc adm node-image create` that describe one host, in place of nodes-config.yaml.
_OF_HOST = ("root_device_hint", "ssh_key_path", "name", "network_config_path", "cpu_architecture")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="agentlab node-image",
        description="Add nodes to an installed cluster, as oc adm node-image.",
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="create|monitor")
    create = commands.add_parser(
        "create",
        help="create the image from which new nodes boot",
        description="Create an ISO from which new nodes boot and join the cluster. The nodes are those of nodes-config.yaml in "
        "--dir, or the one of --mac-address.",
        allow_abbrev=False,
    )
    create.add_argument(
        "--dir", type=Path, default=Path(), help="directory of nodes-config.yaml and of the image (default .)"
    )
    create.add_argument(
        "-m", "--mac-address", metavar="MAC", help="MAC address of a single node, instead of nodes-config.yaml"
    )
    create.add_argument("--root-device-hint", metavar="KEY:VALUE", help="hint for its disk, as in deviceName:/dev/sda")
    create.add_argument(
        "-k", "--ssh-key-path", type=Path, metavar="FILE", help="public SSH key for it (default: the cluster's)"
    )
    create.add_argument("--name", metavar="HOSTNAME", help="its host name")
    create.add_argument("--network-config-path", type=Path, metavar="FILE", help="its nmstate, a YAML file")
    create.add_argument("-c", "--cpu-architecture", metavar="ARCH", help="its architecture (default: the cluster's)")
    create.add_argument(
        "-o", "--output-name", metavar="NAME", help="name of the ISO in --dir (default node.<arch>.iso)"
    )
    create.add_argument(
        "-p", "--pxe", action="store_true", help=f"create the files for a network boot instead, in {BOOT_ARTIFACTS}"
    )
    monitor = commands.add_parser(
        "monitor",
        help="follow nodes until they are ready",
        description="Report the progress of nodes that were booted from a node image. Certificate requests that wait are shown; "
        "`oc adm certificate approve` approves them.",
        allow_abbrev=False,
    )
    monitor.add_argument("--ip-addresses", default="", metavar="IP,IP", help="IP addresses of the nodes")
    monitor.add_argument("--dir", type=Path, default=Path(), help="directory for the log (default .)")
    for one in (create, monitor):
        one.add_argument(
            "--kubeconfig",
            type=Path,
            metavar="FILE",
            help="kubeconfig of the cluster (default: $KUBECONFIG, or ~/.kube/config)",
        )
        one.add_argument(
            "--log-level", default="info", metavar="LEVEL", help="minimum level (default info): " + ", ".join(LEVELS)
        )
    return parser


def main(argv: list[str]) -> int:
    """Run a verb of `oc adm node-image`; returns the exit status: OK, or FAILED with a message."""
    args = _parser().parse_args(argv)
    try:
        level = level_of(args.log_level)
        log = Log(args.dir if args.dir.is_dir() else None, level)
    except ValueError as error:
        Log(None).fatal(f"invalid log-level: {error}")
        return Exit.FAILED
    try:
        return _create(args, log) if args.command == "create" else _monitor(args, log)
    except (AgentlabError, ValueError, OSError, MissingLibrary) as error:
        log.fatal(message(error))
        return Exit.FAILED


def _kubeconfig(args: argparse.Namespace) -> Path:
    given: Path = args.kubeconfig or Path(os.environ.get("KUBECONFIG") or Path.home() / ".kube" / "config")
    if not given.is_file():
        raise ClusterError(f"{given}: no such file: give the kubeconfig of the cluster by --kubeconfig or KUBECONFIG")
    return given


def _create(args: argparse.Namespace, log: Log) -> int:
    directory: Path = args.dir
    if not directory.is_dir():
        raise InstallerError(f"--dir {directory}: no such directory")
    if args.output_name and (args.pxe or Path(args.output_name).name != args.output_name):
        raise InstallerError(f"--output-name {args.output_name}: must be the name of an ISO in --dir, without --pxe")
    kube = node_task.client(_kubeconfig(args))
    if args.mac_address:
        _write_single(args, directory / FILENAME)
    elif given := [name for name in _OF_HOST if getattr(args, name)]:
        raise InstallerError(f"--{given[0].replace('_', '-')} is for a single node: --mac-address is required")
    options = run.Options.from_environment(dict(os.environ), directory, ASSETS)
    node_image.create("node-pxe-files" if args.pxe else "node-image", options, kube, log)
    if args.output_name:
        made = max(directory.glob(boot_file("node", "*", ".iso")), key=lambda path: path.stat().st_mtime_ns)
        if made.name != args.output_name:
            target = directory / args.output_name
            target.unlink(missing_ok=True)
            os.link(made, target)
        log.info(f"Command successfully completed: {directory / args.output_name}")
    return Exit.OK


def _write_single(args: argparse.Namespace, path: Path) -> None:
    """Write nodes-config.yaml for the node of the flags; one that is there and differs is the user's."""
    if not MAC.fullmatch(args.mac_address):
        raise InstallerError(f"--mac-address {args.mac_address}: must be a MAC address such as 52:54:00:aa:bb:01")
    host: dict[str, object] = {"interfaces": [{"name": "eth0", "macAddress": args.mac_address}]}
    if args.name:
        host["hostname"] = args.name
    if args.root_device_hint:
        key, colon, value = args.root_device_hint.partition(":")
        if not (key and colon and value):
            raise InstallerError(
                f"--root-device-hint {args.root_device_hint}: must be KEY:VALUE, as in deviceName:/dev/sda"
            )
        host["rootDeviceHints"] = {key: value}
    if args.network_config_path:
        from ..documents import load_yaml, read_file

        host["networkConfig"] = load_yaml(read_file(args.network_config_path), name=str(args.network_config_path))
    config: dict[str, object] = {"hosts": [host]}
    if args.cpu_architecture:
        if args.cpu_architecture not in ARCHITECTURES:
            raise InstallerError(
                f"--cpu-architecture {args.cpu_architecture}: must be one of {', '.join(ARCHITECTURES)}"
            )
        config["cpuArchitecture"] = args.cpu_architecture
    if args.ssh_key_path:
        config["sshKey"] = args.ssh_key_path.read_text(encoding="utf-8").strip()
    text = dump(config)
    if path.exists() and path.read_text(encoding="utf-8") != text:
        raise InstallerError(f"{path} exists and has other nodes than --mac-address: remove one of them")
    write_atomic(path, text, 0o600)


def _monitor(args: argparse.Namespace, log: Log) -> int:
    addresses = [text for text in args.ip_addresses.split(",") if text]
    if not addresses:
        raise InstallerError("--ip-addresses cannot be empty")
    return follow(addresses, _kubeconfig(args), log)
