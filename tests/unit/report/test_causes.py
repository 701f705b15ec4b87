from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.payload.api_server.client.hosts import NO_DISK
from ansible_collections.agentlab.ocp.plugins.module_utils.cli import lab
from ansible_collections.agentlab.ocp.plugins.module_utils.cli.verbs import VERBS
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.access import Access, closing_lines
from ansible_collections.agentlab.ocp.plugins.module_utils.report.causes import LIKELY, SURE, causes, signs
from ansible_collections.agentlab.ocp.plugins.module_utils.report.evidence import Facts, Unit


def node(n):
    return {
        "name": f"master-{n}",
        "domain": f"ostest_master_{n}",
        "role": "master",
        "nics": [{"network": "net", "mac": f"00:00:00:00:00:0{n}", "addresses": [{"ip": f"192.0.2.{20 + n}"}]}],
    }


PLAN = {
    "cluster": {"name": "ostest"},
    "hypervisor": {"kind": "sandbox", "console_dir": "/var/lib/agentlab/ostest/console"},
    "nodes": [node(0), node(1)],
    "rendezvous": {"node": "master-0", "ip": "192.0.2.20"},
}
RUNNING = {"ostest_master_0": "running", "ostest_master_1": "running"}


def host(n, status, info="", failing="", check="has-memory-for-role", name=None):
    checks = json.dumps({"hardware": [{"id": check, "status": "failure", "message": failing}]}) if failing else ""
    return {
        "id": f"id{n}",
        "requested_hostname": name or f"master-{n}",
        "status": status,
        "status_info": info,
        "validations_info": checks,
        "inventory": json.dumps({"interfaces": [{"mac_address": f"00:00:00:00:00:0{n}"}]}),
    }


def first(**facts):
    found = causes(Facts(plan=PLAN, **facts))
    return found[0].text if found else None


def grace(**facts):
    return causes(Facts(plan=PLAN, **facts))[0].grace


def test_nothing_wrong():
    assert (
        first(
            domains=RUNNING, cluster={"status": "installing", "hosts": [host(0, "installing"), host(1, "installing")]}
        )
        is None
    )


def test_a_vm_that_is_off_explains_a_host_that_is_missing():
    text = first(
        domains=RUNNING | {"ostest_master_1": "shut off"},
        cluster={"status": "insufficient", "hosts": [host(0, "known")]},
    )
    assert text == "VM ostest_master_1 (master-1) is shut off"


def test_an_existing_machine_has_no_vm_that_could_be_off():
    plan = {**PLAN, "nodes": [node(0), {**node(1), "bare_metal": True}]}
    facts = Facts(
        plan=plan,
        domains={"ostest_master_0": "running"},
        cluster={"status": "insufficient", "hosts": [host(0, "known")]},
    )
    texts = [cause.text for cause in causes(facts)]
    assert texts and not [text for text in texts if text.startswith("VM ")], texts
    assert any("master-1" in text for text in texts)


def test_host_that_never_registered():
    assert (
        first(domains=RUNNING, cluster={"status": "insufficient", "hosts": [host(0, "known")]})
        == "host master-1 never registered"
    )


def test_host_whose_token_is_refused():
    facts = {"domains": RUNNING, "cluster": {"status": "insufficient", "hosts": [host(0, "known")]}}
    refused = {"master-0": "an old line", "master-1": "refuses the token of this host: HTTP 401 x"}
    assert (
        first(**facts, refused=refused)
        == "host master-1 is refused by the assisted service: refuses the token of this host: HTTP 401 x"
    )


def test_extra_host():
    hosts = [host(0, "known"), host(1, "known"), host(7, "known")]
    assert first(domains=RUNNING, cluster={"status": "ready", "hosts": hosts}).startswith(
        "host master-7 is not part of this plan (3 hosts"
    )


def test_failing_validation():
    hosts = [
        host(0, "known"),
        host(1, "insufficient", failing="Require at least 16.00 GiB RAM for role master, found only 2.00 GiB"),
    ]
    assert first(domains=RUNNING, cluster={"status": "insufficient", "hosts": hosts}) == (
        "host master-1 fails a validation: Require at least 16.00 GiB RAM for role master, found only 2.00 GiB"
    )


