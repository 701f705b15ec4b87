"""The public coreos-installer's own shell tests of ISOs, through a shim of two lines; AGENTLAB_COREOS_INSTALLER names a checkout of it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CHECKOUT = os.environ.get("AGENTLAB_COREOS_INSTALLER", "")
# From which fixture on each script is run, as in tests/images.sh.
FIRST = {"iso-ignition.sh": "2020-09", "iso-kargs.sh": "2021-01", "iso-network.sh": "2021-12", "iso-extract-minimal-iso.sh": "2021-12"}
FIXTURES = sorted(Path(CHECKOUT, "fixtures/iso").glob("embed-areas-*.iso.xz")) if CHECKOUT else []
CASES = [("unsupported.sh", None), ("dev-initrd.sh", None)] + [
    (script, path) for script, first in FIRST.items() for path in FIXTURES if path.name >= f"embed-areas-{first}"
]


@pytest.mark.skipif(not CHECKOUT, reason="AGENTLAB_COREOS_INSTALLER names no checkout")
@pytest.mark.parametrize(("script", "fixture"), CASES, ids=lambda part: getattr(part, "name", part))
def test_script(script: str, fixture: Path | None, tmp_path: Path) -> None:
    shim = tmp_path / "coreos-installer"
    shim.write_text(f'#!/bin/sh\nexec {ROOT}/bin/agentlab "$@"\n')
    shim.chmod(0o755)
    command = ["bash", f"{CHECKOUT}/tests/images/{script}", *([str(fixture)] if fixture else [])]
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
