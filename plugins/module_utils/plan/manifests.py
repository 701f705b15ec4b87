"""Extra manifests: objects of the API that a profile adds to an installation. `files` reads those of a folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..vocabulary import SETTINGS_MANIFEST
from .options import Profile
from .problems import Finding

FOLDER = "openshift"
"""Where the installer looks for extra manifests, below its directory."""
TAKEN = (SETTINGS_MANIFEST, "install-config", "agent-config")
"""Names of other input files, of which the run directory keeps copies in one folder."""
_EXAMPLE = "{apiVersion: machineconfiguration.openshift.io/v1, kind: MachineConfig, metadata: {name: 50-chrony}}"


def check(profile: Profile, _cluster: str) -> Iterator[Finding]:
    """Yield what is wrong with the manifests that a profile has itself."""
    for name, manifest in profile["installer"]["manifests"].items():
        path = ("installer", "manifests", name)
        if name in TAKEN:
            yield path, None, "is the name of another input file; choose another one"
        elif field := missing_field(manifest):
            yield path, None, f"has no {field}: a manifest is an object, such as {_EXAMPLE}"


def missing_field(manifest: object) -> str:
    """Return the field that an object of the API must have and this one lacks, or nothing: such as `metadata.name`."""
    if not isinstance(manifest, Mapping):
        return "apiVersion"
    for field in ("apiVersion", "kind"):
        if not (isinstance(manifest.get(field), str) and manifest[field]):
            return field
    metadata = manifest.get("metadata")
    named = isinstance(metadata, Mapping) and isinstance(metadata.get("name"), str) and metadata["name"]
    return "" if named or manifest["kind"].endswith("List") else "metadata.name"