def test_a_validation_that_could_not_be_checked_is_named():
    one = host(0, "insufficient")
    check = {"id": "sufficient-installation-disk-speed", "status": "error", "message": "Validation error"}
    one["validations_info"] = json.dumps({"hardware": [check]})
    assert first(domains=RUNNING, cluster={"status": "insufficient", "hosts": [one, host(1, "known")]}) == (
        "host master-0 fails a validation: sufficient-installation-disk-speed: Validation error"
    )


def test_disks_that_are_not_eligible_have_their_reasons():
    reported = "No eligible disks were found, please check specific disks to see why they are not eligible"
    one, why = (
        host(0, "insufficient", failing=reported, check="has-min-valid-disks"),
        ["Disk is too small", "it is removable"],
    )
    disks = [
        {
            "name": name,
            "drive_type": kind,
            "installation_eligibility": {"eligible": not reasons, "not_eligible_reasons": reasons},
        }
        for name, kind, reasons in (("sda", "HDD", why), ("sr0", "ODD", why), ("sdb", "SSD", None))
    ]
    one["inventory"] = json.dumps({"disks": [*disks, {"name": "sdc"}]})
    assert first(domains=RUNNING, cluster={"status": "insufficient", "hosts": [one, host(1, "known")]}) == (
        f"host master-0 fails a validation: {reported}; sda: Disk is too small, it is removable"
    )


def test_what_holds_a_host_back_is_reported_before_what_does_not():
    checks = {
        "network": [
            {"id": "ntp-synced", "status": "failure", "message": "no NTP"},
            {"id": "x", "status": "failure", "message": "no route"},
        ]
    }
    hosts = [
        host(0, "known"),
        host(1, "insufficient", "Host cannot be installed due to following failing validation(s): no NTP ; no route"),
    ]
    hosts[1]["validations_info"] = json.dumps(checks)
    facts = {"domains": RUNNING, "cluster": {"status": "insufficient", "hosts": hosts}}
    assert first(**facts) == "host master-1 fails a validation: no route"
    assert grace(**facts) == LIKELY


def test_lost_packets_are_reported_before_the_group_that_they_split():
    one = host(
        0, "insufficient", failing="A total packet loss ...", check="sufficient-packet-loss-requirement-for-role"
    )
    lost = json.loads(one["validations_info"])["hardware"]
    alone = {
        "id": "belongs-to-majority-group",
        "status": "failure",
        "message": "No connectivity to the majority of hosts in the cluster",
    }
    one["validations_info"] = json.dumps({"network": [alone, *lost]})
    facts = Facts(plan=PLAN, domains=RUNNING, cluster={"status": "insufficient", "hosts": [one, host(1, "known")]})
    assert [cause.text for cause in causes(facts)] == [
        "host master-0 fails a validation: A total packet loss ...",
        "host master-0 fails a validation: No connectivity to the majority of hosts in the cluster",
    ]


def test_causes_that_block_no_host_are_still_reported():
    hosts = [
        host(0, "known", failing="Failed to fetch container images", check="container-images-available"),
        host(1, "known"),
    ]
    facts = {"domains": RUNNING, "cluster": {"status": "ready", "hosts": hosts}}
    assert first(**facts) == "host master-0 fails a validation: Failed to fetch container images"
    assert grace(**facts) is None


def test_the_host_that_failed_is_reported_before_those_it_took_along():
    hosts = [
        host(0, "error", "Host is part of a cluster that failed to install"),
        host(1, "error", "timeout while connecting"),
    ]
    assert (
        first(domains=RUNNING, cluster={"status": "error", "hosts": hosts})
        == "host master-1 is error: timeout while connecting"
    )


