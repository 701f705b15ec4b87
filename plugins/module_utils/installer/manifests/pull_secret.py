"""The Secret that holds the pull secret."""

from __future__ import annotations

from ...releases import ReleaseProfile
from .. import gojson
from ..errors import FieldErrors
from ..models import InstallConfig, Manifest
from ..rules.pull_secret import check_pull_secret
from ..schema import decode_file
from . import shapes
from .meta import DIRECTORY, metadata, names


def _normal(text: str) -> str:
    """A pull secret in the form in which it can be found, and hidden, in other files."""
    return gojson.dumps(gojson.loads(text), indent=True)


def pull_secret(install_config: InstallConfig, profile: ReleaseProfile) -> Manifest:
    """The Secret that holds the pull secret, in normal form.

    Its name is the cluster's with `-pull-secret`; the secret is in stringData under `.dockerconfigjson`.
    """
    cluster, namespace = names(install_config)
    return {
        "apiVersion": "v1", "kind": "Secret", "metadata": metadata(f"{cluster}-pull-secret", namespace, profile),
        "stringData": {".dockerconfigjson": _normal(install_config["pullSecret"])},
    }  # fmt: skip


def load_pull_secret(text: str, profile: ReleaseProfile) -> Manifest:
    """Read pull-secret.yaml; only stringData counts, and its JSON comes out in normal form.

    Raises `InstallerError` when `.dockerconfigjson` is absent or not a pull secret; its text never shows the value.
    """
    secret: Manifest = decode_file(text, f"{DIRECTORY}/pull-secret.yaml", shapes.SECRET)
    errors = FieldErrors()
    data = secret.get("stringData") or {}
    if not data:
        errors.required("stringData", "the pull secret is empty")
    elif ".dockerconfigjson" not in data:
        errors.required("stringData", "the pull secret key '.dockerconfigjson' is not defined")
    elif not data[".dockerconfigjson"]:
        errors.required("stringData", "the pull secret does not contain any data")
    else:
        why = check_pull_secret(data[".dockerconfigjson"])
        if why:
            errors.invalid("stringData", "<hidden>", why)
    errors.check("invalid PullSecret configuration")
    data[".dockerconfigjson"] = _normal(data[".dockerconfigjson"])
    if profile.creation_timestamp:
        secret.setdefault("metadata", {}).setdefault("creationTimestamp", None)
    return secret
