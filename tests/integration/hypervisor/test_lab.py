"""The lab's playbooks: once, again, interrupted, and without a trace."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import namespaces

from tests import hosts

sys.path.insert(0, str(Path(__file__).parent))
import guest

pytestmark = pytest.mark.slow

BOOT_SECONDS = 60
CLI = "ansible_collections.agentlab.ocp.plugins.module_utils.cli"


def test_prepare_again_and_destroy(lab: Any, traces: Any) -> None:
    before = traces()
    one = lab("agtest", {"topology": "ha", "stack": "dualstack"})
    old = [one.run_dir / "logs/events.json", one.run_dir / "report/summary.txt"]
    for path in old:
        path.parent.mkdir()
        path.write_text("of the last cluster")
    assert one.play("prepare", "--check")[0] >= 2
    assert traces() == before and all(path.exists() for path in old)
    begin = time.monotonic()
    assert one.play("prepare")[0] >= 5
    assert not any(path.exists() for path in old)
    first, begin = time.monotonic() - begin, time.monotonic()
    assert one.play("prepare")[0] == 0
    print(f"prepare {first:.1f} s, again {time.monotonic() - begin:.1f} s")
    assert one.play("prepare", "--check", "--diff")[0] == 0
    environment = {**one.environment(), "AGENTLAB_RUNS": str(one.run_dir.parent)}
    command = [*namespaces.enter(one.host), sys.executable, "-m", CLI, "status", "--cluster", "agtest", "-o", "json"]
    status = json.loads(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
    assert {(host["power"], host["medium"], host["problem"]) for host in status["hosts"]} == {("off", None, None)}
    assert one.enter("getent", "ahosts", "x.apps.agtest.test.metalkube.org").split()[0] in {
        "192.168.111.4",
        "fd2e:6f44:5dd8:c956::4",
    }
    assert one.play("destroy")[0] == 2
    assert traces() == before
    assert not one.parent.exists()
    assert one.play("destroy")[0] == 0


def test_two_sandboxes_with_the_same_networks(lab: Any) -> None:
    labs = [lab(name, {"topology": "sno", "stack": "ipv4"}) for name in ("agtest", "agtest2")]
    for one in labs:
        one.play("prepare")
    for one in labs:
        assert f"{one.cluster}_master_0" in one.enter("virsh", "list", "--all", "--name")
        names = one.enter("virsh", "list", "--all", "--name").split()
        assert len(names) == 1
    labs[0].play("destroy")
    assert labs[1].play("prepare")[0] == 0


def descendants(pid: int) -> set[int]:
    """The processes below `pid`."""
    table = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    pairs = [tuple(map(int, line.split())) for line in table.splitlines()]
    found: set[int] = set()
    while more := {child for child, parent in pairs if parent in {pid, *found}} - found:
        found |= more
    return found


def until_gone(pids: set[int], seconds: float) -> None:
    """Ansible's workers are sessions of their own: one whose playbook was killed ends its task first."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and any(Path(f"/proc/{pid}").exists() for pid in pids):
        time.sleep(0.1)


# What comes before a verb, and how many seconds it takes.
INTERRUPTED: dict[str, tuple[list[str], float]] = {
    "prepare": ([], 4.5),
    "configure": ([], 1.5),
    "image": (["prepare", "configure"], 5),
    "destroy": (["prepare"], 1.5),
}


@pytest.mark.parametrize("verb", INTERRUPTED)
def test_interrupted_anywhere(lab: Any, traces: Any, verb: str) -> None:
    if verb == "image":
        # Built with the host's way out, which the host of this test lacks.
        subprocess.run([sys.executable, "-m", CLI, "payload", "build"], check=True, capture_output=True)
    before = traces()
    one = lab("agtest", {"topology": "compact", "stack": "ipv4"})
    earlier, seconds = INTERRUPTED[verb]
    for stage in earlier:
        one.play(stage)
    generator = random.Random(os.environ.get("AGENTLAB_SEED", "1"))
    for __ in range(4):
        process = subprocess.Popen(
            one.command(verb),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env=one.environment(),
        )
        time.sleep(generator.uniform(0.5, seconds))
        workers = descendants(process.pid)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        until_gone(workers, 15)
        if verb == "prepare" and generator.random() < 0.5:
            one.play("destroy")
            assert traces() == before
    one.play(verb)
    assert one.play(verb)[0] == 0
    one.play("destroy")
    assert traces() == before


