"""From what a failed run left to a profile that shows the failure again.

The best source wins: the profile of a run of agentlab, a configuration of dev-scripts, install-config and agent-config, the manifests
of an agent image. The first
cause is that of the run page or of the recording, or the last failed validation or error in the installer's log; it suggests faults.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..devscripts import importer
from ..documents import DocumentError, load_json, load_yaml, load_yaml_all
from ..plan import profile, rundir
from ..redact import redact
from ..state.recording import PROFILE, Player, at_the_end, load
from ..vocabulary import RunFile
from . import manifests, shape, suspects
from .evidence import EvidenceError, File, collect

__all__ = ["EvidenceError", "Reproduction", "reproduce"]

_FAILED = re.compile(
    r"level=(?:warning|error|fatal) .*?msg=\"?(?P<text>Host \S+ validation: [^\"]+|.*(?:fails a validation|Failed - |timeout while|"
    r"is error).*?)\"?$"
)
_TEXTS = ("log", "config", "recording", "events", "rendezvous", "nmstate")
_LINE = 4096  # of a longer line the beginning counts
_INSTALLED = "To access the cluster as the system:admin user"  # the line of `wait-for install-complete`
_VERSION = re.compile(r"OpenShift Installer (?:v)?(\d+\.\d+\.\d+[\w.-]*)|Built from commit (\w+)")


class Reproduction(NamedTuple):
    """A profile for a run that others made.

    raw: the profile, with faults that its first cause suggests. cluster: name of the run's cluster, empty if unknown. cause: its
    first cause. source: kind of the evidence that the profile is from. lock: what belongs to it in addition:
    digests of the evidence, versions, pullspecs. unknown: what could not be determined or taken, a sentence each.
    """

    raw: dict[str, Any]
    cluster: str
    cause: str
    source: str
    lock: dict[str, Any]
    unknown: list[str]

    def text(self) -> str:
        """Return the profile as YAML, with comments for its origin and for what is unknown.

        Comments have no secrets; the profile itself was validated by the caller, or not.
        """
        lines = [f"# From {self.source} of a run" + (f" of cluster {self.cluster}." if self.cluster else ".")]
        lines += [f"# First cause: {self.cause}"] if self.cause else []
        lines += [f"# Unknown: {line}" for line in self.unknown]
        return "\n".join(redact(line) for line in lines) + "\n" + rundir.dump(self.raw)


def reproduce(path: Path) -> Reproduction:
    """Return the profile for what a run left in a directory or an archive. Raises `EvidenceError`.

    path: a run directory, artifacts of a job, a directory of openshift-install, or an archive of these. Nothing is
    unpacked or changed. That is also the error for evidence that has no configuration at all; what is missing besides
    is in `unknown`.
    """
    found = collect(path)
    documents = {kind: _document(kind, file) for kind, file in found.items() if kind not in _TEXTS}
    unknown: list[str] = []
    played = _played(found.get("recording"), unknown)
    raw, cluster, names, source, more = _profile(found, documents, played)
    unknown += more
    log = found["log"].data.decode(errors="replace") if "log" in found else ""
    cause = _cause(documents.get("run"), played, log)
    suspect = suspects.suspect_of(cause, names) if cause else None
    if not cause:
        unknown.append("the first cause: neither a run page nor the installer's log of a failure names one")
    elif suspect is None and not raw.get("faults"):
        unknown.append("a fault: the first cause suggests none")
    if suspect is not None and not raw.get("faults"):
        if suspect.faults:
            raw["faults"] = suspect.faults
        if suspect.fields:
            raw["nodes"] = profile.merge(raw.get("nodes") or {}, suspect.fields)
    return Reproduction(raw, cluster, cause, source, _lock(found, documents, log, cause), unknown)


def _document(kind: str, file: File) -> Any:
    load = load_json if kind in ("run", "state", "prowjob") else load_yaml
    try:
        found = load(file.data, name=file.name)
    except DocumentError as error:
        raise EvidenceError(str(error)) from None
    if not isinstance(found, dict):
        raise EvidenceError(f"{file.name}: must be a mapping")
    return found


def _played(file: File | None, unknown: list[str]) -> Player | None:
    """The recording of a run, played to its end; what is wrong with it is added to `unknown`."""
    if file is None:
        return None
    try:
        player = at_the_end(load(file.data, file.name))
    except ValueError as error:
        unknown.append(str(error))
        return None
    unknown += player.notes
    return player


def _profile(
    found: Mapping[str, File], documents: Mapping[str, Any], played: Player | None
) -> tuple[dict[str, Any], str, dict[str, str], str, list[str]]:
    """The profile, the name of the cluster, its host names and the lab's, the kind of source, and what is unknown."""
    cluster = str(((documents.get("run") or {}).get("verdict") or {}).get("cluster") or "")
    install, agent = _configs(documents)
    if "profile" in documents:
        plan = documents.get("plan") or {}
        nodes = [str(node.get("name")) for node in plan.get("nodes") or () if isinstance(node, dict)]
        return dict(documents["profile"]), cluster, {name: name for name in nodes}, "the profile", []
    text = _config(found, documents)
    if text:
        made = importer.read([text], {"HOME": "~", "USER": "root"}, partial=True)
        unknown = [f"DEVSCRIPTS_CONFIG: {refusal}" for refusal in made.refused]
        names = shape.derive(install, agent).names if install else {}
        return dict(made.raw), made.options.get("cluster", cluster), names, "a configuration of dev-scripts", unknown
    if install:
        derived = shape.derive(install, agent)
        unknown = derived.unknown + ([] if agent else ["agent-config.yaml: the hosts' names, MACs and addresses"])
        return derived.raw, derived.cluster or cluster, derived.names, RunFile.INSTALL_CONFIG, unknown
    if "agent-cluster-install" in documents:
        derived = shape.derive(*_of_image(found, documents))
        unknown = [*derived.unknown, "the hosts' names and roles: manifests of an image do not have them"]
        return derived.raw, derived.cluster or cluster, derived.names, "the manifests of an agent image", unknown
    recorded = played.get("lab", PROFILE) if played else None
    if recorded and isinstance(recorded.body, dict):
        return dict(recorded.body), cluster, {}, "the recording", []
    raise EvidenceError(
        f"{next(iter(found.values())).name}: no profile can be made: there is neither a profile, nor a configuration of "
        "dev-scripts, nor an install-config.yaml, the installer's state or the manifests of an agent image"
    )


