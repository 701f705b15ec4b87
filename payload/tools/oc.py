"""`oc` of the lab: the calls by which a real assisted service and a real openshift-install read a release.

Options and output are those of OpenShift's `oc adm release info`, `oc adm release extract`, `oc image info` and `oc image extract`: what
the assisted service and openshift-install call. Other commands and templates are refused: this is not a client of a cluster.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from ...plugins.module_utils.documents import load_json, load_yaml, read_file
from ...plugins.module_utils.release.payload import Release, extract_file, extract_files, read_matching
from ...plugins.module_utils.release.registry import Registry
from ...plugins.module_utils.vocabulary import Component
from ..api_server.release import registry

ARCH = "amd64"
VERSION_TEMPLATE = "{{.metadata.version}}"
#: What `--command` extracts: the component whose image has the program, and its path there.
PROGRAMS = {
    "openshift-install": (Component.INSTALLER, "usr/bin/openshift-install"),
    "openshift-baremetal-install": (Component.INSTALLER, "usr/bin/openshift-install"),
    "oc": (Component.CLI, "usr/bin/oc"),
}


class OcError(ValueError):
    """What oc prints after `error: `.

    It is also raised for wrong options, of which oc's own text is not imitated.
    """


class _Parser(argparse.ArgumentParser):
    """Shows options as oc does: clients look for them in its help."""

    def format_help(self) -> str:
        options = [action for action in self._actions if action.option_strings]
        shown = "".join(f"    {action.option_strings[-1]}='':\n\t{action.help}\n\n" for action in options)
        return f"{self.description}\n\nOptions:\n{shown}Usage:\n  {self.prog} [options]\n"

    def error(self, message: str) -> NoReturn:
        raise OcError(message)


def parser() -> argparse.ArgumentParser:
    """Return the commands and their options; `run` is the function of a command.

    `run` takes the parsed options and returns the text for stdout. Errors are `OcError`; help is in oc's form.
    """
    top = argparse.ArgumentParser(prog="oc", description="reads a release (simulator of oc)")
    commands = top.add_subparsers(required=True, metavar="COMMAND", parser_class=_Parser)

    def command(
        parent: argparse._SubParsersAction[_Parser], name: str, run: Callable[[argparse.Namespace], str], text: str
    ) -> _Parser:
        made = parent.add_parser(name, description=text)
        made.set_defaults(run=run)
        made.add_argument("pullspec", metavar="IMAGE")
        made.add_argument(
            "--insecure", nargs="?", const="true", default="false", help="If true, allow insecure registries."
        )
        made.add_argument("-a", "--registry-config", type=Path, help="Path to your registry credentials.")
        made.add_argument("--filter-by-os", help="A regular expression to control which images are considered.")
        made.add_argument("--icsp-file", type=Path, help="Path to an ImageContentSourcePolicy file.")
        made.add_argument("--idms-file", type=Path, help="Path to an ImageDigestMirrorSet file.")
        return made

    release = commands.add_parser("adm").add_subparsers(required=True, parser_class=_Parser)
    release = release.add_parser("release").add_subparsers(required=True, parser_class=_Parser)
    info = command(release, "info", _info, "Show information about an OpenShift release")
    info.add_argument("--image-for", help="Print the pull spec of the specified image.")
    info.add_argument("-o", "--output", choices=["template"], help="Display the release info in an alternative format.")
    info.add_argument("--template", help="Template string to use when -o=template.")
    extract = command(release, "extract", _extract, "Extract the contents of an update payload to disk")
    extract.add_argument(
        "--command", required=True, choices=sorted(PROGRAMS), help="Specify 'oc' or 'openshift-install'."
    )
    extract.add_argument("--to", type=Path, required=True, help="Directory to write release contents to.")
    image = commands.add_parser("image").add_subparsers(required=True, parser_class=_Parser)
    shown = command(image, "info", _image_info, "Display information about an image")
    shown.add_argument(
        "-o", "--output", choices=["json"], required=True, help="Print the image in an alternative format."
    )
    files = command(image, "extract", _image_extract, "Extract files from an image to disk")
    files.add_argument("--path", action="append", required=True, help="SOURCE:DIRECTORY; source may end with a glob.")
    files.add_argument("--confirm", action="store_true", help="Extract to directories that are not empty, too.")
    return top


def _registry(options: argparse.Namespace) -> Registry:
    auths: dict[str, Any] = {}
    if options.registry_config:
        found = load_json(read_file(options.registry_config), name=str(options.registry_config))
        auths = found.get("auths") or {}
    mirrors: list[dict[str, Any]] = []
    for path in filter(None, (options.idms_file, options.icsp_file)):
        spec = (load_yaml(read_file(path), name=str(path)) or {}).get("spec") or {}
        mirrors += spec.get("imageDigestMirrors") or spec.get("repositoryDigestMirrors") or []
    return registry(auths, [(str(entry["source"]), list(entry.get("mirrors") or ())) for entry in mirrors])


def _info(options: argparse.Namespace) -> str:
    release = Release(options.pullspec, _registry(options), ARCH)
    if options.image_for:
        if options.image_for not in release.images:
            raise OcError(f'no image tag "{options.image_for}" exists in the release image {options.pullspec}')
        return release.images[options.image_for]
    # The service gives the template in quotes, without a shell; oc prints what is around it as it is.
    if VERSION_TEMPLATE not in (options.template or ""):
        raise OcError(f"this simulator has --image-for and --template {VERSION_TEMPLATE} only")
    return str(options.template).replace(VERSION_TEMPLATE, release.version)


def _extract(options: argparse.Namespace) -> str:
    source = _registry(options)
    component, path = PROGRAMS[options.command]
    target = options.to / options.command
    extract_file(source, Release(options.pullspec, source, ARCH).image(component), ARCH, path, target)
    target.chmod(0o755)
    return ""


def _image_info(options: argparse.Namespace) -> str:
    found = _registry(options).config(options.pullspec, ARCH)
    return json.dumps({"name": options.pullspec, "config": found}, indent=2)


def _image_extract(options: argparse.Namespace) -> str:
    """A file that the image lacks is not an error, as with oc: callers look for the file."""
    source = _registry(options)
    for pair in options.path:
        wanted, separator, folder = pair.partition(":")
        if not (separator and wanted and folder and Path(folder).is_dir()):
            raise OcError(f"--path {pair}: must be SOURCE:DIRECTORY of a directory that exists")
        name = wanted.lstrip("/")
        if "*" not in name:
            extract_files(source, options.pullspec, ARCH, {name: Path(folder) / Path(name).name})
            continue
        for found, data in read_matching(source, options.pullspec, ARCH, [name]).items():
            (Path(folder) / Path(found).name).write_bytes(data)
    return ""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; an error is one line.

    argv: without the program's name. Returns 0, or 1 after `error: ` and the message on stderr.
    """
    try:
        options = parser().parse_args(argv)
        text = options.run(options)
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if text:
        print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