def test_destroy_removes_what_half_exists(lab: Any, traces: Any) -> None:
    before = traces()
    one = lab("agtest", {"topology": "sno", "stack": "ipv4"})
    one.play("prepare")
    pid = json.loads((one.state_dir / "sandbox.json").read_text())["pid"]
    subprocess.run([*namespaces.enter(one.host), "kill", "-9", str(pid)], check=True)
    (one.state_dir / "sandbox.json").unlink()
    one.play("destroy")
    assert traces() == before


def test_destroy_without_the_list(lab: Any, traces: Any) -> None:
    """The run directory is lost before the cluster."""
    before = traces()
    one = lab("agtest", {"topology": "sno"})
    one.play("prepare")
    (one.run_dir / "state.json").unlink()
    assert one.play("destroy", "--check")[0] == 2
    assert one.play("destroy")[0] == 2
    assert traces() == before


def test_prepare_after_the_host_was_restarted(lab: Any, traces: Any) -> None:
    """Files are there, processes and what /run had are gone; and a number that was one of ours is another process."""
    before = traces()
    one = lab("agtest", {"topology": "compact", "stack": "dualstack"})
    one.play("prepare")
    pid = json.loads((one.state_dir / "sandbox.json").read_text())["pid"]
    # umount makes /run/mount.
    gone = "ip netns delete agentlab-agtest; umount -R /run/netns; rm -r /run/netns /run/mount"
    script = f"kill -9 {pid}; while [ -e /proc/{pid}/exe ]; do sleep 0.1; done; {gone}"
    subprocess.run([*namespaces.enter(one.host), "sh", "-c", script], check=True)
    other = one.state_dir / "processes" / "http.json"
    other.write_text(json.dumps(json.loads(other.read_text()) | {"pid": os.getpid()}))
    (one.state_dir / "services/ntp/chronyd.pid").write_text("1\n")
    checked, __ = one.play("prepare", "--check")
    assert checked >= 1
    assert one.play("prepare")[0] >= 3
    assert one.play("prepare")[0] == 0
    assert len(one.enter("virsh", "list", "--all", "--name").split()) == 3
    assert one.enter("getent", "ahosts", "x.apps.agtest.test.metalkube.org")
    one.play("destroy")
    assert traces() == before


IN_A_CHROOT = """
import subprocess, sys
from pathlib import Path
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import namespaces
from ansible_collections.agentlab.ocp.plugins.module_utils.state import owner
place = Path(sys.argv[1])
namespaces.ensure(owner.Caller(owner.Owner("agtest", "/", 0, "root", "lab", "")), "agentlab-agtest", place, ["127.0.0.1"], "test")
print(subprocess.check_output([*namespaces.enter(namespaces.require("agtest", place), "/srv"), "ls"], text=True))
namespaces.remove("agentlab-agtest", place, owner.read(place))
"""


def test_a_host_that_is_a_chroot(base: Path, host: namespaces.RunningSandbox) -> None:
    """As schroot and debootstrap make: the mount namespace has another root."""
    root, state = base / "root", base / "state" / "agtest"
    root.mkdir()
    script = 'mount --rbind / "$0"; mount -t tmpfs none "$0/srv"; touch "$0/srv/marker"; exec chroot "$0" "$@"'
    command = ["unshare", "--mount", "sh", "-ec", script, str(root), sys.executable, "-c", IN_A_CHROOT, str(state)]
    done = subprocess.run([*namespaces.enter(host), *command], capture_output=True, text=True, check=False)
    assert (done.stdout.split(), done.returncode) == (["marker"], 0), done.stderr


