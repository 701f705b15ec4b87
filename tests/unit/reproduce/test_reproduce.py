"""From what a run left back to a profile."""

from __future__ import annotations

import io
import json
import tarfile
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.agentlab.ocp.plugins.module_utils.cli import reproduce as verb
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, configs, profile
from ansible_collections.agentlab.ocp.plugins.module_utils.reproduce import (
    EvidenceError,
    evidence,
    manifests,
    reproduce,
    shape,
    suspects,
)

ROOT = Path(__file__).parents[3]
PROFILES = ROOT / "config_examples"
TABLE = yaml.safe_load((ROOT / "ci/jobs.yml").read_text())["jobs"]
# Profiles whose configs do not say all: a real release, files of the user, networks besides the machine network, and segments.
NOT_IN_CONFIGS = {
    "sno_ipv4_ocp",
    "sno_okd",
    "sno_bond_vlan",
    "sno_iscsi",
    "compact_balancer_static",
    "compact_segments_static",
    "compact_ipi",
}
ARCHIVE = Path(__file__).parent / "agent-gather.tar.xz"
LEVEL = 'time="2026-11-23T10:12:17Z" level=warning msg="'


def rendered(raw: dict[str, Any], cluster: str = "ostest") -> tuple[dict[str, Any], dict[str, Any]]:
    """install-config and agent-config of a profile."""
    plan = build.build(profile.complete(raw), cluster)
    return configs.install_config(
        plan, pull_secret={"auths": {}}, ssh_key="ssh-rsa x", trust_bundle=""
    ), configs.agent_config(plan)


