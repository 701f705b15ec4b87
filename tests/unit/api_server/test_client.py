"""agent-installer-client against the service: manifests become cluster, infra-env and host settings; every command twice."""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.agentlab.ocp.payload.api_server import auth
from ansible_collections.agentlab.ocp.payload.api_server.client import __main__ as client
from ansible_collections.agentlab.ocp.payload.api_server.client import hints, hosts, register
from ansible_collections.agentlab.ocp.payload.node_agent.swarm.support import self_signed
from ansible_collections.agentlab.ocp.plugins.module_utils.assisted import registration

from .lab import ENV, PULL_SECRET, SSH_KEY, VERSION, Agent, Lab

KEY, TOKENS = auth.make_tokens()
LOCAL = {
    "AUTH_TYPE": "agent-installer-local",
    "EC_PUBLIC_KEY_PEM": KEY,
    "INFRA_ENV_ID": "8a0f4e9e-2f6d-4a52-9c55-4a4a1c1f8f11",
}
SELECTOR = {"infraenvs.agent-install.openshift.io": "ostest"}


def nmstate(mac: str, ip: str) -> dict[str, Any]:
    return {
        "interfaces": [
            {
                "name": "eth0",
                "type": "ethernet",
                "state": "up",
                "mac-address": mac,
                "ipv4": {"enabled": True, "dhcp": False, "address": [{"ip": ip, "prefix-length": 24}]},
            }
        ]
    }


def manifests(folder: Path, masters: int = 3, workers: int = 0, static: bool = False, **spec: Any) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    image = json.loads(ENV["RELEASE_IMAGES"])[0]["url"]
    documents: dict[str, Any] = {
        "agent-cluster-install.yaml": {
            "kind": "AgentClusterInstall",
            "metadata": {
                "name": "ostest",
                "annotations": {
                    registration.INSTALL_CONFIG_OVERRIDES: '{"fips":false,"capabilities":{"baselineCapabilitySet":"None"}}'
                },
            },
            "spec": {
                "platformType": "BareMetal",
                "apiVIPs": ["192.168.111.5"],
                "apiVIP": "192.168.111.5",
                "ingressVIPs": ["192.168.111.4"],
                "ingressVIP": "192.168.111.4",
                "networking": {
                    "machineNetwork": [{"cidr": "192.168.111.0/24"}],
                    "clusterNetwork": [{"cidr": "10.128.0.0/14", "hostPrefix": 23}],
                    "serviceNetwork": ["172.30.0.0/16"],
                    "networkType": "OVNKubernetes",
                    "userManagedNetworking": False,
                },
                "provisionRequirements": {"controlPlaneAgents": masters, "workerAgents": workers},
                "sshPublicKey": SSH_KEY,
                "imageSetRef": {"name": f"openshift-{VERSION}"},
                **spec,
            },
        },
        "cluster-deployment.yaml": {
            "kind": "ClusterDeployment",
            "spec": {"clusterName": "ostest", "baseDomain": "test.example"},
        },
        "cluster-image-set.yaml": {
            "kind": "ClusterImageSet",
            "metadata": {"name": f"openshift-{VERSION}"},
            "spec": {"releaseImage": image},
        },
        "pull-secret.yaml": {"kind": "Secret", "stringData": {".dockerconfigjson": PULL_SECRET}},
        "infraenv.yaml": {
            "kind": "InfraEnv",
            "metadata": {"name": "ostest"},
            "spec": {
                "cpuArchitecture": "x86_64",
                "sshAuthorizedKey": SSH_KEY,
                "nmStateConfigLabelSelector": {"matchLabels": SELECTOR},
                "additionalNTPSources": ["192.168.111.1"],
            },
        },
    }
    for name, document in documents.items():
        (folder / name).write_text(yaml.safe_dump(document))
    if static:
        # Unquoted digits-only MACs, as Go's YAML writes them.
        text = ""
        for index in range(masters):
            mac = f"52:54:00:00:00:{index:02x}"
            document = {
                "kind": "NMStateConfig",
                "metadata": {"name": f"ostest-{index}", "labels": SELECTOR},
                "spec": {
                    "config": nmstate(mac, f"192.168.111.{20 + index}"),
                    "interfaces": [{"macAddress": mac, "name": "eth0"}],
                },
            }
            text += yaml.safe_dump(document).replace(f"'{mac}'", mac) + "---\n"
        (folder / "nmstateconfig.yaml").write_text(text)


