"""The installer of hosts that an agent program runs, and the controller of their clusters, as programs in their dry-run mode.

Flags and variables are those of openshift/assisted-installer: `src/config`, and `ControllerConfig` of
`src/assisted_installer_controller`. Its dry run still writes to /opt, /root, /tmp and /var/log, and runs commands on the
host by nsenter. So each program gets a mount namespace in which these folders are empty and are lost with it, and an
nsenter that runs the few commands of an installation which are harmless there.

The installer of a bootstrap host needs a Kubernetes API, for which the dry run has no substitute: it is the swarm's.
"""

from __future__ import annotations

import asyncio
import functools
import os
import re
import subprocess
from pathlib import Path
from typing import Any

from ....plugins.module_utils.log import visible
from ....plugins.module_utils.vocabulary import Stage
from ..program import dumps
from ..protocol import API
from . import install, processes
from .hardware import Cluster, Host
from .settings import Settings, SwarmError
from .stats import Stats

BY_CONTROLLER = "/controller"
"""Begins the paths of a controller's requests to the relay."""
CONTROLLER_END_SECONDS = 180.0
"""After the installation: it reads the cluster once a minute, and then sends its logs."""
PLACES = ("/mnt", "/opt", "/root", "/run", "/tmp", "/var/log")
INSIDE = "/opt/swarm"
"""Where the programs find the swarm's directory."""

# The program first, then its arguments. A single node's installer waits for the files of its bootstrap.
ENTER = f"""#!/bin/sh
set -e
program=$1
inside=/opt/bin/${{program##*/}}
shift
mount -t tmpfs swarm /mnt
mkdir /mnt/swarm
mount --bind "$SWARM_DIR" /mnt/swarm
: > /mnt/program
mount --bind "$program" /mnt/program
for place in {" ".join(PLACES[1:])}; do
    mount -t tmpfs swarm $place
done
mkdir {INSIDE} /opt/bin /opt/openshift
mount --bind /mnt/swarm {INSIDE}
: > "$inside"
mount --bind /mnt/program "$inside"
umount /mnt/program /mnt/swarm /mnt
cd {INSIDE}
(sleep "$SWARM_BOOTKUBE"; touch /opt/openshift/.bootkube.done /opt/openshift/master.ign) &
exec "$inside" "$@"
"""

# `nsenter FLAGS -- COMMAND`. A file that is not of the run does not exist; `oc` does, which makes a node complete.
NSENTER = f"""#!/bin/sh
while [ $# -gt 0 ] && [ "$1" != -- ]; do shift; done
shift
case "$1 $2 $3" in
"mkdir -p /opt/"*|"mkdir -p /root/"*|"touch {INSIDE}/"*|"stat /opt/"*) exec "$@" ;;
"stat /usr/bin/oc "*) exit 0 ;;
"stat "*) exit 1 ;;
"dry-installer "*) exec "$@" ;;
"systemctl show "*) echo active; exit 0 ;;
"systemctl is-active "*) echo inactive; exit 3 ;;
"systemctl status "*) exit 0 ;;
"podman run "*) exit 0 ;;
esac
echo "agentlab swarm: does not run $1 for the program" >&2
exit 1
"""

# What coreos-installer prints while it writes the disk.
DRY_INSTALLER = """#!/bin/sh
number=0
while [ "$number" -lt "$SWARM_REPORTS" ]; do
    sleep "$SWARM_PAUSE"
    number=$((number + 1))
    percent=$((100 * number / SWARM_REPORTS))
    echo "Read disk $((percent * 10)).0 MiB/1000.0 MiB ($percent%)"
done
"""

