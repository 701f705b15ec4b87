"""What CI checks of the sources themselves, a command each."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.integration.browser.chromium import CONTRAST, Browser

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
LIMIT = 1800
ISSUE_FORMS = [str(path.relative_to(ROOT)) for path in sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml"))]
WORKFLOWS = [str(path.relative_to(ROOT)) for path in sorted((ROOT / ".github/workflows").glob("*.yml"))]
COMMANDS = {
    "sanity": [sys.executable, "ci/sanity.py", "--skip-test", "validate-modules"],
    "validate-modules": [sys.executable, "ci/sanity.py", "--test", "validate-modules"],
    "ansible-lint": ["ansible-lint", "--offline", "-q"],
    "mypy": [sys.executable, "ci/typecheck.py"],
    "ruff": ["ruff", "check", "."],
    "format": ["ruff", "format", "--check", "."],
    "changelog": ["antsibull-changelog", "lint"],
    "workflow": ["check-jsonschema", "--builtin-schema", "vendor.github-workflows", *WORKFLOWS],
    "jobs": ["check-jsonschema", "--schemafile", "docs/jobs.schema.json", "ci/jobs.yml"],
    "proof": ["check-jsonschema", "--schemafile", "ci/proof.schema.json", "ci/proof.yml"],
    "issue forms": ["check-jsonschema", "--builtin-schema", "vendor.github-issue-forms", *ISSUE_FORMS],
}


# ruff and mypy find at each change most of what the rest of sanity does.
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name == "sanity")) for name in COMMANDS]
)
def test_clean(name: str) -> None:
    run(COMMANDS[name], ROOT)


def test_shellcheck() -> None:
    scripts = [name for name in sources() if not name.endswith(".j2") and is_shell(ROOT / name)]
    assert scripts
    run(["shellcheck", "-x", *scripts], ROOT)


@pytest.mark.slow
def test_documentation(tree: Path, tmp_path: Path) -> None:
    """It is well-formed, refers to what exists, becomes a page for each plugin and role, and all of it a site that a browser shows."""
    run(["antsibull-docs", "lint-collection-docs", "--plugin-docs", "--validate-collection-refs=self", "."], tree)
    pages = tree / "reference"
    pages.mkdir()
    command: list[str | Path] = [
        "antsibull-docs",
        "collection",
        "--use-current",
        "--squash-hierarchy",
        "--fail-on-error",
        "--dest-dir",
        pages,
        "agentlab.ocp",
    ]
    run(command, tree, ANSIBLE_COLLECTIONS_PATH=str(tree.parents[2]))
    wanted = {f"{path.stem}_module.rst" for path in (ROOT / "plugins/modules").glob("*.py")}
    wanted |= {f"{path.name}_role.rst" for path in (ROOT / "roles").iterdir()}
    assert wanted <= {path.name for path in pages.iterdir()}
    run(["sphinx-build", "-q", "-W", "--keep-going", "-b", "html", "-c", "ci/site", ".", tmp_path / "html"], tree)
    listed = {path.name for path in (ROOT / "docs").rglob("*.md")}
    assert listed <= {path.with_suffix(".md").name for path in (tmp_path / "html/docs").rglob("*.html")}
    with Browser(tmp_path / "chromium") as browser:
        for page in sorted((tmp_path / "html").rglob("*.html")):
            browser.open(page.as_uri(), width=400, ready="document.readyState === 'complete'")
            assert browser.run("document.documentElement.scrollWidth <= document.documentElement.clientWidth"), page
            assert browser.run("[...document.images].every(image => image.naturalWidth)"), page
            assert not browser.console and all(url.startswith(("file:", "data:")) for url in browser.requests), page
        for dark in (False, True):
            browser.open(
                (tmp_path / "html/README.html").as_uri(), dark=dark, ready="document.readyState === 'complete'"
            )
            assert browser.run(CONTRAST) == []


@pytest.mark.slow
def test_archive_installs_and_runs(tree: Path, tmp_path: Path) -> None:
    """The collection as users get it: built, installed with a fresh ansible-core, and a role of it run."""
    venv, collections = tmp_path / "venv", tmp_path / "collections"
    run([sys.executable, "-m", "venv", venv], tmp_path)
    run([venv / "bin/pip", "install", "-q", "ansible-core>=2.19,<2.20", "cryptography", "distlib", "PyYAML"], tmp_path)
    run([venv / "bin/ansible-galaxy", "collection", "build", "--output-path", tmp_path, tree], tmp_path)
    (archive,) = tmp_path.glob("agentlab-ocp-*.tar.gz")
    assert archive.stat().st_size < 5 * 2**20
    run([venv / "bin/ansible-galaxy", "collection", "install", "--offline", "-p", collections, archive], tmp_path)
    installed = collections / "ansible_collections/agentlab/ocp"
    assert not {"tests", "ci", "molecule", ".config"} & {path.name for path in installed.iterdir()}
    variables = ["-e", "agentlab_profile=compact_dualstack", "-e", f"agentlab_run_dir={tmp_path / 'run'}"]
    for playbook in ("plan", "configure"):
        command: list[str | Path] = [venv / "bin/ansible-playbook", *variables, f"agentlab.ocp.{playbook}"]
        run(command, tmp_path, ANSIBLE_COLLECTIONS_PATH=str(collections))
    assert (tmp_path / "run/agent-config.yaml").exists()


# What a user may have left in a checkout: names that the installer, an editor or a person gives to files with secrets.
PLANTED = (
    "install-config.yaml", "agent-config.yaml", ".openshift_install_state.json", ".openshift_install.log", ".openshift_install.lock",
    "cluster-manifests/pull-secret.yaml", "mirror/registries.conf", "openshift/extra.yaml", "auth/kubeconfig", "auth/kubeadmin-password",
    "tls/ca.key", "ssh/id_ecdsa", "rendezvousIP", "agent.x86_64.iso", "node-config.yaml", "boot-artifacts/agent.x86_64-initrd.img",
)  # fmt: skip
ELSEWHERE = (
    "pull-secret.json", "notes.txt", "roles/install-config.yaml", "roles/boot/auth/kubeconfig", "plugins/install-config.yaml",
    "payload/.openshift_install_state.json", "docs/pull-secret.json", "config_examples/pull-secret.json",
    "config_examples/old/mine.yml", "payload/machine_os/files/ca.key",
    "runs/ostest/plan.yaml", "artifacts/run/plan.yaml", "build/report/summary.txt", "playbooks/cluster-manifests/pull-secret.yaml",
)  # fmt: skip
DEVELOPMENT = ("ci/", "molecule/", "tests/", "CONTRIBUTING.md", "SECURITY.md", "Makefile", "execution-environment.yml", "galaxy.yml",
               "pyproject.toml", "requirements-build.txt", "requirements-test.")  # fmt: skip


def test_archive_has_nothing_but_the_sources(tree: Path, tmp_path: Path) -> None:
    """Nothing that was left in the checkout; and all that git has but what only serves development, so that the list in galaxy.yml is complete."""
    wanted = {name for name in sources() if not name.startswith((".", *DEVELOPMENT)) and not (ROOT / name).is_symlink()}
    for name in PLANTED + ELSEWHERE:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text("canary")
    run(["ansible-galaxy", "collection", "build", "--output-path", tmp_path, tree], tmp_path)
    (archive,) = tmp_path.glob("agentlab-ocp-*.tar.gz")
    with tarfile.open(archive) as tar:
        packed = {member.name for member in tar if member.isfile()} - {"FILES.json", "MANIFEST.json"}
    assert packed - wanted == set()
    assert wanted - packed == set(), "add them to manifest.directives in galaxy.yml"


@pytest.mark.slow
def test_release_can_be_made(tree: Path, tmp_path: Path) -> None:
    """The next one, of fragments, for the version in galaxy.yml; its notes are part of the archive, after those of earlier ones."""
    galaxy = (tree / "galaxy.yml").read_text(encoding="utf-8")
    (version,) = re.findall(r"^version: (\S+)$", galaxy, re.MULTILINE)
    assert f"\n  {version}:\n" in (tree / "changelogs/changelog.yaml").read_text(encoding="utf-8")
    major, minor, __ = version.split(".")
    following = f"{major}.{int(minor) + 1}.0"
    (tree / "galaxy.yml").write_text(
        galaxy.replace(f"\nversion: {version}\n", f"\nversion: {following}\n"), encoding="utf-8"
    )
    (tree / "changelogs/fragments/one.yml").write_text(
        "bugfixes:\n  - A fragment of the next release.\n", encoding="utf-8"
    )
    run(["antsibull-changelog", "release", "--date", "2000-01-01"], tree)
    run(["antsibull-changelog", "lint-changelog-yaml", "changelogs/changelog.yaml"], tree)
    assert not list((tree / "changelogs/fragments").glob("*.yml"))
    run(["ansible-galaxy", "collection", "build", "--output-path", tmp_path, tree], tmp_path)
    (archive,) = tmp_path.glob("agentlab-ocp-*.tar.gz")
    with tarfile.open(archive) as tar:
        notes = tar.extractfile("CHANGELOG.rst")
        assert notes
        text = notes.read().decode()
    assert text.index(f"v{following}\n") < text.index("A fragment of the next release.") < text.index(f"v{version}\n")


@pytest.mark.parametrize("name", PLANTED)
def test_git_ignores_what_the_installer_writes(name: str) -> None:
    assert subprocess.run(["git", "check-ignore", "-q", name], cwd=ROOT, check=False).returncode == 0


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the sources where ansible-core expects a collection."""
    copy = tmp_path / "tree/ansible_collections/agentlab/ocp"
    run(["sh", "-c", f"mkdir -p {copy} && tar -cf - -T - | tar -C {copy} -xf -"], ROOT, stdin="\n".join(sources()))
    return copy


def sources() -> list[str]:
    """The files that git has, or would take."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [name for name in listed.stdout.splitlines() if (ROOT / name).exists()]


def is_shell(path: Path) -> bool:
    if not path.is_file() or path.is_symlink():
        return False
    with path.open("rb") as stream:
        first = stream.readline(64)
    return first.startswith(b"#!") and first.split()[-1].endswith(b"sh")


def run(command: Sequence[str | Path], folder: Path, stdin: str = "", **environment: str) -> None:
    settings = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "NO_COLOR": "1", **environment}
    done = subprocess.run(
        command, cwd=folder, env=settings, input=stdin, capture_output=True, text=True, timeout=LIMIT, check=False
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-8000:]
