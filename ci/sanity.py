"""Run `ansible-test sanity` on a copy of the tree, without anything from outside PyPI.

ansible-test wants its get-pip from a site of its own; a HOME with a replacement in ansible-test's cache, which lets
ensurepip do the same, avoids that download.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "sanity"
REPLACEMENT = "import ensurepip\nensurepip.bootstrap(upgrade=True, default_pip=True)\n"


def copy_tree() -> Path:
    """The files that git would take, below ansible_collections/agentlab/ocp; the virtual environments are kept.

    They include new files that are not ignored. The copy is made in build/sanity each time.
    """
    tree = BUILD / "ansible_collections" / "agentlab" / "ocp"
    shutil.rmtree(tree, ignore_errors=True)
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    ).stdout
    for name in filter(None, listed.split("\0")):
        source, target = ROOT / name, tree / name
        if source.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target, follow_symlinks=False)
    return tree


def main() -> int:
    import ansible_test

    BUILD.mkdir(parents=True, exist_ok=True)
    lock = (BUILD / "lock").open("w")  # until this process ends: another one would take the copy away
    fcntl.flock(lock, fcntl.LOCK_EX)
    home, tree = BUILD / "home", copy_tree()
    cache = home / ".ansible" / "test" / "cache"
    cache.mkdir(parents=True, exist_ok=True)
    requirements = Path(ansible_test.__file__).parent / "_internal" / "python_requirements.py"
    for version in set(re.findall(r"pip='([\d.]+)'", requirements.read_text())):
        (cache / f"get_pip_{version.replace('.', '_')}.py").write_text(REPLACEMENT)
    environment = os.environ | {
        "HOME": str(home),
        "PIP_QUIET": "1",
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    command = ["ansible-test", "sanity", "--venv", "--python", python, "--color", "no", *sys.argv[1:]]
    subprocess.run(["git", "init", "-q"], cwd=tree, check=True)
    subprocess.run(["git", "add", "-A"], cwd=tree, check=True)
    return subprocess.run(command, cwd=tree, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
