"""The builder, the merger and the checker of Ignition configs."""

from __future__ import annotations

import gzip
import shutil
import subprocess
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.ignition.config import (
    Config,
    IgnitionError,
    check,
    dumps,
    files_of,
    merge,
    read_data_url,
)
from ansible_collections.agentlab.ocp.plugins.module_utils.ignition.resources import VERSION, data_file


def _config() -> Config:
    config = Config()
    config.user("core", ["ssh-rsa AAAA"], "$2a$10$x")
    config.file("/etc/a", "one", 0o600)
    config.file("/etc/motd", "more", 0o644, append=True)
    config.directory("/etc/d", 0o755)
    config.unit("a.service", "[Service]\nExecStart=true\n[Install]\nWantedBy=multi-user.target\n", enabled=True)
    return config


def test_entries_replace_each_other_in_place() -> None:
    config = _config()
    config.file("/etc/a", "two", 0o644)
    document = config.to_dict()
    assert [entry["path"] for entry in document["storage"]["files"]] == ["/etc/a", "/etc/motd"]
    assert files_of(document) == {"/etc/a": b"two", "/etc/motd": b"more"}
    check(document)
    if shutil.which("ignition-validate"):
        done = subprocess.run(["ignition-validate", "-"], input=dumps(document), capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (0, b"")


def test_pointer_and_ready_entries() -> None:
    config = Config()
    config.merge({"source": "https://api:22623/config/worker"})
    config.trust({"source": "data:,ca"})
    entry, unit = data_file("/etc/a", b"one", 0o600), {"name": "a.service", "enabled": False}
    config.add(files=[data_file("/etc/a", b"other", 0o644), entry], units=[unit])
    document = config.to_dict()
    assert document == {
        "ignition": {
            "version": VERSION,
            "config": {"merge": [{"source": "https://api:22623/config/worker"}]},
            "security": {"tls": {"certificateAuthorities": [{"source": "data:,ca"}]}},
        },
        "storage": {"files": [entry]},
        "systemd": {"units": [unit]},
    }
    check(document)
    assert Config().to_dict("3.1.0") == {"ignition": {"version": "3.1.0"}}


BROKEN: dict[str, tuple[dict[str, Any], str]] = {
    "version": ({"ignition": {"version": "2.2.0"}}, "unsupported config version"),
    "unknown": ({"storage": {"files": [{"path": "/a", "content": {}}]}}, r"\$.storage.files\[0\]: unknown key content"),
    "type": ({"storage": {"files": [{"path": "/a", "mode": "0644"}]}}, r"files\[0\].mode: expected int, found str"),
    "relative": ({"storage": {"files": [{"path": "a"}]}}, "path not absolute"),
    "twice": ({"storage": {"files": [{"path": "/a"}], "directories": [{"path": "/a"}]}}, "duplicate entry"),
    "mode": ({"storage": {"files": [{"path": "/a", "mode": 65536}]}}, "illegal file mode"),
    "url": ({"storage": {"files": [{"path": "/a", "contents": {"source": "gopher://x"}}]}}, "invalid url scheme"),
    "data": ({"storage": {"files": [{"path": "/a", "contents": {"source": "data:;base64,_"}}]}}, "bad data URL"),
    "unit": ({"systemd": {"units": [{"name": "a"}]}}, "invalid unit name"),
    "install": (
        {"systemd": {"units": [{"name": "a.service", "enabled": True, "contents": "[Unit]"}]}},
        "no .Install. section",
    ),
}


@pytest.mark.parametrize(("document", "error"), BROKEN.values(), ids=BROKEN)
def test_broken_configs(document: dict[str, Any], error: str) -> None:
    with pytest.raises(IgnitionError, match=error):
        check({"ignition": {"version": "3.2.0"}} | document)


def test_merge_lets_the_child_win() -> None:
    parent = _config().to_dict()
    child = Config()
    child.file("/etc/a", "child", 0o600)
    child.unit("b.service", "[Service]\n")
    merged = merge(parent, child.to_dict())
    assert files_of(merged)["/etc/a"] == b"child"
    assert [unit["name"] for unit in merged["systemd"]["units"]] == ["a.service", "b.service"]
    assert merged["passwd"] == parent["passwd"]


def test_data_urls() -> None:
    assert read_data_url("data:,a%20b") == b"a b"
    packed = gzip.compress(b"x" * 100)
    import base64

    assert read_data_url("data:;base64," + base64.b64encode(packed).decode(), "gzip") == b"x" * 100
    with pytest.raises(IgnitionError):
        read_data_url("http://x")
