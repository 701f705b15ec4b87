"""All programs as one executable file: a zip archive that the standard library's Python runs.

Invoked by a program's name (by a link or a copy of that name) it is that program. Compiled modules are next to their
sources, so that a Python of the same version starts without compiling; another one uses the sources.
"""

from __future__ import annotations

import os
import zipfile
from pathlib import Path, PurePosixPath

from ...plugins.module_utils.bytecode import compile_source
from . import PROGRAMS

HERE = Path(__file__).parent
# As in the collection, so that relative imports are the same.
PACKAGE = "agentlab.payload.node_agent"
SHARED = tuple(HERE.parents[1] / f"plugins/module_utils/{name}.py" for name in ("addresses", "bounded"))
INTERPRETER = "#!/usr/bin/python3 -sE\n"
EPOCH = (1980, 1, 1, 0, 0, 0)
# Python runs this file, so the interpreter's path does not matter, only the program name.
MAIN = f"""\
import importlib, os, sys
name = os.path.basename(sys.argv[0])
if name not in {PROGRAMS!r}:
    sys.exit(f"unknown binary name {{name}}, expected one of {", ".join(PROGRAMS)}")
sys.exit(importlib.import_module("{PACKAGE}." + name).main())
"""


def write(path: Path) -> None:
    """Write the executable, mode 0755. The same sources give the same bytes."""
    files = {"__main__.py": MAIN.encode()}
    folder = PACKAGE.replace(".", "/")
    files |= {f"{folder}/{module.name}": module.read_bytes() for module in sorted(HERE.glob("*.py"))}
    files |= {f"agentlab/plugins/module_utils/{module.name}": module.read_bytes() for module in SHARED}
    for name in list(files)[1:]:
        for parent in PurePosixPath(name).parents[:-1]:
            files.setdefault(f"{parent}/__init__.py", b"")
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with temporary.open("wb") as file:
        file.write(INTERPRETER.encode())
        with zipfile.ZipFile(file, "w") as archive:
            for name, source in files.items():
                archive.writestr(zipfile.ZipInfo(name + "c", EPOCH), compile_source(source, name))
                archive.writestr(zipfile.ZipInfo(name, EPOCH), source)
    temporary.chmod(0o755)
    temporary.replace(path)
