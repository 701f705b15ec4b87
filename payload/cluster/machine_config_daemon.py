"""Applies an Ignition config to a running system (`start --once-from`), and fetches a new node's config at its first boot from disk.

A real node fetches its config in the initrd; the lab's initrd has no network, so this runs in the real root, as
`machine-config-daemon-firstboot.service`. `program` makes it a file of every disk config, which the host's Python runs: it uses only
the standard library and the modules in `_PARTS`.
"""

from __future__ import annotations

import argparse
import io
import os
import shlex
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

from ...plugins.module_utils.bounded import LIMITS, load_json
from ...plugins.module_utils.ignition.resources import read_data_url

NODE_CONFIG = Path("/etc/kubernetes/machine-config.json")
ANCHORS = "/etc/pki/ca-trust/source/anchors/"
RETRY_SECONDS = 5
_ENTER = "nsenter --target 1 --mount --"
_ROOT = Path(__file__).parents[2]
# As in the collection, so that relative imports are the same.
_PARTS = (
    "payload/cluster/machine_config_daemon.py",
    "plugins/module_utils/bounded.py",
    "plugins/module_utils/ignition/resources.py",
)
_MAIN = "import sys\nfrom agentlab.payload.cluster.machine_config_daemon import main\nsys.exit(main())\n"
Run = Callable[[list[str]], object]