def test_a_network_that_loses_large_packets_is_reported_of_a_host_that_does_not_join():
    hosts = [
        host(0, "installed", failing="MTU is broken", check="mtu-valid"),
        host(1, "installing-in-progress", failing="MTU is broken", check="mtu-valid"),
    ]
    assert (
        first(domains=RUNNING, cluster={"status": "installing", "hosts": hosts})
        == "host master-1 fails a validation: MTU is broken"
    )


def test_lost_packets_explain_pulls_that_fail():
    hosts = [host(0, "known"), host(1, "known", failing="MTU is broken", check="mtu-valid")]
    reported = "Host ostest-1: updated status from preparing-for-installation to preparing-failed (Failed to fetch container images)"
    facts = {
        "domains": RUNNING,
        "cluster": {"status": "ready", "hosts": hosts},
        "events": [{"severity": "warning", "message": reported}] * 3,
    }
    assert first(**facts) == "host master-1 fails a validation: MTU is broken"


def test_a_host_that_is_not_a_node_explains_operators_that_wait():
    hosts = [
        {**host(n, "installing-in-progress"), "progress": {"current_stage": stage}, "bootstrap": n == 0}
        for n, stage in enumerate(("Waiting for control plane", "Configuring"))
    ]
    facts = {"domains": RUNNING, "cluster": {"status": "installing", "hosts": hosts}, "nodes": []}
    assert first(**facts) == "host master-1 has not joined the cluster: its last stage is Configuring"


def test_memory_does_not_grow():
    facts = {
        "cluster": {
            "status": "insufficient",
            "hosts": [host(0, "known"), host(1, "insufficient", failing="too little")],
        }
    }
    assert grace(domains=RUNNING, **facts) == SURE


def test_two_hosts_of_one_name_are_not_one_that_is_missing():
    hosts = [
        host(0, "known"),
        host(1, "insufficient", failing="Hostname master-0 is not unique", check="hostname-unique", name="master-0"),
    ]
    assert first(domains=RUNNING, cluster={"status": "insufficient", "hosts": hosts}) == (
        "host master-0 fails a validation: Hostname master-0 is not unique"
    )


def test_service_that_never_started():
    facts = {
        "domains": RUNNING,
        "node_zero": {
            "assisted-service-pod.service": Unit("activating"),
            "assisted-service.service": Unit("activating", 4, "Error: manifest unknown"),
            "start-cluster-installation.service": Unit("activating"),
        },
    }
    assert first(**facts) == (
        "assisted-service never started: assisted-service.service on the rendezvous host 192.0.2.20 "
        "fails repeatedly: Error: manifest unknown"
    )
    assert grace(**facts) == SURE


def test_the_unit_that_fails_is_named_before_the_one_that_gave_up_waiting_for_it():
    facts = {
        "domains": RUNNING,
        "node_zero": {
            "assisted-service.service": Unit("activating", 1, "Error: exit 1"),
            "agent-register-cluster.service": Unit("failed"),
        },
    }
    assert "assisted-service.service on the rendezvous host 192.0.2.20 fails repeatedly" in first(**facts)
    assert grace(**facts) == SURE


def test_service_that_is_only_slow():
    facts = {"domains": RUNNING, "node_zero": {"assisted-service.service": Unit("activating")}}
    assert first(**facts).endswith("assisted-service.service on the rendezvous host 192.0.2.20 is still starting")
    assert grace(**facts) is None


def test_refused_token():
    facts = {"domains": RUNNING, "refusal": "http://192.0.2.20:8090/api: HTTP 401: token is expired"}
    assert (
        first(**facts)
        == "the assisted service at 192.0.2.20:8090 refuses this run's token (HTTP 401): token is expired"
    )


def test_registry_down_comes_first():
    assert (
        first(domains={}, services={"registry": "connection refused"})
        == "the lab's registry does not answer: connection refused"
    )
    assert grace(domains={}, services={"registry": "connection refused"}) == SURE


def test_a_bmc_explains_nothing_once_machines_run():
    facts = {"domains": RUNNING, "services": {"bmc": "connection refused", "ntp": "", "registry": ""}}
    assert (
        first(cluster={"status": "insufficient", "hosts": [host(0, "known")]}, **facts)
        == "host master-1 never registered"
    )


