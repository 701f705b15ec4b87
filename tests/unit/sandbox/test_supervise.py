"""Signals reach a program in a sandbox; Ctrl-C is for the program alone, and the exit code is the program's."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.cli import cluster
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import namespaces, processes

# `agentlab exec` in the sandbox of a process that is in no other namespaces: nothing is made.
ENTER = f"""
import os, sys
from {cluster.__name__} import become
from {namespaces.__name__} import RunningSandbox, as_caller, supervised_prefix
sys.exit(become([*supervised_prefix(RunningSandbox("lab", "lab", int(sys.argv[1]), 0, "")), *as_caller(), *sys.argv[2:]]))
"""
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root enters namespaces")


@pytest.fixture
def entered(tmp_path: Path) -> Iterator[list[str]]:
    """The command that enters and becomes what is appended to it; what it leaves ends with the test."""
    yield ["env", "--default-signal=INT,HUP", f"LEFT={tmp_path}", sys.executable, "-c", ENTER, str(os.getpid())]
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        if processes.environment_of(pid).get("LEFT") == str(tmp_path):
            os.kill(pid, signal.SIGKILL)


def started(command: list[str], script: str) -> subprocess.Popen[str]:
    """A shell script that prints the pid of its shell first; in a session of its own, as in a terminal of its own."""
    return subprocess.Popen(
        [*command, "sh", "-c", f"echo $$; {script}"], stdout=subprocess.PIPE, text=True, start_new_session=True
    )


def gone(pid: int) -> bool:
    end = time.monotonic() + 20
    while processes.start_time(pid) is not None:
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_a_program_ends_with_the_verb(entered: list[str], number: signal.Signals) -> None:
    """`kill`, `Popen.terminate()` and systemd left it in the sandbox, until `destroy`."""
    with started(entered, "exec sleep 60") as process:
        assert process.stdout is not None
        inside = int(process.stdout.readline())
        assert inside != process.pid, "it is a child, which is in the PID namespace"
        process.send_signal(number)
        assert process.wait(20) == -number
    assert gone(inside)


def test_ctrl_c_is_for_the_program(entered: list[str]) -> None:
    """nsenter ended at once: what the program did then was no longer seen, and its exit code was lost."""
    with started(
        entered, "trap 'sleep 1; echo cleaned; exit 7' INT; echo ready; while :; do sleep 0.1; done"
    ) as process:
        assert process.stdout is not None
        inside = int(process.stdout.readline())
        assert process.stdout.readline() == "ready\n"
        os.killpg(process.pid, signal.SIGINT)
        assert process.stdout.read() == "cleaned\n"
        assert process.wait(20) == 7
    assert gone(inside)


def test_ctrl_c_ends_a_program_that_does_not_handle_it(entered: list[str]) -> None:
    with started(entered, "exec sleep 60") as process:
        assert process.stdout is not None
        inside = int(process.stdout.readline())
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(20) == -signal.SIGINT, "so that a loop of a shell ends as well"
    assert gone(inside)


def test_signals_that_are_ignored_stay_so_and_a_broken_pipe_ends_a_program(entered: list[str]) -> None:
    """As in the background of a script, and with nohup. Python itself ignores SIGPIPE, which its children inherit."""
    words = [word.replace("--default-signal=INT,HUP", "--ignore-signal=INT,HUP") for word in entered]
    shown = subprocess.check_output([*words, "grep", "SigIgn", "/proc/self/status"], text=True)
    ignored = int(shown.split()[1], 16)
    found = {number for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE) if ignored >> (number - 1) & 1}
    assert found == {signal.SIGINT, signal.SIGHUP}


@pytest.mark.parametrize(("name", "code"), [("nosuch", 127), ("/etc/passwd", 126)])
def test_a_program_that_cannot_be_executed(entered: list[str], name: str, code: int) -> None:
    done = subprocess.run([*entered, name], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (code, 1)
    assert done.stderr.startswith(f"agentlab: {name}: ")


def test_exit_codes_and_the_environment_are_those_of_the_program(entered: list[str]) -> None:
    done = subprocess.run(
        [*entered, "sh", "-c", 'echo "$A" "$PYTHONPATH"; exit 3'],
        env={**os.environ, "A": "b", "PYTHONPATH": "/c"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (3, "b /c\n")


@pytest.mark.skipif(not shutil.which("tcpdump"), reason="no tcpdump")
def test_a_program_that_becomes_another_user_ends_with_the_verb(entered: list[str], tmp_path: Path) -> None:
    """As tcpdump does: the kernel then no longer ends it with its parent."""
    with (tmp_path / "packets").open("wb") as output:
        process = subprocess.Popen(
            [*entered, "tcpdump", "-i", "lo", "-U", "-w", "-"], stdout=output, stderr=subprocess.PIPE, text=True
        )
    with process:
        assert process.stderr is not None and "listening on lo" in process.stderr.readline()
        inside = int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text())
        process.terminate()
        assert process.wait(20) == 0, "it ends as by Ctrl-C"
    assert gone(inside)


def test_a_program_that_stops_stops_the_verb(entered: list[str]) -> None:
    """Such as `suspend` of a shell: the shell outside has to notice."""
    with started(entered, "kill -STOP $$; exit 5") as process:
        assert process.stdout is not None
        inside = int(process.stdout.readline())
        assert os.WIFSTOPPED(os.waitpid(process.pid, os.WUNTRACED)[1])
        assert processes.start_time(inside) is not None
        process.send_signal(signal.SIGCONT)
        assert process.wait(20) == 5


def test_a_sandbox_that_has_just_ended(entered: list[str]) -> None:
    with subprocess.Popen(["true"]) as ended:
        pass
    done = subprocess.run([*entered[:-1], str(ended.pid), "true"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, f"agentlab: /proc/{ended.pid}/ns/net: No such file or directory\n")