def left(folder: Path, raw: dict[str, Any], cluster: str = "ostest", log: str = "") -> Path:
    """A directory as openshift-install leaves it."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in zip(("install-config.yaml", "agent-config.yaml"), rendered(raw, cluster), strict=True):
        (folder / name).write_text(yaml.safe_dump(value))
    (folder / ".openshift_install.log").write_text(log)
    return folder


def test_credentials_for_fencing_keep_what_names_the_node(tmp_path: Path) -> None:
    raw = {"topology": "tnf", "installer": {"fencing_by": "macAddress"}}
    assert rendered(reproduce(left(tmp_path, raw)).raw) == rendered(raw)


@pytest.mark.parametrize("name", sorted({path.stem for path in PROFILES.glob("*.yml")} - NOT_IN_CONFIGS))
def test_configs_of_a_profile_give_the_same_configs_again(name: str, tmp_path: Path) -> None:
    raw = yaml.safe_load((PROFILES / f"{name}.yml").read_text())
    made = reproduce(left(tmp_path, raw))
    assert made.cluster == "ostest" and made.source == "install-config.yaml"
    install, agent = rendered(raw)
    again, hosts = rendered(made.raw)
    assert again == install
    assert hosts == agent


def test_configs_with_a_remote_worker_give_the_same_configs_again(tmp_path: Path) -> None:
    raw = yaml.safe_load((PROFILES / "compact_segments_static.yml").read_text())
    del raw["extra_networks"]
    assert rendered(reproduce(left(tmp_path, raw)).raw) == rendered(raw)


def test_credentials_of_a_platform_are_not_taken(tmp_path: Path) -> None:
    raw = yaml.safe_load((PROFILES / "compact_nutanix.yml").read_text())
    raw["installer"]["install_config"]["platform"]["nutanix"]["prismCentral"]["password"] = "hush-hush"
    made = reproduce(left(tmp_path, raw))
    assert made.raw["platform"] == "nutanix" and "hush-hush" not in yaml.safe_dump(made.raw)
    central = made.raw["installer"]["install_config"]["platform"]["nutanix"]["prismCentral"]
    assert central["password"] == "not-used" and central["username"] == "admin"


def test_what_the_switch_would_need_is_named(tmp_path: Path) -> None:
    raw = yaml.safe_load((PROFILES / "sno_bond_vlan.yml").read_text())
    made = reproduce(left(tmp_path, raw))
    kinds = [line for line in made.unknown if "switch" in line]
    assert len(kinds) == 2 and "hosts[0].networkConfig: bond:" in kinds[0] and "vlan" in kinds[1]
    assert rendered(made.raw)[1]["rendezvousIP"] == rendered(raw)[1]["rendezvousIP"]


def test_hosts_of_others_get_the_names_of_the_lab(tmp_path: Path) -> None:
    folder = left(tmp_path, {"topology": "ha", "stack": "ipv4", "addressing": "static"})
    path = folder / "agent-config.yaml"
    content = yaml.safe_load(path.read_text().replace("eth0", "eno1"))
    content["hosts"][1]["hostname"], content["hosts"][-1]["hostname"] = "rack1-b", "w"
    del content["hosts"][-1]["role"]
    path.write_text(yaml.safe_dump(content))
    made = reproduce(folder)
    install, agent = rendered({"topology": "ha", "stack": "ipv4", "addressing": "static"})
    assert rendered(made.raw) == (install, agent)
    assert [line for line in made.unknown if "the lab calls it" in line] == [
        "agent-config.yaml: hosts[1].hostname rack1-b: the lab calls it master-1",
        f"agent-config.yaml: hosts[{len(agent['hosts']) - 1}].hostname w: the lab calls it {agent['hosts'][-1]['hostname']}",
    ]


def page(cause: str) -> dict[str, Any]:
    return {
        "verdict": {
            "cluster": "ci1",
            "program": "agentlab 1.0.0 (abc)",
            "payload": "r@sha256:1",
            "causes": [{"text": cause}],
        }
    }


FAULTS = {
    "the lab's registry does not answer: 192.168.111.1 port 5000: Connection refused": [{"kind": "service_down", "service": "registry"}],
    "VM ci1_master_0 (master-0) is shut off": [{"kind": "power_off", "node": "master-0", "when": "Installing"}],
    "host master-2 never registered": [{"kind": "link_down", "node": "master-2"}],
    "host master-0 is error at Writing image to disk: Failed - failed after 3 attempts, last error: x": [
        {"kind": "disk_lost", "node": "master-0", "when": "Writing image to disk"}
    ],
    "host master-2 is error at Writing image to disk: Host failed to install due to timeout while connecting to host during the installation phase.": [
        {"kind": "link_down", "node": "master-2", "when": "Writing image to disk"}
    ],
    "host master-0 is error: Unable to read from the discovery media. x": [{"kind": "eject", "node": "master-0", "when": "known"}],
    "host master-0 fails to prepare for the installation, repeatedly: Failed to fetch container images needed for the installation": [
        {"kind": "image_missing", "component": "agent-installer-orchestrator", "when": "ready"}
    ],
    "host master-1 fails a validation: A total packet loss above the tolerated threshold of 50.00% was encountered": [
        {"kind": "loss", "node": "master-1", "percent": 45, "when": "insufficient"}
    ],
    "host master-0 fails a validation: DNS wildcard configuration was detected for domain *.ci1.test": [{"kind": "dns_wildcard"}],
    "the assisted service at 192.168.111.20:8090 refuses this run's token (HTTP 401): it has expired": [{"kind": "expired_token"}],
    "ci1_master_0: the host configuration could not be applied: master-1: No disk of the host matches the root device hints": [
        {"kind": "wrong_root_device", "node": "master-1"}
    ],
    "assisted-service never started: x fails repeatedly: Source image rejected: A signature was required, but no signature exists": [
        {"kind": "unsigned_image"}
    ],
    "host master-2 is refused by the assisted service: HTTP 401": [{"kind": "wrong_token", "node": "master-2"}],
    "host 00-21-b1-9a-0e-36 is not part of this plan (2 hosts registered, 1 expected)": [{"kind": "extra_host"}],
    "host master-1 fails a validation: Hostname master-1 is not unique in cluster": [
        {"kind": "duplicate_hostname", "node": "master-1", "of": "master-0"}
    ],
    "host master-1 fails a validation: No connectivity to the majority of hosts in the cluster": [
        {"kind": "arp_one_way", "node": "master-1", "peer": "master-0"}
    ],
    "host master-2 fails a validation: Host clock is not synchronized, host time is ahead of service at least for 60.0 minutes": [
        {"kind": "service_down", "service": "ntp"}, {"kind": "clock", "node": "master-2", "offset": 7200}
    ],
    "host master-1 fails a validation: MTU is broken. Interface: enp1s0": [
        {"kind": "mtu", "node": "master-1", "mtu": 1500, "when": "insufficient"}
    ],
    "assisted-service never started: assisted-service.service on the rendezvous host fails repeatedly": [
        {"kind": "component_fails", "component": "agent-installer-api-server"}
    ],
}  # fmt: skip


@pytest.mark.parametrize("cause", FAULTS)
def test_a_first_cause_suggests_faults_that_a_profile_can_have(cause: str, tmp_path: Path) -> None:
    folder = left(tmp_path, {"topology": "compact", "stack": "ipv4"})
    (folder / "report").mkdir()
    (folder / "report/run.json").write_text(json.dumps(page(cause)))
    made = reproduce(folder)
    assert made.cause == cause and made.raw["faults"] == FAULTS[cause]
    profile.validated_profile(profile.parse(yaml.safe_dump(made.raw), "x"), "ostest")


def test_every_fault_job_has_a_suggestion() -> None:
    """The causes that the jobs of ci/jobs.yml expect, whose faults a profile can express."""
    names = {f"master-{number}": f"master-{number}" for number in range(3)}
    for name, job in TABLE.items():
        expected = (job.get("expect") or {}).get("cause")
        # The first is in agent-config itself; of the second the table has the beginning only.
        if expected and name not in ("fault-rendezvous", "fault-disconnected"):
            plain = expected.replace("\\w+", "ci1").replace(".*", " ").replace("\\", "")
            plain = plain.replace("master-.", "master-1")
            known = suspects.suspect_of(plain, names)
            assert known or not job["profile"].get("faults") or plain.endswith(": "), (name, plain)


def test_fields_that_a_cause_suggests(tmp_path: Path) -> None:
    text = "Host master-0 validation: Require at least 8.35 GiB RAM for role master, found only 3.22 GiB"
    made = reproduce(left(tmp_path, {"topology": "compact", "stack": "ipv4"}, log=f'{LEVEL}{text}"\n'))
    assert made.cause == text and made.raw["nodes"]["master-0"]["memory_mib"] == 3361
    assert made.raw["nodes"]["master-0"]["nics"], "what is known of the host stays"


def test_a_hostile_log_takes_no_time(tmp_path: Path) -> None:
    folder = left(tmp_path, {"topology": "sno"}, log=LEVEL + "msg=" * 1_000_000)
    before = time.process_time()
    assert reproduce(folder).cause == ""
    assert time.process_time() - before < 10  # a minute where each place of the line is tried


@pytest.mark.parametrize("role", [{}, [], {"a": 1}, 3, True])
def test_a_role_of_another_type_does_not_count(tmp_path: Path, role: object) -> None:
    folder = left(tmp_path, {"topology": "compact", "stack": "ipv4", "addressing": "static"})
    path = folder / "agent-config.yaml"
    content = yaml.safe_load(path.read_text())
    content["hosts"][1]["role"] = role
    path.write_text(yaml.safe_dump(content))
    assert len(reproduce(folder).raw["nodes"]) == 3


def test_a_rendezvous_address_of_no_host_is_kept(tmp_path: Path) -> None:
    folder = left(tmp_path, {"topology": "compact", "stack": "ipv4", "addressing": "static"})
    path = folder / "agent-config.yaml"
    content = yaml.safe_load(path.read_text())
    path.write_text(yaml.safe_dump(content | {"rendezvousIP": "192.168.111.99"}))
    assert reproduce(folder).raw["installer"]["agent_config"] == {"rendezvousIP": "192.168.111.99"}


def test_a_run_of_agentlab_keeps_its_profile(tmp_path: Path) -> None:
    folder = left(tmp_path / "a", {"topology": "compact", "stack": "ipv4"})
    raw = {"topology": "compact", "faults": [{"kind": "link_down", "node": "master-2"}]}
    (folder / "profile.yaml").write_text(yaml.safe_dump(raw))
    (folder / "run.json").write_text(json.dumps(page("host master-2 never registered")))
    made = reproduce(tmp_path)
    assert (made.raw, made.source, made.cluster) == (raw, "the profile", "ci1")
    assert made.lock["program"] == "agentlab 1.0.0 (abc)" and made.lock["payload"] == "r@sha256:1"
    names = ("profile.yaml", "run.json", "install-config.yaml", "agent-config.yaml", ".openshift_install.log")
    assert set(made.lock["evidence"]) == {f"a/{name}" for name in names}


def test_a_job_of_dev_scripts(tmp_path: Path) -> None:
    env = [{"name": "DEVSCRIPTS_CONFIG", "value": "IP_STACK=v6\nAGENT_E2E_TEST_SCENARIO=COMPACT_IPV6\nMASTER_VCPU=x\n"}]
    (tmp_path / "prowjob.json").write_text(json.dumps({"spec": {"pod_spec": {"containers": [{"env": env}]}}}))
    made = reproduce(tmp_path)
    assert made.source == "a configuration of dev-scripts" and (made.raw["topology"], made.raw["stack"]) == (
        "compact",
        "ipv6",
    )
    assert any("MASTER_VCPU" in line for line in made.unknown)


def test_the_state_of_the_installer_has_the_configs(tmp_path: Path) -> None:
    install, agent = rendered({"topology": "sno", "stack": "ipv4"})
    state = {
        "*agent.OptionalInstallConfig": {"Config": install},
        "*agentconfig.AgentConfig": {"Config": agent},
        "*x.Y": None,
    }
    (tmp_path / ".openshift_install_state.json").write_text(json.dumps(state))
    assert rendered(reproduce(tmp_path).raw) == (install, agent)


def packed(path: Path, files: dict[str, bytes], mode: str = "w:xz") -> Path:
    with tarfile.open(path, mode) as tar:  # type: ignore[call-overload]
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return path


def test_archives_are_read_without_being_unpacked(tmp_path: Path) -> None:
    install, agent = (yaml.safe_dump(one).encode() for one in rendered({"topology": "sno", "stack": "ipv4"}))
    inner = packed(tmp_path / "inner", {"./etc/agent-config.yaml": agent}).read_bytes()
    files = {"../../up/install-config.yaml": install, "agent-gather-host.tar.xz": inner, "big.bin": b"\0" * 1000}
    before = sorted(tmp_path.iterdir())
    made = reproduce(packed(tmp_path / "a.tar.xz", files))
    assert made.raw["nodes"]["master-0"]["nics"] and sorted(tmp_path.iterdir()) == sorted(
        [*before, tmp_path / "a.tar.xz"]
    )


def test_an_archive_of_agent_gather(tmp_path: Path) -> None:
    """Made by the script of openshift/installer (1f648d14), of an image of compact_dualstack_static: there is no install-config in it."""
    made = reproduce(ARCHIVE)
    assert (made.source, made.cluster) == ("the manifests of an agent image", "ostest")
    raw = yaml.safe_load((PROFILES / "compact_dualstack_static.yml").read_text())
    (install, agent), (install_again, agent_again) = rendered(raw), rendered(made.raw)
    assert install_again == install
    assert [host["interfaces"] for host in agent_again["hosts"]] == [host["interfaces"] for host in agent["hosts"]]
    assert [host["networkConfig"] for host in agent_again["hosts"]] == [
        host["networkConfig"] for host in agent["hosts"]
    ]
    assert agent_again["rendezvousIP"] == agent["rendezvousIP"]
    assert any("names and roles" in line for line in made.unknown)


def test_configs_next_to_manifests_of_several_hosts(tmp_path: Path) -> None:
    """A run directory has both. The second host's document was an error."""
    folder = left(tmp_path, {"topology": "compact", "stack": "ipv4"})
    (folder / "cluster-manifests").mkdir()
    (folder / "cluster-manifests/nmstateconfig.yaml").write_text("kind: NMStateConfig\n---\nkind: NMStateConfig\n")
    assert reproduce(folder).source == "install-config.yaml"