# Field of the step `install` -> flag. Without those that a dry run cannot do (`coreos_image`, `enable_skip_mco_reboot`),
# and without the ways to the service, which is the relay here.
VALUES = {
    "role": "--role", "infra_env_id": "--infra-env-id", "cluster_id": "--cluster-id", "host_id": "--host-id",
    "boot_device": "--boot-device", "controller_image": "--controller-image", "control_plane_count": "--control-plane-count",
    "mco_image": "--mco-image", "must_gather_image": "--must-gather-image", "openshift_version": "--openshift-version",
    "installer_args": "--installer-args",
}  # fmt: skip
SWITCHES = {
    "check_cvo": "--check-cluster-version",
    "skip_installation_disk_cleanup": "--skip-installation-disk-cleanup",
    "notify_num_reboots": "--notify-num-reboots",
}

# Method, path with the id of a host or cluster as its group, and the operation's name, as the swarm's own requests have it.
_HOST, _CLUSTER = r"infra-envs?/[^/]+/hosts/([^/]+)/", r"clusters/([^/]+)"
CALLS = tuple(
    (method, re.compile(f"{API}/{path}"), name)
    for method, path, name in (
        ("PUT", f"{_HOST}progress", "progress"),
        ("PUT", f"{_HOST}logs-progress", "logs progress"),
        ("GET", f"{_HOST}downloads/ignition", "host ignition"),
        ("GET", _CLUSTER, "cluster"),
        ("GET", f"{_CLUSTER}/hosts", "hosts"),
        ("GET", f"{_CLUSTER}/downloads/(?:files|credentials)", "file"),
        ("GET", f"{_CLUSTER}/monitored-operators", "operators"),
        ("PUT", f"{_CLUSTER}/monitored-operators", "operator"),
        ("PUT", f"{_CLUSTER}/progress", "finalizing stage"),
        ("PUT", f"{_CLUSTER}/logs-progress", "controller logs progress"),
        ("POST", f"{_CLUSTER}/logs", "controller logs"),
        ("POST", f"{_CLUSTER}/uploads/ingress-cert", "ingress certificate"),
        ("POST", f"{_CLUSTER}/actions/complete-installation", "complete"),
    )
)


def call(method: str, path: str, query: dict[str, str]) -> tuple[str, str]:
    """Return the id of a request's host or cluster, and its operation's name; two empty ones for an unknown request."""
    for known, pattern, name in CALLS:
        if method == known and (found := pattern.fullmatch(path)):
            if name == "hosts" and query.get("role"):
                name = f"{query['role']}s"
            return found[1], query.get("file_name", name) if name == "file" else name
    return "", ""


def arguments(wanted: dict[str, Any], agent_image: str, url: str) -> list[str]:
    """Return the installer's command line, as upstream's agent makes it from the step `install` (`install_cmd.go`)."""
    words = ["--url", url, "--agent-image", agent_image]
    for name, flag in VALUES.items():
        if wanted.get(name):
            words += [flag, str(wanted[name])]
    for disk in wanted.get("disks_to_format") or ():
        words += ["--format-disk", str(disk)]
    return words + [flag for name, flag in SWITCHES.items() if wanted.get(name)]


@functools.cache
def namespace() -> tuple[str, ...]:
    """Return the command in front of a program that gives it a mount namespace. SwarmError: none can be made."""
    script = f"for place in {' '.join(PLACES)}; do mount -t tmpfs swarm $place || exit 1; done"
    problem = ""
    # As root without a user namespace, which some machines refuse.
    for flags in (["--mount"], ["--mount", "--map-root-user"])[os.geteuid() != 0 :]:
        command = ("unshare", *flags, "--")
        try:
            tried = subprocess.run([*command, "sh", "-c", script], capture_output=True, text=True, check=False)
        except OSError as error:
            raise SwarmError(f"requires unshare, of the package util-linux: {error.strerror}") from None
        if not tried.returncode:
            return command
        problem = tried.stderr.strip().rpartition("\n")[2]
    raise SwarmError(f"needs a mount namespace, which this machine refuses: {problem}")


