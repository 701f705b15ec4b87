"""The swarm as one executable file, for machines that have no checkout: a zip archive that Python runs.

The machine's Python must be 3.11 or newer and have aiohttp and cryptography.
"""

from __future__ import annotations

import errno
import os
import zipfile
from pathlib import Path

from ....plugins.module_utils.imports import needed_files
from .settings import SwarmError

ROOT = Path(__file__).parents[3]
PACKAGE = "ansible_collections/agentlab/ocp"
PROGRAM = "payload.node_agent.swarm.main"
EPOCH = (1980, 1, 1, 0, 0, 0)
MAIN = f"import sys; from {PACKAGE.replace('/', '.')}.{PROGRAM} import main; sys.exit(main())\n"


def write(path: Path) -> None:
    """Write the executable, mode 0755. The same sources give the same bytes.

    Raises OSError; then nothing is written. SwarmError: this program is such a file itself.
    """
    if not ROOT.is_dir():
        raise SwarmError("the packed swarm cannot pack itself; use `agentlab swarm`")
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    files = {f"{PACKAGE}/{name}": (ROOT / name).read_bytes() for name in sorted(needed_files([PROGRAM], ROOT))}
    # A package in an archive needs its file; in the checkout most of these folders have none.
    packages = {f"{folder}/__init__.py" for name in files for folder in map(str, Path(name).parents) if folder != "."}
    files = {"__main__.py": MAIN.encode(), **dict.fromkeys(sorted(packages), b""), **files}
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as file:
            file.write(b"#!/usr/bin/env python3\n")
            with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
                for name, source in files.items():
                    archive.writestr(zipfile.ZipInfo(name, EPOCH), source, zipfile.ZIP_DEFLATED)
        temporary.chmod(0o755)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