def host_folder(folder: Path, name: str, mac: str, role: str = "", **root_hints: Any) -> None:
    (folder / name).mkdir(parents=True)
    (folder / name / "mac_addresses").write_text(f"{mac.upper()}\n")
    if role:
        (folder / name / "role").write_text(role)
    if root_hints:
        (folder / name / "root-device-hints.yaml").write_text(yaml.safe_dump(root_hints))


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {
        "USER_AUTH_TOKEN": TOKENS["userAuth"],
        "MANIFESTS_PATH": str(tmp_path / "manifests"),
        "EXTRA_MANIFESTS_PATH": str(tmp_path / "extra"),
        "HOST_CONFIG_DIR": str(tmp_path / "hostconfig"),
        "HOST_CONFIG_FAILURES": str(tmp_path / "run" / "host-config-failures"),
        "CLIENT_CONFIG_PATH": str(tmp_path / "client_config"),
        "CLUSTER_CONFIG_PATH": str(tmp_path / "clusterconfig"),
        "IMAGE_TYPE_ISO": "full-iso",
        "INFRA_ENV_ID": LOCAL["INFRA_ENV_ID"],
    }


async def run(lab: Lab, command: str, environment: dict[str, str]) -> None:
    await asyncio.to_thread(client.run, command, {**environment, "SERVICE_BASE_URL": str(lab.server.make_url("/"))})


async def test_from_manifests_to_rebooting(tmp_path: Path, environment: dict[str, str]) -> None:
    manifests(tmp_path / "manifests", static=True)
    (tmp_path / "extra").mkdir()
    settings = {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"name": "agentlab-settings"},
        "data": {"AGENT_NEXT_INSTRUCTION_SECONDS": "7"},
    }
    (tmp_path / "extra" / "agentlab-settings-0.yaml").write_text(yaml.safe_dump(settings))
    (tmp_path / "extra" / "ignored.txt").write_text("x")
    async with Lab(
        tmp_path, {**LOCAL, "AGENT_NEXT_INSTRUCTION_SECONDS": "", "BOOTSTRAP_HOST_MAC": "52:54:00:00:00:01"}
    ) as lab:
        lab.headers = {"Authorization": TOKENS["userAuth"]}
        for __ in range(2):
            await run(lab, "registerCluster", environment)
            await run(lab, "registerInfraEnv", environment)
        [cluster] = await lab.call("GET", "/clusters")
        [infra_env] = await lab.call("GET", "/infra-envs")
        assert (tmp_path / "client_config").read_text() == f"CLUSTER_ID={cluster['id']}\n"
        assert infra_env["id"] == LOCAL["INFRA_ENV_ID"]
        assert json.loads(cluster["install_config_overrides"])["capabilities"] == {"baselineCapabilitySet": "None"}
        assert [entry["file_name"] for entry in await lab.call("GET", f"/clusters/{cluster['id']}/manifests")] == [
            "agentlab-settings-0.yaml"
        ]
        assert len(json.loads(infra_env["static_network_config"])) == 3

        for index in range(3):
            host_folder(
                tmp_path / "hostconfig",
                f"master-{index}",
                f"52:54:00:00:00:{index:02x}",
                "master",
                deviceName="/dev/sda",
            )
        configure = asyncio.create_task(run(lab, "configure", environment))
        agents = [
            Agent(lab, infra_env["id"], index, headers={"X-Secret-Key": TOKENS["agentAuth"]}) for index in range(3)
        ]
        lab.headers = {"Authorization": TOKENS["userAuth"], "X-Secret-Key": TOKENS["agentAuth"]}
        tasks = [asyncio.create_task(agent.run()) for agent in agents]
        await asyncio.wait_for(configure, 20)
        assert (tmp_path / "run" / "host-config-failures").read_text() == ""
        path = f"/clusters/{cluster['id']}"
        await lab.until(path, lambda found: found["status"] == "ready")
        assert (await agents[0].poll())["next_instruction_seconds"] == 7
        await lab.call("POST", f"{path}/actions/install", status=202)
        await asyncio.wait_for(asyncio.gather(*tasks), 20)
        assert [agent.install["role"] for agent in agents] == ["master", "bootstrap", "master"]
        assert json.loads(agents[0].install["installer_args"]) == ["--copy-network"]
        files = {entry["path"] for entry in agents[0].ignition["storage"]["files"]}
        assert files == {"/etc/hostname", "/etc/NetworkManager/system-connections/eth0.nmconnection"}
        with pytest.raises(registration.ClientError, match="already exists with different content"):
            (tmp_path / "extra" / "agentlab-settings-0.yaml").write_text("other: 1\n")
            await run(lab, "registerCluster", environment)


