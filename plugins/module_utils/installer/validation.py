"""The rules that an install-config for the agent-based installer must keep."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..releases.distributions import of_version
from . import features
from .errors import FieldErrors
from .install_config import replicas
from .models import InstallConfig
from .rules.general import check_credentials_mode, check_general, check_names, check_publish, check_pull_secret_field
from .rules.go_paths import go_notice, go_path
from .rules.ignored import ignored_fields
from .rules.networks import check_networking, check_ovn_config
from .rules.platforms import check_agent_section, check_platform, check_vips
from .rules.pools import check_payload_architecture, check_pools, check_release_architecture
from .rules.sources import check_image_sources, check_proxy
from .rules.topology import check_agent_platform, check_topology

if TYPE_CHECKING:
    from .build import Build


def validate(config: InstallConfig, build: Build) -> None:
    """Raise `InstallerError` with everything that is wrong in an install-config; warn of what is ignored.

    config: with defaults; Nutanix' VIPs are put into order in it. The order of the rules is upstream's, since it is
    that of the errors in the message.
    """
    errors = FieldErrors()
    profile = build.profile
    check_general(config, errors)
    check_names(config, errors)
    check_networking(config, profile, build.log, errors)
    check_vips(config, errors)
    check_ovn_config(config["networking"], errors)
    check_platform(config, errors)
    check_pools(config, profile, errors)
    check_payload_architecture(config, build, errors)
    check_pull_secret_field(config, errors)
    check_proxy(config, errors)
    check_image_sources(config, build.log, errors)
    check_credentials_mode(config, errors)
    features.capability_names(config, errors)
    check_publish(config, errors)
    features.validate(config, profile, of_version(build.version), errors)
    agent = FieldErrors() if profile.lower_config_paths else FieldErrors(path=go_path)
    check_agent_platform(config, profile, agent)
    check_agent_section(config, agent)
    check_release_architecture(config, build, agent)
    for level, text in ignored_fields(config):
        getattr(build.log, level)(text if profile.lower_config_paths else go_notice(text))
    counts = replicas(config)
    arbiters = f", {counts['arbiter']} arbiter replicas," if profile.arbiter else ""
    build.log.info(
        f"Configuration has {counts['master']} master replicas{arbiters} and {counts['worker']} worker replicas"
    )
    check_topology(config, profile, counts, agent)
    errors += agent
    errors.check("invalid install-config configuration")
