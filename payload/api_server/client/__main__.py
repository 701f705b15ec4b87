"""`agent-installer-client registerCluster|registerInfraEnv|configure|importCluster`; everything else comes from the environment."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from ....plugins.module_utils.assisted.registration import ClientError
from ....plugins.module_utils.releases.model import TOKENS
from . import hosts, register
from .rest import Rest, RestError

ADD_NODES = "addnodes"
COMMANDS = ("registerCluster", "registerInfraEnv", "configure", "importCluster")


def run(command: str, environment: Mapping[str, str]) -> None:
    """Run one command; ClientError or RestError when it fails.

    `command` is one of COMMANDS. `environment` has SERVICE_BASE_URL (required), the token (`TOKENS`: its
    variable depends on the release) and the paths of manifests and host configs, whose defaults are those of upstream's image.
    """
    base = environment.get("SERVICE_BASE_URL")
    if not base:
        raise ClientError(
            "environment variable SERVICE_BASE_URL is not set: it should be like http://192.168.111.20:8090/"
        )
    rest = Rest(base, next(filter(None, map(environment.get, TOKENS.values())), ""))
    manifests = Path(environment.get("MANIFESTS_PATH") or "/manifests")
    config = Path(environment.get("CLIENT_CONFIG_PATH") or "/etc/assisted/client_config")
    if command == "registerCluster":
        extra = Path(environment.get("EXTRA_MANIFESTS_PATH") or "/extra-manifests")
        register.register_cluster(rest, manifests, extra, config)
    elif command == "registerInfraEnv":
        register.register_infra_env(rest, manifests, environment)
    elif command == "importCluster":
        register.import_cluster(
            rest, Path(environment.get("CLUSTER_CONFIG_PATH") or "/clusterconfig"), environment, config
        )
    else:
        folder = Path(environment.get("HOST_CONFIG_DIR") or "/etc/assisted/hostconfig")
        failures = Path(environment.get("HOST_CONFIG_FAILURES") or "/var/run/agent-installer/host-config-failures")
        infra_env = register.wait_for_infra_env(rest, environment.get("INFRA_ENV_ID", ""))
        # A host that joins a cluster has a service of its own, and an image with the settings of all that join.
        macs = hosts.own_macs() if environment.get("WORKFLOW_TYPE") == ADD_NODES else None
        hosts.configure(rest, infra_env, folder, failures, macs=macs)


def main(argv: list[str] | None = None) -> int:
    """Run the command that the arguments name; return the exit code.

    0: done. 1: it failed, and the reason was logged. 2: wrong usage.
    """
    arguments = sys.argv[1:] if argv is None else argv
    logging.basicConfig(level=logging.INFO, format="level=%(levelname)s msg=%(message)s", stream=sys.stderr)
    if len(arguments) != 1 or arguments[0] not in COMMANDS:
        print(f"usage: agent-installer-client {'|'.join(COMMANDS)}", file=sys.stderr)
        return 2
    try:
        run(arguments[0], os.environ)
    except (ClientError, RestError) as err:
        logging.error("%s: %s", arguments[0], err)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
