"""Commands to access a cluster's lab: each can be run as printed, in the checkout.

Names and addresses of a lab exist in its own network only, so most commands start with `agentlab exec`.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from ..vocabulary import RunFile
from . import phases
from .machines import address_of
from .model import Plan
from .outside import address_of as outside_address
from .outside import machines

PROGRAM = "bin/agentlab"


@dataclass(frozen=True)
class Access:
    """Commands for the plan with run directory `run_dir`; `program` is the command of agentlab.

    Nothing is run here. The commands are text for a shell, quoted where an argument needs it.
    """

    plan: Plan
    run_dir: Path
    program: str = PROGRAM

    def verb(self, name: str, *arguments: str) -> str:
        """A verb of agentlab.

        The verb gets `--cluster` with the plan's name at its end, so what `arguments` has must stand before that.
        """
        return shlex.join([*shlex.split(self.program), name, *arguments, "--cluster", self.plan["cluster"]["name"]])

    def verbs(self, *names: str) -> str:
        """Some verbs, one after the other."""
        return " && ".join(self.verb(name) for name in names)

    def inside_command(self, *command: str) -> str:
        """Return a command that runs in the cluster's network.

        By `agentlab exec`, which enters the network namespace of a sandbox. `command` is one argument each, quoted
        here.
        """
        return f"{self.verb('exec')} -- {shlex.join(command)}"

    def ssh(self, node: str, *command: str) -> str:
        """Return a command that runs on a node, or a shell; the node is given by name or address.

        By `agentlab ssh`, which knows the key of the run. Without `command` it is a shell.
        """
        return self.verb("ssh", node) + (f" -- {shlex.join(command)}" if command else "")

    def kubectl(self, *arguments: str, client: str = "kubectl") -> str:
        """A command of kubectl or oc.

        `client` is `kubectl` or `oc`. Each is a verb of agentlab, which runs it in the lab's network with the cluster's
        kubeconfig.
        """
        return shlex.join([*shlex.split(self.verb(client)), *arguments])

    def hypervisor(self) -> str | None:
        """Return what ssh connects to, as USER@HOST or HOST; None for a hypervisor on this host.

        Only a hypervisor of `kind: ssh` is another host; without a user the name is that of ssh's own configuration.
        """
        hypervisor = self.plan["hypervisor"]
        if hypervisor["kind"] != "ssh":
            return None
        return f"{hypervisor['user']}@{hypervisor['host']}" if hypervisor["user"] else str(hypervisor["host"])

    def virsh(self, *arguments: str) -> str:
        """A command of virsh, on the hypervisor.

        Over ssh for another host, else in the cluster's network, where the libvirt of a sandbox is.
        """
        if target := self.hypervisor():
            return shlex.join(["virsh", "-c", f"qemu+ssh://{target}/system", *arguments])
        return self.inside_command("virsh", "-c", "qemu:///system", *arguments)

    def console(self, domain: str) -> str:
        """Return the command that shows the console log of a machine.

        `domain` is the name of the libvirt domain, which `Node.domain` in the plan has.
        """
        return self.verb("console", domain)

    def resolver(self) -> str:
        """Return the command that makes this host resolve the cluster's names through the lab.

        For systemd-resolved: it sends names below the cluster's domain to the lab's name server, over the bridge of the
        machine network. Useless for a sandbox, whose bridge is in a network of its own.
        """
        bridge, server, domain = (
            self.plan["networks"][0]["bridge"],
            self.plan["services"]["address"],
            self.plan["cluster"]["domain"],
        )
        return f"resolvectl dns {bridge} {server}; resolvectl domain {bridge} ~{domain}"


def closing_lines(access: Access, *, client: str = "kubectl") -> list[str]:
    """Return the lines after a success: the cluster's endpoints, and the commands to reach them.

    `client` is the program for the API, `kubectl` or `oc`. Where the hypervisor is not a sandbox, the lines include the
    command by which this host resolves the cluster's names.
    """
    plan, run_dir = phases.present(access.plan, access.run_dir), access.run_dir
    cluster, hypervisor = plan["cluster"], plan["hypervisor"]
    sandbox = hypervisor["kind"] == "sandbox"
    logs = f"{run_dir}/logs" + ("" if hypervisor["kind"] == "ssh" else f", {hypervisor['console_dir']}")
    others = machines(plan)
    rows = [
        (
            "nodes",
            ", ".join(f"{node['name']} {address_of(node, plan['networks'])}" for node in plan["nodes"]),
        ),
        *([("machines", ", ".join(f"{one['name']} {outside_address(one)}" for one in others))] if others else []),
        ("API", access.kubectl("get", "nodes,clusterversion,clusteroperators", client=client)),
        ("ssh", access.ssh(plan["nodes"][0]["name"])),
        ("shell", access.verb("shell")),
        *(
            [("forward", access.verb("forward") + "  makes API, console and service reachable on 127.0.0.1")]
            if sandbox
            else []
        ),
        *([("add nodes", access.verb("add-nodes"))] if plan is not access.plan else []),
        ("console", plan["endpoints"]["console"]["url"]),
        ("password", f"of kubeadmin: {run_dir / RunFile.PASSWORD}"),
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
