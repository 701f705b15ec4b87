"""The public coreos-installer's own shell tests of images, through a shim of two lines; AGENTLAB_COREOS_INSTALLER names a checkout of it."""

from __future__ import annotations

import importlib.util
import json
import lzma
import os
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.coreos import build, cpio, miniso, pxe
from ansible_collections.agentlab.ocp.plugins.module_utils.coreos.iso import LiveIso

ROOT = Path(__file__).resolve().parents[2]
CHECKOUT = os.environ.get("AGENTLAB_COREOS_INSTALLER", "")
# From which fixture on each script is run, as in tests/images.sh.
FIRST = {
    "iso-ignition.sh": "2020-09",
    "iso-kargs.sh": "2021-01",
    "iso-network.sh": "2021-12",
    "iso-extract-minimal-iso.sh": "2021-12",
}
FIXTURES = sorted(Path(CHECKOUT, "fixtures/iso").glob("embed-areas-*.iso.xz")) if CHECKOUT else []
CASES = [("unsupported.sh", None), ("dev-initrd.sh", None)] + [
    (script, path) for script, first in FIRST.items() for path in FIXTURES if path.name >= f"embed-areas-{first}"
]
# Those that images.sh runs for the directory of a build, and what they take of it.
OF_A_BUILD = dict.fromkeys((*FIRST, "dev-show-iso.sh"), "iso") | dict.fromkeys(
    ("iso-extract-pxe.sh", "customize.sh"), "folder"
)

pytestmark = pytest.mark.skipif(not CHECKOUT, reason="AGENTLAB_COREOS_INSTALLER is not a checkout")


def run(script: Path, argument: Path | None, folder: Path) -> None:
    shim = folder / "coreos-installer"
    shim.write_text(f'#!/bin/sh\nexec {ROOT}/bin/agentlab "$@"\n')
    shim.chmod(0o755)
    command = ["bash", str(script), *([str(argument)] if argument else [])]
    environment = os.environ | {"PATH": f"{folder}:{os.environ['PATH']}"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]


@pytest.mark.parametrize(("script", "fixture"), CASES, ids=lambda part: getattr(part, "name", part))
def test_script(script: str, fixture: Path | None, tmp_path: Path) -> None:
    run(Path(CHECKOUT, "tests/images", script), fixture, tmp_path)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """What a build of the operating system leaves: a live ISO with the recipe of its minimal form, and the PXE files."""
    spec = importlib.util.spec_from_file_location("coreos_fixtures", ROOT / "tests/unit/coreos/conftest.py")
    assert spec and spec.loader
    fixtures = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(fixtures)
    work, folder = tmp_path_factory.mktemp("work"), tmp_path_factory.mktemp("build")
    newest = work / "fixture.iso"
    newest.write_bytes(lzma.decompress(FIXTURES[-1].read_bytes()))
    with LiveIso(newest) as iso:
        features = json.dumps(iso.features).encode()
    stamps = {pxe.LIVE_STAMP: b"", pxe.FEATURES: features}
    initrd = cpio.pad_data(cpio.compress(cpio.archive(stamps)))
    plain, full, small = work / "plain.iso", folder / "lab-live-iso.x86_64.iso", work / "minimal.iso"
    fixtures.build(plain, area=1 << 18)
    build.rebuild(plain, full, {"coreos/features.json": features, "images/pxeboot/initrd.img": initrd})
    with full.open("r+b") as file:
        file.seek(32776)
        file.write(b"LINUX".ljust(32) + b"fedora-coreos-lab".ljust(32))
    build.rebuild(full, small, {}, ["images/pxeboot/rootfs.img", "coreos/miniso.dat"])
    miniso.pack(full, small)
    with LiveIso(full) as iso:
        for name, file_name in (
            ("vmlinuz", "kernel.x86_64"),
            ("initrd.img", "initramfs.x86_64.img"),
            ("rootfs.img", "rootfs.x86_64.img"),
        ):
            (folder / f"lab-live-{file_name}").write_bytes(iso.fs.read(f"images/pxeboot/{name}"))
    return SimpleNamespace(iso=full, folder=folder)


@pytest.mark.parametrize("script", OF_A_BUILD)
def test_script_on_a_build(script: str, built: SimpleNamespace, tmp_path: Path) -> None:
    """customize.sh ends where it would boot the images: these have no operating system in them."""
    original = Path(CHECKOUT, "tests/images", script)
    text, found, __ = original.read_text().partition("\n# Runtime tests\n")
    assert found or script != "customize.sh"
    # Next to the original, since it looks for its fixtures from there.
    copy = original.with_name(f".agentlab-{os.getpid()}-{script}")
    copy.write_text(text)
    try:
        run(copy, getattr(built, OF_A_BUILD[script]), tmp_path)
    finally:
        copy.unlink()
