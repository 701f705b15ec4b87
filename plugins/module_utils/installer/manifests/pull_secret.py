"""The Secret that holds the pull secret."""

from __future__ import annotations

from typing import Any

from ...releases import ReleaseProfile
from .. import gojson, shapes
from ..errors import FieldErrors, quote
from ..schema import decode_file
from .meta import DIRECTORY, metadata, names


def check_pull_secret(text: str) -> str | None:
    """Return why `text` is not a pull secret, or None."""
    try:
        secret = gojson.loads(text)
    except gojson.JsonError as error:
        return str(error)
    if not isinstance(secret, dict | None):
        return f"json: cannot unmarshal {gojson.kind(secret)} into Go value of type validate.imagePullSecret"
    auths = next((value for key, value in (secret or {}).items() if key.lower() == "auths"), None)
    into = "into Go struct field imagePullSecret.auths of type map[string]"
    if not isinstance(auths, dict | None):
        return f"json: cannot unmarshal {gojson.kind(auths)} {into}map[string]interface {{}}"
    wrong = next((entry for entry in (auths or {}).values() if not isinstance(entry, dict | None)), None)
    if wrong is not None:
        return f"json: cannot unmarshal {gojson.kind(wrong)} {into}interface {{}}"
    if not auths:
        return "auths required"
    bad = [
        f"{quote(host)} requires either auth or credsStore"
        for host, entry in auths.items()
        if not {"auth", "credsStore"} & (entry or {}).keys()
    ]
    return bad[0] if len(bad) == 1 else f"[{', '.join(bad)}]" if bad else None


def _normal(text: str) -> str:
    """A pull secret in the form in which it can be found, and hidden, in other files."""
    return gojson.dumps(gojson.loads(text), indent=True)


def pull_secret(install_config: dict[str, Any], profile: ReleaseProfile) -> dict[str, Any]:
    """The Secret that holds the pull secret, in normal form."""
    cluster, namespace = names(install_config)
    return {
        "apiVersion": "v1", "kind": "Secret", "metadata": metadata(f"{cluster}-pull-secret", namespace, profile),
        "stringData": {".dockerconfigjson": _normal(install_config["pullSecret"])},
    }  # fmt: skip


def load_pull_secret(text: str, profile: ReleaseProfile) -> dict[str, Any]:
    """Read pull-secret.yaml; only stringData counts, and its JSON comes out in normal form."""
    secret: dict[str, Any] = decode_file(text, f"{DIRECTORY}/pull-secret.yaml", shapes.SECRET)
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
