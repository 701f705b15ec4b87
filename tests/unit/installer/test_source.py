"""A build of openshift-install from a git repository. The repositories are made here, with a build script of their own."""

from __future__ import annotations

import contextlib
import subprocess
import threading
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.installer import source
from ansible_collections.agentlab.ocp.plugins.module_utils.installer.errors import InstallerError
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import openshift_install, profile
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.problems import ProfileError

BUILD = """#!/bin/sh
set -e
echo "building $(git rev-parse HEAD)"
echo . >> {builds}
{more}
mkdir -p bin
printf '#!/bin/sh\\necho openshift-install unreleased-{text}\\n' > bin/openshift-install
chmod +x bin/openshift-install
"""


class Repository:
    """A git repository with a build script, and the number of its builds."""

    def __init__(self, path: Path) -> None:
        self.path, self.builds = path, path.parent / "builds"
        path.mkdir()
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *words: str) -> str:
        identity = ["-c", "user.name=Test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false"]
        done = subprocess.run(["git", "-C", self.path, *identity, *words], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def commit(self, text: str, more: str = "") -> str:
        """Commit a build script whose program prints `text`, and that runs `more`; return the commit."""
        (self.path / "hack").mkdir(exist_ok=True)
        script = self.path / "hack/build.sh"
        script.write_text(BUILD.format(builds=self.builds, text=text, more=more))
        script.chmod(0o755)
        self.git("add", "-A")
        self.git("commit", "--quiet", "-m", text)
        return self.git("rev-parse", "HEAD")

    def built(self) -> int:
        """How often a build ran."""
        return len(self.builds.read_text().split()) if self.builds.exists() else 0


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "installer")


def ensure(
    repository: Repository, ref: str, reported: list[str] | None = None, *, check: bool = False, url: str = ""
) -> source.Build:
    """Build below the directory of the repository."""
    here = repository.path.parent
    report = (reported if reported is not None else []).append
    return source.ensure(
        url or str(repository.path), ref, here / "cache", here / "openshift-install", report, check=check
    )


def printed(program: Path) -> str:
    return subprocess.run([program], capture_output=True, text=True, check=True).stdout.strip()


def test_a_commit_is_built_once(repository: Repository) -> None:
    """By its commit; the link leads to the build that was asked for last, and the progress names commit and program."""
    first = repository.commit("one")
    reported: list[str] = []
    made = ensure(repository, "main", reported)
    assert made == (first, repository.path.parent / "cache" / first / "openshift-install", True)
    assert printed(repository.path.parent / "openshift-install") == "openshift-install unreleased-one"
    assert f"building {first}" in reported
    assert any(first[:12] in line for line in reported)
    assert not ensure(repository, "main").changed
    assert not ensure(repository, first).changed
    second = repository.commit("two")
    assert ensure(repository, "main").commit == second
    assert printed(repository.path.parent / "openshift-install") == "openshift-install unreleased-two"
    assert ensure(repository, first).changed  # the link alone
    assert printed(repository.path.parent / "openshift-install") == "openshift-install unreleased-one"
    assert repository.built() == 2


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_branch_tag_and_commit(repository: Repository, scheme: str) -> None:
    """Also a commit that no branch ends in, and its abbreviation."""
    first = repository.commit("one")
    repository.git("tag", "v1")
    second = repository.commit("two")
    third = repository.commit("three")
    url = f"{scheme}{repository.path}"
    found = {ref: ensure(repository, ref, url=url).commit for ref in ("v1", second, second[:9], "main", "HEAD")}
    assert found == {"v1": first, second: second, second[:9]: second, "main": third, "HEAD": third}


def test_uncommitted_changes_are_not_built(repository: Repository) -> None:
    """The checkout is neither built nor changed."""
    repository.commit("one")
    (repository.path / "hack/build.sh").write_text("#!/bin/sh\nexit 1\n")
    ensure(repository, "HEAD")
    assert repository.git("status", "--porcelain") == "M hack/build.sh"


def test_check_mode_builds_nothing(repository: Repository) -> None:
    """It reports the commit that would be built."""
    commit = repository.commit("one")
    made = ensure(repository, "main", check=True)
    assert (made.commit, made.changed) == (commit, True)
    assert not made.program.exists()
    assert repository.built() == 0