async def test_configure_reports_what_is_missing(tmp_path: Path, environment: dict[str, str]) -> None:
    async with Lab(tmp_path, LOCAL) as lab:
        lab.headers = {"Authorization": TOKENS["userAuth"], "X-Secret-Key": TOKENS["agentAuth"]}
        cluster = await lab.cluster()
        infra_env = await lab.infra_env(cluster["id"])
        folder, failures = tmp_path / "hostconfig", tmp_path / "run" / "host-config-failures"
        host_folder(folder, "a", "52:54:00:00:00:00", "worker", model="none such")
        host_folder(folder, "b", "52:54:00:00:00:01")
        (folder / "fencing-credentials.yaml").write_text(
            yaml.safe_dump(
                {
                    "credentials": [
                        {
                            "hostname": "node-0",
                            "username": "u",
                            "password": "p",
                            "address": "redfish+https://192.168.111.1:8000/x",
                            "certificateVerification": "Disabled",
                        }
                    ]
                }
            )
        )
        rest = client.Rest(str(lab.server.make_url("/")), TOKENS["userAuth"])
        configs, fencing = hosts.read(folder), hosts.global_fencing(folder)

        async def apply() -> dict[str, str]:
            return await asyncio.to_thread(hosts.apply, rest, infra_env["id"], configs, fencing)

        assert await apply() == {"a": hosts.MISSING, "b": hosts.MISSING}
        agent = Agent(lab, infra_env["id"], 0)
        await agent.register()
        assert await apply() == {"a": hosts.NO_INVENTORY, "b": hosts.NO_INVENTORY}
        await agent.poll()
        found = await apply()
        assert found == {"a": hosts.NO_DISK, "b": hosts.MISSING}
        hosts.write_failures(failures, found)
        assert failures.read_text() == f"a: {hosts.NO_DISK}\nb: {hosts.MISSING}\n"
        configs[0].hints = {"minSizeGigabytes": 10, "rotational": True}
        await apply()
        host = await lab.call("GET", agent.path)
        assert host["role"] == "worker"
        assert json.loads(host["fencing_credentials"])["certificate_verification"] == "Disabled"


