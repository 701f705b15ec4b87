"""Kernel arguments: editing, limits, and areas that disagree."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.coreos import kargs
from ansible_collections.agentlab.ocp.plugins.module_utils.coreos.errors import CoreosError
from ansible_collections.agentlab.ocp.plugins.module_utils.coreos.iso import LiveIso


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        ({"append": ["c=d", " e "]}, "a=1 b a=1 c=d e"),
        ({"delete": ["a=1"]}, "b"),
        ({"delete": ["a", "zz"]}, "a=1 b a=1"),
        ({"replace": ["a=1=2"]}, "a=2 b a=2"),
        ({"delete": ["b"], "append": ["b=1"], "replace": ["b=1=2"]}, "a=1 a=1 b=2"),
    ],
)
def test_edit(edits: dict[str, list[str]], expected: str) -> None:
    assert kargs.edit("a=1 b a=1", **edits) == expected


@pytest.mark.parametrize("wrong", ["a", "a=b", "a=b=c=d", "=b=c"])
def test_replace_needs_three_parts(wrong: str) -> None:
    with pytest.raises(CoreosError, match="KEY=OLD=NEW"):
        kargs.edit("a=b", replace=[wrong])


def test_both_boot_loaders_get_the_same_text(iso: Path) -> None:
    with LiveIso(iso) as live:
        live.edit_kargs(append=["console=ttyS0"])
        live.save()
    with LiveIso(iso) as live:
        for path in ("EFI/redhat/grub.cfg", "isolinux/isolinux.cfg"):
            text = live.fs.read(path).decode()
            assert "ignition.platform.id=metal console=ttyS0\n###" in text
            assert text.count("# COREOS_KARG_EMBED_AREA") == 1


def test_the_largest_that_fits(iso: Path) -> None:
    with LiveIso(iso) as live:
        assert live.kargs
        room = live.kargs.length - len(live.kargs.current) - 2
        live.edit_kargs(append=["x" * room])
        live.save()
        live.edit_kargs(delete=["x" * room])
        with pytest.raises(CoreosError, match=r"^kargs too large for area: 401 vs 400$"):
            live.edit_kargs(append=["x" * (room + 1)])


def test_areas_that_disagree(iso: Path) -> None:
    with LiveIso(iso) as live:
        assert live.kargs
        at = live.kargs.areas[1].offset
    with iso.open("r+b") as file:
        file.seek(at)
        file.write(b"C")
    with pytest.raises(CoreosError, match=r"kargs don't match at all offsets! .*but offset"):
        LiveIso(iso)


def test_an_image_without_areas(make_iso) -> None:
    with LiveIso(make_iso(drop=("coreos/kargs.json",))) as live:
        assert live.kargs is None
        with pytest.raises(CoreosError, match="No karg embed areas found"):
            live.edit_kargs(append=["a"])
        live.reset()
