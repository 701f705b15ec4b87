"""`agentlab iso`, `dev`, `pack` and `pxe`: words, messages, exit codes."""

from __future__ import annotations

import errno
import io
import json
import os
import sys
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils import files
from ansible_collections.agentlab.ocp.plugins.module_utils.cli.coreos import dev as dev_verb
from ansible_collections.agentlab.ocp.plugins.module_utils.cli.coreos import iso as verb
from ansible_collections.agentlab.ocp.plugins.module_utils.cli.coreos import pxe as pxe_verb
from ansible_collections.agentlab.ocp.plugins.module_utils.coreos import cpio


@pytest.fixture
def call(capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch):
    def run(*argv: str | Path, stdin: bytes = b"", main=verb.main) -> tuple[int, bytes, str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = main([str(word) for word in argv])
        sys.stdout.flush()
        out, err = capfdbinary.readouterr()
        return code, out, err.decode()

    return run


def test_embed_show_remove(call, iso: Path, tmp_path: Path) -> None:
    pristine = iso.read_bytes()
    assert call("ignition", "show", iso) == (1, b"", "Error: No embedded Ignition config.\n")
    assert call("ignition", "embed", iso, stdin=b"config")[0] == 0
    assert call("iso", "ignition", "show", iso) == (0, b"config", "")
    code, __, err = call("ignition", "embed", iso, stdin=b"other")
    assert (code, err) == (1, "Error: This ISO image already has an embedded Ignition config; use -f to force.\n")
    assert call("ignition", "embed", "-f", iso, stdin=b"other")[0] == 0
    code, out, __ = call("ignition", "remove", "-o", "-", iso)
    assert code == 0 and out == pristine
    assert call("ignition", "remove", "-o", tmp_path / "new.iso", iso)[0] == 0
    assert (tmp_path / "new.iso").read_bytes() == pristine
    assert "File exists" in call("reset", "-o", tmp_path / "new.iso", iso)[2]


def test_the_area_holds_what_coreos_installer_writes(call, iso: Path) -> None:
    call("ignition", "embed", iso, stdin=b"config")
    place = json.loads(call("show", "iso", "--ignition", iso, main=dev_verb.dev)[1])
    area = iso.read_bytes()[place["offset"] : place["offset"] + place["length"]]
    assert area.startswith(b"\xfd7zXZ\0\0\x01"), "xz with CRC32"


def test_network(call, iso: Path, tmp_path: Path) -> None:
    for name in ("b.nmconnection", "a.nmconnection"):
        (tmp_path / name).write_text(f"{name}\n")
    assert "No embedded network settings." in call("network", "extract", iso)[2]
    assert call("network", "embed", "-k", tmp_path / "a.nmconnection", "-k", tmp_path / "b.nmconnection", iso)[0] == 0
    assert "use -f to force" in call("network", "embed", "-k", tmp_path / "a.nmconnection", iso)[2]
    expected = b"########## a.nmconnection ##########\na.nmconnection\n\n########## b.nmconnection ##########\nb.nmconnection\n"
    assert call("network", "extract", iso)[1] == expected
    code, out, __ = call("network", "extract", "-C", tmp_path / "out", iso)
    assert code == 0 and out.decode().split() == [
        str(tmp_path / "out" / n) for n in ("a.nmconnection", "b.nmconnection")
    ]
    assert (tmp_path / "out/a.nmconnection").stat().st_mode & 0o777 == 0o600
    assert (
        "multiple input files named 'a.nmconnection'"
        in call(
            "network", "embed", "-f", "-k", tmp_path / "a.nmconnection", "-k", tmp_path / "out/a.nmconnection", iso
        )[2]
    )
    assert call("network", "remove", iso)[0] == 0 and call("network", "extract", iso)[0] == 1


def test_kargs(call, iso: Path) -> None:
    default = call("kargs", "show", iso)[1]
    assert call("kargs", "modify", "-a", "x=1", "-r", "x=1=2", "-d", "ignition.firstboot", iso)[0] == 0
    assert call("kargs", "show", iso)[1].endswith(b" ignition.platform.id=metal x=2\n")
    assert call("kargs", "show", "--default", iso)[1] == default
    assert "already customized" in call("customize", "--live-karg-append", "a", iso)[2]
    assert call("kargs", "reset", iso)[0] == 0 and call("kargs", "show", iso)[1] == default


def test_extract_and_show(call, iso: Path, tmp_path: Path) -> None:
    code, out, __ = call("extract", "pxe", "-o", tmp_path / "pxe", iso)
    assert code == 0 and sorted(Path(line).name for line in out.decode().split()) == [
        "lab-initrd.img",
        "lab-rootfs.img",
        "lab-vmlinuz",
    ]
    assert "File exists" in call("extract", "pxe", "-o", tmp_path / "pxe", iso)[2]
    shown = json.loads(call("dev", "show", "iso", iso)[1])
    assert {"type": "primary"}.items() <= shown["header"]["descriptors"][0].items()
    assert "IMAGES/PXEBOOT/ROOTFS.IMG" in shown["records"]
    assert json.loads(call("dev", "show", "iso", "--kargs", iso)[1])["length"] == 400


def test_initrd(call, tmp_path: Path) -> None:
    path = tmp_path / "initrd"
    path.write_bytes(cpio.compress(cpio.archive({"a/b": b"1", "c": b"2"})))
    assert call("show", "initrd", path, "a/*", main=dev_verb.dev)[1] == b"a/b\n"
    assert call("extract", "initrd", "-v", "-C", tmp_path / "out", path, main=dev_verb.dev)[1].decode().split() == [
        str(tmp_path / "out/a/b"),
        str(tmp_path / "out/c"),
    ]
    assert "File exists" in call("extract", "initrd", "-C", tmp_path / "out", path, main=dev_verb.dev)[2]


@pytest.mark.parametrize("verb", ["ignition", "network"])
def test_a_wrap_that_fails_leaves_the_file_as_it_was(
    call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    """It was written in place: a killed run left a part of it."""
    (tmp_path / "eth0.nmconnection").write_text("x")
    (tmp_path / "out").write_bytes(b"before")
    words = ["-k", tmp_path / "eth0.nmconnection"] if verb == "network" else ["-i", tmp_path / "eth0.nmconnection"]
    with monkeypatch.context() as patched:
        patched.setattr(files.os, "fchmod", lambda *__: full())
        code, __, err = call(verb, "wrap", *words, "-o", tmp_path / "out", main=pxe_verb.main)
    assert code == 1 and "No space left on device" in err
    assert (tmp_path / "out").read_bytes() == b"before"
    assert {path.name for path in tmp_path.iterdir()} == {"eth0.nmconnection", "out"}
    assert call(verb, "wrap", *words, "-o", tmp_path / "out", main=pxe_verb.main)[0] == 0
    assert (tmp_path / "out").read_bytes() == call(verb, "wrap", *words, main=pxe_verb.main)[1]
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o644, "a web server serves it"


def full() -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("name", ["/etc/passwd", "../f", "a/../../f", "link/f"])
def test_no_way_out_of_the_directory(call, tmp_path: Path, name: str) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/link").symlink_to(tmp_path)
    path = tmp_path / "initrd"
    path.write_bytes(cpio.archive({name: b"x"}, parents=False))
    code, __, err = call("extract", "initrd", "-C", tmp_path / "out", path, main=dev_verb.dev)
    assert code == 1 and "contains path traversal" in err
    assert not (tmp_path / "f").exists()


def test_pxe(call, tmp_path: Path) -> None:
    (tmp_path / "eth0.nmconnection").write_text("x")
    wrapped = call("ignition", "wrap", stdin=b"config", main=pxe_verb.main)[1]
    (tmp_path / "wrapped").write_bytes(wrapped)
    assert call("ignition", "unwrap", tmp_path / "wrapped", main=pxe_verb.main)[1] == b"config"
    assert "couldn't find" in call("ignition", "unwrap", main=pxe_verb.main)[2]
    assert (
        call("network", "wrap", "-k", tmp_path / "eth0.nmconnection", "-o", tmp_path / "net", main=pxe_verb.main)[0]
        == 0
    )
    assert b"## eth0.nmconnection ##" in call("pxe", "network", "unwrap", tmp_path / "net")[1]
    assert "not a CoreOS live initramfs image" in call("customize", "-o", "-", tmp_path / "net", main=pxe_verb.main)[2]
    base = cpio.archive({"etc/coreos-live-initramfs": b""})
    (tmp_path / "base").write_bytes(base)
    code, out, err = call(
        "customize", "-o", "-", "--pre-install", tmp_path / "eth0.nmconnection", tmp_path / "base", main=pxe_verb.main
    )
    assert code == 0 and out.startswith(base) and "ignition.firstboot ignition.platform.id=metal" in err
    (tmp_path / "done").write_bytes(out)
    assert (
        "input is already customized"
        in call("customize", "-o", tmp_path / "n", tmp_path / "done", main=pxe_verb.main)[2]
    )
    assert not (tmp_path / "n").exists()


def test_one_line_for_what_cannot_be_read(call, tmp_path: Path) -> None:
    (tmp_path / "x.iso").write_bytes(b"nothing")
    for path in (tmp_path / "none.iso", tmp_path / "x.iso", tmp_path):
        code, out, err = call("ignition", "show", path)
        assert code == 1 and out == b"" and err.startswith("Error: ") and str(path) in err and err.count("\n") == 1


def test_usage_errors_are_two(call) -> None:
    with pytest.raises(SystemExit) as stop:
        call("ignition", "embed")
    assert stop.value.code == 2


def test_a_terminal_gets_no_image(call, iso: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert "Refusing to write binary data to terminal" in call("reset", "-o", "-", iso)[2]
