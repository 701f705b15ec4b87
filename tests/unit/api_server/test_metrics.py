"""`/metrics`: the names of the real service, in a form that Prometheus reads."""

from __future__ import annotations

import re
from pathlib import Path

from ansible_collections.agentlab.ocp.payload.api_server.metrics import CONTENT_TYPE, Metrics

from .lab import Lab
from .test_install import drive

NAMES = [
    "service_assisted_installer_cluster_creations",
    "service_assisted_installer_cluster_installation_started",
    "service_assisted_installer_cluster_installation_seconds",
    "service_assisted_installer_operation_duration_miliseconds",
    "service_assisted_installer_host_installation_phase_seconds",
    "service_assisted_installer_cluster_hosts",
    "service_assisted_installer_cluster_host_cores",
    "service_assisted_installer_cluster_host_ram_gb",
    "service_assisted_installer_cluster_host_disk_gb",
    "service_assisted_installer_cluster_host_nic_gb",
    "service_assisted_installer_cluster_host_disk_sync_duration_ms",
    "service_assisted_installer_cluster_image_pull_status",
    "service_assisted_installer_host_validation_is_in_failed_status_on_cluster_deletion",
    "service_assisted_installer_host_validation_failed_after_success_before_installation",
    "service_assisted_installer_cluster_validation_is_in_failed_status_on_cluster_deletion",
    "service_assisted_installer_cluster_validation_failed_after_success_before_installation",
    "service_assisted_installer_filesystem_usage_percentage",
    "service_assisted_installer_monitored_hosts_duration_ms",
    "service_assisted_installer_monitored_clusters_duration_ms",
    "service_assisted_installer_monitored_clusters_cycle_duration_ms",
    "service_assisted_installer_monitored_hosts_cycle_duration_ms",
    "service_assisted_installer_release_cache",
    "service_assisted_installer_release_cache_eviction",
    "http_request_duration_seconds",
    "http_requests_inflight",
]
_PAIR = r'\w+="(?:[^"\\\n]|\\.)*"'
LINE = re.compile(rf"[a-zA-Z_:][\w:]*(\{{{_PAIR}(?:,{_PAIR})*\}})? [-+0-9.eInf]+")


async def test_metrics_of_an_installation(tmp_path: Path) -> None:
    async with Lab(tmp_path) as lab:
        await drive(lab, 1, "Rebooting", control_plane_count=1)
        async with lab.session.get(str(lab.server.make_url("/metrics"))) as answer:
            assert (answer.status, answer.headers["Content-Type"]) == (200, CONTENT_TYPE)
            text = await answer.text()
    typed = re.findall(r"^# TYPE (\S+) (?:counter|gauge|histogram)$", text, re.MULTILINE)
    assert set(NAMES) <= set(typed)
    assert all(LINE.fullmatch(line) for line in text.splitlines() if not line.startswith("#"))
    for line in (
        "service_assisted_installer_cluster_creations 1",
        "service_assisted_installer_cluster_installation_started 1",
    ):
        assert line in text.splitlines()
    assert 'phase_seconds_count{phase="Starting installation",result="Done"} 1' in text


def test_labels_cannot_break_the_format() -> None:
    metrics = Metrics()
    metrics.observe("cluster_image_pull_status", 3, 'a"b\n\\', "success")
    found = [line for line in metrics.text().splitlines() if "image_pull_status_" in line]
    assert all(LINE.fullmatch(line) for line in found)
    assert found[-1].endswith(" 1")