def test_a_host_that_broke():
    hosts = [
        host(0, "installing"),
        host(1, "error", "failed after 3 attempts") | {"progress": {"current_stage": "Writing image to disk"}},
    ]
    assert first(domains=RUNNING, cluster={"status": "error", "hosts": hosts}) == (
        "host master-1 is error at Writing image to disk: failed after 3 attempts"
    )


def test_a_preparation_that_fails_indefinitely():
    """Between two tries nothing is wrong with the host, so what counts is what was reported."""
    event = {
        "severity": "warning",
        "message": "Host master-0: updated status from preparing-for-installation to preparing-failed (Host failed to "
        "prepare for installation due to following failing validation(s): Failed to fetch container images needed for installation from x.)",
    }
    cluster = {
        "status": "preparing-for-installation",
        "hosts": [host(0, "preparing-for-installation"), host(1, "known")],
    }
    assert first(cluster=cluster, events=[event] * 2) is None
    [cause] = causes(Facts(plan=PLAN, cluster=cluster, events=[event] * 3))
    assert cause.text == (
        "host master-0 fails to prepare for the installation, repeatedly: "
        "Failed to fetch container images needed for installation from x."
    )
    assert cause.grace == 360


def test_console_signs():
    text = first(domains=RUNNING, consoles={"ostest_master_0": "x\n[ 1.0] Kernel panic - not syncing: VFS\n"})
    assert text == "ostest_master_0: the kernel panicked: Kernel panic - not syncing: VFS"
    console = "initrd: no Ignition config\r\ninitrd: cannot mount /dev/sr0\r\ninitrd: a shell follows; log: /run/ignition.log\r\n"
    cause = causes(Facts(plan=PLAN, domains=RUNNING, consoles={"ostest_master_0": console}))[0]
    assert (
        cause.text == "ostest_master_0: the machine could not find or start its system: initrd: cannot mount /dev/sr0"
    )
    assert cause.grace == 60
    refused = 'BdsDxe: failed to load Boot0001 "UEFI QEMU QEMU CD-ROM " from Scsi(0x0,0x1): Access Denied'
    [cause, *__] = causes(Facts(plan=PLAN, domains=RUNNING, consoles={"ostest_master_0": f"{refused}\r\n"}))
    assert cause.text == f"ostest_master_0: the firmware does not trust what it should boot: {refused}"
    assert cause.grace == 60


def test_what_a_console_remarks_comes_after_what_explains_it():
    console = {
        "ostest_master_0": "\x1b[31mInstallation cannot proceed, these hosts do not match their configuration:\x1b[0m\n"
    }
    cluster = {"status": "insufficient", "hosts": [host(0, "known")]}
    found = causes(Facts(plan=PLAN, domains=RUNNING, cluster=cluster, consoles=console))
    assert found[0].text == "host master-1 never registered"
    assert found[1].text.endswith(
        "could not be applied: Installation cannot proceed, these hosts do not match their configuration:"
    )


@pytest.mark.parametrize(
    "reported",
    [
        NO_DISK,
        "Failed to update host installation disk to /dev/not-found-by-hints (from /dev/disk/by-id/wwn-0x5): "
        "Requested installation disk is not part of the host's valid disks",
    ],
)
def test_root_device_hints_that_match_no_disk(reported):
    """The service has no validation of them: the cluster stays ready. The client's texts, of the lab and of upstream."""
    title = "\x1b[91mInstallation cannot proceed, these hosts do not match their configuration:\x1b[0m\r\n"
    text = f"{title}  master-1: Host has not registered yet\r\n\r\nlogin: {title}  master-1: {reported}\r\n\r\nlogin: "
    cluster = {"status": "ready", "hosts": [host(0, "known"), host(1, "known")]}
    for shown in (text, signs(text)):
        facts = Facts(plan=PLAN, domains=RUNNING, cluster=cluster, consoles={"ostest_master_0": shown})
        assert [cause.text for cause in causes(facts)] == [
            f"ostest_master_0: the host configuration could not be applied: master-1: {reported}"
        ]


