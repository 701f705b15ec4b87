from __future__ import annotations

import json

from ansible_collections.agentlab.ocp.plugins.module_utils.report.causes import Facts, causes


def node(n):
    return {"name": f"master-{n}", "domain": f"ostest_master_{n}", "role": "master",
            "nics": [{"addresses": [{"ip": f"192.0.2.{20 + n}"}]}]}


PLAN = {"nodes": [node(0), node(1)], "rendezvous_ip": "192.0.2.20"}
RUNNING = {"ostest_master_0": "running", "ostest_master_1": "running"}


def host(n, status, info="", failing=""):
    checks = json.dumps({"hardware": [{"id": "x", "status": "failure", "message": failing}]}) if failing else ""
    return {"id": f"id{n}", "requested_hostname": f"master-{n}", "status": status, "status_info": info, "validations_info": checks}


def first(**facts):
    found = causes(Facts(plan=PLAN, **facts))
    return found[0].text if found else None


def test_nothing_wrong():
    assert first(domains=RUNNING, cluster={"status": "installing", "hosts": [host(0, "installing"), host(1, "installing")]}) is None


def test_a_vm_that_is_off_explains_a_host_that_is_missing():
    text = first(domains=RUNNING | {"ostest_master_1": "shut off"}, cluster={"status": "insufficient", "hosts": [host(0, "known")]})
    assert text == "VM ostest_master_1 (master-1) is shut off"


def test_host_that_never_registered():
    assert first(domains=RUNNING, cluster={"status": "insufficient", "hosts": [host(0, "known")]}) == "host master-1 never registered"


def test_extra_host():
    hosts = [host(0, "known"), host(1, "known"), host(7, "known")]
    assert first(domains=RUNNING, cluster={"status": "ready", "hosts": hosts}).startswith("host master-7 is not of this plan; 3 hosts")


def test_failing_validation():
    hosts = [host(0, "known"), host(1, "insufficient", failing="Require at least 16.00 GiB RAM for role master, found only 2.00 GiB")]
    assert first(domains=RUNNING, cluster={"status": "insufficient", "hosts": hosts}) == (
        "host master-1 fails a validation: Require at least 16.00 GiB RAM for role master, found only 2.00 GiB")


def test_service_that_never_started():
    assert first(domains=RUNNING, node_zero={"assisted-service.service": "failed"}).startswith(
        "assisted-service never started: assisted-service.service on the rendezvous host 192.0.2.20 is failed")


def test_registry_down_comes_first():
    assert first(domains={}, services={"registry": "connection refused"}) == "the lab's registry does not answer: connection refused"


def test_console_signs():
    text = first(domains=RUNNING, consoles={"ostest_master_0": "x\n[ 1.0] Kernel panic - not syncing: VFS\n"})
    assert text == "ostest_master_0: the kernel panicked: Kernel panic - not syncing: VFS"


def test_wrong_rendezvous_ip():
    found = causes(Facts(plan=PLAN | {"rendezvous_ip": "192.0.2.99"}, domains=RUNNING))
    assert found[0].text == "rendezvousIP 192.0.2.99 is not the address of any node of the plan"
