"""Which disks of a machine a snapshot keeps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.snapshot import machines
from ansible_collections.agentlab.ocp.plugins.module_utils.snapshot.manifest import OFF, PAUSED, Machine, SnapshotError

VOLUME = (
    '<disk type="volume" device="disk"><source pool="p" volume="master-0-0"/><target dev="vda" bus="virtio"/></disk>'
)
STICK = '<disk type="file" device="disk"><source file="/run/agent.iso"/><target dev="sdx" bus="usb" removable="on"/><readonly/></disk>'
CD = '<disk type="file" device="cdrom"><source file="/run/agent.iso"/><target dev="sdx" bus="sata"/><readonly/></disk>'
OTHER = '<disk type="file" device="disk"><source file="/srv/mine.qcow2"/><target dev="vdb" bus="virtio"/></disk>'


class Domain:
    def __init__(self, disks: str) -> None:
        self.disks = disks

    def XMLDesc(self, __: int) -> str:  # noqa: N802
        return f"<domain><devices>{self.disks}</devices></domain>"

    def name(self) -> str:
        return "one_master_0"


def volumes(disks: str) -> list[str]:
    domain: Any = Domain(disks)
    return machines._volumes(domain)


@pytest.mark.parametrize("medium", ["", STICK, CD])
def test_a_medium_is_not_kept(medium: str) -> None:
    assert volumes(VOLUME + medium) == ["master-0-0"]


def test_a_disk_of_others_is_refused() -> None:
    with pytest.raises(SnapshotError, match="domain one_master_0: disk vdb is not a volume of the lab's pool"):
        volumes(VOLUME + OTHER)


@pytest.mark.parametrize(
    ("moves", "wanted"),
    [([], None), ([("/runs/on", "/other")], None), ([("/runs/one", "/other")], "<source file='/other/agent.iso'/>")],
)
def test_open_files_move_with_the_run_directory(moves: list[tuple[str, str]], wanted: str | None) -> None:
    """libvirt opens a CD in the run directory by the definition that it gets; without one, by that of the file."""
    loaded = []

    class Connection:
        def saveImageGetXMLDesc(self, path: str, flags: int) -> str:  # noqa: N802
            assert (path, flags) == ("/memory/one_master_0", 1)
            return "<source file='/runs/one/agent.iso'/>"

        def restoreFlags(self, *given: object) -> None:  # noqa: N802
            loaded.append(given)

    connection: Any = Connection()
    saved = [Machine("one_master_0", PAUSED, ()), Machine("one_master_1", OFF, ())]
    machines.load(connection, saved, Path("/memory"), moves)
    assert loaded == [("/memory/one_master_0", wanted, 4)]
