"""Replaces the image of what runs on a node: `python3 - PLACE COMPONENT IMAGE`, run there as root, with the standard library alone.

Units and their arguments stay as they are; only the image's name changes, where the unit or its scripts read it. When what was
started does not answer, the former image is started again. Each line of the output is JSON: `{"before": IMAGE}`, `{"step": TEXT}`.
Exit codes: 0 replaced, `UNCHANGED`, `ABSENT`, `BUSY`, and 1 with the reason on stderr.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    import ssl

UNCHANGED, ABSENT, BUSY = 40, 41, 42
"""Exit codes: the image runs already; nothing that uses the component runs here; an installation is under way."""
# Written by the ISO's get-container-images.sh, which looks names up in REFERENCES: the ImageStream of the release, kept by release-image.sh.
IMAGES = Path("/usr/local/share/assisted-service/agent-images.env")
REFERENCES = Path("/run/release-image-references")
AGENT_IMAGE = Path("/run/agent-image")  # written by extract-agent.sh
UNITS = Path("/etc/systemd/system")
RUNTIME = Path("/run/systemd/system")
LOCK = Path("/run/agentlab-reload.lock")  # the kernel lifts it when the process ends
TOKEN = Path("/etc/kubernetes/controller-token")  # of the controller's service account, on the control plane
PODS = "/api/v1/namespaces/assisted-installer/pods"
LIVE_SECRET, NODE_SECRET = "/root/.docker/config.json", "/var/lib/kubelet/config.json"
# Variables of IMAGES, by component.
VARIABLES = {
    "agent-installer-api-server": "SERVICE_IMAGE",
    "agent-installer-node-agent": "AGENT_DOCKER_IMAGE",
    "agent-installer-orchestrator": "INSTALLER_IMAGE",
    "agent-installer-csr-approver": "CONTROLLER_IMAGE",
}
# Written by the ISO, for all units of the live system, and by the machine config, for those of an installed node.
PROXY, NODE_PROXY = Path("/etc/systemd/system.conf.d/10-default-env.conf"), Path("/etc/mco/proxy.env")
SERVICE_PORT = 8090
PROC = Path("/proc")
# What a service with a file system store keeps (WORK_DIR), such as manifests, is in its container, which a restart removes. The copy is where
# containers are, which keeps extended attributes. A larger file is a program of the release, which the service extracts again.
DATA, KEPT, LARGEST = Path("data"), Path("/var/lib/containers/.service-data"), 64 << 20
INSTALLER = "assisted-installer"  # the container of a running installation
SERVICE, AGENT, API, KUBELET = "assisted-service.service", "agent.service", "kube-apiserver.service", "kubelet.service"
# Much more than a start takes: an emulated machine next to others on two cores needs a minute for what takes six seconds alone.
ANSWER_SECONDS = 300.0
CRASHES = 3
"""Restarts by systemd after which a unit counts as failed; another unit that has not started yet can cause the first."""
STEADY_SECONDS = 3.0
PAUSE = 0.3
_START = re.compile(r"^(ExecStart=.* )(\S+)( hyperkube .*)$", re.MULTILINE)


class ReloadFailed(Exception):
    """A program of the node failed, what was started does not answer, or the caller has gone."""


_ERRORS = (ReloadFailed, OSError, ValueError, KeyError)  # the last two: a file or an answer is not as expected


class Place:
    """Something that runs on this node with an image of `component`. `secret` is the file with which podman pulls there."""

    secret = LIVE_SECRET

    def __init__(self, component: str) -> None:
        self.component = component

    def image(self) -> str | None:
        """Return the image that runs; None when nothing does."""
        raise NotImplementedError

    def busy(self) -> bool:
        """Return whether the image cannot be replaced now."""
        return False

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """What must be so while its image is pulled and replaced."""
        yield

    def use(self, image: str) -> None:
        """Start with another image, and wait until that answers; the place is held.

        image: pullspec with digest, which the node has pulled. Raises `ReloadFailed` when it does not start or answer; the
        caller then uses the former image again.
        """
        raise NotImplementedError


class Service(Place):
    """The assisted service, whose own image and those that it orders are variables of its unit."""

    def image(self) -> str | None:
        if not active(SERVICE):
            return None
        found = re.search(self._line(), IMAGES.read_text(), re.MULTILINE)
        return found[1] if found else None

    def busy(self) -> bool:
        return self.component in ("agent-installer-node-agent", "agent-installer-orchestrator") and installs()

    def use(self, image: str) -> None:
        refer(self.component, image)
        text = re.sub(self._line(), f"{VARIABLES[self.component]}={image}", IMAGES.read_text(), flags=re.MULTILINE)
        write(IMAGES, text)
        if self.reloading.wait():
            raise ReloadFailed("systemctl daemon-reload failed")
        restart(SERVICE)
        wait(SERVICE, partial(answers, SERVICE_PORT, "/health"))
        if KEPT.exists():
            copy(KEPT, service_data())

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Keep the service's files, and systemd from restarting the unit if it fails: that would restart what depends on it, such as its pod."""
        setting = RUNTIME / f"{SERVICE}.d/50-reload.conf"
        setting.parent.mkdir(parents=True, exist_ok=True)
        setting.write_text("[Service]\nRestart=no\n")
        self.reloading = daemon_reload()
        try:
            if (data := service_data()).is_dir() and any(data.iterdir()):
                copy(data, KEPT)
            yield
        finally:
            setting.unlink()
            daemon_reload()
            if KEPT.exists():
                remove(KEPT)

    def _line(self) -> str:
        return rf"^{VARIABLES[self.component]}=(.*)$"


