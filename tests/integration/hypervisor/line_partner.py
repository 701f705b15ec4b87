"""The two ends of a line. `serve ADDRESS` echoes datagrams, and counts and hashes what a TCP client sends; `measure ADDRESS` prints JSON.

The result: `rtt` and `fastest` (the median and the least, in ms), `lost` (percent of datagrams without a reply), `kbits` (per
second, of `SIZE` bytes over TCP), and `whole`, whether these arrived as they were sent. With a second argument, `datagrams`, nothing is sent over TCP.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import statistics
import sys
import threading
import time

PORT, COUNT, SIZE = 7, 200, 1 << 18


def serve(address: str) -> None:
    def echo() -> None:
        while True:
            data, peer = datagrams.recvfrom(2048)
            datagrams.sendto(data, peer)

    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams,
        socket.create_server((address, PORT)) as streams,
    ):
        datagrams.bind((address, PORT))
        threading.Thread(target=echo, daemon=True).start()
        print("ready", flush=True)
        while True:
            with streams.accept()[0] as one:
                data = b""
                while len(data) < SIZE and (more := one.recv(1 << 16)):
                    data += more
                one.sendall(hashlib.sha256(data).digest())


def measure(address: str, stream: bool) -> dict[str, float | bool]:
    times: list[float] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.connect((address, PORT))
        one.settimeout(0.3)
        sent = {}
        for number in range(COUNT):
            sent[number] = time.monotonic()
            one.send(number.to_bytes(4, "big"))
            end = sent[number] + 0.01
            while (left := end - time.monotonic()) > 0 or number == COUNT - 1:
                one.settimeout(left if number < COUNT - 1 else 1.0)
                try:
                    reply = one.recv(16)
                except TimeoutError:
                    break
                # Read the clock after the wait: in one expression, it would be read before recv() blocks.
                times.append(time.monotonic() - sent[int.from_bytes(reply, "big")])
    found: dict[str, float | bool] = {
        "lost": 100 - 100 * len(times) / COUNT,
        "rtt": statistics.median(times or [0]) * 1000,
        "fastest": min(times, default=0) * 1000,
    }
    if stream:
        data, begin = os.urandom(SIZE), time.monotonic()
        with socket.create_connection((address, PORT), 60) as one:
            one.settimeout(60)
            one.sendall(data)
            found["whole"] = one.recv(64) == hashlib.sha256(data).digest()
        found["kbits"] = SIZE * 8 / 1000 / (time.monotonic() - begin)
    return found


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2])
    else:
        print(json.dumps(measure(sys.argv[2], len(sys.argv) == 3)))