def program() -> bytes:
    """Return this program as one file, a zip archive that Python runs. The same sources give the same bytes."""
    files = {"__main__.py": _MAIN.encode()} | {f"agentlab/{part}": (_ROOT / part).read_bytes() for part in _PARTS}
    packages = {str(parent) for part in _PARTS for parent in PurePosixPath(f"agentlab/{part}").parents[:-1]}
    files |= {f"{package}/__init__.py": b"" for package in sorted(packages)}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, source in files.items():
            archive.writestr(zipfile.ZipInfo(name), source, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def decode(contents: dict[str, Any]) -> bytes:
    """Return the bytes of an Ignition resource, which must be a data URL."""
    return read_data_url(contents.get("source") or "data:,", contents.get("compression"))


def write(path: Path, data: bytes, mode: int) -> None:
    """Write a file atomically, with its parent directories."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_bytes(data)
    temporary.chmod(mode)
    temporary.rename(path)


def apply(config: dict[str, Any], root: Path, run: Run) -> list[str]:
    """Write directories, files, links and units of an Ignition 3 config below `root`, and enable its units.

    `run` executes a command on that system. Returns the names of the enabled units; they are not started.
    """
    storage = config.get("storage", {})
    anchors = False
    for entry in storage.get("directories", ()):
        path = root / entry["path"].lstrip("/")
        path.mkdir(parents=True, exist_ok=True)
        path.chmod(entry.get("mode", 0o755))
    for entry in storage.get("files", ()):
        path = root / entry["path"].lstrip("/")
        data = decode(entry["contents"]) if entry.get("contents") else b""
        if not entry.get("contents") and not entry.get("append") and path.exists():
            continue
        if entry.get("append"):
            before = path.read_bytes() if path.exists() and not entry.get("contents") else data
            data = before + b"".join(decode(part) for part in entry["append"])
        write(path, data, entry.get("mode", 0o644))
        anchors = anchors or entry["path"].startswith(ANCHORS)
    for entry in storage.get("links", ()):
        path = root / entry["path"].lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        if entry.get("hard"):
            os.link(root / entry["target"].lstrip("/"), path)
        else:
            path.symlink_to(entry["target"])
    enabled = _units(config.get("systemd", {}).get("units", ()), root, run)
    if anchors:
        run(["update-ca-trust"])
    return enabled


def _units(units: Any, root: Path, run: Run) -> list[str]:
    folder = root / "etc/systemd/system"
    for unit in units:
        if unit.get("contents"):
            write(folder / unit["name"], unit["contents"].encode(), 0o644)
        for dropin in unit.get("dropins", ()):
            write(folder / f"{unit['name']}.d" / dropin["name"], dropin.get("contents", "").encode(), 0o644)
    masked = [unit["name"] for unit in units if unit.get("mask")]
    enabled = [unit["name"] for unit in units if unit.get("enabled")]
    disabled = [unit["name"] for unit in units if unit.get("enabled") is False]
    for verb, names in (("mask", masked), ("enable", enabled), ("disable", disabled)):
        if names:
            run(["systemctl", "--no-reload", verb, *names])
    # Once, after all of them: an emulated machine takes seconds for each reload.
    run(["systemctl", "daemon-reload"])
    return enabled


def fetch(url: str, ca: str) -> dict[str, Any]:
    """Return the Ignition config at `url` of the machine-config server; `ca` is PEM text, empty for the CAs of the system."""
    context = ssl.create_default_context(cadata=ca or None)
    request = urllib.request.Request(
        url,
        headers={
            "User-Agent": "Ignition/2.20.0",
            "Accept": "application/vnd.coreos.ignition+json;version=3.2.0, */*;q=0.1",
        },
    )
    with urllib.request.urlopen(request, timeout=20, context=context) as answer:
        config: dict[str, Any] = load_json(answer.read(LIMITS.size + 1), name="the machine config")
    return config


def firstboot(node_config: Path, root: Path, run: Run) -> int:
    """Fetch the node's config without a timeout (as Ignition does), apply it and start its units."""
    wanted = load_json(node_config.read_bytes(), name=str(node_config))
    reported = ""
    while True:
        try:
            config = fetch(wanted["url"], wanted["ca"])
            break
        except (OSError, ValueError) as error:
            text = f"waiting for {wanted['url']}: {error}"
            if text != reported:
                print(text, flush=True)
            reported = text
            time.sleep(RETRY_SECONDS)
    units = apply(config, root, run)
    print(
        f"applied {wanted['url']}: {len(config.get('storage', {}).get('files', ()))} files, units {' '.join(units)}",
        flush=True,
    )
    # Only once: a later boot finds its units enabled.
    run(["systemctl", "--no-reload", "disable", "machine-config-daemon-firstboot.service"])
    if units:
        run(["systemctl", "start", "--no-block", *units])
    return 0


def apply_once(source: Path, root: Path, run: Run) -> int:
    """Apply a file with an Ignition config, once; its units are enabled and not started."""
    config = load_json(source.read_bytes(), name=str(source))
    units = apply(config, root, run)
    print(
        f"applied {source}: {len(config.get('storage', {}).get('files', ()))} files, units {' '.join(units)}",
        flush=True,
    )
    return 0


def main(argv: list[str] | None = None) -> int:
    """Run `machine-config-daemon firstboot|start --once-from FILE`."""
    parser = argparse.ArgumentParser(prog="machine-config-daemon", description="applies machine configs")
    verbs = parser.add_subparsers(dest="command", required=True)
    first = verbs.add_parser("firstboot")
    first.add_argument("--node-config", type=Path, default=NODE_CONFIG)
    first.add_argument("--root", type=Path, default=Path("/"))
    # As upstream's installer calls it, in a container with the host's root at --root-mount and the host's processes.
    start = verbs.add_parser("start")
    start.add_argument("--node-name")
    start.add_argument("--root-mount", type=Path, default=Path("/rootfs"))
    start.add_argument("--once-from", type=Path, required=True, help="path of the config on the host")
    start.add_argument("--skip-reboot", action="store_true", required=True, help="it never reboots")
    start.add_argument("--enter", default=_ENTER, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    enter: list[str] = []

    def run(command: list[str]) -> object:
        return subprocess.run([*enter, *command], check=True)

    if options.command == "firstboot":
        return firstboot(options.node_config, options.root, run)
    enter = shlex.split(options.enter)
    return apply_once(options.root_mount / str(options.once_from).lstrip("/"), options.root_mount, run)


if __name__ == "__main__":
    sys.exit(main())
