"""Hosts that sandboxes play, each with a network, processes and a libvirt of its own, and with an sshd. They need root."""

from __future__ import annotations

import difflib
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import namespaces
from ansible_collections.agentlab.ocp.plugins.module_utils.state import owner

SSHD = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")
NEAR, FAR = "192.0.2.1", "192.0.2.2"
"""Addresses at the two ends of `joined`."""
_JOIN = f"""
ip -netns "$0" link add under mtu 1550 type veth peer name under mtu 1550 netns "$1"
ip -netns "$1" address add {NEAR}/24 dev under
ip -netns "$0" address add {FAR}/24 dev under
ip -netns "$1" link set under up
ip -netns "$0" link set under up
"""

# What a host keeps of its first network namespace, and libvirt of the first network, pool and machine: a mount, chains of nftables,
# directories.
_FIRST = """
ip netns add first
ip netns delete first
mkdir -p /var/log/libvirt/qemu /var/lib/libvirt/dnsmasq
echo "<network><name>first</name><bridge name='first'/><dns enable='no'/></network>" | virsh net-define /dev/stdin
virsh net-start first
virsh net-destroy first
virsh net-undefine first
virsh pool-define-as first dir --target /tmp
virsh pool-undefine first
"""

_TRACES = r"""
ip netns list | sort
echo --links; ip -o link | cut -d: -f2 | sort
echo --addresses; ip -o address | awk '{print $2, $4}' | sort
echo --routes; ip route; ip -6 route | sed 's/ expires.*//' | grep -v ra
echo --nft; nft list ruleset | sed 's/packets [0-9]* bytes [0-9]*//'
echo --mounts; cut -d' ' -f5 /proc/self/mountinfo | grep -E 'agtest|/run/netns$' | grep -v -E "agtest-(host|far)" | sort
echo --ports; ss -Hlntu | awk '{print $1, $5}' | sort
echo --forwarding; grep -r . /proc/sys/net/ipv[46]/conf/*/forwarding /proc/sys/net/ipv4/ip_forward
echo --processes; ps -eo comm= | grep -E 'libvirt|virtlog|dnsmasq|registry|chronyd|agentlab|swtpm|ovs' | sort
echo --files; ls -A /run /var/lib /var/lib/libvirt /var/log/libvirt /var/log/libvirt/qemu /etc/libvirt /var/cache/libvirt 2>/dev/null | grep -vx agentlab
"""


@contextmanager
def directory() -> Iterator[Path]:
    """A directory that QEMU's user can reach, unlike pytest's."""
    path = Path("/var/tmp") / f"agentlab-test-{os.getpid()}"
    path.mkdir()
    path.chmod(0o755)
    try:
        yield path
    finally:
        shutil.rmtree(path)


@contextmanager
def played(base: Path, role: str) -> Iterator[namespaces.RunningSandbox]:
    """A sandbox that plays a host, with its state below `base`."""
    name = f"agtest-{role}-{os.getpid()}"  # another run of these tests on this machine has one, too
    state_dir = base / role / name
    who = owner.Caller(owner.Owner(name, str(base), os.getuid(), "root", role, ""))
    namespaces.ensure(who, f"agentlab-{name}", state_dir, ["127.0.0.1"], "test")
    running = namespaces.require(name, state_dir)
    # The first client makes libvirt look for QEMU, and keep what it found.
    subprocess.run([*namespaces.enter(running), "virsh", "capabilities"], capture_output=True, check=True)
    try:
        yield running
    finally:
        found = owner.read(state_dir)
        assert found
        namespaces.remove(f"agentlab-{name}", state_dir, found)


def used(host: namespaces.RunningSandbox) -> None:
    """Leave on a host what its first lab leaves, and no later one."""
    subprocess.run([*namespaces.enter(host), "sh", "-e", "-c", _FIRST], capture_output=True, check=True)


@contextmanager
def joined(base: Path, near: namespaces.RunningSandbox) -> Iterator[namespaces.RunningSandbox]:
    """Another host, to which a pair of links with an MTU of 1550 leads from the host `near`."""
    with played(base, "far") as far:
        for one in (near, far):
            used(one)
        subprocess.run(["sh", "-e", "-c", _JOIN, far.netns, near.netns], check=True)
        for one in (near, far):  # an end has its own address of IPv6 when the other one is up
            for __ in range(300):
                if " fe80:" in traces(one) and "linkdown" not in traces(one):
                    break
                time.sleep(0.1)
        yield far


@contextmanager
def sshd(there: namespaces.RunningSandbox, folder: Path, address: str, port: int) -> Iterator[Path]:
    """A client's configuration with which `ssh ADDRESS` leads to an sshd of the host `there`; its key is `user` next to it.

    folder: for files, new; programs in its `bin` come before those of the host.
    """
    if not SSHD:
        pytest.skip("needs openssh-server")
    folder.mkdir(mode=0o700)
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
    kind, key, *__ = (folder / "host.pub").read_text().split()
    (folder / "known").write_text(f"{address},[{address}]:{port} {kind} {key}\n")
    (folder / "sshd_config").write_text(
        f"ListenAddress {address}\nPort {port}\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/user.pub\nStrictModes no\n"
        f"PermitRootLogin prohibit-password\nUsePAM no\nPidFile none\nSubsystem sftp internal-sftp\n"
        f"SetEnv AGENTLAB_VENV={Path(sys.executable).parents[1]} PATH={folder}/bin:{os.environ['PATH']}\n")  # fmt: skip
    (folder / "config").write_text(
        f"Host *\n  Port {port}\n  User root\n  IdentityFile {folder}/user\n  IdentitiesOnly yes\n  UserKnownHostsFile {folder}/known\n"
        f"  GlobalKnownHostsFile /dev/null\n")  # fmt: skip
    serve = f"mkdir -p -m 0755 /run/sshd; exec {SSHD} -D -e -f {shlex.quote(str(folder / 'sshd_config'))}"
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([*namespaces.enter(there), "sh", "-c", serve], stderr=log)
    try:
        for __ in range(200):
            if "Server listening" in (folder / "log").read_text():
                break
            assert process.poll() is None, (folder / "log").read_text()
            time.sleep(0.1)
        yield folder / "config"
    finally:
        process.terminate()
        process.wait()


def ansible(config: Path) -> dict[str, str]:
    """Return the variables with which Ansible uses the configuration of `sshd`, and this Python on the other host."""
    return {"ANSIBLE_SSH_ARGS": f"-F {config} -o ControlMaster=no", "ANSIBLE_PYTHON_INTERPRETER": sys.executable}


def traces(host: namespaces.RunningSandbox) -> str:
    """Return what can be seen of a lab on a host. /var/lib/agentlab is that of all played hosts; give a lab another `state_dir`."""
    command = [*namespaces.enter(host), "sh", "-c", _TRACES]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def changes(before: Sequence[str], after: Sequence[str]) -> str:
    """Return how the `traces` of hosts differ, line by line; empty: they do not."""
    return "\n".join(
        line
        for old, new in zip(before, after, strict=True)
        for line in difflib.unified_diff(old.splitlines(), new.splitlines(), "before", "after", lineterm="")
    )