async def test_import(tmp_path: Path, environment: dict[str, str]) -> None:
    folder = tmp_path / "clusterconfig"
    folder.mkdir()
    endpoint = {
        "url": "https://192.168.111.5:22623/config/worker",
        "ca_certificate": base64.b64encode(self_signed().encode()).decode(),
    }
    (folder / "worker-ignition-endpoint.json").write_text(json.dumps(endpoint))
    (folder / "import-cluster-config.json").write_text('{"networking": {"userManagedNetworking": true}}')
    manifests(tmp_path / "manifests")
    names = {
        "CLUSTER_ID": "11111111-2222-3333-4444-555555555555",
        "CLUSTER_NAME": "ostest",
        "CLUSTER_API_VIP_DNS_NAME": "api.ostest.test.example",
    }
    async with Lab(tmp_path, LOCAL) as lab:
        lab.headers = {"Authorization": TOKENS["userAuth"], "X-Secret-Key": TOKENS["agentAuth"]}
        for __ in range(2):
            await run(lab, "importCluster", {**environment, **names})
        [cluster] = await lab.call("GET", "/clusters")
        assert (cluster["kind"], cluster["status"], cluster["openshift_cluster_id"]) == (
            "AddHostsCluster",
            "adding-hosts",
            names["CLUSTER_ID"],
        )
        assert cluster["ignition_endpoint"]["url"].endswith("/config/worker")
        changed = await lab.call("PATCH", f"/clusters/{cluster['id']}", {"api_vip_dns_name": "api2.test"}, 201)
        assert "HYPERTHREADING" not in changed["feature_usage"]  # the imported cluster has its own setting
        await run(lab, "registerInfraEnv", {**environment, "WORKFLOW_TYPE": "addnodes"})
        [infra_env] = await lab.call("GET", "/infra-envs")
        agent = Agent(lab, infra_env["id"], 7, final="Rebooting")
        answer = {"is_success": True, "ignition": '{"ignition":{"version":"3.2.0"}}'}
        agent.do_api_vip_connectivity_check = lambda args: answer  # type: ignore[attr-defined]
        await agent.register()
        task = asyncio.create_task(agent.run())
        await lab.until(agent.path, lambda found: found["status"] == "known")
        await lab.call("POST", f"{agent.path}/actions/install", status=202)
        await asyncio.wait_for(task, 10)
        assert (await lab.call("GET", agent.path))["status"] == "added-to-existing-cluster"


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda folder: (folder / "pull-secret.yaml").unlink(), "pull-secret.yaml: No such file"),
        (
            lambda folder: (folder / "cluster-deployment.yaml").write_text("a: [b"),
            "cluster-deployment.yaml is not YAML",
        ),
        (lambda folder: (folder / "infraenv.yaml").write_text("kind: Other"), "infraenv.yaml has no InfraEnv"),
        (lambda folder: manifests(folder, 0), "controlPlaneAgents should be 1 or more"),
    ],
)
def test_broken_manifests(tmp_path: Path, change: Any, text: str) -> None:
    manifests(tmp_path)
    change(tmp_path)
    with pytest.raises(registration.ClientError, match=text):
        registration.cluster_params(tmp_path)


def test_labels_must_match(tmp_path: Path) -> None:
    manifests(tmp_path, static=True)
    path = tmp_path / "nmstateconfig.yaml"
    path.write_text(path.read_text().replace("agent-install.openshift.io: ostest", "agent-install.openshift.io: other"))
    with pytest.raises(registration.ClientError, match="labels of NMStateConfig ostest-0 should match"):
        register.infra_env_params(tmp_path, {}, None)


