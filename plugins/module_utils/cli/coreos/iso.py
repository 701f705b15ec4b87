"""`agentlab iso`, `agentlab dev` and `agentlab pack`: the words of coreos-installer for live ISOs and initramfs images.

With `exec agentlab "$@"` in a script, or `exec agentlab iso "$@"`, called coreos-installer, its users need not know.
"""

from __future__ import annotations

import argparse
import dataclasses
import fnmatch
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from .._deps import MissingLibrary
from ..coreos import cpio, customize, image, kargs, miniso, pxe
from ..coreos.errors import CoreosError, naming
from ..coreos.iso import LiveIso
from ..coreos.iso9660 import Iso9660, open_image
from ..files import explain
from . import coreos_help
from .terminal import say

Command = Callable[[argparse.Namespace], None]
Option = tuple[tuple[str, ...], dict[str, Any]]
Tree = dict[str, Any]


def option(*names: str, **settings: Any) -> Option:
    return names, settings


def many(*names: str, metavar: str, help: str) -> Option:
    return names, {"action": "append", "default": [], "metavar": metavar, "help": f"{help}; may be repeated"}


ISO = option("input", metavar="ISO", help="the live ISO image")
OUTPUT = option("-o", "--output", metavar="path", help="write to a new file, or - for stdout, instead of in place")
FORCE = option("-f", "--force", action="store_true", help="overwrite what is embedded already")
KEYFILES = option("-k", "--keyfile", action="append", required=True, metavar="path", help="NetworkManager keyfile")
DIRECTORY = option("-C", "--directory", metavar="path", help="extract to a directory instead of stdout")
WISHES = [
    (
        (f"--{wish.name.replace('_', '-')}",),
        {
            "metavar": coreos_help.CUSTOMIZE[wish.name][0],
            "help": coreos_help.CUSTOMIZE[wish.name][1],
            **({} if wish.name == "dest_device" else {"action": "append", "default": []}),
        },
    )
    for wish in dataclasses.fields(customize.Wishes)
]


def binary_stdout() -> BinaryIO:
    """Return stdout for an image; refuse a terminal."""
    if sys.stdout.isatty():
        raise CoreosError("Refusing to write binary data to terminal")
    return sys.stdout.buffer


