"""Answers Ignition's single query to systemd: its version.

Ignition asks `org.freedesktop.systemd1.Manager.Version` over systemd's private socket when a config enables an
instantiated unit, and systemd is not running yet in this initrd. Usage: systemd-version.py SOCKET VERSION; the process that stays is
named in SOCKET.pid.
"""

import contextlib
import os
import socket
import struct
import sys
import threading


def reply(serial: int, version: str) -> bytes:
    """A D-Bus method return that carries a variant of a string (D-Bus specification, "Message Protocol")."""
    text = version.encode()
    body = b"\x01s\x00\x00" + struct.pack("<I", len(text)) + text + b"\x00"
    fields = b"\x05\x01u\x00" + struct.pack("<I", serial) + b"\x08\x01g\x00\x01v\x00"
    header = b"l\x02\x01\x01" + struct.pack("<III", len(body), serial, len(fields)) + fields
    return header + b"\x00" * (-len(header) % 8) + body


def serve(peer: socket.socket, version: str) -> None:
    """The authentication, line by line, then a reply to each call."""
    with peer, peer.makefile("rb") as calls, contextlib.suppress(OSError, struct.error):
        while line := calls.readline().strip(b"\x00\r\n"):
            if line == b"BEGIN":
                break
            if line.startswith(b"AUTH EXTERNAL"):
                peer.sendall(b"OK 0123456789abcdef0123456789abcdef\r\n")
            elif line == b"AUTH":
                peer.sendall(b"REJECTED EXTERNAL\r\n")
            else:
                peer.sendall(b"ERROR\r\n")
        while start := calls.read(16):
            length, serial, fields = struct.unpack("<III", start[4:])
            calls.read(fields + (-fields % 8) + length)
            peer.sendall(reply(serial, version))


def main() -> None:
    path, version = sys.argv[1:]
    os.makedirs(os.path.dirname(path), exist_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    child = os.fork()
    if child:
        with open(path + ".pid", "w") as out:
            out.write(str(child))
        return
    while True:
        threading.Thread(target=serve, args=(listener.accept()[0], version), daemon=True).start()


main()
