"""The directory of all state directories, which the first cluster of a host makes, also when two begin at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import host
from ansible_collections.agentlab.ocp.plugins.module_utils.state import owner

CLUSTERS = ("one", "two", "three", "four")


def test_several_first_clusters_at_once(tmp_path: Path) -> None:
    """One of two sandboxes that a play makes next to each other failed: File exists."""
    for number in range(30):
        parent, gate = tmp_path / f"{number}/lib/agentlab", Barrier(len(CLUSTERS))

        def claim(cluster: str, parent: Path = parent, gate: Barrier = gate) -> owner.Owner:
            who = owner.Caller(owner.Owner(cluster, f"/runs/{cluster}", 0, "root", "lab", ""))
            gate.wait(20)
            return host.claim(parent / cluster, who, parent / "shared")

        with ThreadPoolExecutor(len(CLUSTERS)) as pool:
            assert len([*pool.map(claim, CLUSTERS)]) == len(CLUSTERS)
        assert {path.name for path in parent.iterdir()} == {*CLUSTERS, host.HOST_FILE}
