"""install-config.yaml for installer-provisioned infrastructure on bare metal: the rules of `openshift-install create cluster`."""

from __future__ import annotations

from ..log import Log
from ..releases import ReleaseProfile
from ..releases.distributions import of_version
from . import features, install_config
from .errors import FieldErrors, InstallerError
from .models import InstallConfig
from .rules.baremetal import check_bootstrap, check_provisioning_network, check_static_bootstrap
from .rules.general import check_credentials_mode, check_general, check_names, check_publish, check_pull_secret_field
from .rules.hosts import check_hosts
from .rules.networks import check_networking, check_ovn_config
from .rules.platforms import check_platform, check_vips
from .rules.pools import check_pools
from .rules.sources import check_image_sources, check_proxy

_REFUSED = f'failed to create install config: invalid "{install_config.FILENAME}" file'
_UNFIT = 'failed to generate asset "Platform Provisioning Check"'


def validate(text: str, profile: ReleaseProfile, version: str, log: Log) -> None:
    """Raise `InstallerError` with all that openshift-install would refuse in an install-config, in its words.

    text: of the file; profile, version: of the release; log: gets warnings. What is wrong with the file alone comes
    first; what the infrastructure needs in addition is checked in a file that is right.
    """
    config = install_config.parse(text, log)
    install_config.set_defaults(config, profile, version)
    errors = FieldErrors()
    check_general(config, errors)
    check_names(config, errors)
    check_networking(config, profile, log, errors)
    check_vips(config, errors)
    check_ovn_config(config["networking"], errors)
    check_platform(config, errors)
    section = config["platform"].get("baremetal") or {}
    if section and "MachineAPI" in features.capabilities_of(config):
        check_hosts(config, section, log, errors)
    check_pools(config, profile, errors)
    check_pull_secret_field(config, errors)
    check_proxy(config, errors)
    check_image_sources(config, log, errors)
    check_credentials_mode(config, errors)
    features.capability_names(config, errors)
    check_publish(config, errors)
    features.validate(config, profile, of_version(version), errors)
    errors.check(_REFUSED)
    _check_infrastructure(config)


def _check_infrastructure(config: InstallConfig) -> None:
    section = config["platform"].get("baremetal")
    if not section:
        raise InstallerError(
            f"{_UNFIT}: platform.baremetal is missing: the lab provisions machines by their BMCs alone"
        )
    if "MachineAPI" not in features.capabilities_of(config):
        raise InstallerError(f"{_UNFIT}: IPI requires MachineAPI capability")
    errors = FieldErrors()
    check_bootstrap(config, section, errors)
    check_provisioning_network(config, section, errors)
    errors.check(_UNFIT)
    check_static_bootstrap(section, errors)
    errors.check(_UNFIT)
