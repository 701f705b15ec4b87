"""The steps that start and stop the installer's container."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...plugins.module_utils.bounded import load_json
from . import disks, fields, host
from .protocol import Result
from .steps import Context, argument

NAME = "assisted-installer"
REQUIRED = ("cluster_id", "infra_env_id", "host_id", "role", "boot_device", "controller_image", "installer_image")
PODMAN = (
    "podman", "run", "--privileged", "--pid=host", "--net=host", f"--name={NAME}",
    "-v", "/dev:/dev:rw",
    "-v", "/opt:/opt:rw",
    "-v", "/var/log:/var/log:rw",
    "-v", "/run/systemd/journal/socket:/run/systemd/journal/socket",
    "-v", "/etc/pki:/etc/pki",
    "-v", "/tmp:/tmp",
    "--env=PULL_SECRET_TOKEN",
)  # fmt: skip
# A user can set up the network on the console before the installation. Connections from there are newer than the directory that
# the console's unit creates at start; keyfiles from the image and from the first boot are older.
TUI_LOG, KEYFILES = Path("/var/log/agent/agent-tui.log"), Path("/proc/1/root/etc/NetworkManager/system-connections")
COPY_NETWORK = "--copy-network"
VERSION = re.compile(r"v?\d+(\.\d+)*([-+~].*)?", re.ASCII)
ROLES = ("auto-assign", "master", "arbiter", "worker", "bootstrap")
IMAGES = ("installer_image", "controller_image", "mco_image", "coreos_image")
# Flags of coreos-installer that a user may add; -n is --copy-network.
INSTALLER_FLAGS = {
    "--append-karg", "--delete-karg", "-n", "--copy-network", "--network-dir", "--save-partlabel", "--save-partindex", "--image-url",
    "--image-file",
}  # fmt: skip
MOST, MOST_WORDS = 1000, 2**17  # the kernel's limit of one argument of a program (MAX_ARG_STRLEN)
MUST_GATHER = {"cnv", "lso", "ocs", "odf", "ocp"}
PULL_TRIES, PULL_SECONDS, PULL_FAILED = 3, 600.0, 2
START_SECONDS = 10.0

# Request field -> flag of the installer: fields that are passed unchanged, and switches.
VALUES = {
    "role": "--role", "infra_env_id": "--infra-env-id", "cluster_id": "--cluster-id", "host_id": "--host-id",
    "boot_device": "--boot-device", "controller_image": "--controller-image", "mco_image": "--mco-image",
    "must_gather_image": "--must-gather-image", "openshift_version": "--openshift-version",
    "installer_args": "--installer-args", "coreos_image": "--coreos-image",
}  # fmt: skip
SWITCHES = {
    "check_cvo": "--check-cluster-version",
    "skip_installation_disk_cleanup": "--skip-installation-disk-cleanup",
    "enable_skip_mco_reboot": "--enable-skip-mco-reboot",
    "notify_num_reboots": "--notify-num-reboots",
}
DEFAULTS = {"check_cvo": True}


def installer_command(request: dict[str, Any], context: Context) -> list[str]:
    """podman and its arguments for a model `install_cmd_request`."""
    request = DEFAULTS | request
    volumes = ["-v", f"{context.cacert}:{context.cacert}:rw"] if context.cacert else []
    flags = [word for key, flag in VALUES.items() if request.get(key) for word in (flag, str(request[key]))]
    flags += ["--url", context.url, "--agent-image", context.agent_version]
    if request.get("control_plane_count"):
        flags += ["--control-plane-count", str(request["control_plane_count"])]
    for disk in request.get("disks_to_format") or ():
        flags += ["--format-disk", disk]
    # A switch has no value: Go's flag package would treat it as the first positional argument.
    flags += [flag for key, flag in SWITCHES.items() if request.get(key)]
    flags += ["--insecure"] if context.insecure else []
    flags += ["--cacert", context.cacert] if context.cacert else []
    proxy = request.get("proxy") or {}
    if proxy.get("http_proxy") or proxy.get("https_proxy"):
        for key in ("http_proxy", "https_proxy", "no_proxy"):
            if proxy.get(key):
                flags += [f"--{key.replace('_', '-')}", proxy[key].strip()]
    if request.get("service_ips"):
        flags += ["--service-ips", ",".join(request["service_ips"])]
    return [*PODMAN, *volumes, request["installer_image"], *flags]


def network_by_hand(tui_log: Path = TUI_LOG, keyfiles: Path = KEYFILES) -> bool:
    """Return whether a user created a connection in the console's network screen."""
    if not tui_log.exists():
        return False
    created = host.run(["stat", "--format=%W", str(tui_log.parent)]).output.strip()
    if not created.isdigit() or created == "0":  # this file system has no birth time
        return False
    return any(
        path.is_file() and path.stat().st_mtime >= int(created) and "[connection]" in host.read(path)
        for path in keyfiles.glob("*")
    )