def test_an_image_that_the_policy_rejects_is_not_waited_for():
    """Its unit pulls repeatedly, and never restarts."""
    reported = "Error: Source image rejected: A signature was required, but no signature exists"
    pulling = {
        "assisted-service-pod.service": Unit("activating", 0, reported),
        "assisted-service.service": Unit("inactive"),
    }
    (first, *__) = causes(Facts(plan=PLAN, domains=RUNNING, node_zero=pulling))
    assert first.text.endswith(
        f"assisted-service-pod.service on the rendezvous host 192.0.2.20 fails repeatedly: {reported}"
    )
    assert first.grace == SURE


def test_a_machine_that_hangs():
    """An installed single node hung at 13 s, and nothing was found."""
    text = "[   34.343501] rcu: INFO: rcu_preempt self-detected stall on CPU\r\n[   34.34] rcu: \t1-...!: (4143 ticks this GP)\r\n"
    plan = {**PLAN, "nodes": PLAN["nodes"][:1]}
    cluster = {"status": "installing", "hosts": [host(0, "installing-in-progress")]}
    found = causes(Facts(plan=plan, domains=RUNNING, cluster=cluster, consoles={"ostest_master_0": text}))
    reported = "a processor of the machine hangs or is too slow: rcu: INFO: rcu_preempt self-detected stall on CPU"
    assert f"ostest_master_0: {reported}" in [cause.text for cause in found]


def test_wrong_rendezvous_ip():
    found = causes(Facts(plan=PLAN, rendezvous_ip="192.0.2.99", domains=RUNNING))
    assert found[0].text == "rendezvousIP 192.0.2.99 is not the address of any node of the plan"


def pod(name, reported):
    status = {
        "name": "c",
        "ready": False,
        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": {"exitCode": 1, "message": reported}},
    }
    return {
        "metadata": {"name": name, "namespace": "assisted-installer"},
        "spec": {"nodeName": "master-0"},
        "status": {"phase": "Running", "containerStatuses": [status]},
    }


def test_a_container_that_ends_comes_before_what_it_causes():
    nodes = [
        {
            "metadata": {"name": "master-0"},
            "status": {"conditions": [{"type": "Ready", "status": "False", "message": "not yet"}]},
        }
    ]
    assert first(
        domains=RUNNING,
        nodes=nodes,
        pods=[pod("assisted-installer-controller-7", "required key CLUSTER_ID missing value")],
    ) == (
        "pod assisted-installer/assisted-installer-controller-7: CrashLoopBackOff: exit code 1: required key CLUSTER_ID missing value"
    )


EVERYTHING = (
    {"services": {"registry": "refused", "ntp": "refused"}},
    {"domains": {"ostest_master_0": "paused"}},
    {"domains": RUNNING | {"ostest_master_1": "shut off"}},
    {"domains": RUNNING, "consoles": {"ostest_master_0": "Kernel panic - not syncing: VFS"}},
    {"refusal": "GET http://192.0.2.20:8090: HTTP 401: x"},
    {"node_zero": {"assisted-service": Unit("failed")}},
    {"rendezvous_ip": "192.0.2.99"},
    {"reachable": {"master-0": False}},
    {"domains": RUNNING},
    {"cluster": {"status": "insufficient", "hosts": [host(0, "insufficient", failing="too small")]}, "refused": {"master-1": "HTTP 401"}},
    {"cluster": {"status": "insufficient", "hosts": [host(0, "known")]}},
    {"cluster": {"status": "error", "hosts": [host(0, "error", "x"), host(1, "installing")]}, "events": [{"severity": "error", "message": "x"}]},
    {"nodes": [{"metadata": {"name": "master-0"}}], "pods": [pod("x", "y")],
     "cluster": {"status": "installing", "hosts": [host(1, "installing") | {"progress": {"current_stage": "Rebooting"}}]},
     "operators": [{"metadata": {"name": "etcd"}, "status": {"conditions": [{"type": "Degraded", "status": "True", "message": "m"}]}}]},
)  # fmt: skip


