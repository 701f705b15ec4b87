"""A worse line: what is asked of the kernel where it has netem, and frames with VLAN tags. Effects are in tests/integration."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import faultd, relay
from hypothesis import given
from hypothesis import strategies as st


class Kernel:
    """Notes commands; those with a word of `lacks` fail."""

    def __init__(self, lacks: str = "") -> None:
        self.lacks, self.ran = lacks, list[str]()

    def __call__(self, *command: str) -> None:
        self.ran.append(" ".join(command))
        if self.lacks and self.lacks in command:
            raise relay.LineError("Error: Specified qdisc kind is unknown.")


@pytest.fixture
def line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> relay.Line:
    one = relay.Line(tmp_path, "vnet3")
    monkeypatch.setattr(relay.Line, "_master", lambda _self, link: "br0" if link == "vnet3" else "")
    monkeypatch.setattr(relay.Line, "_exists", lambda _self: True)
    monkeypatch.setattr(relay.Line, "_no_netem", lambda _self: relay.run("no", "netem"))
    return one


def test_netem_does_it_where_it_is(line: relay.Line, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Kernel()
    monkeypatch.setattr(relay, "run", kernel)
    line.set("delay", 80)
    assert kernel.ran == [
        "tc qdisc replace dev vnet3 root netem delay 80ms",
        "ip link add name ifb3 type ifb",
        "ip link set dev ifb3 up",
        "tc qdisc replace dev vnet3 handle ffff: ingress",
        "tc filter replace dev vnet3 parent ffff: pref 1 handle 1 matchall action mirred egress redirect dev ifb3",
        "tc qdisc replace dev ifb3 root netem delay 80ms",
    ]
    kernel.ran.clear()
    line.set("loss", 2)
    assert kernel.ran[0] == "tc qdisc replace dev vnet3 root netem delay 80ms loss 2%"
    line.unset("delay")
    assert kernel.ran[-1] == "tc qdisc replace dev ifb3 root netem loss 2%"
    line.unset("loss")
    assert kernel.ran[-1] == "no netem" and not line.path.exists()


@pytest.mark.parametrize("lacks", ["netem", "ifb", "matchall"])
def test_a_kernel_without_a_part_of_it_has_the_relay(
    line: relay.Line, monkeypatch: pytest.MonkeyPatch, lacks: str
) -> None:
    kernel, launched = Kernel(lacks), list[dict[str, Any]]()
    # The removal of what there is does not fail.
    monkeypatch.setattr(relay, "run", kernel)
    monkeypatch.setattr(relay.Line, "_no_netem", lambda _self: kernel.ran.append("no netem"))
    monkeypatch.setattr(relay.Line, "_launch", lambda _self, state: launched.append(state))
    line.set("rate", 512)
    assert kernel.ran[-1] == "no netem"
    assert launched == [{"bridge": "br0", "rate": 512, "by": "relay"}]


def frame(flags: int, start: int) -> bytes:
    return struct.pack("=BBHHHH", flags, 1, 54, 1448, start, 16) + b"d" * 6 + b"s" * 6 + b"\x08\x00payload"


@given(st.integers(0, 0xFFFF), st.sampled_from([0x8100, 0x88A8]))
def test_a_tag_returns_to_its_frame(tag: int, protocol: int) -> None:
    aside = struct.pack("=IIIHHHH", 0x10 | 0x40, 0, 0, 0, 0, tag, protocol)
    made = relay.with_vlan_tag(frame(1, 34), [(263, 8, aside)])
    assert made[22:26] == struct.pack("!HH", protocol, tag)
    assert made[26:] == b"\x08\x00payload"
    assert struct.unpack("=BBHHHH", made[:10]) == (1, 1, 58, 1448, 38, 16)


def test_a_frame_without_a_tag_is_as_it_was() -> None:
    for extra in ([], [(263, 8, bytes(20))], [(263, 8, b"short")], [(1, 8, b"\xff" * 20)]):
        assert relay.with_vlan_tag(frame(1, 34), extra) == frame(1, 34)


def test_a_fault_names_its_field(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ran: list[list[str]] = []
    monkeypatch.setattr(faultd, "run", lambda *command: ran.append(list(command)))
    monkeypatch.setattr(faultd.Lab, "device", lambda _self, fault: f"vnet-{fault['node']}-{fault['nic']}")
    kinds = faultd.kinds(faultd.Lab({"relay": str(tmp_path / "relay.py")}))
    for kind, field, value in (("delay", "milliseconds", 5), ("loss", "percent", 7), ("rate", "kbits", 9)):
        fault = {"kind": kind, "node": "master-0", "nic": "eth1", field: value}
        note = json.loads(json.dumps(kinds[kind].note(fault)))
        kinds[kind].begin(fault, note)
        end = kinds[kind].end
        assert end
        end(fault, note)
        assert [command[2:] for command in ran[-2:]] == [
            [str(tmp_path / "relay.py"), "set", str(tmp_path), "vnet-master-0-eth1", kind, str(value)],
            [str(tmp_path / "relay.py"), "unset", str(tmp_path), "vnet-master-0-eth1", kind],
        ]
