"""The rule of the pull secret."""

from __future__ import annotations

from .. import gojson
from ..errors import quote


def check_pull_secret(text: str) -> str | None:
    """Return why `text` is not a pull secret, or None.

    The reason is the installer's text (`validate.ImagePullSecret`): JSON with `auths`, each with auth or credsStore.
    """
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
