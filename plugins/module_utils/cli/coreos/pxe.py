"""`agentlab pxe`: coreos-installer's commands for network boot."""

from __future__ import annotations

import argparse
import contextlib
import sys
from pathlib import Path
from typing import BinaryIO

from ... import files
from ...coreos import cpio, customize, image, kargs
from ...coreos.errors import CoreosError, prefix_errors
from ...coreos.iso import IGNITION_PATH, NETWORK_DIR
from ...coreos.pxe import FEATURES, LIVE_STAMP
from .common import (
    CUSTOMIZE,
    DIRECTORY,
    KEYFILES,
    Tree,
    binary_stdout,
    customization_of,
    notice,
    option,
    read_initrd,
    read_input,
    run,
    show,
    write_network,
)


def _archive(files: dict[str, bytes]) -> bytes:
    return cpio.compress(cpio.archive(files), "xz")


def _write(contents: dict[str, bytes], output: str | None) -> None:
    if output is None:
        binary_stdout()
        show(_archive(contents))
        return
    data = _archive(contents)
    try:
        if Path(output).exists() and not Path(output).is_file():  # a device or a pipe
            Path(output).write_bytes(data)
            return
        with files.new_file(output, overwrite=True, mode=0o644) as out:
            left = memoryview(data)
            while left:
                left = left[out.write(left) :]
    except OSError as error:
        raise CoreosError(f"writing {output}: {error.strerror}") from None


def _ignition_wrap(args: argparse.Namespace) -> None:
    _write({IGNITION_PATH: read_input(args.ignition_file)}, args.output)


def _ignition_unwrap(args: argparse.Namespace) -> None:
    found = read_initrd(args.input, [IGNITION_PATH])
    if IGNITION_PATH not in found:
        raise CoreosError("couldn't find Ignition config in archive")
    show(found[IGNITION_PATH])


def _network_wrap(args: argparse.Namespace) -> None:
    found = customize.keyfiles(args.keyfile)
    _write({NETWORK_DIR + name: data for name, data in found.items()}, args.output)


def _network_unwrap(args: argparse.Namespace) -> None:
    found = read_initrd(args.input, [f"{NETWORK_DIR}*"])
    keyfiles = {name.removeprefix(NETWORK_DIR): data for name, data in sorted(found.items())}
    write_network(keyfiles, args.directory)


class _Tee:
    """Copies a stream while it is read."""

    def __init__(self, source: BinaryIO, copy: BinaryIO) -> None:
        self._source, self._copy = source, copy

    def read(self, size: int, /) -> bytes:
        data = self._source.read(size)
        self._copy.write(data)
        return data


def _customize(args: argparse.Namespace) -> None:
    with contextlib.ExitStack() as stack:
        source = stack.enter_context(open(args.input, "rb"))
        to_stdout = args.output == "-"
        out = binary_stdout() if to_stdout else stack.enter_context(image.new_file(args.output))
        wanted = {LIVE_STAMP, FEATURES, IGNITION_PATH}
        with prefix_errors(args.input):
            base = cpio.read_files(_Tee(source, out), lambda name: name in wanted or name.startswith(NETWORK_DIR))
            if LIVE_STAMP not in base:
                raise CoreosError("not a CoreOS live initramfs image")
        if IGNITION_PATH in base or any(name.startswith(NETWORK_DIR) for name in base):
            raise CoreosError("input is already customized")
        features = kargs.json_object(base[FEATURES], FEATURES) if FEATURES in base else {}
        files = customize.customize(customization_of(args), features, notice)
        if IGNITION_PATH in files:
            notice("PXE configuration must include kernel arguments:\n\tignition.firstboot ignition.platform.id=metal")
        out.write(_archive(files))
        if to_stdout:
            sys.stdout.buffer.flush()


_IGNITION_FILE = option("-i", "--ignition-file", metavar="path", help="Ignition config to wrap [default: stdin]")
_OUTPUT = option("-o", "--output", metavar="path", help="write to a file instead of stdout")
_INITRD = option("input", nargs="?", metavar="initrd", help="the initramfs image (default: stdin)")
_PXE: Tree = {
    "customize": (
        _customize,
        [
            *CUSTOMIZE,
            option(
                "-o",
                "--output",
                required=True,
                metavar="path",
                help="write the initramfs image to a new file, or - for stdout",
            ),
            option("input", metavar="path", help="the live initramfs image"),
        ],
    ),
    "ignition": {
        "wrap": (_ignition_wrap, [_IGNITION_FILE, _OUTPUT]),
        "unwrap": (_ignition_unwrap, [_INITRD]),
    },
    "network": {
        "wrap": (_network_wrap, [KEYFILES, _OUTPUT]),
        "unwrap": (_network_unwrap, [DIRECTORY, _INITRD]),
    },
}


def main(argv: list[str]) -> int:
    """Run `agentlab pxe ...`."""
    return run("agentlab pxe", _PXE, argv)