def test_changed_definition_is_seen_and_fixed(lab: Any) -> None:
    one = lab("agtest", {"topology": "sno", "stack": "ipv4"})
    one.play("prepare")
    one.enter(
        "sh",
        "-c",
        "virsh dumpxml --inactive agtest_master_0 | sed 's/4194304/2097152/g' > /tmp/x.xml && virsh define /tmp/x.xml",
    )
    changed, output = one.play("prepare", "--check", "--diff")
    assert changed == 1
    assert re.search(r"-.*2097152.*\n\+.*4194304", output)
    assert one.play("prepare")[0] == 1
    assert "4194304" in one.enter("virsh", "dominfo", "agtest_master_0")


def test_a_dnsmasq_that_ended_runs_again(lab: Any) -> None:
    """Killed with the network still active in libvirt: names and leases come back, machines keep their cables."""
    one = lab("agtest", {"topology": "sno", "stack": "dualstack"})
    one.play("prepare")
    one.enter("sh", "-c", "kill -9 $(cat /run/libvirt/network/agtestbm.pid); sleep 0.5")
    assert one.play("prepare", "--check")[0] == 1
    assert one.play("prepare")[0] == 1
    assert one.enter("getent", "ahosts", "api.agtest.test.metalkube.org")
    assert "served" not in one.enter("virsh", "net-dumpxml", "agtestbm")
    assert one.play("prepare")[0] == 0


def test_taken_port_is_named(lab: Any) -> None:
    one = lab("agtest", {"topology": "sno", "stack": "ipv4"})
    one.play("prepare")
    pid = json.loads((one.state_dir / "processes" / "http.json").read_text())["pid"]
    one.enter("sh", "-c", f"kill {pid}; sleep 0.5; exec python3 -m http.server 8089 >/dev/null 2>&1 </dev/null &")
    time.sleep(1)
    result = subprocess.run(one.command("prepare"), capture_output=True, text=True, env=one.environment(), check=False)
    assert result.returncode != 0
    assert re.search(r"http: port 8089/tcp is used by pid \d+ \(.*python3 -m http.server 8089\)", result.stdout), (
        result.stdout
    )


def test_bmc_boots_the_image_and_a_reboot_in_the_guest_the_disk(lab: Any, guests: None) -> None:
    one = lab("agtest", {"topology": "sno", "stack": "ipv4"})
    one.play("prepare")
    guest.iso(one.run_dir / "agent.x86_64.iso", "this is the image")
    assert one.play("boot")[0] == 1
    console = one.state_dir / "console" / "agtest_master_0.log"
    wait_for(console, "this is the image")
    assert one.play("boot")[0] == 0

    written = one.run_dir / "disk"
    written.write_bytes(guest.disk("this is the disk"))
    written.chmod(0o644)
    write = f'qemu-io -d scsi0-0-0-0 "write -s {written} 0 {written.stat().st_size}"'
    one.enter("virsh", "qemu-monitor-command", "agtest_master_0", "--hmp", write)
    terminal = re.search(r"<console type='pty' tty='([^']+)'", one.enter("virsh", "dumpxml", "agtest_master_0"))
    assert terminal
    one.enter("sh", "-c", f"(printf r; sleep 3) > {terminal[1]}")
    wait_for(console, "this is the disk")
    assert console.read_text(errors="replace").count("this is the image") == 1

    # A client wants the medium although the disk boots: once, then at each start, then no more.
    system = f"/Systems/{one.plan['nodes'][0]['uuid']}"

    def choose(target: str, enabled: str) -> None:
        boot = {"BootSourceOverrideTarget": target, "BootSourceOverrideEnabled": enabled}
        assert bmc_status(one, system, method="PATCH", body={"Boot": boot}) == "204"

    def restart() -> None:
        assert bmc_status(one, f"{system}/Actions/ComputerSystem.Reset", body={"ResetType": "ForceRestart"}) == "204"

    choose("Cd", "Once")
    restart()
    wait_for(console, "this is the image", 2)
    terminal = re.search(r"<console type='pty' tty='([^']+)'", one.enter("virsh", "dumpxml", "agtest_master_0"))
    assert terminal
    one.enter("sh", "-c", f"(printf r; sleep 3) > {terminal[1]}")
    wait_for(console, "this is the disk", 2)
    restart()
    wait_for(console, "this is the disk", 3)
    choose("Cd", "Continuous")
    for count in (3, 4):
        restart()
        wait_for(console, "this is the image", count)
    choose("Hdd", "Continuous")
    restart()
    wait_for(console, "this is the disk", 4)

    guest.iso(one.run_dir / "agent.x86_64.iso", "this is another image")
    assert one.play("boot")[0] == 1
    wait_for(console, "this is another image")


