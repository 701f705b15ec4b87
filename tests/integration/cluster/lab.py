"""Hosts of a cluster as network namespaces on one bridge, with the programs of the payload running in them."""

from __future__ import annotations

import ipaddress
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

PACKAGE = "ansible_collections.agentlab.ocp.payload"
# The interpreter of the images may be another than that of the tests.
PYTHON = os.environ.get("AGENTLAB_PAYLOAD_PYTHON", sys.executable)
SIGNERS = (
    "kube-apiserver-lb-signer",
    "kube-apiserver-localhost-signer",
    "kube-apiserver-service-network-signer",
    "admin-kubeconfig-signer",
)
COLLECTIONS = Path(__file__).resolve().parents[3]


def signers(directory: Path) -> Path:
    """Make the installer's signers and an admin's client certificate."""
    directory.mkdir(parents=True)
    for name in SIGNERS:
        _openssl(
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-keyout",
            directory / f"{name}.key",
            "-out",
            directory / f"{name}.crt",
            "-subj",
            f"/OU=openshift/CN={name}",
            "-days",
            "3650",
            "-addext",
            "keyUsage=critical,digitalSignature,keyEncipherment,keyCertSign",
        )
    _openssl(
        "req",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-keyout",
        directory / "admin.key",
        "-subj",
        "/O=system:masters/CN=system:admin",
        "-out",
        directory / "admin.csr",
    )
    ca = directory / "admin-kubeconfig-signer"
    _openssl(
        "x509",
        "-req",
        "-in",
        directory / "admin.csr",
        "-CA",
        f"{ca}.crt",
        "-CAkey",
        f"{ca}.key",
        "-out",
        directory / "admin.crt",
        "-days",
        "10",
    )
    return directory


def _openssl(*arguments: str | Path) -> None:
    subprocess.run(["openssl", *map(str, arguments)], check=True, stderr=subprocess.DEVNULL)


def cluster_model(**fields: Any) -> dict[str, Any]:
    """Return the service's model of a cluster."""
    return {
        "id": "5a8f7d4e-0000-4000-8000-000000000001",
        "name": "ostest",
        "base_dns_domain": "test.metalkube.org",
        "openshift_version": "4.22.0-lab",
        "platform": {"type": "baremetal"},
        "machine_networks": [{"cidr": "192.168.111.0/24"}],
        "cluster_networks": [{"cidr": "10.128.0.0/14", "host_prefix": 23}],
        "service_networks": [{"cidr": "172.30.0.0/16"}],
        "network_type": "OVNKubernetes",
        "ssh_public_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDtqJ7zOtqQtYqOo0CpvDXNlMhV3HeJDpjrASKGLWdop lab",
        "pull_secret": '{"auths": {}}',
        **fields,
    }


def host_model(name: str, address: str, role: str = "master", bootstrap: bool = False) -> dict[str, Any]:
    """Return the service's model of a host."""
    inventory = {
        "hostname": name,
        "interfaces": [{"name": "eth0", "ipv4_addresses": [f"{address}/24"], "ipv6_addresses": []}],
    }
    return {
        "id": f"id-{name}",
        "role": role,
        "bootstrap": bootstrap,
        "requested_hostname": name,
        "inventory": json.dumps(inventory),
    }


