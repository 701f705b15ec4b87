"""`python -m ansible_collections.agentlab.ocp.payload.build`: the command line of the payload."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from ...plugins.module_utils.files import usual_umask
from ...plugins.module_utils.vocabulary import LAB_VERSION, Exit
from ..images import oci, registry
from ..machine_os.distro import BuildError
from . import describe, ensure, lookup
from .steps import cache_root


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="agentlab payload", description="Build and inspect the lab payload.")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    build = verbs.add_parser(
        "build",
        help="build the payload if necessary, and print its directory",
        description="Build the lab payload if it does not exist.",
    )
    build.add_argument("--force", action="store_true", help="rebuild every step, with current packages")
    build.add_argument(
        "--check", action="store_true", help="only check whether it exists: exit 1 if it would have to be built"
    )
    build.add_argument(
        "--override",
        action="append",
        default=[],
        metavar="COMPONENT=SOURCE",
        help="replace a component: a directory with its programs or its files, an OCI layout, containers-storage:IMAGE, or a pullspec with a digest",
    )
    build.add_argument("--release", default=LAB_VERSION, metavar="VERSION", help="the version of OpenShift that it has")
    show = verbs.add_parser("show", help="print payload.json of the newest payload, or of a directory")
    show.add_argument("directory", nargs="?", type=Path, help="the directory of a payload")
    push = verbs.add_parser("push", help="write the images into the storage directory of a registry")
    push.add_argument("storage", type=Path, help="the registry's storage directory")
    push.add_argument("--payload", type=Path, metavar="DIRECTORY", help="the payload; default: the newest")
    push.add_argument("--check", action="store_true", help="only count what would be added")
    for verb in (build, show, push):
        form = verb.add_mutually_exclusive_group()
        form.add_argument("-o", "--output", choices=("json", "yaml"), help="print JSON or YAML, and no progress")
        form.add_argument("--json", dest="output", action="store_const", const="json", help="the same as -o json")
        verb.add_argument("--progress", action="store_true", help=argparse.SUPPRESS)
    return parser


def main(argv: list[str] | None = None) -> int:
    """Run a verb; return 0, or 1 with one message on stderr."""
    usual_umask()
    arguments = _parser().parse_args(argv)
    try:
        return _run(arguments)
    except (BuildError, oci.ImageError) as error:
        print(f"agentlab payload: {error}", file=sys.stderr)
        return Exit.FAILED


def _run(arguments: argparse.Namespace) -> int:
    if arguments.verb == "push":
        directory = arguments.payload or cache_root() / "payload/current"
        counts = registry.push(directory, arguments.storage, dry=arguments.check)
        if arguments.output:
            _print(counts, arguments.output)
        else:
            print(f"{counts['images']} images, {counts['blobs']} blobs, {counts['added']} files added")
        return 0
    if arguments.verb == "show":
        found = describe(arguments.directory or cache_root() / "payload/current")
    else:
        overrides = dict(_pair(text) for text in arguments.override)
        if arguments.check:
            there = lookup(overrides, version=arguments.release)
            if there is None:
                print("null" if arguments.output else "the payload is not built yet", flush=True)
                return Exit.FAILED
            found = there
        else:
            start = time.monotonic()

            def report(text: str) -> None:
                print(f"[{time.monotonic() - start:6.1f} s] {text}", file=sys.stderr, flush=True)

            found = ensure(
                overrides,
                version=arguments.release,
                force=arguments.force,
                report=report if arguments.progress or not arguments.output else lambda text: None,
            )
    if arguments.output:
        _print(found, arguments.output)
    else:
        print(
            f"{found['directory']}\n  release {found['release']}\n  iso     {found['iso']}\n  images  {len(found['images'])}"
        )
    return 0


def _print(found: object, form: str) -> None:
    if form == "json":
        print(json.dumps(found, indent=2))
        return
    from ...plugins.module_utils.plan import rundir

    print(rundir.dump(found).rstrip("\n"))


def _pair(text: str) -> tuple[str, str]:
    name, separator, source = text.partition("=")
    if not separator or not name or not source:
        raise BuildError(f"--override {text}: COMPONENT=SOURCE expected")
    return name, source


if __name__ == "__main__":
    sys.exit(main())
