"""Check the types of plugins, payload, ci and tests with mypy.

mypy follows imports of the collection only when it has the name that they use: it checks the checkout as
`ansible_collections.agentlab.ocp`, through a link. Otherwise all that one folder imports from another has type `Any`.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COLLECTION = "ansible_collections.agentlab.ocp"
PARTS = ("plugins", "payload", "ci", "tests")


def main(arguments: list[str]) -> int:
    """Return mypy's exit code; the names of files in its messages are relative to the checkout.

    arguments: more options for mypy. 0 means that there are no errors.
    """
    packages = [word for part in PARTS for word in ("-p", f"{COLLECTION}.{part}")]
    options = ["--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(ROOT / ".mypy_cache")]
    with (
        tempfile.TemporaryDirectory() as tree
    ):  # not in the checkout: a link to itself makes those who walk it go in circles
        link = Path(tree, COLLECTION.replace(".", "/"))
        link.parent.mkdir(parents=True)
        link.symlink_to(ROOT)
        command = [sys.executable, "-m", "mypy", *options, *packages, *arguments]
        done = subprocess.run(command, cwd=tree, stdout=subprocess.PIPE, text=True, check=False)
    print(done.stdout.replace(f"{COLLECTION.replace('.', '/')}/", ""), end="")
    return done.returncode


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