class Installers:
    """Runs the installer and controller programs of the settings, after `prepare` and until `close`.

    `owners`: hosts and clusters by id, for whom these programs may send requests.
    """

    def __init__(self, settings: Settings, stats: Stats) -> None:
        self._settings, self._stats, self._pace = settings, stats, install.Pace(settings)
        self.owners: dict[str, Host | Cluster] = {}
        self._tasks: dict[int, set[asyncio.Task[Any]]] = {}
        self._controllers: dict[int, asyncio.Task[None]] = {}
        self._ended: set[int] = set()
        self._folder: Path
        self._url = ""

    def prepare(self, folder: Path, url: str) -> None:
        """Write the scripts. `folder`: of this run; `url`: the relay's."""
        self._folder, self._url = folder, url
        for name, text in (("enter", ENTER), ("bin/nsenter", NSENTER), ("bin/dry-installer", DRY_INSTALLER)):
            script = folder / "installer" / name
            script.parent.mkdir(parents=True, exist_ok=True)
            script.write_text(text)
            script.chmod(0o755)
        for name in ("nodes", "rebooted"):
            (folder / name).mkdir()

    def installs(self, host: Host, role: str) -> bool:
        """Return whether the installer program can install a host, which becomes `role`."""
        bootstraps = role == "bootstrap" and host.cluster.masters > 1
        return self._settings.installer is not None and host.program and not bootstraps

    async def install(self, host: Host, wanted: dict[str, Any]) -> bool:
        """Run a host's installer until the host reboots. Returns False if it ended before; the cluster then knows why.

        `wanted`: the request of the step `install`.
        """
        assert self._settings.installer is not None
        cluster, me = host.cluster, host.me
        if cluster.number in self._ended:
            return False
        self.owners |= {cluster.id: cluster, me.host_id: host}
        self._stats.kinds["installers"] += 1
        marker = f"rebooted/{me.host_id}"
        reports = self._settings.write_reports
        environment = {
            "DRY_HOST_ID": me.host_id, "DRY_FAKE_REBOOT_MARKER_PATH": f"{INSIDE}/{marker}",
            "SWARM_REPORTS": str(reports), "SWARM_PAUSE": f"{self._pace.stage(Stage.WRITING) / max(reports, 1):.3f}",
        }  # fmt: skip
        (self._folder / marker).unlink(missing_ok=True)  # of an earlier installation of this host
        words = arguments(wanted, me.agent_version, self._url)
        task = asyncio.current_task()
        assert task is not None
        tasks = self._tasks.setdefault(cluster.number, set())
        tasks.add(task)
        try:
            code, last = await self._run(
                self._settings.installer, words, environment | {"PULL_SECRET_TOKEN": me.token}, me.host_id
            )
        finally:
            tasks.discard(task)
        if code == 0 and (self._folder / marker).exists():
            return True
        self._break(cluster, f"the installer program of {host.name} ended with exit code {code}: {last}")
        return False

    def rebooted(self, host: Host, hosts: list[Host], wanted: dict[str, Any]) -> None:
        """Let a host that has rebooted become a node after a while, if a controller program watches its cluster.

        `hosts`: of the whole swarm. The controller starts with the first of a cluster that is not the bootstrap host of
        several.
        """
        cluster = host.cluster
        if not cluster.controlled or cluster.number in self._ended:
            return
        loop = asyncio.get_running_loop()
        joining = loop.create_task(self._join(host, wanted["role"]))
        tasks = self._tasks.setdefault(cluster.number, set())
        tasks.add(joining)
        joining.add_done_callback(tasks.discard)
        if cluster.number not in self._controllers and (wanted["role"] != "bootstrap" or cluster.masters == 1):
            members = [one for one in hosts if one.cluster is cluster]
            self._controllers[cluster.number] = loop.create_task(self._control(cluster, host, members, wanted))

    async def _join(self, host: Host, role: str) -> None:
        stages = (Stage.REBOOTING, *install.after_reboot(host, role))
        await asyncio.sleep(sum(self._pace.stage(stage) for stage in stages[: stages.index(Stage.JOINED)]))
        self._node(host).touch()

    def _node(self, host: Host) -> Path:
        return self._folder / "nodes" / host.me.host_id

    async def _control(self, cluster: Cluster, first: Host, hosts: list[Host], wanted: dict[str, Any]) -> None:
        """Run a cluster's controller to its end. It begins when its first host has become a node."""
        assert self._settings.controller is not None
        self.owners |= {cluster.id: cluster, **{host.me.host_id: host for host in hosts}}
        self._stats.kinds["controllers"] += 1
        name = f"controller-{cluster.number}"
        nodes = [
            {"hostname": host.name, "ip": host.ip, "rebootMarkerPath": f"{INSIDE}/nodes/{host.me.host_id}"}
            for host in hosts
        ]
        (self._folder / f"{name}.json").write_text(dumps(nodes))
        environment = {
            "CLUSTER_ID": cluster.id, "INVENTORY_URL": self._url + BY_CONTROLLER, "PULL_SECRET_TOKEN": first.me.token,
            "OPENSHIFT_VERSION": str(wanted.get("openshift_version") or self._settings.openshift_version),
            "CONTROL_PLANE_COUNT": str(cluster.masters), "CHECK_CLUSTER_VERSION": str(bool(wanted.get("check_cvo"))).lower(),
            "DRY_FAKE_REBOOT_MARKER_PATH": f"{INSIDE}/nodes/{first.me.host_id}",
            "DRY_CLUSTER_HOSTS_PATH": f"{INSIDE}/{name}.json",
        }  # fmt: skip
        code, last = await self._run(self._settings.controller, [], environment, name)
        if code == 0 and cluster.status not in install.OVER:  # it saw the end before the swarm's next look
            await asyncio.sleep(2 * max(self._settings.controller_poll, self._settings.watch))
        if cluster.status not in install.OVER:
            self._break(cluster, f"the controller program of {cluster.name} ended with exit code {code}: {last}")

    async def release(self, cluster: Cluster, installed: bool) -> None:
        """End what runs for a cluster that has ended. The controller of an installed one gets the time to end by itself."""
        self._ended.add(cluster.number)
        controller = self._controllers.pop(cluster.number, None)
        if controller and installed:
            await asyncio.wait([controller], timeout=CONTROLLER_END_SECONDS)
        await self._cancel([*self._tasks.pop(cluster.number, ()), *([controller] if controller else ())])

    async def close(self) -> None:
        """End all that still runs."""
        await self._cancel([*self._controllers.values(), *(task for tasks in self._tasks.values() for task in tasks)])

    async def _cancel(self, tasks: list[asyncio.Task[Any]]) -> None:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _break(self, cluster: Cluster, text: str) -> None:
        cluster.broken = cluster.broken or text

    async def _run(self, program: Path, words: list[str], environment: dict[str, str], name: str) -> tuple[int, str]:
        """Run a program to its end, in a mount namespace. Returns its exit code and the last line that it printed."""
        kept = {key: value for key, value in os.environ.items() if key in ("LANG", "PYTHONPATH")}
        environment = kept | environment | {
            "PATH": f"{INSIDE}/installer/bin:{os.environ.get('PATH', os.defpath)}", "HOME": "/root",
            "DRY_ENABLE": "true", "SWARM_DIR": str(self._folder), "SWARM_BOOTKUBE": f"{self._pace.stage(Stage.BOOTKUBE):.3f}",
        }  # fmt: skip
        log = self._folder / f"{name}.installer.log"
        # The namespace first: a change of credentials resets the signal.
        command = [
            *namespace(), *processes.KILLED_WITH_PARENT,
            str(self._folder / "installer" / "enter"), str(program.absolute()), *words,
        ]  # fmt: skip
        process = await processes.start(command, environment, self._folder, log)
        try:
            code = await process.wait()
        finally:
            await processes.end(process)
        return code, visible(processes.last_line(log))
