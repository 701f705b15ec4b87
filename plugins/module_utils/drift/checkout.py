"""Files of a git checkout, or of a bare repository, at a commit."""

from __future__ import annotations

import fnmatch
import subprocess
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from ..errors import AgentlabError

LIMIT = 16 << 20
_SECONDS = 120


class CheckoutError(AgentlabError):
    """A path is not a git repository, or lacks a commit or a file; the text names it."""


class Tree:
    """The files of a repository at a commit.

    repository: a checkout or a bare repository; commit: anything that names one. Raises `CheckoutError` when it is not
    a repository or does not have the commit.
    """

    def __init__(self, repository: Path, commit: str = "HEAD") -> None:
        self.repository = repository
        if commit.startswith("-"):
            raise CheckoutError(f"{commit!r} is not a commit")
        self.commit, self.date = self._git("show", "-s", "--format=%H %cs", f"{commit}^{{commit}}").decode().split()

    @cached_property
    def paths(self) -> list[str]:
        """All files, sorted."""
        names = self._git("ls-tree", "-r", "-z", "--name-only", self.commit).decode(errors="replace")
        return sorted(filter(None, names.split("\0")))

    def matching(self, *patterns: str) -> Iterator[str]:
        """Yield the files that match a pattern; `*` also matches slashes."""
        for path in self.paths:
            if any(fnmatch.fnmatchcase(path, pattern) for pattern in patterns):
                yield path

    def read(self, path: str) -> str:
        """Return the text of a file; CheckoutError if there is none, or it is too large."""
        if path not in self.paths:
            raise CheckoutError(
                f"{self.repository}: commit {self.commit[:12]} has no file {path}; it may have been moved"
            )
        data = self._git("cat-file", "blob", f"{self.commit}:{path}")
        if len(data) > LIMIT:
            raise CheckoutError(f"{self.repository}: {path} has more than {LIMIT} bytes")
        return data.decode(errors="replace")

    def _git(self, *words: str) -> bytes:
        # A repository is data of others: no hooks, no filters, no configuration of its own that runs a program.
        command = ["git", "-c", "core.fsmonitor=false", "-c", "safe.directory=*", "-C", str(self.repository), *words]
        try:
            done = subprocess.run(command, capture_output=True, timeout=_SECONDS, stdin=subprocess.DEVNULL, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise CheckoutError(f"{self.repository}: git: {error}") from None
        if done.returncode:
            output = done.stderr.decode(errors="replace").strip().splitlines() or [f"git ended with {done.returncode}"]
            raise CheckoutError(f"{self.repository}: {output[0]}")
        return done.stdout