@pytest.mark.parametrize("topology", ["sno", "tna", "ha"])
def test_manifests_of_an_image(topology: str) -> None:
    """What the service gets as an annotation counts, too."""
    install, __ = rendered({"topology": topology, "stack": "ipv4"})
    counts = {
        "controlPlaneAgents": install["controlPlane"]["replicas"],
        "workerAgents": install["compute"][0]["replicas"],
    }
    if "arbiter" in install:
        counts["arbiterAgents"] = install["arbiter"]["replicas"]
    kind = next(iter(install["platform"]))
    vips = install["platform"][kind] or {}
    spec = {
        "networking": install["networking"], "provisionRequirements": counts, "platformType": {"none": "None"}.get(kind, "BareMetal"),
        **{key: vips[key] for key in ("apiVIPs", "ingressVIPs") if key in vips},
    }  # fmt: skip
    overrides = {"agent-install.openshift.io/install-config-overrides": '{"fips": true, "networking": 1}'}
    given = {"metadata": {"name": "ostest", "annotations": overrides}, "spec": spec}
    found = manifests.install_config(given, {"spec": {"clusterName": "ostest", "baseDomain": install["baseDomain"]}})
    assert rendered(shape.derive(found, {}).raw)[0] == {**install, "fips": True}


@pytest.mark.parametrize(
    "text", ["3", "[]", "kind: X", "metadata: 1\nspec: []", "spec: {networking: [], provisionRequirements: 3}"]
)
def test_manifests_that_others_wrote(tmp_path: Path, text: str) -> None:
    for name in ("agent-cluster-install.yaml", "cluster-deployment.yaml", "nmstateconfig.yaml"):
        (tmp_path / name).write_text(text)
    if text in ("3", "[]"):
        with pytest.raises(EvidenceError, match="must be a mapping"):
            reproduce(tmp_path)
    else:
        assert reproduce(tmp_path).raw["topology"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"no archive", "is not an archive that can be read"),
        (b"", "is not an archive that can be read"),
        (None, "there is no such directory or archive"),
    ],
)
def test_what_cannot_be_read(tmp_path: Path, data: bytes | None, message: str) -> None:
    if data is not None:
        (tmp_path / "x.tar").write_bytes(data)
    with pytest.raises(EvidenceError, match=f"x.tar: {message}"):
        reproduce(tmp_path / "x.tar")