class Host:
    """One host: a namespace, a directory per boot, and its processes."""

    def __init__(self, lab: Lab, name: str, address: str) -> None:
        self.lab, self.name, self.address = lab, name, address
        self.namespace = f"{lab.prefix}-{name}"
        self.processes: list[subprocess.Popen[bytes]] = []
        self.root = lab.directory / name

    def run(self, *command: str | Path, background: bool = False, **environment: str) -> subprocess.Popen[bytes]:
        """Start a program of the payload in the namespace."""
        log = (self.lab.directory / f"{self.name}.log").open("ab")
        path = f"{self.lab.directory}/bin:{os.environ['PATH']}"
        env = {
            **os.environ,
            "PATH": path,
            "PYTHONPATH": str(self.lab.path),
            "AGENTLAB_SETTINGS_FILE": str(self.lab.settings),
            "AGENTLAB_API": self.lab.api,
            "AGENTLAB_DISK": str(self.root / "disk"),
            **environment,
        }
        process = subprocess.Popen(
            ["ip", "netns", "exec", self.namespace, *map(str, command)],
            stdout=log,
            stderr=log,
            env=env,
            start_new_session=True,
        )
        self.processes.append(process)
        return process

    def python(self, module: str, *arguments: str | Path) -> subprocess.Popen[bytes]:
        """Start a module of the payload."""
        return self.run(PYTHON, "-m", f"{PACKAGE}.{module}", *arguments)

    def boot_live(self, config: dict[str, Any]) -> subprocess.Popen[bytes]:
        """Apply the bootstrap config, as the installer does, and start bootkube."""
        root = self._boot("live", config)
        return self.python(
            "cluster.hyperkube",
            "kube-apiserver",
            "--bootstrap",
            "--config-dir",
            root / "etc/kubernetes",
            "--run-dir",
            root / "run/agentlab",
            "--bootstrap-dir",
            root / "opt/openshift",
        )

    def boot_disk(self, config: dict[str, Any] | None) -> None:
        """Apply the disk config at the first boot, and start what its units start."""
        root = self._boot("disk", config)
        if config and not (root / "etc/kubernetes/cluster.json").exists():
            # As on a node, which has none of this project's modules.
            fetch = self.run(
                "/usr/bin/python3",
                "-I",
                root / "usr/local/bin/machine-config-daemon",
                "firstboot",
                "--node-config",
                root / "etc/kubernetes/machine-config.json",
                "--root",
                root,
            )
            assert fetch.wait(60) == 0
            self._resolve(root)
        common = ("--config-dir", root / "etc/kubernetes", "--run-dir", root / "run/agentlab")
        if (root / "etc/kubernetes/pki").exists():
            self.python("cluster.hyperkube", "kube-apiserver", *common, "--data-dir", root / "var/lib/etcd")
        self.python(
            "cluster.hyperkube",
            "kubelet",
            *common,
            "--data-dir",
            root / "var/lib/kubelet",
            "--host-root",
            root,
            "--enter",
            "",
            "--name",
            self.name,
        )

    def power_off(self) -> None:
        """End everything at once."""
        for process in self.processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        self.processes.clear()
        # keepalived ends with the machine, and its addresses are removed.
        subprocess.run(["ip", "-n", self.namespace, "address", "flush", "dev", "eth0"], check=True)
        self.lab.address(self)

    def shut_down(self) -> None:
        """End everything in order."""
        for process in self.processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
        for process in self.processes:
            process.wait(30)
        self.processes.clear()

    def has(self, address: str) -> bool:
        """Return whether the host has an address."""
        output = subprocess.run(
            ["ip", "-n", self.namespace, "-json", "address"], check=True, capture_output=True, text=True
        ).stdout
        return any(info.get("local") == address for link in json.loads(output) for info in link["addr_info"])

    def _boot(self, kind: str, config: dict[str, Any] | None) -> Path:
        from ansible_collections.agentlab.ocp.payload.cluster.machine_config_daemon import apply

        root = self.root / kind
        root.mkdir(parents=True, exist_ok=True)
        if config:
            apply(config, root, lambda command: None)
            for path, source in (("etc/os-release", "/etc/os-release"), ("proc/meminfo", "/proc/meminfo")):
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, root / path)
        shutil.rmtree(root / "run", ignore_errors=True)
        self._resolve(root)
        return root

    def _resolve(self, root: Path) -> None:
        # What the lab's DNS answers.
        for name in (
            "etc/kubernetes/kubeconfig",
            "etc/kubernetes/machine-config.json",
            "opt/openshift/auth/kubeconfig",
        ):
            path = root / name
            if path.exists():
                path.write_text(path.read_text().replace("api-int.ostest.test.metalkube.org", self.lab.api))


