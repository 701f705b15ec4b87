"""The public installer's own cases, when they are there: AGENTLAB_SHARED, or `../shared` next to the checkout."""

from __future__ import annotations

import importlib.util
import lzma
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("AGENTLAB_SHARED") or ROOT.parent / "shared") / "conformance"
RUNNER = SHARED / "run_txtar.py"
ISO = SHARED / "coreos-iso" / "embed-areas-2023-07.x86_64.iso.xz"
CASES = [
    pytest.param(profile, path, id=f"{profile}/{path.relative_to(SHARED / 'installer' / profile)}")
    for profile in ("main", "4.20")
    for path in sorted((SHARED / "installer" / profile).rglob("*.txt"))
]


@pytest.fixture(scope="session")
def runner() -> ModuleType:
    spec = importlib.util.spec_from_file_location("run_txtar", RUNNER)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def base_iso(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("iso") / "base.iso"
    with lzma.open(ISO) as packed, path.open("wb") as out:
        shutil.copyfileobj(packed, out)
    yield path


@pytest.mark.skipif(not RUNNER.exists(), reason="the cases are not here")
@pytest.mark.parametrize(("profile", "path"), CASES)
def test_case(runner: ModuleType, base_iso: Path, profile: str, path: Path) -> None:
    case = runner.Case(path, [str(ROOT / "bin" / "agentlab")], base_iso, {}, runner.RELEASE_IMAGE, profile)
    try:
        case.run()
    except runner.Skipped as reason:
        pytest.skip(str(reason))
    finally:
        shutil.rmtree(case.work, ignore_errors=True)