def show(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def notice(text: str) -> None:
    say(text, sys.stderr)


def read_input(path: str | None) -> bytes:
    return customize.read_file(path) if path is not None else sys.stdin.buffer.read()


def wishes_of(args: argparse.Namespace) -> customize.Wishes:
    return customize.Wishes(**{wish.name: getattr(args, wish.name) for wish in dataclasses.fields(customize.Wishes)})


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


def write_network(keyfiles: dict[str, bytes], directory: str | None) -> None:
    """Print keyfiles, or write them to a directory where none of them exists."""
    if not keyfiles:
        raise CoreosError("No embedded network settings.")
    if directory is None:
        for index, (name, data) in enumerate(keyfiles.items()):
            show(("\n" if index else "").encode() + f"########## {name} ##########\n".encode() + data)
        return
    for name, data in keyfiles.items():
        write_below(directory, name, data)
        say(os.path.join(directory, name))


def write_below(directory: str, name: str, data: bytes, mode: int = 0o600) -> None:
    """Write a member of an archive below a directory; refuse to leave it, and to overwrite."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise CoreosError(f"path {name} contains path traversal")
    target = Path(directory) / path
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.parent.resolve().is_relative_to(Path(directory).resolve()):
            raise CoreosError(f"path {name} contains path traversal")
        with image.new_file(target, mode=mode) as out:
            out.write(data)
    except OSError as error:
        raise CoreosError(f"writing {target}: {error.strerror}") from None


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
        found = kargs.required(iso.kargs)
        say(found.default if args.default else found.current)


def _customize(args: argparse.Namespace) -> None:
    with LiveIso(args.input) as iso:
        if iso.customized and not args.force:
            raise CoreosError("This ISO image is already customized; use -f to force.")
        iso.files = customize.customize(wishes_of(args), iso.features, notice)
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
        with naming(args.input):
            fs = Iso9660(fd)
            records = list(pxe.files(fs))
        os.makedirs(args.output_dir, exist_ok=True)
        for record in records:
            path = os.path.join(args.output_dir, f"{Path(args.input).stem}-{record.name.lower()}")
            say(path)
            fs.extract(record, path)
    finally:
        os.close(fd)


def _extract_minimal(args: argparse.Namespace) -> None:
    with LiveIso(args.input) as iso:
        output = binary_stdout() if args.output == "-" else args.output
        miniso.extract(iso, output, args.rootfs_url, args.output_rootfs)


def _dev_show_iso(args: argparse.Namespace) -> None:
    if args.ignition or args.kargs:
        with LiveIso(args.input) as iso:
            shown: Any = iso.header() if args.ignition else iso.kargs and iso.kargs.header()
    else:
        fd = open_image(args.input)
        try:
            with naming(args.input):
                fs = Iso9660(fd)
                shown = {"header": {"descriptors": fs.descriptors}, "records": [path for path, __ in fs.walk(plain=True)]}
        finally:
            os.close(fd)
    say(json.dumps(shown, indent=2, ensure_ascii=False))


def read_initrd(path: str | None, patterns: list[str]) -> dict[str, bytes]:
    """Return the files of an initramfs, from stdin for None and -, whose names match any of the patterns."""

    def wanted(name: str) -> bool:
        return not patterns or any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)

    if path in (None, "-"):
        with naming("stdin"):
            return cpio.read_files(sys.stdin.buffer, wanted)
    with open(str(path), "rb") as file, naming(path):
        return cpio.read_files(file, wanted)


def _dev_show_initrd(args: argparse.Namespace) -> None:
    for name in sorted(read_initrd(args.input, args.filter)):
        say(name)


def _dev_extract_initrd(args: argparse.Namespace) -> None:
    for name, data in sorted(read_initrd(args.input, args.filter).items()):
        if args.verbose:
            say(os.path.join(args.directory, name))
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


def _deprecated(old: str, new: str, command: Command) -> Command:
    def run(args: argparse.Namespace) -> None:
        notice(f"`iso {old}` is deprecated; use `iso {new}`.  Continuing.")
        command(args)

    return run


_IGNITION_FILE = option("-i", "--ignition-file", metavar="path", help="Ignition config to embed [default: stdin]")
_FILTER = option("filter", nargs="*", metavar="glob", help="names of files (default: all)")
_DEV: Tree = {
    "show": {
        "iso": (
            _dev_show_iso,
            [ISO, option("--ignition", action="store_true", help="show where the Ignition config lies"),
             option("--kargs", action="store_true", help="show where the kernel arguments lie")],
        ),
        "initrd": (_dev_show_initrd, [option("input", metavar="initrd", help="the initramfs image, or - for stdin"), _FILTER]),
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
_PACK: Tree = {
    "minimal-iso": (
        _pack_minimal,
        [
            option("full", metavar="FULL_ISO", help="the full ISO, which gets what restores the minimal one"),
            option("minimal", metavar="MINIMAL_ISO", help="the minimal ISO made of it"),
            option("--consume", action="store_true", help="delete the minimal ISO afterwards"),
        ],
    )
}
_ISO: Tree = {
    "customize": (
        _customize,
        [
            *WISHES,
            many("--live-karg-append", metavar="arg", help="append a kernel argument of the live system"),
            many("--live-karg-delete", metavar="arg", help="delete a kernel argument of the live system"),
            many("--live-karg-replace", metavar="k=o=n", help="replace the value of a kernel argument of the live system"),
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
                many("-a", "--append", metavar="KARG", help="append a kernel argument"),
                many("-d", "--delete", metavar="KARG", help="delete a kernel argument"),
                many("-r", "--replace", metavar="KARG=OLDVAL=NEWVAL", help="replace the value of a kernel argument"),
                OUTPUT,
                ISO,
            ],
        ),
        "reset": (_kargs_reset, [OUTPUT, ISO]),
        "show": (_kargs_show, [option("-d", "--default", action="store_true", help="show those that the image was made with"), ISO]),
    },
    "extract": {
        "pxe": (_extract_pxe, [ISO, option("-o", "--output-dir", default=".", metavar="PATH", help="directory to write to (default .)")]),
        "minimal-iso": (
            _extract_minimal,
            [
                ISO,
                option("output", nargs="?", default="-", metavar="OUTPUT_ISO", help="where to write the minimal ISO (default: stdout)"),
                option("--output-rootfs", metavar="PATH", help="extract the rootfs image to a file as well"),
                option("--rootfs-url", metavar="URL", help="URL that the minimal ISO fetches its rootfs from"),
            ],
        ),
    },
    "reset": (_reset, [OUTPUT, ISO]),
    "embed": (
        _deprecated("embed", "ignition embed", _ignition_embed),
        [option("-c", "--config", dest="ignition_file", metavar="path", help="Ignition config to embed [default: stdin]"), FORCE, OUTPUT, ISO],
    ),
    "show": (_deprecated("show", "ignition show", _ignition_show), [ISO]),
    "remove": (_deprecated("remove", "ignition remove", _ignition_remove), [OUTPUT, ISO]),
    "dev": _DEV,
    "pack": _PACK,
}


def _grow(parser: argparse.ArgumentParser, tree: Tree, path: str) -> None:
    words = parser.add_subparsers(required=True, metavar="COMMAND", title="commands")
    for word, branch in tree.items():
        text = coreos_help.COMMANDS[f"{path} {word}"]
        sub = words.add_parser(word, allow_abbrev=False, help=text, description=f"{text[:1].upper()}{text[1:]}.")
        if isinstance(branch, dict):
            _grow(sub, branch, f"{path} {word}")
            continue
        command, options = branch
        sub.set_defaults(command=command)
        for names, settings in options:
            sub.add_argument(*names, **settings)


def run(prog: str, tree: Tree, argv: list[str]) -> int:
    """Run the command that `argv` names in a tree of words; print an error as coreos-installer does."""
    verb = prog.removeprefix("agentlab ")
    text = coreos_help.COMMANDS[verb]
    parser = argparse.ArgumentParser(prog=prog, allow_abbrev=False, description=f"{text[:1].upper()}{text[1:]}.")
    _grow(parser, tree, verb)
    args = parser.parse_args(argv)
    try:
        args.command(args)
    except BrokenPipeError:
        raise
    except (CoreosError, MissingLibrary) as error:
        say(f"Error: {error}", sys.stderr)
        return 1
    except OSError as error:
        say(f"Error: {explain(error)}", sys.stderr)
        return 1
    return 0


def main(argv: list[str]) -> int:
    """Run `agentlab iso ...`; a leading `iso` is taken as the name of the verb once more."""
    if argv[:1] == ["pxe"]:
        from . import pxe as pxe_verb

        return pxe_verb.main(argv[1:])
    return run("agentlab iso", _ISO, argv[1:] if argv[:1] == ["iso"] else argv)


def dev(argv: list[str]) -> int:
    """Run `agentlab dev ...`."""
    return run("agentlab dev", _DEV, argv)


def pack(argv: list[str]) -> int:
    """Run `agentlab pack ...`."""
    return run("agentlab pack", _PACK, argv)
