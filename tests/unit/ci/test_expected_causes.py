"""The causes that jobs expect match the texts of `report/causes.py`, with names and addresses of the job's own plan."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.payload.api_server.state import texts
from ansible_collections.agentlab.ocp.payload.api_server.validations import hardware
from ansible_collections.agentlab.ocp.payload.images import code
from ansible_collections.agentlab.ocp.payload.images.release import HARDWARE
from ansible_collections.agentlab.ocp.plugins.module_utils.ci import jobs
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, profile
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.faults import EXTRA, KINDS
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.model import Plan
from ansible_collections.agentlab.ocp.plugins.module_utils.redact import redact
from ansible_collections.agentlab.ocp.plugins.module_utils.report.causes import causes
from ansible_collections.agentlab.ocp.plugins.module_utils.report.evidence import Facts, Unit

TABLE = Path(__file__).resolve().parents[3] / "ci/jobs.yml"
Made = dict[str, Any]
EXPECTING = [
    name
    for name in jobs.names(TABLE)
    if (expect := jobs.load(name, TABLE)["expect"]) and jobs.failing_stage(expect) == "wait"
]


def hosts(plan: Plan, *, extra: bool = False, but: str = "", **changed: Made) -> list[Made]:
    """Hosts of a plan as the service reports them; but: the one that is missing; changed: fields of `master_N`."""
    found = []
    for node in plan["nodes"]:
        if node["name"] == but or (node["role"] == EXTRA and not extra):
            continue
        mac = node["nics"][0]["mac"]
        inventory = json.dumps({"interfaces": [{"mac_address": mac}]})
        name = node["name"] if node["role"] != EXTRA else mac.replace(":", "-")
        host = {"id": mac, "requested_hostname": name, "status": "known", "inventory": inventory}
        found.append(host | changed.get(node["name"].replace("-", "_"), {}))
    return found


def cluster(status: str, found: list[Made]) -> Made:
    return {"cluster": {"status": status, "hosts": found}}


def failing(text: str, check: str, category: str = "hardware") -> Made:
    info = json.dumps({category: [{"id": check, "status": "failure", "message": text}]})
    return {"status": "insufficient", "validations_info": info}


def _of(check: str, text: str, category: str = "network") -> Callable[[Plan], Made]:
    """A job in which the last master fails a validation."""

    def facts(plan: Plan) -> Made:
        last = [node["name"] for node in plan["nodes"] if node["role"] == "master"][-1]
        return cluster("insufficient", hosts(plan, **{last.replace("-", "_"): failing(text, check, category)}))

    return facts


def _memory(plan: Plan) -> Made:
    """The service's own text, for the memory of the job and the lab payload's table."""
    given = {"memory": {"physical_bytes": plan["nodes"][0]["memory_mib"] * 2**20, "physical_bytes_method": "dmidecode"}}
    view = SimpleNamespace(inventory=given, total=HARDWARE[0]["sno"], role="master")
    status, text = hardware.role_memory(view)
    assert status == "failure"
    return cluster("insufficient", hosts(plan, master_0=failing(text, "has-memory-for-role")))


def _disk(plan: Plan) -> Made:
    disks = [{"name": "vda", "installation_eligibility": {"eligible": False}}]
    status, text = hardware.min_disks(SimpleNamespace(inventory={"disks": disks}))
    assert status == "failure"
    return cluster("insufficient", hosts(plan, master_0=failing(text, "has-min-valid-disks")))


def _broken(status: str, info: str, stage: str = "") -> Callable[[Plan], Made]:
    def facts(plan: Plan) -> Made:
        node = next(f["node"] for f in plan["faults"] if "node" in f)
        broken = {"status": status, "status_info": info, "progress": {"current_stage": stage}}
        return cluster("error", hosts(plan, **{node.replace("-", "_"): broken}))

    return facts


def _service(plan: Plan) -> Made:
    reported = "Error: component_fails: the image exits"
    return {"node_zero": {"assisted-service.service": Unit("activating", 4, reported)}}


def _unsigned(plan: Plan) -> Made:
    reported = "Error: Source image rejected: A signature was required, but no signature exists"
    return {"node_zero": {"assisted-service-pod.service": Unit("activating", 0, reported)}}


def _without_disk(plan: Plan) -> Made:
    reported = "Installation cannot proceed, these hosts do not match their configuration:\r\n  master-0: "
    text = f"{reported}No disk of the host matches the root device hints"
    return {**cluster("ready", hosts(plan)), "consoles": {plan["nodes"][0]["domain"]: text}}


def _controller(plan: Plan) -> Made:
    reported = code.failing_program("/usr/bin/assisted-installer-controller").data
    assert isinstance(reported, bytes)
    ended = {"terminated": {"exitCode": 1, "message": reported.decode().splitlines()[1]}}
    status = {"name": "c", "ready": False, "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": ended}
    metadata = {"name": "assisted-installer-controller-x7k2p", "namespace": "assisted-installer"}
    pod = {"metadata": metadata, "spec": {}, "status": {"phase": "Running", "containerStatuses": [status]}}
    return {"pods": [pod], **cluster("installed", hosts(plan))}


def _missing_image(plan: Plan) -> Made:
    text = (
        "Host master-0: updated status from preparing-for-installation to preparing-failed (Host failed to prepare for "
        "installation due to following failing validation(s): Failed to fetch container images needed for installation)"
    )
    return cluster("ready", hosts(plan)) | {"events": [{"severity": "warning", "message": text}] * 3}


def _off(plan: Plan) -> Made:
    return {"domains": {node["domain"]: "shut off" for node in plan["nodes"]}, **cluster("installing", hosts(plan))}


def _without_medium(plan: Plan) -> Made:
    """As the service describes the host from the second refresh on."""
    text = "Unable to read from the discovery media. It was either disconnected"
    silent = failing(text, "media-connected") | {"status": "disconnected", "status_info": texts.DISCONNECTED}
    return cluster("insufficient", hosts(plan, master_0=silent))


def _refused(plan: Plan) -> Made:
    url = f"http://{plan['rendezvous']['ip']}:8090/api/assisted-install"
    return {"refusal": f"{url}: HTTP 401: The provided authentication token has expired."}


FACTS: dict[str, Callable[[Plan], Made]] = {
    "fault-service-fails": _service,
    "fault-controller-fails": _controller,
    "fault-registry-down": lambda plan: {
        "services": {"registry": f"{plan['networks'][0]['subnets'][0]['gateway']} port 5000: Connection refused"}
    },
    "fault-memory": _memory,
    "fault-disk-size": _disk,
    "fault-power-off": _off,
    "fault-after-bootstrap": _off,
    "fault-unregistered": lambda plan: cluster("insufficient", hosts(plan, but="master-2")),
    "fault-disk-lost": _broken("error", "Failed - failed after 3 attempts", "Writing image to disk"),
    "fault-media-lost": _without_medium,
    "fault-image-missing": _missing_image,
    "fault-dns-wildcard": _of(
        "dns-wildcard-not-configured", "DNS wildcard configuration was detected for domain ostest"
    ),
    "fault-token": _refused,
    "fault-unsigned-image": _unsigned,
    "fault-wrong-root-device": _without_disk,
    "fault-wrong-token": lambda plan: (
        cluster("insufficient", hosts(plan, but="master-2"))
        | {"refused": {"master-2": "POST /v2/infra-envs/x/hosts: HTTP 401: token is not valid"}}
    ),
    "fault-rendezvous": lambda plan: {"rendezvous_ip": "192.168.111.99"},
    "fault-extra-host": lambda plan: cluster("insufficient", hosts(plan, extra=True)),
    "fault-hosts": lambda plan: cluster(
        "insufficient", hosts(plan, master_1=failing("Hostname master-1 is not unique in cluster", "hostname-unique"))
    ),
    "fault-clock": _of("ntp-synced", "Host clock is not synchronized, host time is ahead of service"),
    "fault-disconnected": _broken("error", "Host failed to install due to timeout while connecting to host"),
    "fault-mtu": _of("mtu-valid", "MTU is broken. Interface: enp1s0, remote IP address: 192.168.111.21"),
    "fault-packet-loss": _of(
        "sufficient-packet-loss-requirement-for-role",
        "A total packet loss above the tolerated threshold of 50.00% was encountered",
    ),
}


def test_a_job_shows_each_class() -> None:
    shown = [expect["exit_code"] for name in jobs.names(TABLE) if (expect := jobs.load(name, TABLE)["expect"])]
    assert set(shown) == {3, 4, 5, 6, 7}


def test_every_job_that_expects_a_cause_is_here() -> None:
    assert sorted(FACTS) == EXPECTING


def test_each_kind_of_fault_has_a_job() -> None:
    profiles = (jobs.load(name, TABLE)["profile"] for name in jobs.names(TABLE))
    assert {fault["kind"] for one in profiles if isinstance(one, dict) for fault in one.get("faults", [])} == set(KINDS)


@pytest.mark.parametrize("name", EXPECTING)
def test_cause(name: str, tmp_path: Path) -> None:
    job = jobs.load(name, TABLE)
    given = job["profile"]
    assert isinstance(given, dict) and job["expect"]
    plan = build.build(profile.complete(given), "ci")
    found = causes(Facts(plan=plan, **FACTS[name](plan)))
    # What a job compares has gone through the report, which hides secrets.
    assert found and re.match(job["expect"]["cause"], redact(found[0].text)), [cause.text for cause in found]
