"""`agentlab iso`: the words of coreos-installer for live ISOs.

With `exec agentlab "$@"` in a script, or `exec agentlab iso "$@"`, called coreos-installer, its users need not know.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from ...coreos import customize, kargs, miniso, pxe
from ...coreos.errors import CoreosError, prefix_errors
from ...coreos.iso import LiveIso
from ...coreos.iso9660 import Iso9660, open_image
from ...terminal import write_line
from .common import (
    CUSTOMIZE,
    DIRECTORY,
    FORCE,
    ISO,
    KEYFILES,
    OUTPUT,
    Command,
    Tree,
    binary_stdout,
    customization_of,
    notice,
    option,
    read_input,
    repeated_option,
    run,
    show,
    write_network,
)
from .dev import DEV, PACK


def _finish(iso: LiveIso, output: str | None) -> None:
    if output is None:
        iso.save("xz")
    elif output == "-":
        iso.stream(binary_stdout(), "xz")
    else:
        iso.save_as(output, "xz")


def _ignition_embed(args: argparse.Namespace) -> None:
    config = read_input(args.ignition_file)
    with LiveIso(args.input) as iso:
        if iso.ignition is not None and not args.force:
            raise CoreosError("This ISO image already has an embedded Ignition config; use -f to force.")
        iso.ignition = config
        _finish(iso, args.output)


def _ignition_show(args: argparse.Namespace) -> None:
    with LiveIso(args.input) as iso:
        if iso.ignition is None:
            raise CoreosError("No embedded Ignition config.")
        show(iso.ignition)


def _ignition_remove(args: argparse.Namespace) -> None:
    with LiveIso(args.input) as iso:
        iso.ignition = None
        _finish(iso, args.output)


def _network_embed(args: argparse.Namespace) -> None:
    with LiveIso(args.input) as iso:
        if not iso.features.get("live-initrd-network"):
            raise CoreosError("This OS image does not support customizing network settings.")
        if iso.network and not args.force:
            raise CoreosError("This ISO image already has embedded network settings; use -f to force.")
        iso.network = customize.keyfiles(args.keyfile)
        _finish(iso, args.output)


def _network_extract(args: argparse.Namespace) -> None:
    with LiveIso(args.input) as iso:
        write_network(iso.network, args.directory)


def _network_remove(args: argparse.Namespace) -> None:
    with LiveIso(args.input) as iso:
        iso.network = {}
        _finish(iso, args.output)


def _kargs_modify(args: argparse.Namespace) -> None:
    with LiveIso(args.input) as iso:
        iso.edit_kargs(args.append, args.delete, args.replace)
        _finish(iso, args.output)


def _kargs_reset(args: argparse.Namespace) -> None:
    with LiveIso(args.input) as iso:
        iso.reset_kargs()
        _finish(iso, args.output)


def _kargs_show(args: argparse.Namespace) -> None:
    with LiveIso(args.input) as iso:
        found = kargs.require_kargs(iso.kargs)
        write_line(found.default if args.default else found.current)


def _customize(args: argparse.Namespace) -> None:
    with LiveIso(args.input) as iso:
        if iso.customized and not args.force:
            raise CoreosError("This ISO image is already customized; use -f to force.")
        iso.files = customize.customize(customization_of(args), iso.features, notice)
        if args.live_karg_append or args.live_karg_delete or args.live_karg_replace:
            if iso.kargs is None:
                raise CoreosError("This OS image does not support customizing live kernel arguments.")
            iso.reset_kargs()
            iso.edit_kargs(args.live_karg_append, args.live_karg_delete, args.live_karg_replace)
        _finish(iso, args.output)


def _reset(args: argparse.Namespace) -> None:
    with LiveIso(args.input) as iso:
        iso.reset()
        _finish(iso, args.output)


def _extract_pxe(args: argparse.Namespace) -> None:
    fd = open_image(args.input)
    try:
        with prefix_errors(args.input):
            fs = Iso9660(fd)
            records = list(pxe.files(fs))
        os.makedirs(args.output_dir, exist_ok=True)
        for record in records:
            path = os.path.join(args.output_dir, f"{Path(args.input).stem}-{record.name.lower()}")
            write_line(path)
            fs.extract(record, path)
    finally:
        os.close(fd)


def _extract_minimal(args: argparse.Namespace) -> None:
    with LiveIso(args.input) as iso:
        output = binary_stdout() if args.output == "-" else args.output
        miniso.extract(iso, output, args.rootfs_url, args.output_rootfs)


def _deprecated(old: str, new: str, command: Command) -> Command:
    def run(args: argparse.Namespace) -> None:
        notice(f"`iso {old}` is deprecated; use `iso {new}`.  Continuing.")
        command(args)

    return run


_IGNITION_FILE = option("-i", "--ignition-file", metavar="path", help="Ignition config to embed [default: stdin]")
_ISO: Tree = {
    "customize": (
        _customize,
        [
            *CUSTOMIZE,
            repeated_option("--live-karg-append", metavar="arg", help="append a kernel argument of the live system"),
            repeated_option("--live-karg-delete", metavar="arg", help="delete a kernel argument of the live system"),
            repeated_option(
                "--live-karg-replace", metavar="k=o=n", help="replace the value of a kernel argument of the live system"
            ),
            FORCE,
            OUTPUT,
            ISO,
        ],
    ),
    "ignition": {
        "embed": (_ignition_embed, [FORCE, _IGNITION_FILE, OUTPUT, ISO]),
        "show": (_ignition_show, [ISO]),
        "remove": (_ignition_remove, [OUTPUT, ISO]),
    },
    "network": {
        "embed": (_network_embed, [KEYFILES, FORCE, OUTPUT, ISO]),
        "extract": (_network_extract, [DIRECTORY, ISO]),
        "remove": (_network_remove, [OUTPUT, ISO]),
    },
    "kargs": {
        "modify": (
            _kargs_modify,
            [
                repeated_option("-a", "--append", metavar="KARG", help="append a kernel argument"),
                repeated_option("-d", "--delete", metavar="KARG", help="delete a kernel argument"),
                repeated_option(
                    "-r", "--replace", metavar="KARG=OLDVAL=NEWVAL", help="replace the value of a kernel argument"
                ),
                OUTPUT,
                ISO,
            ],
        ),
        "reset": (_kargs_reset, [OUTPUT, ISO]),
        "show": (_kargs_show, [option("-d", "--default", action="store_true", help="show the default arguments"), ISO]),
    },
    "extract": {
        "pxe": (
            _extract_pxe,
            [ISO, option("-o", "--output-dir", default=".", metavar="PATH", help="directory to write to (default .)")],
        ),
        "minimal-iso": (
            _extract_minimal,
            [
                ISO,
                option(
                    "output",
                    nargs="?",
                    default="-",
                    metavar="OUTPUT_ISO",
                    help="output path of the minimal ISO (default: stdout)",
                ),
                option("--output-rootfs", metavar="PATH", help="extract the rootfs image to a file as well"),
                option("--rootfs-url", metavar="URL", help="URL of the rootfs for the minimal ISO"),
            ],
        ),
    },
    "reset": (_reset, [OUTPUT, ISO]),
    "embed": (
        _deprecated("embed", "ignition embed", _ignition_embed),
        [
            option(
                "-c", "--config", dest="ignition_file", metavar="path", help="Ignition config to embed [default: stdin]"
            ),
            FORCE,
            OUTPUT,
            ISO,
        ],
    ),
    "show": (_deprecated("show", "ignition show", _ignition_show), [ISO]),
    "remove": (_deprecated("remove", "ignition remove", _ignition_remove), [OUTPUT, ISO]),
    "dev": DEV,
    "pack": PACK,
}


def main(argv: list[str]) -> int:
    """Run `agentlab iso ...`; ignore a repeated leading `iso`."""
    if argv[:1] == ["pxe"]:
        from . import pxe as pxe_verb

        return pxe_verb.main(argv[1:])
    return run("agentlab iso", _ISO, argv[1:] if argv[:1] == ["iso"] else argv)