class Agent(Place):
    """The agent of a host, which is a program in the live system, taken from its image."""

    def image(self) -> str | None:
        return AGENT_IMAGE.read_text().strip() if active(AGENT) and AGENT_IMAGE.exists() else None

    def busy(self) -> bool:
        return installs()

    def use(self, image: str) -> None:
        refer(self.component, image)
        restart(AGENT)
        wait(AGENT, Steady(agent_pid))


class ControlPlane(Place):
    """The programs of an installed node: API and kubelet, whose units have the image in their commands."""

    secret = NODE_SECRET
    checks: ClassVar = {API: (6443, "/readyz"), KUBELET: (10250, "/healthz")}

    def image(self) -> str | None:
        found = [_START.search((UNITS / unit).read_text()) for unit in self.checks if active(unit)]
        return next((each[2] for each in found if each), None)

    def use(self, image: str) -> None:
        units = [unit for unit in self.checks if (UNITS / unit).exists()]
        for unit in units:
            write(UNITS / unit, _START.sub(rf"\g<1>{image}\g<3>", (UNITS / unit).read_text()))
        run("systemctl", "daemon-reload")
        restart(*units)
        for unit in units:
            wait(unit, partial(answers, *self.checks[unit], tls=True))


class Controller(Place):
    """The installer's controller, a pod of this node: the kubelet replaces its container when the image in its spec changes."""

    secret = NODE_SECRET

    def image(self) -> str | None:
        pod = self._pod() if active(KUBELET) and TOKEN.exists() else None
        return pod["spec"]["containers"][0]["image"] if pod else None

    def use(self, image: str) -> None:
        pod = self._pod()
        if pod is None:
            raise ReloadFailed("the controller has ended")
        name, container = pod["metadata"]["name"], pod["spec"]["containers"][0]["name"]
        patch = {"spec": {"containers": [{"name": container, "image": image}]}}
        kube("PATCH", f"{PODS}/{name}", patch)
        self.wanted = f"k8s_{name}", image
        wait(KUBELET, Steady(self._pid))

    def _pod(self) -> dict[str, Any] | None:
        here = [
            pod
            for pod in kube("GET", PODS)["items"]
            if pod["spec"].get("nodeName") == socket.gethostname()
            and pod["metadata"].get("labels", {}).get("job-name") == "assisted-installer-controller"
            and pod["status"].get("phase") not in ("Succeeded", "Failed")
        ]
        return here[0] if here else None

    def _pid(self) -> str:
        name, image = self.wanted
        shown = run("podman", "ps", "--filter", f"name=^{name}$", "--format", "{{.Image}} {{.Pid}}").split()
        return shown[1] if shown[:1] == [image] else ""


PLACES: dict[str, type[Place]] = {
    "service": Service,
    "agent": Agent,
    "cluster": ControlPlane,
    "controller": Controller,
}


