"""Configuration of the service: environment, settings of clusters, and upstream's defaults.

Source of names and defaults: the environment variables of assisted-service.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from ...plugins.module_utils.documents import load_json
from ...plugins.module_utils.releases import OLDEST, RELEASES, ReleaseProfile, UnknownRelease, by_name, by_version
from ...plugins.module_utils.releases.model import PROFILE_VARIABLE
from .hardware import Requirement

#: Longest duration of a setting, in seconds.
LONGEST = 100 * 365 * 86400.0
UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}

#: Name of a setting -> upstream's default. Intervals are Go durations or plain seconds.
DEFAULTS: dict[str, str] = {
    "AGENT_NEXT_INSTRUCTION_SECONDS": "60",
    "STEP_REPEAT_SECONDS": "0",  # ours: upstream repeats every check at each poll
    "HOST_MONITOR_INTERVAL": "8s",
    "CLUSTER_MONITOR_INTERVAL": "10s",
    "REBOOT_DELAY_SECONDS": "60",
    "HOST_MAX_DISCONNECTION_TIME": "3m",
    "HOST_INSTALLING_TIMEOUT": "20m",
    "HOST_STAGE_STARTING_INSTALLATION_TIMEOUT": "30m",
    "HOST_STAGE_INSTALLING_TIMEOUT": "60m",
    "HOST_STAGE_WRITING_IMAGE_TO_DISK_TIMEOUT": "30m",
    "HOST_STAGE_COPYING_REGISTRY_DATA_TO_DISK_TIMEOUT": "90m",
    "HOST_STAGE_WAITING_FOR_CONTROL_PLANE_TIMEOUT": "60m",
    "HOST_STAGE_WAITING_FOR_BOOTKUBE_TIMEOUT": "60m",
    "HOST_STAGE_WAITING_FOR_CONTROLLER_TIMEOUT": "60m",
    "HOST_STAGE_REBOOTING_TIMEOUT": "40m",
    "HOST_STAGE_REBOOTING_SNO_TIMEOUT": "80m",
    "HOST_STAGE_WAITING_FOR_IGNITION_TIMEOUT": "24h",
    "HOST_STAGE_CONFIGURING_TIMEOUT": "60m",
    "HOST_STAGE_JOINED_TIMEOUT": "60m",
    "HOST_STAGE_OTHER_TIMEOUT": "60m",
    "PREPARE_FOR_INSTALLATION_HOST_TIMEOUT": "8m",
    "PREPARE_FOR_INSTALLATION_TIMEOUT": "10m",
    "HOST_INSTALLING_PENDING_USER_ACTION_TIMEOUT": "60m",
    "HOST_LOG_COLLECTION_TIMEOUT": "10m",
    "HOST_LOG_PENDING_TIMEOUT": "2m",
    "CLUSTER_LOG_COLLECTION_TIMEOUT": "60m",
    "CLUSTER_LOG_PENDING_TIMEOUT": "10m",
    "INSTALLATION_TIMEOUT": "24h",
    "FINALIZING_TIMEOUT": "5h",
    "FINALIZING_STAGE_WAITING_FOR_CLUSTER_OPERATORS_TIMEOUT": "10h",
    "FINALIZING_STAGE_ADDING_ROUTER_CA_TIMEOUT": "70m",
    "FINALIZING_STAGE_APPLYING_OLM_MANIFESTS_TIMEOUT": "10m",
    "FINALIZING_STAGE_WAITING_FOR_OLM_OPERATORS_CSV_INITIALIZATION_TIMEOUT": "70m",
    "FINALIZING_STAGE_WAITING_FOR_OLM_OPERATORS_CSV_TIMEOUT": "70m",
    "FINALIZING_STAGE_WAITING_FOR_OLM_OPERATOR_SETUP_JOBS_TIMEOUT": "10m",
    "FINALIZING_STAGE_DONE_TIMEOUT": "70m",
    "ENABLE_IMAGE_SERVICE": "true",
    "ENABLE_SOFT_TIMEOUTS": "false",
    "ENABLE_UPGRADE_AGENT": "true",
    "ENABLE_SINGLE_NODE_DNSMASQ": "false",
    "ENABLE_VIRTUAL_INTERFACES": "false",
    "CHECK_CLUSTER_VERSION": "false",
    "DISABLED_STEPS": "",
    "DUMMY_IGNITION": "false",
    "DISK_CHECK_TIMEOUT": "8m",
    "IMAGE_AVAILABILITY_TIMEOUT": "16m",
    "CONNECTIVITY_CHECKS_PER_MINUTE": "150",
    "NTP_DEFAULT_SERVER": "",
}

#: Images that upstream's service names when its environment names none.
IMAGES: dict[str, str] = {
    "AGENT_DOCKER_IMAGE": "quay.io/edge-infrastructure/assisted-installer-agent:latest",
    "INSTALLER_IMAGE": "quay.io/edge-infrastructure/assisted-installer:latest",
    "CONTROLLER_IMAGE": "quay.io/edge-infrastructure/assisted-installer-controller:latest",
    "SERVICE_IMAGE": "Unknown",
}

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")


def seconds(text: str) -> float:
    """Return a Go duration (``1h30m``, ``8s``) or plain seconds, in seconds.

    Units are h, m, s and ms, in any order; no sign. ValueError names the text if it is something else or longer than
    LONGEST. Spaces around it are ignored.
    """
    text = text.strip()
    if re.fullmatch(r"\d+(\.\d+)?", text):
        return _bounded(float(text), text)
    if not re.fullmatch(rf"(?:{_DURATION.pattern})+", text):
        raise ValueError(f"{text!r} is not a duration: write it like 90m, 1h30m, 8s or plain seconds")
    return _bounded(sum(float(number) * UNITS[unit] for number, unit in _DURATION.findall(text)), text)


def _bounded(value: float, text: str) -> float:
    if value > LONGEST:
        raise ValueError(f"{text[:80]!r} is longer than {LONGEST / 86400 / 365:.0f} years")
    return value


#: Minimum resources per role (`data/default_hw_requirements.json` of upstream); CPUs of `sno` depend on the release.
DEFAULT_REQUIREMENTS: list[dict[str, Any]] = [
    {
        "version": "default",
        "master": {
            "cpu_cores": 4,
            "ram_mib": 16384,
            "disk_size_gb": 100,
            "installation_disk_speed_threshold_ms": 10,
            "network_latency_threshold_ms": 100,
            "packet_loss_percentage": 0,
        },
        "arbiter": {
            "cpu_cores": 2,
            "ram_mib": 8192,
            "disk_size_gb": 50,
            "installation_disk_speed_threshold_ms": 10,
            "network_latency_threshold_ms": 1000,
            "packet_loss_percentage": 0,
        },
        "worker": {
            "cpu_cores": 2,
            "ram_mib": 8192,
            "disk_size_gb": 100,
            "installation_disk_speed_threshold_ms": 10,
            "network_latency_threshold_ms": 1000,
            "packet_loss_percentage": 10,
        },
        "sno": {
            "cpu_cores": OLDEST.sno_cpu_cores,
            "ram_mib": 16384,
            "disk_size_gb": 100,
            "installation_disk_speed_threshold_ms": 10,
        },
    },
    *(
        {"version": release.name, "match_type": "min_version", "sno": {"cpu_cores": release.sno_cpu_cores}}
        for before, release in pairwise(RELEASES.values())
        if release.sno_cpu_cores != before.sno_cpu_cores
    ),
]


def _release(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version.split("-", 1)[0])[:2])


def requirements_for(table: list[dict[str, Any]], version: str) -> dict[str, Requirement]:
    """Return thresholds per role for an OpenShift version: the default entry, overridden by every matching entry.

    An entry matches a version with the same beginning (`4.16` matches `4.16.3`), or with `match_type` `min_version` all
    from that version on. Values that are null override nothing. An empty version gets the default.
    """
    merged: dict[str, Any] = {}
    for entry in table:
        name = str(entry.get("version", "default"))
        if name != "default":
            if not version:
                continue
            if entry.get("match_type") == "min_version":
                if _release(version) < _release(name):
                    continue
            elif not (version == name or version.startswith((name + ".", name + "-"))):
                continue
        for role, values in entry.items():
            if isinstance(values, dict):
                merged[role] = {**merged.get(role, {}), **{k: v for k, v in values.items() if v is not None}}
    return merged


@dataclass(frozen=True)
class Config:
    """The service's environment, parsed once. Errors name the variable and its valid values.

    `env` are the variables of assisted-service, by which the agent-based installer configures it. `data_dir` has what
    the service reads and writes, `state_file` its database. Call `check` before use; the errors are ValueError.
    """

    env: Mapping[str, str] = field(default_factory=dict)
    data_dir: Path = Path("/data")
    state_file: Path = Path("/data/assisted.sqlite")
    #: Whether the service ends when the rendezvous host reboots.
    exit_on_reboot: bool = False

    def get(self, name: str, default: str = "") -> str:
        """A variable of the environment; empty counts as unset."""
        return self.env.get(name) or default

    def image(self, name: str) -> str:
        """The image that a variable of IMAGES names.

        `name` is a key of IMAGES (KeyError otherwise); upstream's default applies if it is unset or empty.
        """
        return self.get(name, IMAGES[name])

    def _json(self, name: str, default: Any) -> Any:
        text = self.get(name)
        if not text:
            return default
        try:
            return load_json(text, name=name)
        except ValueError as err:
            raise ValueError(f"environment variable {name} is not JSON: {err}") from None

    @property
    def auth_type(self) -> str:
        """How requests are authenticated: `none` or `agent-installer-local`, from AUTH_TYPE."""
        return self.get("AUTH_TYPE", "none")

    @property
    def abi(self) -> bool:
        """Return whether the agent-based installer runs this service."""
        return self.get("INSTALL_INVOKER") == "agent-installer"

    @property
    def release(self) -> ReleaseProfile:
        """The release that this service is part of: the one that the installer followed, or else that of the release image.

        Only the lab's installer names it (AGENTLAB_RELEASE_PROFILE), and only if it is not that of the release image. Without
        either, it is the newest. ValueError if there is no such release.
        """
        name = self.get(PROFILE_VARIABLE)
        if name:
            try:
                return by_name(name)
            except UnknownRelease as err:
                raise ValueError(f"environment variable {PROFILE_VARIABLE}: {err}") from None
        return by_version(next((str(image.get("version")) for image in self.release_images()), ""))

    @property
    def one_token(self) -> bool:
        """Return whether agents and users have the same token, as the agent-based installer gives them in some releases."""
        return self.abi and self.release.auth == "infra-env"

    def setting(self, name: str, cluster: Mapping[str, str] | None = None) -> str:
        """Value of a setting: environment, then the cluster's ConfigMap, then upstream's default.

        `name` is a key of DEFAULTS (KeyError otherwise). `cluster` is what `Index.settings` returns. An empty text in
        the environment or the ConfigMap counts as unset.
        """
        return self.env.get(name) or (cluster or {}).get(name) or DEFAULTS[name]

    def duration(self, name: str, cluster: Mapping[str, str] | None = None) -> float:
        """A setting as seconds; an invalid value of a cluster counts as unset, so that no upload can stop the service."""
        try:
            return seconds(self.setting(name, cluster))
        except ValueError:
            return seconds(DEFAULTS[name])

    def number(self, name: str, cluster: Mapping[str, str] | None = None) -> int:
        """A setting as an integer; an invalid value of a cluster counts as unset."""
        text = self.setting(name, cluster)
        return int(text) if re.fullmatch(r"[0-9]{1,9}", text) else int(DEFAULTS[name])

    def flag(self, name: str, cluster: Mapping[str, str] | None = None) -> bool:
        """Return whether a setting is on: `1`, `true` or `yes` in any case; everything else is off."""
        return self.setting(name, cluster).lower() in ("1", "true", "yes")

    def requirements(self) -> list[dict[str, Any]]:
        """Return HW_VALIDATOR_REQUIREMENTS, or DEFAULT_REQUIREMENTS without it, and the entries of the payload, which override it.

        The lab's image has PAYLOAD_HW_REQUIREMENTS: an openshift-install that does not read the thresholds of its release
        passes upstream's, which no machine of a lab meets. See `requirements_for`. ValueError names the variable if it is
        not a JSON list of objects. Roles and thresholds are not validated.
        """
        found: list[dict[str, Any]] = []
        for name, default in (("HW_VALIDATOR_REQUIREMENTS", DEFAULT_REQUIREMENTS), ("PAYLOAD_HW_REQUIREMENTS", [])):
            table = self._json(name, default)
            if not isinstance(table, list) or not all(isinstance(entry, dict) for entry in table):
                raise ValueError(f"environment variable {name} should hold a JSON list of objects")
            found += table
        return found

    def release_images(self) -> list[dict[str, Any]]:
        return list(self._json("RELEASE_IMAGES", []))

    def os_images(self) -> list[dict[str, Any]]:
        return list(self._json("OS_IMAGES", []))

    def check(self) -> Config:
        """Parse everything once, so that an invalid variable stops the service at start and not later.

        Call it once; it returns the configuration itself. ValueError names the variable, its value and what would be
        valid: JSON variables, durations, numbers and AUTH_TYPE.
        """
        self.requirements(), self.release, self.os_images()
        for name, default in DEFAULTS.items():
            if name.endswith(("TIMEOUT", "INTERVAL", "TIME", "SECONDS")) and default:
                try:
                    seconds(self.setting(name))
                except ValueError as err:
                    raise ValueError(f"environment variable {name}: {err}") from None
            if name.endswith("_PER_MINUTE") and not re.fullmatch(r"[0-9]{1,9}", self.setting(name)):
                raise ValueError(f"environment variable {name}: {self.setting(name)[:80]!r} is not a number")
        if self.auth_type not in ("none", "agent-installer-local"):
            raise ValueError(f"environment variable AUTH_TYPE is {self.auth_type!r}: none or agent-installer-local")
        return self