def test_main_reports_errors(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert client.main(["nothing"]) == 2
    monkeypatch.delenv("SERVICE_BASE_URL", raising=False)
    assert client.main(["registerCluster"]) == 1
    assert "SERVICE_BASE_URL is not set" in caplog.text
    monkeypatch.setenv("SERVICE_BASE_URL", "http://127.0.0.1:1/")
    assert client.main(["registerInfraEnv"]) == 1


DISK = {
    "name": "sda",
    "path": "/dev/sda",
    "by_path": "/dev/disk/by-path/pci-1",
    "by_id": "/dev/disk/by-id/wwn-1",
    "hctl": "1:0:0:0",
    "model": "QEMU_HARDDISK",
    "vendor": "QEMU",
    "serial": "s1",
    "size_bytes": 21 * 10**9,
    "wwn": "0x6000abc",
    "drive_type": "HDD",
    "installation_eligibility": {"eligible": True},
}


@pytest.mark.parametrize(
    ("hint", "good", "bad"),
    [
        ("deviceName", "/dev/sda", "/dev/sdb"),
        ("deviceName", "/dev/disk/by-path/pci-1", "/dev/disk/by-path/pci-2"),
        ("hctl", "1:0:0:0", "1:0:0:1"),
        ("model", "HARDDISK", "SSD"),
        ("vendor", "QE", "ATA"),
        ("serialNumber", "s1", "s"),
        ("minSizeGigabytes", 21, 22),
        ("wwn", "0x6000abc", "0x6"),
        ("wwnWithExtension", "0x6000abc", "x"),
        ("wwnVendorExtension", "abc", "abd"),
        ("rotational", True, False),
    ],
)
def test_hints(hint: str, good: Any, bad: Any) -> None:
    assert hints.disks_accepted([DISK], {hint: good}) == [DISK]
    assert hints.disks_accepted([DISK], {hint: bad}) == []
    with pytest.raises(ValueError, match="is not known"):
        hints.disks_accepted([DISK], {"color": "red"})


def test_hints_of_a_multipath_device_do_not_match_its_paths() -> None:
    path: Any = DISK | {"installation_eligibility": {"eligible": False}}
    device: Any = DISK | {"name": "dm-0", "path": "/dev/dm-0", "drive_type": "Multipath"}
    for hint in ({"wwn": "0x6000abc"}, {"serialNumber": "s1"}):
        assert hints.disks_accepted([path, device, path], hint) == [device]
    assert hints.disks_accepted([path, device], {"deviceName": "/dev/sda"}) == []


@pytest.mark.parametrize(
    ("entry", "found"),
    [
        ({"hostname": "master-1"}, False),
        ({"macaddress": "02:00:00:00:00:09"}, False),
        ({"hostname": "master-0"}, True),
        ({"macaddress": "02:00:00:00:00:0A"}, True),
    ],
)
def test_fencing_credentials_of_another_host_are_not_taken(entry: dict[str, str], found: bool) -> None:
    """An interface without a MAC, or a host that has no name yet, matched an entry without the field."""
    inventory: Any = {"interfaces": [{"name": "eth0", "mac_address": "02:00:00:00:00:0a"}, {"name": "eth1"}]}
    for name in ("master-0", ""):
        host: Any = {"id": "h", "requested_hostname": name}
        update = hosts.update_for(host, inventory, None, [{**entry, "address": "redfish+http://x", "username": "u"}])
        assert bool(update) == (found and bool(name or "macaddress" in entry))


def test_a_host_that_joins_waits_for_itself_alone(tmp_path: Path) -> None:
    """Its image has the settings of all hosts that join; each has a service of its own."""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mac_addresses").write_text(f"52:54:00:00:00:0{name}\n")
    inventory_of_a = json.dumps({"interfaces": [{"mac_address": "52:54:00:00:00:0A"}]})

    class Service:
        def call(self, method: str, path: str) -> Any:
            return [{"id": "h", "requested_hostname": "a", "inventory": inventory_of_a}]

    class Slept(Exception):
        pass

    def sleep(seconds: float) -> None:
        raise Slept

    service: Any = Service()
    failures = tmp_path / "failures"
    with pytest.raises(Slept):
        hosts.configure(service, "i", tmp_path, failures, sleep)
    assert failures.read_text() == f"b: {hosts.MISSING}\n"
    hosts.configure(service, "i", tmp_path, failures, sleep, macs=frozenset({"52:54:00:00:00:0a"}))
    assert failures.read_text() == ""


def test_own_macs(tmp_path: Path) -> None:
    (tmp_path / "eth0").mkdir()
    (tmp_path / "eth0/address").write_text("52:54:00:AA:00:01\n")
    (tmp_path / "bonding_masters").write_text("")
    assert hosts.own_macs(tmp_path) == {"52:54:00:aa:00:01"}
