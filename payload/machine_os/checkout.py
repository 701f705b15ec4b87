"""Files of the checkout as they go into images: with mode 0755 or 0644, whatever the umask of the clone was."""

from __future__ import annotations

import shutil
import stat
from pathlib import Path

_EXECUTABLE = stat.S_IXUSR


def mode(path: Path) -> int:
    """Return the mode of a file as git knows it."""
    return 0o755 if path.stat().st_mode & _EXECUTABLE else 0o644


def copy(source: Path, target: Path) -> None:
    """Copy a file in place of what is there; make the directories that are missing above it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)  # a link would lead out of the tree
    shutil.copyfile(source, target)
    target.chmod(mode(source))


def copy_tree(source: Path, target: Path) -> None:
    """Copy the files below `source` into the tree `target`, whose directories keep their modes."""
    for path in sorted(path for path in source.rglob("*") if path.is_file()):
        copy(path, target / path.relative_to(source))