def test_a_cut_archive_and_one_that_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install = yaml.safe_dump(rendered({"topology": "sno"})[0]).encode()
    path = packed(tmp_path / "a.tar.gz", {"install-config.yaml": install, "x": bytes(200_000)}, "w:gz")
    monkeypatch.setattr(evidence, "MOST_BYTES", 100_000)
    with pytest.raises(EvidenceError, match="has more than 100000 files or"):
        reproduce(path)
    monkeypatch.undo()
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(EvidenceError, match="is not an archive that can be read"):
        reproduce(path)


def test_files_that_are_not_a_mapping(tmp_path: Path) -> None:
    with pytest.raises(EvidenceError, match="has none of the files that a run leaves"):
        reproduce(tmp_path)
    (tmp_path / "agent-config.yaml").write_text("kind: AgentConfig\n")
    with pytest.raises(EvidenceError, match="no profile can be made: there is neither a profile, nor"):
        reproduce(tmp_path)
    for text, message in (("[1]", "install-config.yaml: must be a mapping"), ("{", "install-config.yaml:")):
        (tmp_path / "install-config.yaml").write_text(text)
        with pytest.raises(EvidenceError, match=message):
            reproduce(tmp_path)


@pytest.mark.parametrize("value", [None, "x", 3, [], {}, [None], {"a": 1}, 1e400])
def test_fields_of_a_wrong_type_are_not_fatal(tmp_path: Path, value: Any) -> None:
    install, agent = rendered({"topology": "compact", "stack": "ipv4", "addressing": "static"})
    for name in (*install, *agent):
        (tmp_path / "install-config.yaml").write_text(
            yaml.safe_dump({**install, name: value} if name in install else install)
        )
        (tmp_path / "agent-config.yaml").write_text(yaml.safe_dump({**agent, name: value} if name in agent else agent))
        reproduce(tmp_path).text()


