"""Release 4.15: ppc64le and s390x, any platform External, hosts in the install-config, no OpenShiftSDN."""

from __future__ import annotations

from dataclasses import replace

from .v4_14 import RELEASE as BEFORE

RELEASE = replace(
    BEFORE,
    name="4.15",
    capability_sets={**BEFORE.capability_sets, "v4.15": ("OperatorLifecycleManager", "CloudCredential")},
    architectures=("amd64", "arm64", "ppc64le", "s390x"),
    external_platforms=(),
    install_config_hosts=True,
    vsphere_credentials=True,
    openshift_sdn=False,
)