def with_network(request: dict[str, Any]) -> dict[str, Any]:
    """Return the request, with the flag that copies the live system's connections if the user created some."""
    words = load_json(request.get("installer_args") or "[]", name="installer_args")
    if COPY_NETWORK in words or not network_by_hand():
        return request
    return {**request, "installer_args": json.dumps([*words, COPY_NETWORK])}


def must_gather(text: str) -> dict[str, str]:
    """Images by operator; a plain pullspec is the release's. ValueError: an unknown operator."""
    try:
        images = load_json(text, name="text")
    except ValueError:
        images = {"ocp": text}
    unknown = set(images) - MUST_GATHER if isinstance(images, dict) else {fields.shown_value(text)}
    if (
        wrong := [image for image in images.values() if not isinstance(image, str) or not fields.IMAGE.fullmatch(image)]
        if not unknown
        else []
    ):
        raise ValueError(f"install: must_gather_image: {fields.shown_value(wrong[0])} is not an image")
    if unknown:
        raise ValueError(
            f"install: must_gather_image: operator {', '.join(sorted(unknown))} should be of {', '.join(sorted(MUST_GATHER))}"
        )
    return dict(images)


def validate(request: dict[str, Any]) -> None:
    """Raise ValueError if the request would not install, or would do more than that."""
    if request["role"] not in ROLES:
        raise ValueError(f"install: role {fields.shown_value(request['role'])} should be of {', '.join(ROLES)}")
    for key in ("cluster_id", "infra_env_id", "host_id"):
        fields.uuid(f"install: {key}", request[key])
    for key in IMAGES:
        if request.get(key) not in (None, ""):
            fields.image(f"install: {key}", request[key])
    proxy = fields.mapping("install: proxy", request.get("proxy"))
    for key in ("http_proxy", "https_proxy", "no_proxy"):
        value = fields.text(f"install: {key}", proxy.get(key) or "")
        if value and key != "no_proxy" and not value.startswith("http://"):
            raise ValueError(f"install: {key} {value} should start with http://")
    for address in fields.entries("install: service_ips", request.get("service_ips"), str, MOST):
        fields.address("install: service_ips:", address)
    if request.get("installer_args"):
        words = _words(fields.text("install: installer_args", request["installer_args"], MOST_WORDS))
        if unexpected := [
            word for word in words if word.startswith("-") and word.partition("=")[0] not in INSTALLER_FLAGS
        ]:
            raise ValueError(
                f"install: installer_args: unexpected flag {unexpected[0]}, allowed are {' '.join(sorted(INSTALLER_FLAGS))}"
            )
    if request.get("must_gather_image"):
        must_gather(fields.text("install: must_gather_image", request["must_gather_image"], MOST_WORDS))
    version = request.get("openshift_version")
    if version and not VERSION.fullmatch(fields.text("install: openshift_version", version)):
        raise ValueError(f"install: openshift_version {version} should be like 4.22.0")
    count = request.get("control_plane_count") or 0
    if not isinstance(count, int) or not 0 <= count <= MOST:
        raise ValueError(f"install: control_plane_count {fields.shown_value(count)} is not a number of hosts")
    for disk in [
        request["boot_device"],
        *fields.entries("install: disks_to_format", request.get("disks_to_format"), str, MOST),
    ]:
        disks.known_disk(disk)


def _words(text: str) -> list[str]:
    try:
        words = load_json(text, name="text")
    except ValueError:
        words = None
    if not isinstance(words, list) or not all(isinstance(word, str) and word.isprintable() for word in words):
        raise ValueError(f"install: installer_args must be a JSON list of strings, got {fields.shown_value(text)}")
    return words


def pull(image: str) -> str:
    """Pull the image if necessary. Return why that failed; empty on success."""
    if host.run(["podman", "images", "--quiet", image], host=True).output.strip():
        return ""
    error = ""
    for __ in range(PULL_TRIES):
        pulled = host.run(["podman", "pull", "--quiet", image], PULL_SECONDS, host=True)
        if pulled.exit_code == 0:
            return ""
        error = f"pulling the installer image {image} exited with non-zero exit code {pulled.exit_code}: {pulled.error}"
    return error


def install(args: list[str], context: Context) -> Iterator[Result]:
    """Start the installer. Yield a first result when it runs, and a second one if it fails later.

    The service ignores the first; it exists so that the reply does not wait for an installer that finally
    reboots the machine. Upstream's agent sends only the second.
    """
    request = argument("install", args[0], *REQUIRED)
    validate(request)
    if error := pull(request["installer_image"]):
        yield Result("", error, PULL_FAILED)
        return
    command = [*(host.NSENTER if host.IN_CONTAINER else ()), *installer_command(with_network(request), context)]
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
        try:
            code = process.wait(START_SECONDS)
        except subprocess.TimeoutExpired:
            yield Result()
            code = process.wait()
            if code == 0:
                return
        output.seek(max(output.tell() - 4096, 0))
        text = output.read().decode(errors="replace")
    yield Result("", "" if code == 0 else text, code)


def stop(args: list[str], context: Context) -> Result:
    return host.run(["podman", "stop", "-i", "-t", "5", NAME], host=True)