def test_cdrom_boots_without_a_bmc(lab: Any, guests: None) -> None:
    one = lab("agtest", {"topology": "sno", "stack": "ipv4", "boot": {"mode": "cdrom"}})
    one.play("prepare")
    guest.iso(one.run_dir / "agent.x86_64.iso", "by cdrom")
    assert one.play("boot")[0] == 1
    wait_for(one.state_dir / "console" / "agtest_master_0.log", "by cdrom")
    assert one.play("boot")[0] == 0


@pytest.mark.parametrize("stack", ["ipv4", "ipv6"])
def test_network_boots_without_tftp(lab: Any, guests: None, stack: str) -> None:
    one = lab("agtest", {"topology": "sno", "stack": stack, "boot": {"mode": "pxe"}})
    one.play("prepare")
    artifacts = one.run_dir / "boot-artifacts"
    artifacts.mkdir()
    (artifacts / "agent.x86_64-vmlinuz").write_bytes(guest.program("by network"))
    script = f"#!ipxe\nkernel {one.plan['services']['http']['url']}/agent.x86_64-vmlinuz\nboot\n"
    (artifacts / "agent.x86_64.ipxe").write_text(script)
    assert one.play("boot")[0] == 1
    wait_for(one.state_dir / "console" / "agtest_master_0.log", "by network")
    assert one.play("boot")[0] == 0


def bmc_status(
    one: Any, path: str, user: str = "admin", *, method: str | None = None, body: dict[str, object] | None = None
) -> str:
    """The status of a request to the BMCs, with the lab's password unless `user` has one; a `body` is posted."""
    password = json.loads((one.run_dir / "secrets.json").read_text())["bmc"]
    form = ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "--cacert", str(one.run_dir / "tls" / "ca.crt")]
    user = user if ":" in user else f"{user}:{password}"
    if body:
        form += ["-H", "Content-Type: application/json", "-d", json.dumps(body)]
    if method:
        form += ["-X", method]
    output: str = one.enter(*form, "-u", user, f"https://192.168.111.1:8000/redfish/v1{path}")
    return output


def test_bmcs_answer_again_after_libvirtd_was_killed(lab: Any) -> None:
    """sushy-tools keeps what it looked up, with the connection of then."""
    one = lab("agtest", {"topology": "sno", "stack": "ipv4"})
    one.play("prepare")
    system = f"/Systems/{one.plan['nodes'][0]['uuid']}"
    assert bmc_status(one, system) == "200"
    one.enter("sh", "-c", "kill -9 $(cat /run/libvirtd.pid); sleep 0.5")
    one.play("prepare")
    assert bmc_status(one, system) == "200"


