"""What the documentation names is there: files and folders of this checkout. And what is there is named: each library, each page."""

from __future__ import annotations

import fnmatch
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LIBRARIES = "plugins/module_utils"
NAME = re.compile(r"`([\w.{},*/-]+)`")
GENERATED = re.compile(
    r"^(?:build|runs|artifacts|cluster-manifests|mirror|openshift|auth|report|logs|tls|ssh|inputs|bin)/"
)
VARIABLE = {"releases/v4_NN.py"}


@cache
def listed() -> set[str]:
    """Files and folders that git knows."""
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    return {*names, *(str(folder) for name in names for folder in Path(name).parents)}


DOCUMENTS = sorted(
    name for name in listed() if name.endswith(".md") and name.startswith(("docs/", "CONTRIBUTING", "README"))
)


def alternatives(name: str) -> list[str]:
    """`a/{b,c}.py` is two names."""
    found = re.search(r"\{([^{}]*)\}", name)
    if not found:
        return [name]
    return [
        one for part in found[1].split(",") for one in alternatives(name[: found.start()] + part + name[found.end() :])
    ]


def missing(text: str) -> list[str]:
    """Names of Python files, and paths that begin with a folder of the checkout or of its libraries, which do not exist."""
    tops = {name.split("/")[0] for name in listed() if "/" in name}
    tops |= {name.split("/")[2] for name in listed() if name.startswith(f"{LIBRARIES}/") and name.count("/") > 2}
    wrong = []
    for written in NAME.findall(text):
        for name in alternatives(written):
            path = name.rstrip("/")
            if (
                path in VARIABLE
                or GENERATED.match(name)
                or not re.fullmatch(r"(.*/)?[\w*-]+\.py|[^/]+/.+|[^/]+/", name)
            ):
                continue
            if not path.endswith(".py") and path.split("/")[0] not in tops:
                continue
            if not any(
                one == path or one.endswith(f"/{path}") or fnmatch.fnmatch(f"/{one}", f"*/{path}") for one in listed()
            ):
                wrong.append(written)
    return wrong


@pytest.mark.parametrize("name", DOCUMENTS)
def test_paths_exist(name: str) -> None:
    assert missing((ROOT / name).read_text(encoding="utf-8")) == []


def test_contributing_has_whole_paths() -> None:
    """Each path is one of the checkout, or one below the libraries."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    written = {name.rstrip("/") for found in NAME.findall(text) for name in alternatives(found)}
    paths = {name for name in written if "/" in name or name.endswith(".py")}
    bases = ("", f"{LIBRARIES}/")
    assert not {
        path for path in paths - VARIABLE if not any(fnmatch.filter(listed(), f"{base}{path}") for base in bases)
    }


@pytest.mark.parametrize("text", ["`plan/none.py`", "`docs/none.md`", "`boot/{bmc,none}.py`", "`none.py`"])
def test_a_path_that_does_not_exist_is_found(text: str) -> None:
    assert missing(text) == [text.strip("`")]


@pytest.mark.parametrize(
    "text", ["`plan/checks.py`", "`releases/v4_NN.py`", "`docs/*.md`", "`and/or`", "`boot/{bmc,lab}.py`", "`boot/`"]
)
def test_a_path_that_exists_is_accepted(text: str) -> None:
    assert missing(text) == []


def test_the_map_has_every_library() -> None:
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    folders = {path.parent.name for path in (ROOT / LIBRARIES).glob("*/__init__.py")}
    libraries = text.split("downwards only:")[1].split("```")[1]
    assert {name for name in folders if not re.search(rf"\b{name}/", libraries)} == set()


def test_every_page_is_listed() -> None:
    """Those of docs/ in its README, those of docs/architecture/ in architecture.md."""
    for folder, index in (("docs", "README.md"), ("docs/architecture", "../architecture.md")):
        page = ROOT / folder / index
        linked = {
            (page.parent / target).resolve()
            for target in re.findall(r"\]\(([^)#:]+)[^)]*\)", page.read_text(encoding="utf-8"))
        }
        there = {path for path in (ROOT / folder).iterdir() if path.is_file() and path != page}
        assert sorted(path.name for path in there - linked) == [], f"list them in {page.relative_to(ROOT)}"
