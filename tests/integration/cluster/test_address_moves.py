"""What becomes of connections to a virtual address of this node when the address leaves it."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

SECONDS = 60
NETWORK, OWN, VIRTUAL = "10.9.9.0/24", "10.9.9.2/24", "10.9.9.5"
LINKS = f"ip link set lo up && ip link add va type veth peer name vb && ip link set vb up && ip link set va up && ip address add {OWN} dev va"


def test_connections_of_the_node_end(tmp_path: Path) -> None:
    """The bootstrap host's installer waited for an answer that could not come, for 15 minutes."""
    script = Path(__file__).resolve()
    done = subprocess.run(
        ["unshare", "--net", sys.executable, str(script), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=2 * SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def main(folder: Path) -> None:
    from ansible_collections.agentlab.ocp.payload.cluster.keepalived import Instance, Keepalived

    def held() -> bool:
        return VIRTUAL in subprocess.run(["ip", "-4", "address"], capture_output=True, text=True, check=True).stdout

    subprocess.run(["sh", "-c", LINKS], check=True)
    (folder / "track").write_text("0\n")
    keepalived = Keepalived("ostest", [NETWORK], folder / "keepalived", [Instance("api", [VIRTUAL], folder / "track")])
    keepalived.start()
    end = time.monotonic() + SECONDS
    while not held():
        assert time.monotonic() < end, "keepalived does not take the address"
        time.sleep(0.2)
    with socket.create_server(("0.0.0.0", 6443)) as server, socket.create_connection((VIRTUAL, 6443)) as client:
        accepted, __ = server.accept()
        keepalived.stop()
        assert not held()
        client.settimeout(SECONDS / 2)
        with accepted, pytest.raises(ConnectionError):
            client.sendall(b"GET / HTTP/1.1\r\n\r\n")
            client.recv(1)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