def test_the_verb(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = left(
        tmp_path / "run",
        {"topology": "compact", "stack": "ipv4"},
        log=f'{LEVEL}Host master-1 validation: Hostname master-1 is not unique in cluster"\n',
    )
    assert verb.main([str(folder), "-o", str(tmp_path / "again.yml")]) == 0
    printed = capsys.readouterr()
    assert not printed.out and "fault: kind duplicate_hostname, node master-1, of master-0" in printed.err
    assert "unknown: install-config.yaml: pullSecret: a secret" in printed.err
    text = (tmp_path / "again.yml").read_text()
    assert text.startswith(
        "# From install-config.yaml of a run of cluster ostest.\n# First cause: Host master-1 validation: Hostname"
    )
    lock = json.loads((tmp_path / "again.yml.lock.json").read_text())
    assert lock["first_cause"].endswith("is not unique in cluster") and len(lock["evidence"]) == 3
    assert verb.main([str(folder)]) == 0 and capsys.readouterr().out == text
    (folder / "profile.yaml").write_text("topology: moon\n")
    assert verb.main([str(folder)]) == 1
    assert "to be corrected: " in capsys.readouterr().err
    assert verb.main([str(tmp_path / "nothing")]) == 2


@pytest.mark.parametrize(
    ("hints", "node", "unknown"),
    [
        (
            {"deviceName": "/dev/sdc"},
            {"root_device": "/dev/sdc", "disk_bus": "scsi", "extra_disks": [{"size_gib": 20}] * 2},
            [],
        ),
        ({"deviceName": "/dev/vda"}, {"root_device": "/dev/vda", "disk_bus": "virtio"}, []),
        (
            {"serialNumber": "S1", "minSizeGigabytes": 120, "rotational": False},
            {
                "root_device_hints": {"serial_number": "S1", "min_size_gigabytes": 120, "rotational": False},
                "extra_disks": [{"size_gib": 112, "bus": "scsi", "serial": "S1", "rotational": False}],
            },
            [],
        ),
        ({"hctl": "1:0:0:0"}, {}, ["hctl"]),
        ({"model": "A disk of 3 words"}, {}, ["model"]),
    ],
)
def test_root_device_hints_of_others(
    tmp_path: Path, hints: dict[str, Any], node: dict[str, Any], unknown: list[str]
) -> None:
    """The lab's machine gets a disk that they match, so that the profile is valid."""
    folder = left(tmp_path, {"topology": "compact", "stack": "ipv4"})
    content = yaml.safe_load((folder / "agent-config.yaml").read_text())
    content["hosts"][1]["rootDeviceHints"] = hints
    (folder / "agent-config.yaml").write_text(yaml.safe_dump(content))
    made = reproduce(folder)
    found = made.raw["nodes"]["master-1"]
    assert {key: value for key, value in found.items() if key != "nics"} == node
    assert [line for line in made.unknown if "rootDeviceHints" in line] == [
        f"agent-config.yaml: hosts[1].rootDeviceHints.{name}: not taken" for name in unknown
    ]
    profile.validated_profile(profile.parse(yaml.safe_dump(made.raw), "x"), "ostest")
