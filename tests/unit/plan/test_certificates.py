"""The lab's certificates, verified by the library that clients use."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import certificates

NAMES = ["virthost.ostest.test.metalkube.org", "192.168.111.1", "fd2e:6f44:5dd8:c956::1"]


@pytest.mark.parametrize("name", [*NAMES, "elsewhere.example"])
def test_clients_accept_it_for_its_names(tmp_path: Path, name: str) -> None:
    assert certificates.ensure(tmp_path, "ostest", NAMES)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(tmp_path / "server.crt", tmp_path / "server.key")
    client = ssl.create_default_context(cafile=str(tmp_path / "ca.crt"))
    near, far = socket.socketpair()

    def serve() -> None:
        with contextlib.suppress(ssl.SSLError, OSError):
            server.wrap_socket(far, server_side=True)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        if name in NAMES:
            client.wrap_socket(near, server_hostname=name).close()
        else:
            with pytest.raises(ssl.SSLCertVerificationError):
                client.wrap_socket(near, server_hostname=name)
    finally:
        near.close()
        thread.join()
        far.close()


def test_kept_until_names_change(tmp_path: Path) -> None:
    assert certificates.ensure(tmp_path, "ostest", NAMES, check=True)
    assert not list(tmp_path.iterdir())
    certificates.ensure(tmp_path, "ostest", NAMES)
    before = (tmp_path / "server.crt").read_text()
    assert not certificates.ensure(tmp_path, "ostest", NAMES)
    assert (tmp_path / "server.crt").read_text() == before
    assert certificates.ensure(tmp_path, "ostest", [*NAMES, "another"])
    assert (tmp_path / "server.crt").read_text() != before


def test_keys_are_private(tmp_path: Path) -> None:
    certificates.ensure(tmp_path / "tls", "ostest", NAMES)
    assert (tmp_path / "tls").stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "tls").glob("*.key")} == {0o600}


def test_half_made_is_made_again(tmp_path: Path) -> None:
    certificates.ensure(tmp_path, "ostest", NAMES)
    (tmp_path / "ca.key").unlink()
    assert certificates.ensure(tmp_path, "ostest", NAMES)
    assert not certificates.ensure(tmp_path, "ostest", NAMES)
