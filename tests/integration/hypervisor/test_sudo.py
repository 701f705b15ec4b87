"""Everything by a user who is not root: sudo makes what needs root, and the files of the run are the user's."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import guest
import pytest
import yaml
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import namespaces
from small_lab import wait_for

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not shutil.which("sudo"), reason="needs sudo")]

ROOT = Path(__file__).parents[3]
USER, UID = "agtester", 4242
# Files of /etc -> what the user's account adds to them, and their mode. They are changed for the played host only.
ACCOUNT = {
    "passwd": (f"{USER}:x:{UID}:{UID}::{{home}}:/bin/sh\n", 0o644),
    "group": (f"{USER}:x:{UID}:\n", 0o644),
    "shadow": (f"{USER}:*:19000::::::\n", 0o600),
    "sudoers": (f"{USER} ALL=(ALL) NOPASSWD: ALL\n", 0o440),
}


def reachable(base: Path, host: namespaces.RunningSandbox) -> None:
    """Let every user of `host` reach Python and this checkout, also below a directory that is root's alone, such as /root."""
    places = {Path(sys.base_prefix), Path(sys.prefix), ROOT}
    closed = {path: next((up for up in reversed(path.parents) if not up.stat().st_mode & 1), None) for path in places}
    for top in filter(None, {*closed.values()}):
        shown = base / "shown" / top.name
        for path in (path for path in places if closed[path] == top):
            inner = shown / path.relative_to(top)
            inner.mkdir(parents=True)
            mount(host, "--rbind", path, inner)
        mount(host, "--rbind", shown, top)


def mount(host: namespaces.RunningSandbox, how: str, source: Path, target: Path) -> None:
    subprocess.run([*namespaces.enter(host), "mount", how, str(source), str(target)], capture_output=True, check=True)


class User:
    """`agentlab` as the user calls it on `host`."""

    def __init__(self, host: namespaces.RunningSandbox, home: Path) -> None:
        self.host, self.home = host, home

    def command(self, *argv: str) -> list[str]:
        given = {"HOME": self.home, "USER": USER, "LOGNAME": USER, "PATH": "/usr/local/bin:/usr/bin:/bin"}
        given |= {
            "AGENTLAB_VENV": Path(sys.executable).parents[1],
            "AGENTLAB_RUNS": self.home / "runs",
            "CLUSTER": "agtest",
        }
        command = [
            *namespaces.enter(self.host, str(self.home)),
            "setpriv",
            f"--reuid={UID}",
            f"--regid={UID}",
            "--clear-groups",
        ]
        return [
            *command,
            "env",
            "-i",
            *(f"{name}={value}" for name, value in given.items()),
            str(ROOT / "bin/agentlab"),
            *argv,
        ]

    def __call__(self, *argv: str) -> str:
        """Return the standard output of a verb, which must succeed."""
        done = subprocess.run(self.command(*argv), capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0 and "Traceback" not in done.stderr, done.stdout + done.stderr
        return done.stdout

    def json(self, *argv: str) -> Any:
        return json.loads(self(*argv, "-o", "json"))


@pytest.fixture
def user(base: Path, host: namespaces.RunningSandbox) -> User:
    home, account = base / "home", base / "account"
    for folder in (home, account):
        folder.mkdir()
    os.chown(home, UID, UID)
    reachable(base, host)
    for name, (line, mode) in ACCOUNT.items():
        path = account / name
        path.write_text((Path("/etc") / name).read_text() + line.format(home=home))
        path.chmod(mode)
        mount(host, "--bind", path, Path("/etc") / name)
    return User(host, home)


def foreign(top: Path) -> list[str]:
    """Files below `top` that are not the user's."""
    return [str(path) for path in [top, *top.rglob("*")] if path.lstat().st_uid != UID]


def test_a_user_with_sudo(user: User, base: Path, guests: None, traces: Any) -> None:
    before = traces()
    home, state_dir = user.home, base / "state" / "agtest"
    run_dir = home / "runs/agtest"
    profile = {
        "topology": "sno",
        "hypervisor": {"state_dir": str(base / "state")},
        "nodes": {"master-0": {"memory_mib": 1024}},
    }
    (home / "sno.yml").write_text(yaml.safe_dump(profile))
    os.chown(home / "sno.yml", UID, UID)
    user("prepare", "sno.yml")
    marker = json.loads((state_dir / "owner.json").read_text())
    assert (marker["uid"], marker["user"], marker["run_dir"]) == (UID, USER, str(run_dir))
    assert foreign(home) == []
    guest.iso(run_dir / "agent.x86_64.iso", "this is the image")
    os.chown(run_dir / "agent.x86_64.iso", UID, UID)
    user("boot")
    wait_for(state_dir / "console/agtest_master_0.log", "this is the image")

    [row] = [row for row in user.json("list") if row["name"] == "agtest"]  # it also lists what this machine has
    assert row["owner"].startswith(f"{USER} on "), row
    [machine] = user.json("status")["hosts"]
    assert (machine["name"], machine["power"]) == ("master-0", "on")
    assert user.json("power", "master-0")["power"] == "on"
    assert "this is the image" in user("console", "master-0")
    assert "this is the image" in user("logs", "-n", "50")
    assert user("exec", "--", "sh", "-c", "id -u; pwd").split() == [str(UID), str(home)]
    user("fault", "master-0", "pause")
    user("fault", "master-0", "pause", "--undo")
    for argv, text in (
        (["capture", "master-0", "-w", "packets"], "listening on"),
        (["forward"], "for a kubeconfig"),
    ):
        with subprocess.Popen(
            user.command(*argv), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
        ) as process:
            assert process.stdout
            seen = ""
            try:
                while text not in seen:
                    seen += (line := process.stdout.readline())
                    assert line, seen
                assert foreign(home) == []
            finally:
                os.killpg(process.pid, signal.SIGINT)
                process.communicate(timeout=30)

    user("snapshot", "save", "ready")
    assert user.json("snapshot", "list")[0]["name"] == "ready"
    user("snapshot", "restore", "ready")
    user("snapshot", "export", "ready", "ready.tar")
    user("snapshot", "copy", "ready", "agcopy")
    assert user.json("power", "master-0", "--cluster", "agcopy")["power"] == "on"
    user("gather")
    assert foreign(home) == []
    user("destroy", "--all")
    assert foreign(home) == []
    assert traces() == before and not (base / "state").exists()