def test_bmc_is_for_our_machines_and_users_only(lab: Any) -> None:
    one = lab("agtest", {"topology": "sno", "stack": "ipv4"})
    one.play("prepare")
    foreign = "<domain type='qemu'><name>s</name><memory>1024</memory><os><type arch='x86_64'>hvm</type></os></domain>"
    (one.state_dir / "foreign.xml").write_text(foreign)
    one.enter("virsh", "define", str(one.state_dir / "foreign.xml"))
    identity = one.enter("virsh", "domuuid", "s").strip()
    ours = one.plan["nodes"][0]["uuid"]

    def status(path: str, user: str = "admin") -> str:
        return bmc_status(one, path, user)

    assert status(f"/Systems/{ours}") == "200"
    assert status(f"/Systems/{ours}/VirtualMedia/Cd") == "200"
    for path in ("", "/1", "/1/Drives/sda", "/1/Volumes"):
        assert status(f"/Systems/{ours}/Storage{path}") == "200"
    assert status(f"/Systems/{ours}", "admin:wrong") == status(f"/Systems/{ours}", "admin:password") == "401"
    assert status(f"/Systems/{identity}") == "404"
    assert status(f"/Systems/{identity}/VirtualMedia/Cd") == "404"
    assert status(f"/Managers/{identity}") == "404"


def test_plain_libvirt(lab: Any, traces: Any, host: namespaces.RunningSandbox, guests: None) -> None:
    """What libvirtd itself keeps once it made a network (empty chains, directories) is not ours: it is there before."""
    hosts.used(host)
    before = traces()
    one = lab("agtest", {"topology": "compact", "stack": "dualstack", "hypervisor": {"kind": "local"}})
    assert one.play("prepare")[0] >= 4
    assert one.play("prepare")[0] == 0
    guest.iso(one.run_dir / "agent.x86_64.iso", "on a plain libvirt")
    assert one.play("boot")[0] == 1
    wait_for(one.state_dir / "console" / "agtest_master_0.log", "on a plain libvirt")
    assert one.play("destroy")[0] == 2
    assert not hosts.changes([before], [traces()])
    assert not one.parent.exists()


def test_way_out_and_way_in(lab: Any, host: namespaces.RunningSandbox, traces: Any) -> None:
    """The sandbox that plays the host has another namespace for the outside, at 203.0.113.1 and 192.0.2.80."""
    outside = subprocess.Popen([*namespaces.enter(host), "unshare", "--net", "sleep", "300"])
    try:
        time.sleep(0.3)
        inner = subprocess.run(
            [*namespaces.enter(host), "pgrep", "-x", "sleep"], capture_output=True, text=True, check=True
        ).stdout.split()[0]
        script = f"""
            ip link add eth9 type veth peer name eth0 netns {inner}
            ip address add 203.0.113.2/24 dev eth9; ip link set eth9 up; ip route add default via 203.0.113.1
            nsenter -t {inner} -n ip link set lo up; nsenter -t {inner} -n ip link set eth0 up
            nsenter -t {inner} -n ip address add 203.0.113.1/24 dev eth0; nsenter -t {inner} -n ip address add 192.0.2.80/32 dev lo
            nsenter -t {inner} -n python3 -m http.server 80 --bind 192.0.2.80 >/dev/null 2>&1 </dev/null &
        """
        subprocess.run([*namespaces.enter(host), "sh", "-ec", script], check=True)
        before = traces()
        one = lab("agtest", {"topology": "sno", "stack": "ipv4", "hypervisor": {"egress": True, "route": True}})
        one.play("prepare")
        assert one.play("prepare")[0] == 0
        fetch = ["curl", "-s", "-m", "5", "-o", "/dev/null", "-w", "%{http_code}"]
        assert one.enter(*fetch, "http://192.0.2.80/") == "200"
        way_in = subprocess.run(
            [*namespaces.enter(host), *fetch, "http://192.168.111.1:8089/"], capture_output=True, text=True, check=False
        )
        assert way_in.stdout == "200"
        one.play("destroy")
        assert traces() == before
    finally:
        outside.kill()
        outside.wait()


def wait_for(console: Path, line: str, count: int = 1) -> None:
    deadline = time.monotonic() + BOOT_SECONDS
    while (console.read_text(errors="replace") if console.exists() else "").count(line) < count:
        assert time.monotonic() < deadline, (
            f"{line!r} is not {count} times in {console}: {console.read_text(errors='replace')[-500:]}"
        )
        time.sleep(0.2)