class Steady:
    """Whether a process is the same for some seconds.

    find: returns its id, "" while there is none. Call it repeatedly; it is true once the id has not changed for
    STEADY_SECONDS.
    """

    def __init__(self, find: Callable[[], str]) -> None:
        self.find, self.pid, self.since = find, "", 0.0

    def __call__(self) -> bool:
        pid = self.find()
        if not pid or pid != self.pid:
            self.pid, self.since = pid, time.monotonic()
        return time.monotonic() - self.since >= STEADY_SECONDS


def agent_pid() -> str:
    """Return the process of the agent's unit, once its script has become the agent."""
    pid = run("systemctl", "show", "--property=MainPID", "--value", AGENT).strip()
    return pid if b"/agent\0" in read(Path(f"/proc/{pid}/cmdline")) else ""


def service_data() -> Path:
    """Return the directory of the service's files, by the root directory of its container; it need not exist."""
    monitor = run("systemctl", "show", "--property=MainPID", "--value", SERVICE).strip()
    children = read(PROC / monitor / "task" / monitor / "children").decode().split()
    return PROC / (children or ["0"])[0] / "root" / DATA


def copy(source: Path, target: Path) -> None:
    """Copy a directory into another, which is made if necessary, with times, modes and extended attributes."""
    import shutil  # takes an emulated machine time

    def large(folder: str, names: list[str]) -> list[str]:
        return [name for name in names if os.lstat(os.path.join(folder, name)).st_size > LARGEST]

    shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True, ignore=large)


def remove(folder: Path) -> None:
    import shutil

    shutil.rmtree(folder)


def refer(component: str, image: str) -> None:
    """Let the scripts of the ISO find another image for a component."""
    stream = json.loads(REFERENCES.read_text())
    for tag in stream["spec"]["tags"]:
        if tag["name"] == component:
            tag["from"]["name"] = image
    write(REFERENCES, json.dumps(stream))


def restart(*units: str) -> None:
    """Restart units alone: without their dependencies, or the pod of the service would end with the database in it."""
    begin = time.monotonic()
    run("systemctl", "reset-failed", *units)
    run("systemctl", "--job-mode=ignore-dependencies", "restart", *units)
    note(step=f"{', '.join(units)} restarted in {time.monotonic() - begin:.1f} s")


def daemon_reload() -> subprocess.Popen[bytes]:
    """Let systemd read its units again, which takes an emulated machine a second. Only a restart of a unit has to wait for it."""
    nothing = subprocess.DEVNULL
    command = ("systemctl", "daemon-reload")
    return subprocess.Popen(command, stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True)


def wait(unit: str, works: Callable[[], bool]) -> None:
    """Wait until a unit works. Raises `ReloadFailed` with the last lines of its log."""
    begin = time.monotonic()
    while not works():
        if time.monotonic() - begin > ANSWER_SECONDS or state(unit) == "failed" or restarts(unit) >= CRASHES:
            raise ReloadFailed(f"{unit} does not work with it: {last_lines(unit)}")
        time.sleep(PAUSE)
    note(step=f"{unit} works, {time.monotonic() - begin:.1f} s after its restart")


def last_lines(unit: str) -> str:
    """Return the end of a unit's log in one line; the service's container writes to the journal itself."""
    match = ["CONTAINER_NAME=service"] if unit == SERVICE else ["-u", unit]
    text = run("journalctl", "--quiet", "--no-pager", "-o", "cat", "-n", "3", *match, fails=True)
    return "; ".join(line.strip() for line in text.splitlines() if line.strip()) or f"it is {state(unit)}"


def answers(port: int, path: str, *, tls: bool = False) -> bool:
    """Return whether a port of this node answers a GET with 200."""
    # http.client takes an emulated machine a second to import.
    request = f"GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n".encode()
    try:
        channel = socket.create_connection(("localhost", port), timeout=5)
        with trusting_context().wrap_socket(channel) if tls else channel as channel:
            channel.sendall(request)
            status = channel.recv(64)
    except OSError:
        return False
    return re.match(rb"HTTP/1\.\d 200 ", status) is not None


