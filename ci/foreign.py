"""A machine of a second sandbox that behaves as foreign hardware: `ci/foreign.py CLUSTER start|end`.

`start` makes the existing machine of a prepared cluster's plan, with the plan's MAC and the BMC's address and password: a VM of another
cluster, CLUSTER-metal, in a sandbox of its own, whose network is joined to the cluster's as by a cable. In front of its BMC is
`foreign_bmc.py` with the quirks of the plan, and tasks, over HTTPS if the plan has a file with the authority. `end` checks what its log
has, when the cluster was destroyed, and removes it.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ansible_collections.agentlab.ocp.ci.calls import Verbs, exit_status_of, expect
from ansible_collections.agentlab.ocp.plugins.module_utils.bmc.redfish.address import parse
from ansible_collections.agentlab.ocp.plugins.module_utils.cli.places import run_dir
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import disks, secrets
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.machines import Node
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.model import Plan
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.rundir import load_plan

NETWORK = "192.168.99.0/24"
"""Of the second sandbox: another one than the cluster's, so that neither answers the other's addresses."""
MACHINE = "master-0"
SECONDS = 60.0


class Foreign:
    """The machine of the second sandbox for the prepared cluster `cluster`."""

    def __init__(self, cluster: str) -> None:
        self.cluster, self.name = cluster, f"{cluster}-metal"
        self.folder = run_dir(self.name)
        self.log, self.pid = self.folder / "bmc.log", self.folder / "bmc.pid"
        self.verbs = Verbs(self.name, Path.cwd())

    def start(self) -> None:
        """Make the machine, its cable and its BMC. Raises `VerbFailed`."""
        found = load_plan(run_dir(self.cluster))
        plan = secrets.with_passwords(found, secrets.passwords_of(found, run_dir(self.cluster)))
        [node] = [one for one in plan["nodes"] if one.get("bare_metal")]
        where = parse(node["bmc"]["address"])
        self.folder.mkdir(parents=True, exist_ok=True)
        profile = self.folder / "machine.json"
        profile.write_text(json.dumps(_profile(node, str(where.system))))
        self.verbs.call("deploy", str(profile), "--cluster", self.name, "--stop-after", "prepare")
        metal = load_plan(self.folder)
        at = urllib.parse.urlsplit(where.root)
        for arguments in cable(plan, metal, str(at.hostname)):
            subprocess.run([*_ROOT, "ip", *arguments], check=True)
        authority = node["bmc"].get("ca_file")
        options = ["--ca", authority] if authority else []
        self._serve(metal, at, [*(node["bmc"].get("quirks") or []), "tasks"], options)

    def _serve(self, metal: Plan, at: urllib.parse.SplitResult, quirks: list[str], options: list[str]) -> None:
        command = [
            *_ROOT, "ip", "netns", "exec", metal["hypervisor"]["netns"], sys.executable, "-u", str(Path(__file__).with_name("foreign_bmc.py")),
            f"{at.hostname}:{at.port}", metal["services"]["bmc"]["url"].partition("/redfish")[0], *quirks, "--log", str(self.log), *options,
        ]  # fmt: skip
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
        self.pid.write_text(str(process.pid))
        deadline = time.monotonic() + SECONDS
        while not self._noted("port"):
            expect(process.poll() is None and time.monotonic() < deadline, f"{command} does not serve")
            time.sleep(0.5)
        print(f"ok   {self.name} is behind {at.geturl()}, with {', '.join(quirks)}", flush=True)

    def _noted(self, key: str) -> list[Any]:
        text = self.log.read_text() if self.log.exists() else ""
        return [line[key] for line in map(json.loads, text.splitlines()) if key in line]

    def end(self) -> None:
        """Check what was done to the machine, and remove it. Raises `VerbFailed`."""
        try:
            boots, bodies, paths = self._noted("boot"), self._noted("body"), self._noted("path")
            quirks = self._noted("quirks")[0]
            lost = ["Hdd"] if "boot_override_lost" in quirks else []
            expect(boots == [*lost, "Cd"], f"the machine was booted from {boots}")
            images = [body for body in bodies if "Image" in body]
            expect(len(images) == 1 and images[0]["Image"].startswith("http://"), f"images: {images}")
            expect(
                bodies[-2] == {"ResetType": "ForceOff"} and paths[-1].endswith("EjectMedia"),
                f"at the end: {bodies[-2:]}, {paths[-1]}",
            )
            busy = self._noted("busy")
            expect(bool(busy) == ("slow_post" in quirks), f"answered with 503: {busy}")
            state = self.verbs.call("power", MACHINE, "status")
            expect(state.strip().endswith("off"), state)
            print(
                f"ok   booted from {', '.join(boots)}; {len(busy)} answers were 503; powered off and ejected by destroy",
                flush=True,
            )
        finally:
            if self.pid.exists():
                os.killpg(int(self.pid.read_text()), signal.SIGTERM)
            self.verbs.call("destroy", "--cluster", self.name)


def cable(ours: Plan, metal: Plan, address: str) -> Iterator[tuple[str, ...]]:
    """Yield the arguments of ip(8) that join the bridges of two sandboxes by a pair of links.

    address: the second sandbox gets it in the network of the first, which its netmask is taken from.
    """
    here, there = ours["hypervisor"]["netns"], metal["hypervisor"]["netns"]
    bridge, other = ours["networks"][0]["bridge"], metal["networks"][0]["bridge"]
    prefix = ours["networks"][0]["subnets"][0]["cidr"].partition("/")[2]
    yield "-n", here, "link", "add", "metal0", "type", "veth", "peer", "name", "metal0", "netns", there
    yield "-n", here, "link", "set", "metal0", "master", bridge, "up"
    yield "-n", there, "link", "set", "metal0", "master", other, "up"
    yield "-n", there, "address", "add", f"{address}/{prefix}", "dev", other


_ROOT = ["sudo"] if os.geteuid() else []


def _profile(node: Node, system: str) -> dict[str, Any]:
    """Return the profile of the second sandbox, without DHCP: the machine gets its address from the cluster.

    A serial number that the hints ask for is that of the machine's second disk.
    """
    bmc = {"username": node["bmc"]["username"], "password": node["bmc"]["password"]}
    machine: dict[str, Any] = {"uuid": system.rpartition("/")[2], "nics": {"eth0": {"mac": node["nics"][0]["mac"]}}}
    if serial := disks.given_hints(node.get("root_device_hints")).get("serial_number"):
        machine["extra_disks"] = [{"size_gib": 20, "serial": serial}]
        machine["root_device_hints"] = {"serial_number": serial}
    return {"addressing": "static", "network": {"ipv4": NETWORK}, "services": {"bmc": bmc}, "nodes": {MACHINE: machine}}


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="ci/foreign.py", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("cluster")
    parser.add_argument("what", choices=("start", "end"))
    args = parser.parse_args(argv)
    return exit_status_of(getattr(Foreign(args.cluster), args.what))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
