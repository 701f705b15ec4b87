"""What the installer would refuse in its input files, before there is a directory, a release image or a payload."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ..log import Log
from ..releases import by_name
from . import agent_config, install_config, ipi
from .build import Build, Options
from .errors import InstallerError
from .inputs import load_agent_config, load_install_config
from .manifests.agent_cluster_install import agent_cluster_install, check_agent_cluster_install
from .manifests.infra_env import nmstate_configs
from .models import AgentConfig, InstallConfig
from .network import static_files
from .store import Store

# No files of the user are there.
_NOWHERE = Path("/nonexistent")
_UNREAD = "the release image is not read"


class RefusedField(NamedTuple):
    """One thing that is refused: the file that has it, and the text, which begins with the field if it is about one."""

    file: str
    text: str


def agent(texts: dict[str, str], profile: str, version: str) -> Iterator[RefusedField]:
    """Yield what `agent create` would refuse in install-config.yaml and agent-config.yaml.

    texts: of the two files, by name; profile, version: of the release, whose image is not read. One file is right before the
    next one is checked.
    """
    log = _silent()
    options = Options(_NOWHERE, _NOWHERE, _NOWHERE, _UNREAD, version, profile)
    build = Build(options, log, Store((), _NOWHERE, log))
    # No request is sent over the network: what depends on the content of the image is left to the installer.
    build.release_facts = {"error": _UNREAD}
    file = install_config.FILENAME
    try:
        config = load_install_config(build, {file: texts[file].encode()})
        file = agent_config.FILENAME
        found: AgentConfig = load_agent_config(build, {file: texts[file].encode()})["Config"]
        _check_both(build, config, found)
    except InstallerError as error:
        yield from (RefusedField(file, text) for text in error.fields or [str(error)])


def _check_both(build: Build, config: InstallConfig, found: AgentConfig) -> None:
    hosts = agent_config.hosts_of(found, config, build.profile, build.log)
    agent_config.check_host_counts(hosts, install_config.replicas(config), build.log)
    states = nmstate_configs(config, hosts, build.profile)
    agent_config.rendezvous_ip(found, hosts, states)
    static_files([state["spec"] for state in states])
    manifest = agent_cluster_install(config, found, hosts, build.version, build.profile)
    check_agent_cluster_install(manifest, build.profile)


def refused_fields(text: str, profile: str, version: str) -> Iterator[RefusedField]:
    """Yield what `create cluster` would refuse in install-config.yaml. profile, version: of the release."""
    try:
        ipi.validate(text, by_name(profile), version, _silent())
    except InstallerError as error:
        yield from (RefusedField(install_config.FILENAME, one) for one in error.fields or [str(error)])


def _silent() -> Log:
    return Log(None, "fatal", emit=lambda _line: None)