def trusting_context() -> ssl.SSLContext:
    """Return a context for connections to this node itself, whose certificate has other names."""
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def kube(method: str, path: str, patch: object = None) -> Any:
    """Return what the API of this node answers to the controller's service account. Raises `ReloadFailed`."""
    import http.client

    headers = {
        "Authorization": f"Bearer {TOKEN.read_text().strip()}",
        "Content-Type": "application/strategic-merge-patch+json",
    }
    client = http.client.HTTPSConnection("localhost", 6443, timeout=10, context=trusting_context())
    try:
        client.request(method, path, json.dumps(patch) if patch else None, headers)
        answer = client.getresponse()
        text = answer.read()
    except (OSError, http.client.HTTPException) as error:
        raise ReloadFailed(f"the API of this node does not answer: {error}") from None
    finally:
        client.close()
    if answer.status != http.client.OK:
        raise ReloadFailed(f"{method} {path}: {answer.status} {text[:200]!r}")
    return json.loads(text)


def active(unit: str) -> bool:
    return state(unit) == "active"


def state(unit: str) -> str:
    return run("systemctl", "show", "--property=ActiveState", "--value", unit).strip()


def restarts(unit: str) -> int:
    """Return how often systemd has restarted a unit by itself since `restart`."""
    return int(run("systemctl", "show", "--property=NRestarts", "--value", unit))


def installs() -> bool:
    """Return whether the installer runs on this node."""
    return bool(run("podman", "ps", "--quiet", "--filter", f"name=^{INSTALLER}$").strip())


def run(*command: str, fails: bool = False) -> str:
    """Return the output of a program. Raises `ReloadFailed` with its last line of errors, unless it may fail."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode and not fails:
        output = done.stderr.strip().splitlines() or [f"ended with {done.returncode}"]
        raise ReloadFailed(f"{' '.join(command[:2])}: {output[-1]}")
    return done.stdout


def read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def write(path: Path, text: str) -> None:
    """Write a file atomically, with the mode that it has."""
    temporary = path.with_name(f".{path.name}.new")
    temporary.touch(0o600)
    temporary.write_text(text)
    temporary.chmod(path.stat().st_mode & 0o777)
    os.replace(temporary, path)


def replace(place: Place, image: str) -> int:
    """Replace the image of a place; return the exit code. Raises one of `_ERRORS`; then the former image runs again."""
    before = place.image()
    if before is None:
        return ABSENT
    note(before=before)
    if before == image:
        return UNCHANGED
    if place.busy():
        return BUSY
    begin = time.monotonic()
    with place.held():
        pull(place.secret, image)
        note(step=f"image pulled in {time.monotonic() - begin:.1f} s")
        try:
            place.use(image)
        except _ERRORS:
            note(step="it does not work; starting the former image again")
            place.use(before)
            raise
    return 0


@contextlib.contextmanager
def exclusive() -> Iterator[None]:
    """Wait until no other reload runs on this node: two components can be variables of one unit. Raises `ReloadFailed`."""
    with LOCK.open("w") as stream:
        end, waits = time.monotonic() + 2 * ANSWER_SECONDS, False
        while True:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > end:
                    raise ReloadFailed(f"another reload has run on this node for {2 * ANSWER_SECONDS:.0f} s") from None
                if not waits:
                    note(step="waiting for another reload on this node")
                waits = True
                time.sleep(PAUSE)
        yield


def pull(secret: str, image: str) -> None:
    """Pull an image as a unit does: a proxy is in the environment of units, not in that of a login."""
    if read(PROXY).strip() or read(NODE_PROXY):
        unit = ("systemd-run", "--quiet", "--wait", "--pipe", "--collect", f"--property=EnvironmentFile=-{NODE_PROXY}")
        run(*unit, "podman", "pull", "--quiet", "--authfile", secret, image)
    else:
        run("podman", "pull", "--quiet", "--authfile", secret, image)


def note(**fields: str) -> None:
    """Report to the caller. Raises `ReloadFailed` when it has gone; what is reported afterwards is lost."""
    try:
        sys.stdout.write(json.dumps(fields) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise ReloadFailed("the caller has gone") from None


def reason(error: Exception) -> str:
    """Return the text of one of `_ERRORS` for users."""
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}"
    return f"{type(error).__name__}: {error}" if isinstance(error, KeyError) else f"{error}"


def main(argv: Sequence[str]) -> int:
    """Run `PLACE COMPONENT IMAGE`; return the exit code."""
    name, component, image = argv
    try:
        with exclusive():
            return replace(PLACES[name](component), image)
    except _ERRORS as error:
        sys.stderr.write(f"{reason(error)}\n")
        return 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