@pytest.mark.parametrize("kind", ["sandbox", "ssh"])
@pytest.mark.parametrize("facts", EVERYTHING)
def test_what_is_to_be_done_can_be_run_as_it_is_printed(facts, kind):
    """It was `agentlab exec -- ssh core@...` without the key, for a cluster of another name."""
    plan = PLAN | {
        "cluster": {"name": "my-lab"},
        "hypervisor": PLAN["hypervisor"] | {"kind": kind, "host": "h", "user": "me"},
    }
    found = causes(Facts(plan=plan, run_dir=Path("/srv/runs/my-lab"), **facts))
    assert found
    for cause in found:
        step = cause.step.removeprefix("correct /srv/runs/my-lab/profile.yaml, then: ")
        if step.startswith("set rendezvousIP in /srv/runs/my-lab/agent-config.yaml"):
            step = step.partition(", then: ")[2]
        for command in step.partition("  # ")[0].split(" && "):
            program, *words = shlex.split(command)
            if program != "bin/agentlab":
                assert program in ("tail", "less", "ls", "virsh", "ssh"), cause
                continue
            assert words[words.index("--cluster") + 1] == "my-lab"
            assert words[0] in VERBS
            if VERBS[words[0]].module == "lab":
                assert lab._parser(words[0]).parse_args(words[1:]).cluster == "my-lab"


def test_the_lines_after_a_success_can_be_run_as_they_are_printed():
    names = {"domain": "my-lab.test", "name": "my-lab"}
    plan = PLAN | {
        "cluster": names,
        "networks": [{"bridge": "br", "name": "net", "purpose": "machine"}],
        "services": {"address": "192.0.2.1"},
        "endpoints": {"console": {"url": "https://console.my-lab.test"}},
    }
    lines = closing_lines(Access(plan, Path("/srv/my runs/my-lab"), "/srv/bin/agentlab"))
    rows = {line[2:12].strip(): line[13:] for line in lines[1:]}
    assert rows["nodes"] == "master-0 192.0.2.20, master-1 192.0.2.21"
    assert rows["API"] == "/srv/bin/agentlab kubectl --cluster my-lab get nodes,clusterversion,clusteroperators"
    assert rows["ssh"] == "/srv/bin/agentlab ssh master-0 --cluster my-lab"
    assert rows["remove it"] == "/srv/bin/agentlab destroy --cluster my-lab"
    assert rows["console"] == "https://console.my-lab.test"
    assert "only in the lab's network" in lines[0]
    local = closing_lines(Access(plan | {"hypervisor": {"kind": "local", "console_dir": "/x/console"}}, Path("/r")))
    assert any("resolvectl dns br 192.0.2.1" in line for line in local)


IPI = {**PLAN, "installer": {"bootstrap": {"name": "bootstrap"}}}


def of_ipi(**facts):
    return [cause.text for cause in causes(Facts(plan=IPI, **facts))]


def test_ipi_has_no_assisted_service():
    """Ironic switches machines off during its work."""
    assert of_ipi(domains=RUNNING) == []
    assert of_ipi(domains=RUNNING, nodes=[{"metadata": {"name": "master-0"}, "status": {}}])[0] == (
        "master-1 has not joined the cluster"
    )


def test_ipi_ends_with_the_installers_reason():
    """Ironic leaves the machine off, which is what follows from it."""
    reported = (
        "openshift-install create cluster ended with exit code 5: Bootstrap failed to complete: master-1: inspect"
    )
    assert of_ipi(installer=reported, domains=RUNNING | {"ostest_master_1": "shut off"}) == [
        reported,
        "VM ostest_master_1 (master-1) is shut off",
    ]
    assert of_ipi(installer=reported, consoles={"ostest_master_1": "Kernel panic - not syncing: x"})[0].startswith(
        "ostest_master_1: the kernel panicked"
    )