class Lab:
    """A bridge and its hosts."""

    def __init__(self, directory: Path, api: str, settings: dict[str, str]) -> None:
        self.directory, self.api = directory, api
        self.prefix = f"agltest{os.getpid() % 1000}"
        self.hosts: list[Host] = []
        self.settings = directory / "settings.json"
        self.settings.write_text(json.dumps(settings))
        self.path = directory / "path"
        (self.path / "ansible_collections/agentlab").mkdir(parents=True)
        (self.path / "ansible_collections/agentlab/ocp").symlink_to(COLLECTIONS)
        (directory / "bin").mkdir()
        for name in ("systemctl", "update-ca-trust"):
            (directory / "bin" / name).write_text("#!/bin/sh\n")
            (directory / "bin" / name).chmod(0o755)
        self._ip("netns", "add", self.prefix)
        self._ip("-n", self.prefix, "link", "add", "br0", "type", "bridge")
        self._ip("-n", self.prefix, "address", "add", "192.168.111.1/24", "dev", "br0")
        self._ip("-n", self.prefix, "link", "set", "lo", "up")
        self._ip("-n", self.prefix, "link", "set", "br0", "up")

    def add(self, name: str, address: str) -> Host:
        """Add a host."""
        host = Host(self, name, address)
        self.hosts.append(host)
        port = f"v{len(self.hosts)}"
        self._ip("netns", "add", host.namespace)
        self._ip(
            "-n", self.prefix, "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", host.namespace
        )
        self._ip("-n", self.prefix, "link", "set", port, "master", "br0", "up")
        self._ip("-n", host.namespace, "link", "set", "lo", "up")
        self._ip("-n", host.namespace, "link", "set", "eth0", "up")
        self.address(host)
        return host

    def address(self, host: Host) -> None:
        """Give a host its address."""
        self._ip("-n", host.namespace, "address", "add", f"{host.address}/24", "dev", "eth0")

    def kubectl(self, *arguments: str, check: bool = True) -> str:
        """Run kubectl from the gateway."""
        done = subprocess.run(
            [
                "ip",
                "netns",
                "exec",
                self.prefix,
                "kubectl",
                "--kubeconfig",
                str(self.directory / "kubeconfig"),
                "--request-timeout=5s",
                *arguments,
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        if check and done.returncode:
            raise AssertionError(done.stderr)
        return done.stdout

    def objects(self, *arguments: str) -> list[dict[str, Any]]:
        """Return a list of objects, empty while the API does not answer."""
        text = self.kubectl("get", *arguments, "-o", "json", check=False)
        found: list[dict[str, Any]] = json.loads(text)["items"] if text else []
        return found

    def admin(self, tls: Path, ca: Path) -> None:
        """Write the administrator's kubeconfig."""
        server = f"https://{f'[{self.api}]' if ':' in self.api else self.api}:6443"
        (self.directory / "kubeconfig").write_text(
            yaml.safe_dump(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "current-context": "admin",
                    "clusters": [{"name": "c", "cluster": {"server": server, "certificate-authority": str(ca)}}],
                    "contexts": [{"name": "admin", "context": {"cluster": "c", "user": "admin"}}],
                    "users": [
                        {
                            "name": "admin",
                            "user": {
                                "client-certificate": str(tls / "admin.crt"),
                                "client-key": str(tls / "admin.key"),
                            },
                        }
                    ],
                }
            )
        )

    def conformance(self, address: str) -> str:
        """Run the conformance suite against the member at an address, from the gateway, and return its output."""
        config = self.directory / f"kubeconfig-{address}"
        config.write_text((self.directory / "kubeconfig").read_text().replace(f"//{self.api}:", f"//{address}:"))
        command = [str(COLLECTIONS / "bin/agentlab"), "conformance", "--kubeconfig", str(config)]
        done = subprocess.run(
            ["ip", "netns", "exec", self.prefix, *command], capture_output=True, text=True, timeout=300, check=False
        )
        problems = [line for line in done.stdout.splitlines() if not line.startswith("ok ")]
        return "\n".join([*problems, done.stderr])

    def approve(self) -> None:
        """Approve what waits, as the controller does."""
        for csr in self.objects("csr"):
            if not csr["status"].get("conditions"):
                self.kubectl("certificate", "approve", csr["metadata"]["name"], check=False)

    def close(self) -> None:
        """Remove everything."""
        for host in self.hosts:
            host.power_off()
            self._ip("netns", "delete", host.namespace)
        self._ip("netns", "delete", self.prefix)

    @staticmethod
    def _ip(*arguments: str) -> None:
        subprocess.run(["ip", *arguments], check=True)


def until(what: str, test: Callable[[], object], limit: float = 60) -> None:
    """Poll until a test holds."""
    end = time.monotonic() + limit
    while not test():
        assert time.monotonic() < end, f"{what}: not within {limit:g} s"
        time.sleep(0.5)


def canonical(address: str) -> str:
    """Return an address in canonical form."""
    return str(ipaddress.ip_address(address))
