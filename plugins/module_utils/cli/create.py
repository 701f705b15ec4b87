"""`agentlab create TARGET` and `agentlab graph`: the verbs of `openshift-install agent`."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from .._deps import MissingLibrary
from ..log import LEVELS

ASSETS = Path(__file__).resolve().parents[3] / "roles" / "agent_image" / "files" / "live"
_INTERRUPTED = 8
_TARGETS = {
    "agent-config-template": "a template of agent-config.yaml with every field",
    "cluster-manifests": "the ZTP manifests of install-config.yaml and agent-config.yaml",
    "image": "the bootable agent ISO",
    "pxe-files": "kernel, initrd, rootfs and iPXE script",
    "config-image": "the ISO that configures hosts booted from an unconfigured image",
    "unconfigured-ignition": "the Ignition config of hosts whose cluster comes later",
    "certificates": "the cluster's signers and the kubeadmin password",
}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="agentlab create", description="Create what an agent-based installation needs.")
    targets = parser.add_subparsers(dest="target", required=True, metavar="TARGET")
    for name, text in _TARGETS.items():
        target = targets.add_parser(name, help=text, description=text)
        target.add_argument("--dir", type=Path, default=Path(), help="directory of the inputs and of what is made")
        target.add_argument("--log-level", default="info", choices=(*LEVELS, "warn"), metavar="LEVEL",
                            help="least severe messages to show: " + ", ".join(LEVELS))  # fmt: skip
        target.add_argument("--consume", action="store_true",
                            help="delete the inputs afterwards, as openshift-install does")  # fmt: skip
        if name == "unconfigured-ignition":
            target.add_argument("--interactive", action="store_true",
                                help="start the web interface on node zero (releases 4.19 and 4.20)")  # fmt: skip
    return parser


def main(argv: list[str]) -> int:
    """Run `agentlab create`; returns the exit status."""
    arguments = _parser().parse_args(argv)
    from ..installer import run
    from ..installer.log import Log

    directory = arguments.dir.absolute()
    directory.mkdir(mode=0o750, parents=True, exist_ok=True)
    log = Log(directory, {"warn": "warning"}.get(arguments.log_level, arguments.log_level))
    options = run.Options.from_environment(
        dict(os.environ), directory, ASSETS, interactive=getattr(arguments, "interactive", False)
    )
    try:
        run.create([arguments.target], options, log, consume=arguments.consume)
    except (ValueError, OSError, MissingLibrary) as error:
        log.fatal(str(error))
        return run.exit_code(error)
    except KeyboardInterrupt:
        log.fatal("interrupted")
        return _INTERRUPTED
    return 0


def graph(argv: list[str]) -> int:
    """Run `agentlab graph`; returns the exit status."""
    parser = argparse.ArgumentParser(prog="agentlab graph", description="Draw the assets in the language of Graphviz.")
    parser.add_argument("--output-file", type=Path, help="where to write to, instead of stdout")
    parser.add_argument("--dir", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    from ..installer import run

    text = run.graph()
    if arguments.output_file:
        arguments.output_file.write_text(text)
    else:
        sys.stdout.write(text)
    return 0