@pytest.mark.parametrize(
    ("more", "ref", "text"),
    [
        ("echo no such module >&2; exit 3", "main", "build.sh ended with exit code 3:"),
        ("exit 0", "main", "ended without bin/openshift-install"),
        ("", "nothing", "has no branch, tag or commit nothing"),
    ],
)
def test_a_build_that_fails_leaves_nothing(repository: Repository, more: str, ref: str, text: str) -> None:
    """The message has the last lines; the next run builds it again."""
    commit = repository.commit("one", more)
    with pytest.raises(InstallerError) as error:
        ensure(repository, ref)
    assert text in str(error.value)
    assert ("no such module" in str(error.value)) == ("module" in more)
    here = repository.path.parent
    assert not (here / "openshift-install").exists()
    assert not (here / "cache" / commit).exists()
    assert not list((here / "cache" / "git").glob("*.tree"))


def test_a_build_names_the_version_of_its_release(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without tags `git describe` has a commit alone, which an assisted service refuses: Malformed version."""
    monkeypatch.delenv("BUILD_VERSION", raising=False)
    commit, here = repository.commit("'$BUILD_VERSION'"), repository.path.parent

    def build(version: str) -> source.Build:
        return source.ensure(
            str(repository.path), "main", here / "cache", here / "openshift-install", print, version=version
        )

    for version in ("4.22.0-lab", "4.18.0-lab"):
        assert build(version) == (commit, here / "cache" / commit / version / "openshift-install", True)
        assert printed(here / "openshift-install") == f"openshift-install unreleased-{version}"
        assert not build(version).changed
    monkeypatch.setenv("BUILD_VERSION", "mine")
    made = build("4.20.0")
    assert made.program == here / "cache" / commit / "mine" / "openshift-install"
    assert printed(made.program) == "openshift-install unreleased-mine"
    monkeypatch.delenv("BUILD_VERSION")
    for version in ("../x", "/x", ".."):
        with pytest.raises(InstallerError, match="the version of the build is"):
            build(version)


def test_commits_are_built_in_one_directory(repository: Repository) -> None:
    """Go's build cache serves a package again in the same directory alone. Nothing of another build is in it."""
    where = repository.path.parent / "where"
    for text, more in (("one", "; exit 3"), ("two", ""), ("three", "")):
        repository.commit(text, f"ls -A | grep -vx -e .git -e hack && exit 4; pwd >> {where}; touch left {more}")
        with contextlib.suppress(InstallerError) if "3" in more else contextlib.nullcontext():
            ensure(repository, "main")
    tree, *others = set(where.read_text().split())
    assert not others
    assert not Path(tree).exists()


def test_a_repository_of_something_else(repository: Repository) -> None:
    (repository.path / "README").touch()
    repository.git("add", "-A")
    repository.git("commit", "--quiet", "-m", "other")
    with pytest.raises(InstallerError, match=r"has no hack/build\.sh: release\.installer\.git must be a repository of"):
        ensure(repository, "main")


def test_a_build_without_end_is_ended(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    """With all that it started; and what is silent is reported."""
    monkeypatch.setattr(source, "BUILD_SECONDS", 2.0)
    monkeypatch.setattr(source, "_SILENT", 0.5)
    mark = repository.path.parent / "pid"
    repository.commit("one", f"sleep 1000 & echo $! > {mark}; wait")
    reported: list[str] = []
    with pytest.raises(InstallerError, match="timed out after"):
        ensure(repository, "main", reported)
    assert any("has been running for" in line for line in reported)
    state = subprocess.run(
        ["ps", "-o", "stat=", "-p", mark.read_text().strip()], capture_output=True, text=True, check=False
    )
    assert state.stdout.strip()[:1] in ("", "Z")


def test_two_runs_build_once(repository: Repository) -> None:
    """The second waits for the first."""
    repository.commit("one", "sleep 1")
    threads = [threading.Thread(target=ensure, args=(repository, "main")) for __ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert repository.built() == 1


@pytest.mark.parametrize(
    ("build", "text"),
    [
        ({"git": "/src", "binary": "/bin/true"}, "requires that release.installer.binary is null: which of the two?"),
        ({"ref": "main"}, "requires release.installer.git, the repository that has it"),
        ({"git": "--upload-pack=x"}, "must be a git repository: a URL, USER@HOST:PATH, or a path"),
        ({"git": "/src", "ref": "-x"}, "must be a branch, tag or commit"),
    ],
)
def test_a_profile_is_refused(build: dict[str, str], text: str) -> None:
    """Before anything is created."""
    with pytest.raises(ProfileError) as error:
        profile.validated_profile(profile.parse(str({"release": {"installer": build}}), "p.yml"), "ostest")
    assert text in str(error.value)


def test_what_the_host_lacks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert openshift_install.missing() == "is built with git and go: git and go must be in PATH"
    (tmp_path / "git").touch(0o755)
    assert openshift_install.missing() == "is built with git and go: go must be in PATH"
    (tmp_path / "go").touch(0o755)
    assert openshift_install.missing() == ""
    assert not openshift_install.is_repository(tmp_path)
