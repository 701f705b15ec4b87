"""What the verbs of coreos-installer share: options, input and output, and a tree of words that becomes a parser."""

from __future__ import annotations

import argparse
import dataclasses
import fnmatch
import os
import sys
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from ..._deps import MissingLibrary
from ...coreos import cpio, customize, image
from ...coreos.errors import CoreosError, prefix_errors
from ...files import explain
from ...terminal import write_line
from ...vocabulary import Exit
from . import help as texts

Command = Callable[[argparse.Namespace], None]
Option = tuple[tuple[str, ...], dict[str, Any]]
Tree = dict[str, Any]


def option(*names: str, **settings: object) -> Option:
    return names, settings


def repeated_option(*names: str, metavar: str, help: str) -> Option:
    return names, {"action": "append", "default": [], "metavar": metavar, "help": f"{help}; may be repeated"}


ISO = option("input", metavar="ISO", help="the live ISO image")
OUTPUT = option("-o", "--output", metavar="path", help="write to a new file, or - for stdout, instead of in place")
FORCE = option("-f", "--force", action="store_true", help="overwrite existing embedded data")
KEYFILES = option("-k", "--keyfile", action="append", required=True, metavar="path", help="NetworkManager keyfile")
DIRECTORY = option("-C", "--directory", metavar="path", help="extract to a directory instead of stdout")
CUSTOMIZE = [
    (
        (f"--{each.name.replace('_', '-')}",),
        {
            "metavar": texts.CUSTOMIZE[each.name][0],
            "help": texts.CUSTOMIZE[each.name][1],
            **({} if each.name == "dest_device" else {"action": "append", "default": []}),
        },
    )
    for each in dataclasses.fields(customize.Customization)
]


def binary_stdout() -> BinaryIO:
    """Return stdout for an image; refuse a terminal.

    It is sys.stdout's buffer. Raises `CoreosError` for a terminal, with coreos-installer's text.
    """
    if sys.stdout.isatty():
        raise CoreosError("Refusing to write binary data to terminal")
    return sys.stdout.buffer


def show(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def notice(text: str) -> None:
    write_line(text, sys.stderr)


def read_input(path: str | None) -> bytes:
    return customize.read_file(path) if path is not None else sys.stdin.buffer.read()


def customization_of(args: argparse.Namespace) -> customize.Customization:
    return customize.Customization(
        **{each.name: getattr(args, each.name) for each in dataclasses.fields(customize.Customization)}
    )


def write_network(keyfiles: dict[str, bytes], directory: str | None) -> None:
    """Print keyfiles, or write them to a directory where none of them exists.

    keyfiles: name -> content; directory: None for stdout, with a heading for each file. Raises `CoreosError` for no
    keyfiles, and for one that exists.
    """
    if not keyfiles:
        raise CoreosError("No embedded network settings.")
    if directory is None:
        for index, (name, data) in enumerate(keyfiles.items()):
            show(("\n" if index else "").encode() + f"########## {name} ##########\n".encode() + data)
        return
    for name, data in keyfiles.items():
        write_below(directory, name, data)
        write_line(os.path.join(directory, name))


def write_below(directory: str, name: str, data: bytes, mode: int = 0o600) -> None:
    """Write a member of an archive below a directory; refuse to leave it, and to overwrite.

    name: relative path with `/`; its folders are made. Raises `CoreosError` for an absolute path, `..`, a symbolic link
    that leads out of `directory`, and a file that exists.
    """
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


def read_initrd(path: str | None, patterns: list[str]) -> dict[str, bytes]:
    """Return the files of an initramfs, from stdin for None and -, whose names match any of the patterns.

    patterns: of `fnmatch`, over whole paths without a leading slash; none means all files. Raises `CoreosError` or
    `OSError`.
    """

    def wanted(name: str) -> bool:
        return not patterns or any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)

    if path in (None, "-"):
        with prefix_errors("stdin"):
            return cpio.read_files(sys.stdin.buffer, wanted)
    with open(str(path), "rb") as file, prefix_errors(path):
        return cpio.read_files(file, wanted)


def _grow(parser: argparse.ArgumentParser, tree: Tree, path: str) -> None:
    words = parser.add_subparsers(required=True, metavar="COMMAND", title="commands")
    for word, branch in tree.items():
        text = texts.COMMANDS[f"{path} {word}"]
        sub = words.add_parser(word, allow_abbrev=False, help=text, description=f"{text[:1].upper()}{text[1:]}.")
        if isinstance(branch, dict):
            _grow(sub, branch, f"{path} {word}")
            continue
        command, options = branch
        sub.set_defaults(command=command)
        for names, settings in options:
            sub.add_argument(*names, **settings)


def run(prog: str, tree: Tree, argv: list[str]) -> int:
    """Run the command of `argv` in a tree of subcommands; print errors as coreos-installer does.

    prog: such as `agentlab iso`; tree: word -> (command, options), or a tree of further words; argv: the words after
    `prog`. Returns `Exit.OK` or `Exit.FAILED`. `BrokenPipeError` is raised for the caller.
    """
    verb = prog.removeprefix("agentlab ")
    text = texts.COMMANDS[verb]
    parser = argparse.ArgumentParser(prog=prog, allow_abbrev=False, description=f"{text[:1].upper()}{text[1:]}.")
    _grow(parser, tree, verb)
    args = parser.parse_args(argv)
    try:
        args.command(args)
    except BrokenPipeError:
        raise
    except (CoreosError, MissingLibrary) as error:
        write_line(f"Error: {error}", sys.stderr)
        return Exit.FAILED
    except OSError as error:
        write_line(f"Error: {explain(error)}", sys.stderr)
        return Exit.FAILED
    return Exit.OK
