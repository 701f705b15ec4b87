"""A developer's loop: a single node is held before the installation, and each change of its service is seen within seconds.

A failing build and a service that does not start leave the lab as it was.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.agentlab.ocp.ci.calls import Verbs
from ansible_collections.agentlab.ocp.payload.images import code
from ansible_collections.agentlab.ocp.payload.images.components import COMPONENTS, PACKAGE
from ansible_collections.agentlab.ocp.plugins.module_utils.vocabulary import Component

from tests.e2e.conftest import ROOT, host, ports

CLUSTER = "e2er"
NODE = "master-0"
LIMIT = 40 * 60
SECONDS = float(os.environ.get("AGENTLAB_RELOAD_SECONDS", "inf"))
"""A component is reloaded within this time. On two quiet cores it should be 15 s; without the variable nothing is measured."""
SOURCE = "payload/api_server/page.html"
TITLE = "<title>assisted-service</title>"


def until(condition: Callable[[], object], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(1)


class Build:
    """A tree with the service's programs, of which one source is changed."""

    def __init__(self, tree: Path) -> None:
        self.tree, self._page = tree, tree / code.PREFIX / PACKAGE.replace(".", "/") / SOURCE
        self.programs = [tree / path for path in code.executables(COMPONENTS[Component.API_SERVER])]
        self.start()
        self._page.parent.mkdir(parents=True)

    def start(self) -> None:
        """Write the programs as they are in the checkout."""
        for path, node in code.executables(COMPONENTS[Component.API_SERVER]).items():
            assert isinstance(node.data, bytes)
            (self.tree / path).parent.mkdir(parents=True, exist_ok=True)
            (self.tree / path).write_bytes(node.data)
            (self.tree / path).chmod(node.mode)

    def change(self, title: str) -> None:
        """Write a page with another title."""
        text = (ROOT / SOURCE).read_text()
        assert TITLE in text
        self._page.write_text(text.replace(TITLE, f"<title>{title}</title>"))

    def fail(self) -> None:
        """Let the service exit at its start."""
        (self.tree / "assisted-service").write_text("#!/bin/sh\nexit 1\n")


def quick(shown: str) -> None:
    print(shown)
    took = re.search(r"reloaded in ([0-9.]+) s", shown)
    assert took and float(took[1]) < SECONDS, shown


@pytest.mark.long
def test_changes_of_the_service_are_seen_in_a_running_lab(tmp_path: Path, guests: None) -> None:
    before, listening = host(), ports()
    verbs, build = Verbs(CLUSTER, tmp_path), Build(tmp_path / "build")
    reload = ("reload", Component.API_SERVER, "--from", str(build.tree))

    def title() -> str:
        page = verbs.call("exec", "--", "curl", "-sS", "http://192.168.111.20:8090/")
        found = re.search("<title>(.*)</title>", page)
        return found[1] if found else ""

    def forwarded() -> str:
        """The page as a browser of this host sees it."""
        with verbs.running("forward", "service", "-o", "yaml") as process:
            assert process.stdout
            address = yaml.safe_load(process.stdout.readline())["service"]
            browser = urllib.request.build_opener(urllib.request.ProxyHandler({}))
            return str(browser.open(f"http://{address}/", timeout=30).read().decode())

    def statuses() -> list[str]:
        return [one["status"] for one in verbs.json("status")["hosts"]]

    def run(*words: str, **options: Any) -> int:
        environment = {**os.environ, "CLUSTER": CLUSTER}
        return subprocess.run(verbs.command(*words), env=environment, check=False, timeout=LIMIT, **options).returncode

    def held() -> bool:
        return (
            run("ssh", NODE, "--", "sudo", "systemctl", "stop", "start-cluster-installation", capture_output=True) == 0
        )

    (tmp_path / "sno.yml").write_text("topology: sno\n")
    try:
        assert run("deploy", str(tmp_path / "sno.yml"), "--stop-after", "boot") == 0
        until(held, 300)
        until(lambda: statuses() == ["known"], 300)

        build.change("a changed line")
        quick(verbs.call(*reload))
        assert title() == "a changed line" and statuses() == ["known"]
        assert "<title>a changed line</title>" in forwarded()
        assert "no change" in verbs.call(*reload)

        with verbs.running(*reload, "--watch") as process:
            assert process.stdout

            def seen(word: str) -> str:
                """The lines up to one with the word, which ends an attempt."""
                lines: list[str] = []
                for line in iter(process.stdout.readline, ""):
                    lines.append(line)
                    if word in line:
                        return "".join(lines)
                raise AssertionError(f"{word} is not in {lines}")

            seen("watching")
            build.change("another line")
            quick(seen("watching"))
            assert title() == "another line" and statuses() == ["known"]
            build.fail()
            assert "starting the former image again" in seen("watching")
            assert title() == "another line" and statuses() == ["known"]
            for program in build.programs:
                program.unlink()
            assert "reloaded" not in seen("watching")
            assert title() == "another line"
            build.change("a third line")
            build.start()
            quick(seen("watching"))
            assert title() == "a third line" and statuses() == ["known"]

        verbs.call("ssh", NODE, "--", "sudo", "systemctl", "start", "--no-block", "start-cluster-installation")
        assert run("deploy") == 0
        assert f"{NODE} " in verbs.call("kubectl", "get", "nodes", "--no-headers")
    finally:
        run("destroy")
    assert host() == before and ports() <= listening
