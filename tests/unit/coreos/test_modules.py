"""The modules: changed is accurate, check mode writes nothing, a diff shows no secret."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PACKAGE = "ansible_collections.agentlab.ocp.plugins.modules"


def run(name: str, check: bool = False, **arguments: Any) -> dict[str, Any]:
    given = {k: str(v) if isinstance(v, Path) else v for k, v in arguments.items()}
    given |= {"_ansible_check_mode": check, "_ansible_diff": True, "_ansible_remote_tmp": "/tmp"}
    code = f"import {PACKAGE}.{name} as m; m.main()"
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps({"ANSIBLE_MODULE_ARGS": given}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


CONFIG = {"ignition": {"version": "3.2.0"}, "passwd": {"users": [{"name": "core", "passwordHash": "hush"}]}}


def test_ignition(iso: Path, tmp_path: Path) -> None:
    dest = tmp_path / "agent.iso"
    pristine = iso.read_bytes()
    checked = run("iso_ignition", check=True, path=iso, dest=dest, config=json.dumps(CONFIG))
    assert checked["changed"] and not dest.exists()
    assert "hush" not in json.dumps({k: v for k, v in checked.items() if k != "invocation"})
    assert "config.ign" in checked["diff"]["after"] and checked["diff"]["before"] == ""
    assert (
        run("iso_ignition", path=iso, dest=dest, config=json.dumps(CONFIG))["changed"] and iso.read_bytes() == pristine
    )
    written = dest.stat().st_mtime_ns
    again = run("iso_ignition", path=iso, dest=dest, config=json.dumps(CONFIG))
    assert not again["changed"] and again["diff"]["before"] == again["diff"]["after"]
    assert dest.stat().st_mtime_ns == written
    assert run("iso_ignition", path=dest, config=json.dumps(CONFIG))["changed"] is False
    (tmp_path / "other.ign").write_text(json.dumps({"ignition": {"version": "3.1.0"}}))
    assert run("iso_ignition", path=iso, dest=dest, src=tmp_path / "other.ign")["changed"]
    assert run("iso_info", path=dest)["ignition"]["version"] == "3.1.0"
    assert run("iso_ignition", path=dest, state="absent")["changed"]
    assert dest.read_bytes() == pristine


def test_too_large_is_reported(iso: Path, tmp_path: Path) -> None:
    (tmp_path / "noise").write_bytes(bytes(range(256)) + __import__("random").Random(1).randbytes(90_000))
    result = run("iso_ignition", path=iso, src=tmp_path / "noise")
    assert result["failed"] and "Compressed initramfs is too large" in result["msg"]
    assert run("iso_ignition", path=iso, src=tmp_path / "noise", grow=True)["changed"]
    assert run("iso_ignition", path=iso, src=tmp_path / "noise", grow=True)["changed"] is False


def test_kargs(iso: Path) -> None:
    assert run("iso_kargs", path=iso, append=["console=ttyS0"], check=True)["changed"]
    first = run("iso_kargs", path=iso, append=["console=ttyS0"], replace=["ignition.platform.id=metal=qemu"])
    assert first["changed"] and first["kargs"].endswith("ignition.platform.id=qemu console=ttyS0")
    assert not run("iso_kargs", path=iso, append=["console=ttyS0"])["changed"]
    assert run("iso_kargs", path=iso, reset=True)["changed"] and not run("iso_kargs", path=iso, reset=True)["changed"]
    assert run("iso_kargs", path=iso, append=["x" * 500])["msg"] == "kargs too large for area: 570 vs 400"


def test_network(iso: Path) -> None:
    state = {"interfaces": [{"name": "eth0", "type": "ethernet", "ipv4": {"enabled": True, "dhcp": True}}]}
    first = run("iso_network", path=iso, nmstate=state, keyfiles={"wifi.nmconnection": "psk=hush\n"})
    assert first["changed"] and first["keyfiles"] == ["eth0.nmconnection", "wifi.nmconnection"]
    assert not run("iso_network", path=iso, nmstate=state, keyfiles={"wifi.nmconnection": "psk=hush\n"})["changed"]
    assert run("iso_info", path=iso)["network"] == ["eth0.nmconnection", "wifi.nmconnection"]
    assert run("iso_network", path=iso, state="absent")["changed"]
    bad = run("iso_network", path=iso, nmstate={"interfaces": [{"name": "bond0", "type": "bond"}]})
    assert bad["failed"] and "bond0" in bad["msg"]


def test_info(iso: Path) -> None:
    found = run("iso_info", path=iso, files=True)
    assert (found["volume_id"], found["ignition"], found["customized"], found["changed"]) == (
        "lab-1.0",
        None,
        False,
        False,
    )
    assert found["area"]["length"] == 65536 and found["area"]["growable"] and found["kargs"]["size"] == 399
    assert {"path": "images/pxeboot/vmlinuz", "size": 600} in found["files"]
    assert "not an ISO 9660 image" in run("iso_info", path=__file__)["msg"]


def test_extract(iso: Path, tmp_path: Path) -> None:
    wanted: dict[str, Any] = {"path": iso, "dest": tmp_path, "files": ["images/pxeboot/vmlinuz", "coreos/kargs.json"]}
    assert len(run("iso_extract", check=True, **wanted)["written"]) == 2 and not (tmp_path / "vmlinuz").exists()
    assert len(run("iso_extract", **wanted)["written"]) == 2
    assert not run("iso_extract", **wanted)["changed"]
    (tmp_path / "vmlinuz").write_bytes(b"other!" * 100)
    assert run("iso_extract", **wanted)["written"] == [str(tmp_path / "vmlinuz")]


@pytest.mark.parametrize("form", ["agent"])
def test_minimal(iso: Path, tmp_path: Path, form: str) -> None:
    wanted: dict[str, Any] = {
        "path": iso,
        "dest": tmp_path / "min.iso",
        "minimal": form,
        "rootfs_url": "http://192.0.2.1/rootfs.img",
    }
    assert run("iso_extract", check=True, **wanted)["changed"] and not (tmp_path / "min.iso").exists()
    assert run("iso_extract", **wanted)["changed"] and not run("iso_extract", **wanted)["changed"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["lab.iso", "min.iso"]


def test_pxe(iso: Path, tmp_path: Path) -> None:
    (tmp_path / "boot").mkdir()
    (tmp_path / "c.ign").write_text("{}")
    wanted: dict[str, Any] = {
        "path": iso,
        "dest": tmp_path / "boot",
        "ignition": tmp_path / "c.ign",
        "base_url": "http://192.0.2.1",
        "kargs": ["a"],
    }
    assert len(run("pxe_files", check=True, **wanted)["written"]) == 4 and not any((tmp_path / "boot").iterdir())
    assert len(run("pxe_files", **wanted)["written"]) == 4
    assert not run("pxe_files", **wanted)["changed"]
    (tmp_path / "c.ign").write_text('{"a": 1}')
    assert run("pxe_files", **wanted)["written"] == ["agent.x86_64-initrd.img"]
