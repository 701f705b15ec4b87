"""Commands to access a cluster's lab: each can be run as printed, in the checkout.

Names and addresses of a lab exist in its own network only, so most commands start with `agentlab exec`.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from .machines import in_network
from .model import Plan

PROGRAM = "bin/agentlab"


@dataclass(frozen=True)
class Access:
    """Commands for the plan with run directory `run_dir`; `program` is the command of agentlab."""

    plan: Plan
    run_dir: Path
    program: str = PROGRAM

    def verb(self, name: str, *arguments: str) -> str:
        """A verb of agentlab."""
        return shlex.join([*shlex.split(self.program), name, *arguments, "--cluster", self.plan["cluster"]["name"]])

    def verbs(self, *names: str) -> str:
        """Some verbs, one after the other."""
        return " && ".join(self.verb(name) for name in names)

    def inside(self, *command: str) -> str:
        """Return a command that runs in the cluster's network."""
        return f"{self.verb('exec')} -- {shlex.join(command)}"

    def ssh(self, node: str, *command: str) -> str:
        """Return a command that runs on a node, or a shell; the node is given by name or address."""
        return self.verb("ssh", node) + (f" -- {shlex.join(command)}" if command else "")

    def kubectl(self, *arguments: str, client: str = "kubectl") -> str:
        """A command of kubectl or oc."""
        return shlex.join([*shlex.split(self.verb(client)), *arguments])

    def hypervisor(self) -> str | None:
        """Return what ssh connects to, as USER@HOST or HOST; None for a hypervisor on this host."""
        hypervisor = self.plan["hypervisor"]
        if hypervisor["kind"] != "ssh":
            return None
        return f"{hypervisor['user']}@{hypervisor['host']}" if hypervisor["user"] else str(hypervisor["host"])

    def virsh(self, *arguments: str) -> str:
        """A command of virsh, on the hypervisor."""
        if target := self.hypervisor():
            return shlex.join(["virsh", "-c", f"qemu+ssh://{target}/system", *arguments])
        return self.inside("virsh", "-c", "qemu:///system", *arguments)

    def console(self, domain: str) -> str:
        """Return the command that shows the console log of a machine."""
        return self.verb("console", domain)

    def resolver(self) -> str:
        """Return the command that makes this host resolve the cluster's names through the lab."""
        bridge, server, domain = (
            self.plan["networks"][0]["bridge"],
            self.plan["services"]["address"],
            self.plan["cluster"]["domain"],
        )
        return f"resolvectl dns {bridge} {server}; resolvectl domain {bridge} ~{domain}"


def closing(access: Access, *, client: str = "kubectl") -> list[str]:
    """Return the lines after a success: the cluster's endpoints, and the commands to reach them."""
    plan, run_dir = access.plan, access.run_dir
    cluster, hypervisor = plan["cluster"], plan["hypervisor"]
    sandbox, machine = hypervisor["kind"] == "sandbox", plan["networks"][0]["name"]
    logs = f"{run_dir}/logs" + ("" if hypervisor["kind"] == "ssh" else f", {hypervisor['console_dir']}")
    rows = [
        (
            "nodes",
            ", ".join(f"{node['name']} {in_network(node, machine)['addresses'][0]['ip']}" for node in plan["nodes"]),
        ),
        ("API", access.kubectl("get", "nodes,clusterversion,clusteroperators", client=client)),
        ("ssh", access.ssh(plan["nodes"][0]["name"])),
        ("shell", access.verb("shell")),
        *(
            [("forward", access.verb("forward") + "  makes API, console and service reachable on 127.0.0.1")]
            if sandbox
            else []
        ),
        ("console", plan["endpoints"]["console"]["url"]),
        ("password", f"of kubeadmin: {run_dir}/auth/kubeadmin-password"),
        ("logs", logs),
        ("remove it", access.verb("destroy")),
    ]
    if not sandbox:
        rows.insert(1, ("names", access.resolver()))
    where = (
        "only in the lab's network, which these commands enter"
        if sandbox
        else "once this host resolves them through the lab's DNS"
    )
    lines = [f"The cluster {cluster['name']} is installed. Its names and addresses work {where}:"]
    return [*lines, *(f"  {name:<10} {value}" for name, value in rows)]
