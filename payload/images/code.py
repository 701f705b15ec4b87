"""The project's own programs as image layers: each component's executables, with the code that they import."""

from __future__ import annotations

import io
import shutil
import zipfile
from collections.abc import Iterable
from pathlib import Path

from ...plugins.module_utils import imports
from ..machine_os import checkout
from ..machine_os.distro import Distro
from . import base
from .components import PACKAGE, Component
from .oci import Node, tree_nodes

ROOT = Path(__file__).resolve().parents[2]  # the checkout
PREFIX = "usr/lib/agentlab"
TREES = ("payload", "plugins/module_utils")
# File elsewhere -> module that reads it. The service puts these into discovery images, as the installer into agent images.
FILES = {
    Path("roles/agent_image/files/live", name): Path("payload/api_server/images.py")
    for name in ("pre-network-manager-config.sh", "units/pre-network-manager-config.service")
}
TABLES = Path("payload/api_server/data/__init__.py")  # compiles the tables that are next to it
# Code that runs on the controller only.
LEFT_OUT = (
    "payload/machine_os",
    "payload/images",
    "payload/build",
    "payload/ipi",
    "plugins/module_utils/cli",
    "plugins/module_utils/reload",
)

_INTERPRETER = b"#!/usr/bin/python3 -s\n"
"""First line of a Python program; the collection's own files have none, which Ansible's sanity tests refuse."""
_PROGRAM = """\
#!/usr/bin/python3 -s
import sys
sys.path.insert(0, "/{prefix}")
from {module} import main
sys.exit(main())
"""


def sources(root: Path = ROOT) -> list[Path]:
    """Return the files of the images' code, relative to the checkout.

    root: of the checkout. Byte code, and what only the controller needs (`LEFT_OUT`), are left out.
    """
    found = [*FILES]
    for tree in TREES:
        for path in sorted((root / tree).rglob("*")):
            relative = path.relative_to(root)
            if (
                path.is_file()
                and "__pycache__" not in relative.parts
                and not any(relative.is_relative_to(other) for other in LEFT_OUT)
            ):
                found.append(relative)
    return found


def needed_files(modules: Iterable[str], root: Path = ROOT) -> set[Path]:
    """As `imports.needed_files`, with what the modules read elsewhere in the checkout (`FILES`)."""
    found = imports.needed_files(modules, root)
    return found | {path for path in FILES if FILES[path] in found}


def copy_files(work: Path, files: Iterable[Path], root: Path = ROOT) -> None:
    """Copy files of the checkout to a directory, which is removed first, with their paths in the images."""
    package = work / PREFIX / PACKAGE.replace(".", "/")
    shutil.rmtree(work, ignore_errors=True)
    for relative in files:
        checkout.copy(root / relative, package / relative)


def programs(distro: Distro, python_tree: Path, work: Path, component: Component, root: Path = ROOT) -> dict[str, Node]:
    """Return the files of a component: its programs, and what they import, byte-compiled by the images' Python.

    python_tree: the base layer, unpacked; work: directory for the copy, which is removed first. Nodes of an emulated machine
    unpack each of these files in some milliseconds, so no others belong to the image.
    """
    nodes = executables(component, root)
    if not component.programs:
        return nodes
    files = needed_files(component.programs.values(), root)
    copy_files(work, files, root)
    if TABLES in files:
        tables = f"from {PACKAGE}.payload.api_server import data; data.compile_tables()"
        base.python(distro, python_tree, "-c", f"import sys; sys.path.insert(0, {str(work / PREFIX)!r}); {tables}")
    how = ("-q", "-f", "--invalidation-mode", "unchecked-hash", "-s", work, "-p", "/", work)
    base.python(distro, python_tree, "-m", "compileall", *how)
    return dict(tree_nodes(work)) | nodes


def executables(component: Component, root: Path = ROOT) -> dict[str, Node]:
    """Return a component's programs, without what they import.

    The result is path -> node, without leading slashes. Raises `OSError` for a file that does not exist below payload/.
    """
    nodes = {}
    for path, module in component.programs.items():
        text = _PROGRAM.format(prefix=PREFIX, module=f"{PACKAGE}.{module}")
        nodes[path.lstrip("/")] = Node(text.encode(), mode=0o755)
    for path, source in component.files.items():
        file = root / "payload" / source
        nodes[path.lstrip("/")] = Node(program(file) if file.is_dir() else file.read_bytes(), mode=0o755)
    return nodes


def program(package: Path) -> bytes:
    """Return a package as one executable file: a zip archive that runs the package's `__main__`.

    The same sources give the same bytes.
    """
    out = io.BytesIO(_INTERPRETER)
    out.seek(0, io.SEEK_END)
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(
            zipfile.ZipInfo("__main__.py"), f"import runpy\nrunpy.run_module({package.name!r}, None, '__main__')\n"
        )
        for path in sorted(package.glob("*.py")):
            archive.writestr(zipfile.ZipInfo(f"{package.name}/{path.name}"), path.read_bytes())
    return out.getvalue()


def failing_program(path: str) -> Node:
    """Return a program that exits with an error at once."""
    return Node(
        f"#!/bin/sh\necho '{path}: exits with an error because of the fault component_fails' >&2\nexit 1\n".encode(),
        mode=0o755,
    )


def node_agent(distro: Distro, python_tree: Path, work: Path) -> dict[str, Node]:
    """Return /usr/bin/agent, one self-contained executable, and a link to it for each of its programs.

    python_tree and work: as of `programs`. The executable needs only the image's Python.
    """
    copy_files(work, sources())
    out = work / "agent"
    package = work / PREFIX
    script = (
        f"import sys; sys.path.insert(0, {str(package)!r}); from pathlib import Path; "
        f"from {PACKAGE}.payload.node_agent import PROGRAMS, bundle; bundle.write(Path({str(out)!r})); print(*PROGRAMS)"
    )
    programs = base.python(distro, python_tree, "-c", script).split()
    nodes = {"usr/bin/agent": Node(out.read_bytes(), mode=0o755)}
    out.unlink()
    return nodes | {f"usr/bin/{name}": Node(link="agent") for name in programs if name != "agent"}
