"""Network states with what nmstate makes of them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.nmstate import NmstateError, generate, load

SHARED = Path(os.environ.get("AGENTLAB_SHARED") or Path(__file__).resolve().parents[3] / "shared")
CASES = SHARED / "conformance/nmstate"
ACCEPTED = sorted(p for p in CASES.glob("*/*.y*ml") if p.with_suffix(".json").exists())
REFUSED = sorted(p for p in CASES.glob("*/*.y*ml") if p.with_suffix(".error").exists())
# What NetworkManager 1.42 does not know, or wants more of; nmstate writes it all the same.
UNREAD = {
    "hsr.yaml": "invalid connection type; hsr", "hsr0_up.yml": "invalid connection type; hsr",
    "ipvlan_create.yml": "invalid connection type; ipvlan",
    "macsec.yaml": "macsec.parent: property is not specified", "macsec0_up.yml": "macsec.parent: property is not specified",
    "err-vlan-missing.yaml": "vlan.parent: property is not specified",
}  # fmt: skip


def name(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


@pytest.mark.skipif(not CASES.is_dir(), reason="the shared conformance cases are not here")
class TestNmstate:
    @pytest.mark.parametrize("path", ACCEPTED, ids=name)
    def test_equal(self, path: Path) -> None:
        expected = json.loads(path.with_suffix(".json").read_text())["NetworkManager"]
        assert [list(pair) for pair in generate(load(path.read_text()))] == expected

    @pytest.mark.parametrize("path", REFUSED, ids=name)
    def test_refused(self, path: Path) -> None:
        kind = path.with_suffix(".error").read_text().partition(":")[0]
        with pytest.raises(NmstateError) as error:
            generate(load(path.read_text()))
        assert error.value.kind == kind

    @pytest.mark.skipif(not shutil.which("nmcli"), reason="nmcli is not installed")
    @pytest.mark.parametrize("path", ACCEPTED, ids=name)
    def test_network_manager_reads_it(self, path: Path) -> None:
        for file, text in generate(load(path.read_text())):
            command = ["nmcli", "--offline", "connection", "modify", "connection.autoconnect-priority", "1"]
            done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
            assert done.returncode == 0 or UNREAD.get(path.name, "?") in done.stderr, (file, done.stderr)
