"""`agentlab dev` and `agentlab pack`: coreos-installer's words for those who build images."""

from __future__ import annotations

import argparse
import json
import os
from typing import Any

from ...coreos import miniso
from ...coreos.errors import prefix_errors
from ...coreos.iso import LiveIso
from ...coreos.iso9660 import Iso9660, open_image
from ...terminal import write_line
from .common import ISO, Tree, notice, option, read_initrd, run, write_below


def _dev_show_iso(args: argparse.Namespace) -> None:
    if args.ignition or args.kargs:
        with LiveIso(args.input) as iso:
            shown: Any = iso.header() if args.ignition else iso.kargs and iso.kargs.header()
    else:
        fd = open_image(args.input)
        try:
            with prefix_errors(args.input):
                fs = Iso9660(fd)
                shown = {
                    "header": {"descriptors": fs.descriptors},
                    "records": [path for path, __ in fs.walk(plain=True)],
                }
        finally:
            os.close(fd)
    write_line(json.dumps(shown, indent=2, ensure_ascii=False))


def _dev_show_initrd(args: argparse.Namespace) -> None:
    for name in sorted(read_initrd(args.input, args.filter)):
        write_line(name)


def _dev_extract_initrd(args: argparse.Namespace) -> None:
    for name, data in sorted(read_initrd(args.input, args.filter).items()):
        if args.verbose:
            write_line(os.path.join(args.directory, name))
        write_below(args.directory, name, data, 0o644)


def _pack_minimal(args: argparse.Namespace) -> None:
    notice("Packing minimal ISO")
    counts = miniso.pack(args.full, args.minimal)
    notice(f"Matched {counts['matched']} files of {counts['files']}")
    notice(f"Total bytes skipped: {counts['skipped']}")
    notice(f"Total bytes written: {counts['written']}")
    notice(f"Total bytes written (compressed): {counts['compressed']}")
    if args.consume:
        os.unlink(args.minimal)
    notice("Packing successful!")


_FILTER = option("filter", nargs="*", metavar="glob", help="names of files (default: all)")
DEV: Tree = {
    "show": {
        "iso": (
            _dev_show_iso,
            [
                ISO,
                option("--ignition", action="store_true", help="show the location of the Ignition config"),
                option("--kargs", action="store_true", help="show the location of the kernel arguments"),
            ],
        ),
        "initrd": (
            _dev_show_initrd,
            [option("input", metavar="initrd", help="the initramfs image, or - for stdin"), _FILTER],
        ),
    },
    "extract": {
        "initrd": (
            _dev_extract_initrd,
            [
                option("input", metavar="initrd", help="the initramfs image, or - for stdin"),
                _FILTER,
                option("-C", "--directory", default=".", metavar="path", help="directory to extract to (default .)"),
                option("-v", "--verbose", action="store_true", help="list the files that are extracted"),
            ],
        )
    },
}
PACK: Tree = {
    "minimal-iso": (
        _pack_minimal,
        [
            option("full", metavar="FULL_ISO", help="the full ISO, which gets the recipe of the minimal one"),
            option("minimal", metavar="MINIMAL_ISO", help="the minimal ISO"),
            option("--consume", action="store_true", help="delete the minimal ISO afterwards"),
        ],
    )
}


def dev(argv: list[str]) -> int:
    """Run `agentlab dev ...`."""
    return run("agentlab dev", DEV, argv)


def pack(argv: list[str]) -> int:
    """Run `agentlab pack ...`."""
    return run("agentlab pack", PACK, argv)
