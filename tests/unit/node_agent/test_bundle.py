from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.payload.node_agent import PROGRAMS, bundle


def test_reproducible(tmp_path: Path) -> None:
    for name in ("a", "b"):
        bundle.write(tmp_path / name)
    first = (tmp_path / "a").read_bytes()
    assert first == (tmp_path / "b").read_bytes() and first.startswith(b"#!/usr/bin/python3 -sE\n")
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o755 and len(list(tmp_path.iterdir())) == 2
    done = subprocess.run([tmp_path / "a"], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "unknown binary name a, expected one of agent, next_step_runner" in done.stderr


def test_needs_nothing_but_the_standard_library(programs: Path) -> None:
    names = [*PROGRAMS, "install", "disks", "probes"]
    script = (
        "import importlib, sys; sys.path.insert(0, sys.argv[1])\n"
        "for name in sys.argv[2:]: importlib.import_module('agentlab.payload.node_agent.' + name)\n"
        "print(sys.modules['agentlab.payload.node_agent.agent'].__file__, sys.modules['agentlab.payload.node_agent.agent'].__cached__)"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script, programs / "agent", *names],
        capture_output=True,
        text=True,
        cwd="/",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert str(programs / "agent") in done.stdout


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_program_prints_its_usage(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    module = importlib.import_module(f"ansible_collections.agentlab.ocp.payload.node_agent.{name}")
    with pytest.raises(SystemExit) as end:
        module.main(["--help"])
    assert end.value.code == 0 and capsys.readouterr().err.startswith(f"Usage of {name}:")