def _configs(documents: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Content of install-config.yaml and agent-config.yaml: the files, else what the installer's state has of them."""
    pair = []
    for kind, suffix in (("install-config", "InstallConfig"), ("agent-config", "AgentConfig")):
        value = documents.get(kind)
        for name, asset in (documents.get("state") or {}).items() if value is None else ():
            config = (asset.get("Config") or asset.get("config")) if isinstance(asset, dict) else None
            if name.endswith((f".{suffix}", f".Optional{suffix}")):
                value = config if isinstance(config, dict) else value
        pair.append(value or {})
    return pair[0], pair[1]


def _of_image(found: Mapping[str, File], documents: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Content of install-config.yaml and agent-config.yaml as the manifests of an agent image have it."""
    hosts: list[Any] = []
    if "nmstate" in found:
        try:
            hosts = load_yaml_all(found["nmstate"].data, name=found["nmstate"].name)
        except DocumentError as error:
            raise EvidenceError(str(error)) from None
    environment = found["rendezvous"].data.decode(errors="replace") if "rendezvous" in found else ""
    install = manifests.install_config(documents["agent-cluster-install"], documents.get("cluster-deployment") or {})
    return install, manifests.agent_config((host for host in hosts if isinstance(host, dict)), environment)


def _config(found: Mapping[str, File], documents: Mapping[str, object]) -> tuple[str, str] | None:
    """(name, text) of a configuration of dev-scripts: a file, or DEVSCRIPTS_CONFIG in the environment of a CI job."""
    if "config" in found:
        return found["config"].name, found["config"].data.decode(errors="replace")
    pending = [documents.get("prowjob")]
    while pending:
        value = pending.pop()
        if isinstance(value, list):
            pending += value
        elif isinstance(value, dict):
            if value.get("name") == "DEVSCRIPTS_CONFIG" and isinstance(value.get("value"), str):
                return found["prowjob"].name, value["value"]
            if isinstance(value.get("DEVSCRIPTS_CONFIG"), str):
                return found["prowjob"].name, value["DEVSCRIPTS_CONFIG"]
            pending += value.values()
    return None


def _cause(run: Mapping[str, Any] | None, played: Player | None, log: str) -> str:
    verdict = (run or {}).get("verdict") or {}
    if verdict.get("result") == "installed" or _INSTALLED in log:
        return ""
    for cause in verdict.get("causes") or ():
        text = cause.get("text") if isinstance(cause, dict) else cause
        if isinstance(text, str) and text:
            return text
    if played and (recorded := played.causes()):
        return recorded[0][0]
    failed = [match["text"] for line in log.splitlines() if (match := _FAILED.search(line[:_LINE]))]
    return failed[-1].strip() if failed else ""


def _lock(found: Mapping[str, File], documents: Mapping[str, Any], log: str, cause: str) -> dict[str, Any]:
    verdict = (documents.get("run") or {}).get("verdict") or {}
    versions = [match[1] or match[2] for match in _VERSION.finditer(log)]
    return {
        "evidence": {file.name: hashlib.sha256(file.data).hexdigest() for file in found.values()},
        "first_cause": redact(cause),
        "program": verdict.get("program"),
        "payload": verdict.get("payload"),
        "installer": versions[0] if versions else None,
    }
