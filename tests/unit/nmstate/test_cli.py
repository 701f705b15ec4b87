"""`agentlab nmstate gc`, and nmstate's own program in its place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.cli import nmstate as verb
from ansible_collections.agentlab.ocp.plugins.module_utils.nmstate import NmstateError, external, generate

STATE = {"interfaces": [{"name": "eth0", "type": "ethernet", "ipv4": {"enabled": True, "dhcp": True}}]}


@pytest.fixture
def state(tmp_path: Path) -> Path:
    path = tmp_path / "state.yaml"
    path.write_text(json.dumps(STATE))
    return path


@pytest.fixture
def nmstatectl(tmp_path: Path):
    """Put a program in the place of nmstatectl."""

    def make(script: str) -> str:
        path = tmp_path / "nmstatectl"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return str(path)

    return make


def test_prints(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert verb.main(["gc", str(state)]) == 0
    assert json.loads(capsys.readouterr().out) == {"NetworkManager": [list(pair) for pair in generate(STATE)]}


def test_writes(state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert verb.main(["gc", "-o", str(tmp_path / "out"), str(state)]) == 0
    path = tmp_path / "out/eth0.nmconnection"
    assert capsys.readouterr().out == f"{path}\n"
    assert path.read_text() == generate(STATE)[0][1] and path.stat().st_mode & 0o777 == 0o600
    assert verb.main(["gc", "-o", str(tmp_path / "out"), str(state)]) == 0


@pytest.mark.parametrize("content", ["interfaces: [{name: eth0, colour: red}]", "interfaces: ["])
def test_refuses_in_one_line(state: Path, content: str, capsys: pytest.CaptureFixture[str]) -> None:
    state.write_text(content)
    assert verb.main(["gc", str(state)]) == 1
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("InvalidArgument: ") and err.count("\n") == 1


def test_no_such_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert verb.main(["gc", "/none.yaml"]) == 1
    assert "No such file" in capsys.readouterr().err


def test_the_program(nmstatectl) -> None:
    command = nmstatectl(
        """cat >/dev/null; printf -- '---\nNetworkManager:\n- - eth0.nmconnection\n  - |\n    [connection]\n    id=eth0\n'"""
    )
    assert external.generate("{}", command) == [("eth0.nmconnection", "[connection]\nid=eth0\n")]


def test_the_program_refuses(nmstatectl) -> None:
    command = nmstatectl("echo 'log line' >&2; echo 'NmstateError: InvalidArgument: no such thing' >&2; exit 1")
    with pytest.raises(NmstateError, match=r"^InvalidArgument: no such thing$") as error:
        external.generate("{}", command)
    assert error.value.kind == "InvalidArgument"


def test_the_program_is_not_there() -> None:
    with pytest.raises(NmstateError, match="nmstatectl-none is not installed"):
        external.generate("{}", "nmstatectl-none")
