"""Tests of a profile that run: commands, requests to servers made here, and a console that grows."""

from __future__ import annotations

import http.server
import re
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.cluster import tests
from ansible_collections.agentlab.ocp.plugins.module_utils.cluster.validate import Check, table
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, profile

MORE = {"run": None, "http": None, "console": None, "timeout": 20, "expect": {"status": 0, "output": None}}


@pytest.fixture
def plan(tmp_path: Path) -> Any:
    made: Any = build.build(profile.complete({}), "ostest")
    made["nodes"][0]["console"] = str(tmp_path / "console")
    return made


def execute(plan: Any, tmp_path: Path, **test: Any) -> Check:
    """Run a test; ssh is a shell that runs the node's command here, with the address as $0."""
    reach = tests.Reach(
        lambda address: ("sh", "-c", 'eval "$1"', address),
        tmp_path / "kubeconfig",
        tmp_path / "ca.crt",
        {"GIVEN": "yes"},
    )
    return tests.execute(plan, {"name": "a", "on": "lab", **MORE, **test}, reach)


@pytest.mark.parametrize(
    ("test", "ok", "found"),
    [
        ({"run": ["true"]}, True, "exit status 0"),
        ({"run": "exit 3"}, False, "exit status 3, expected 0"),
        ({"run": "echo oh; exit 3"}, False, "exit status 3, expected 0; it ends with: oh"),
        ({"run": "exit 3", "expect": {"status": 3, "output": None}}, True, "exit status 3"),
        ({"run": "echo a; echo b >&2", "expect": {"status": 0, "output": "^b$"}}, True, "exit status 0, matches ^b$"),
        ({"run": "echo $GIVEN", "expect": {"status": 0, "output": "^yes$"}}, True, "matches ^yes$"),
        (
            {"run": ["echo", "$GIVEN {{ x }}"], "expect": {"status": 0, "output": r"^\$GIVEN \{\{ x \}\}$"}},
            True,
            "matches",
        ),
        (
            {"run": "echo a", "expect": {"status": 0, "output": "b"}},
            False,
            "the output does not match b; it ends with: a",
        ),
        ({"run": ["/nonexistent"]}, False, "/nonexistent cannot be started"),
        ({"run": "sleep 60", "timeout": 1}, False, "it timed out after 1 s"),
        ({"on": "master-0", "run": "echo on $0", "expect": {"status": 0, "output": "^on sh$"}}, True, "exit status 0"),
        (
            {"on": "master-0", "run": ["echo", "a  b"], "expect": {"status": 0, "output": "^a  b$"}},
            True,
            "exit status 0",
        ),
        ({"on": "master-0", "run": "sleep 60", "timeout": 1}, False, "exit status 124, expected 0"),
        ({"run": "echo token: sha256~abcdefghijklmnopqrstuvwxyz0123; false"}, False, "REDACTED"),
    ],
)
def test_commands(plan: Any, tmp_path: Path, test: dict[str, Any], ok: bool, found: str) -> None:
    check = execute(plan, tmp_path, **test)
    assert (check.name, check.ok) == ("test a", ok), check
    assert found in check.found
    assert re.search(r"\(\d+\.\d s\)$", check.found)


def test_a_command_that_prints_without_end(plan: Any, tmp_path: Path) -> None:
    """Memory is bounded, and what it started is ended with it."""
    mark = tmp_path / "pid"
    check = execute(plan, tmp_path, run=f"sleep 600 & echo $! > {mark}; yes", timeout=2)
    assert "it timed out after 2 s" in check.found
    assert len(check.found) < 2 * tests.SHOWN
    state = subprocess.run(
        ["ps", "-o", "stat=", "-p", mark.read_text().strip()], capture_output=True, text=True, check=False
    )
    assert state.stdout.strip()[:1] in ("", "Z")


def test_an_expression_that_takes_practically_without_end(
    plan: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tests, "_REGEX_SECONDS", 1.0)
    began = time.monotonic()
    check = execute(plan, tmp_path, run=f"echo {'a' * 64}!", expect={"status": 0, "output": "^(a+)+$"})
    assert "takes longer than 1 s to match" in check.found
    assert not check.ok
    assert time.monotonic() - began < 15


class Pages(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(503 if self.path == "/busy" else 200)
        self.end_headers()
        try:
            self.wfile.write(b"ready\n")
            while self.path == "/drip":
                self.wfile.write(b".")
                time.sleep(0.1)
        except OSError:
            pass

    def log_message(self, *__: object) -> None:
        pass


@pytest.fixture
def pages() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    ("path", "expect", "ok", "found"),
    [
        ("/", {"status": 200, "output": "^ready$"}, True, "status 200, matches ^ready$"),
        ("/busy", {"status": 200, "output": None}, False, "status 503, expected 200; it ends with: ready"),
        ("/busy", {"status": 503, "output": None}, True, "status 503"),
        ("/drip", {"status": 200, "output": None}, False, "timed out after 1 s"),
    ],
)
def test_requests(
    plan: Any, tmp_path: Path, pages: str, path: str, expect: dict[str, Any], ok: bool, found: str
) -> None:
    timeout = 1 if path == "/drip" else 20
    check = execute(plan, tmp_path, http=pages + path, expect=expect, timeout=timeout)
    assert check.ok is ok, check
    assert found in check.found


def test_a_server_that_does_not_answer(plan: Any, tmp_path: Path) -> None:
    check = execute(plan, tmp_path, http="http://127.0.0.1:9/", expect={"status": 200, "output": None}, timeout=2)
    assert not check.ok
    assert "GET http://127.0.0.1:9/: " in check.found
    check = execute(plan, tmp_path, on="api", http="/readyz", expect={"status": 200, "output": None}, timeout=2)
    assert "kubeconfig: not a usable kubeconfig" in check.found


def test_a_console_is_read_until_it_matches(plan: Any, tmp_path: Path) -> None:
    """Also what comes later; and a text that never comes ends in a message with the end of the console."""
    console = tmp_path / "console"
    console.write_bytes(b"booting\r\n")
    later = threading.Timer(1.5, lambda: console.open("ab").write(b"localhost login: "))
    later.start()
    expect = {"status": None, "output": None}
    check = execute(plan, tmp_path, on="master-0", console="^localhost login:", expect=expect)
    assert (check.ok, check.found.partition(" (")[0]) == (True, "the console shows ^localhost login:")
    check = execute(plan, tmp_path, on="master-0", console="^panic$", expect=expect, timeout=1)
    assert "does not show ^panic$ within 1 s; it ends with: booting" in check.found
    console.unlink()
    check = execute(plan, tmp_path, on="master-0", console="x", expect=expect, timeout=1)
    assert "No such file or directory" in check.found


def test_selection(plan: Any) -> None:
    plan["tests"] = [{"name": "a", "on": "lab"}, {"name": "b", "on": "host"}, {"name": "c", "on": "master-0"}]
    assert [test["name"] for test in tests.selected_tests(plan, [], on_host=False)] == ["a", "c"]
    assert [test["name"] for test in tests.selected_tests(plan, ["b", "c"], on_host=True)] == ["b"]
    with pytest.raises(tests.FailedTest, match="there is no test d: tests of the profile are a, b, c"):
        tests.selected_tests(plan, ["d"], on_host=True)
    assert table([]) == ""
