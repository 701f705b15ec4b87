"""`agentlab create TARGET` and `agentlab graph`: the verbs of `openshift-install agent`."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from .._deps import MissingLibrary
from ..files import explain, new_file
from ..log import LEVELS, level_of
from ..signals import Termination
from ..vocabulary import Exit
from .output import message

if TYPE_CHECKING:
    from ..installer.build import Options
    from ..log import Log

ASSETS = Path(__file__).resolve().parents[3] / "roles" / "agent_image" / "files" / "live"
TARGETS = {
    "agent-config-template": "a template of agent-config.yaml with every field",
    "cluster-manifests": "the ZTP manifests of install-config.yaml and agent-config.yaml",
    "image": "the bootable agent ISO",
    "pxe-files": "kernel, initrd, rootfs and iPXE script",
    "config-image": "the ISO that configures hosts booted from an unconfigured image",
    "unconfigured-ignition": "the Ignition config of hosts whose cluster comes later",
    "certificates": "the cluster's signers and the kubeadmin password",
}


def _common() -> argparse.ArgumentParser:
    """Options that may be before or after the target, as in openshift-install."""
    # Without a default: the target's parser would override the value before the target.
    common = argparse.ArgumentParser(add_help=False, allow_abbrev=False, argument_default=argparse.SUPPRESS)
    common.add_argument("--dir", type=Path, help="assets directory (default .)")
    common.add_argument("--log-level", metavar="LEVEL",
                        help="minimum level of messages (default info): " + ", ".join(LEVELS))  # fmt: skip
    return common


def _parser() -> argparse.ArgumentParser:
    common = _common()
    parser = argparse.ArgumentParser(
        prog="agentlab create",
        description="Create what an agent-based installation needs.",
        parents=[common],
        allow_abbrev=False,
    )
    targets = parser.add_subparsers(dest="target", required=True, metavar="TARGET")
    for name, text in TARGETS.items():
        target = targets.add_parser(name, help=text, description=text, parents=[common], allow_abbrev=False)
        target.add_argument("--consume", action="store_true",
                            help="delete the inputs afterwards, as openshift-install does")  # fmt: skip
        if name == "unconfigured-ignition":
            target.add_argument("--interactive", action="store_true",
                                help="start the web interface on node zero (releases 4.19 and 4.20)")  # fmt: skip
    return parser


def main(argv: list[str]) -> int:
    """Run `agentlab create`; returns the exit status.

    argv: after `create`. The statuses and messages are those of `openshift-install agent create`; messages are also in
    `.openshift_install.log` of the assets directory.
    """
    arguments = _parser().parse_args(argv)
    from ..installer import run
    from ..log import Log

    directory = getattr(arguments, "dir", Path())
    level = getattr(arguments, "log_level", "info")
    try:
        directory.mkdir(mode=0o750, parents=True, exist_ok=True)
        log = Log(directory, level_of(level))
    except ValueError as error:
        Log(None).fatal(f"invalid log-level: {error}")
        return Exit.FAILED
    except OSError as error:
        Log(None).fatal(f"failed to create directory {directory}: {error.strerror}")
        return Exit.FAILED
    options = run.Options.from_environment(
        dict(os.environ), directory, ASSETS, interactive=getattr(arguments, "interactive", False)
    )
    try:
        return attempt(arguments.target, options, log, consume=arguments.consume)
    except Termination as error:
        log.fatal(str(error))
        raise
    except KeyboardInterrupt:
        log.fatal("interrupted")
        return Exit.CREATE_INTERRUPTED


def attempt(target: str, options: Options, log: Log, *, consume: bool = False) -> int:
    """Create a target with the messages of openshift-install in `log`, that of a failure included; returns the exit code.

    target: a key of `TARGETS`; consume: delete the inputs afterwards.
    """
    from ..installer import run

    if options.release_image and target not in ("agent-config-template", "certificates"):
        log.warning(
            f"Found override for release image ({options.release_image}). Please be warned, this is not advised"
        )
    try:
        run.create([target], options, log, consume=consume)
    except (ValueError, OSError, MissingLibrary) as error:
        status = run.exit_code(error)
        (log.error if status == Exit.INSTALL_CONFIG else log.fatal)(message(error))
        return status
    return Exit.OK


def graph(argv: list[str]) -> int:
    """Run `agentlab graph`; returns the exit status.

    The text is for Graphviz's `dot`; nothing is created. `Exit.FAILED` when the output file cannot be written.
    """
    parser = argparse.ArgumentParser(
        prog="agentlab graph",
        description="Print the graph of assets in Graphviz's format.",
        parents=[_common()],
        allow_abbrev=False,
    )
    parser.add_argument("--output-file", type=Path, default=None, help="output file, instead of stdout")
    arguments = parser.parse_args(argv)
    from ..installer import run
    from ..log import Log

    text = run.graph()
    if arguments.output_file:
        try:
            with new_file(arguments.output_file, overwrite=True, mode=0o644) as out:
                out.write(text.encode())
        except OSError as error:
            Log(None).fatal(explain(error))
            return Exit.FAILED
    else:
        sys.stdout.write(text)
    return Exit.OK
