"""Release 4.14, the oldest that is known: pxe-files, config images, platform External for Oracle's cloud."""

from __future__ import annotations

from .model import ReleaseProfile

RELEASE = ReleaseProfile(
    name="4.14",
    replicas=("3", "1"),
    replicas_text="to 3 or 1",
    capability_sets={
        "v4.11": ("baremetal", "marketplace", "openshift-samples", "MachineAPI"),
        "v4.12": ("Console", "Insights", "Storage", "CSISnapshot"),
        "v4.13": ("NodeTuning",),
        "v4.14": ("Build", "DeploymentConfig", "ImageRegistry"),
    },
    architectures=("amd64", "arm64"),
    external_platforms=("oci",),
    openshift_sdn=True,
    units_absent=(
        "agent-ui.service",
        "agent-start-ui.service",
        "agent-extract-tui.service",
        "iscsistart.service",
        "iscsiadm.service",
        "oci-eval-user-data.service",
    ),
    files_absent=(
        "/etc/assisted/rendezvous-host.env.template",
        "/usr/local/bin/configure-assisted-hw-requirements.sh",
        "/usr/local/bin/agent-extract-tui.sh",
        "/usr/local/bin/oci-eval-user-data.sh",
    ),
)
