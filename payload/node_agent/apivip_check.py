"""`apivip_check`: can this host get its Ignition config from the cluster that it is to join?"""

from __future__ import annotations

import base64
import json
from typing import Any

from . import rest
from .program import dumps
from .program import main as program
from .protocol import Result
from .steps import Context, argument

ACCEPT = "application/vnd.coreos.ignition+json; version=3.2.0"
SHOWN = 512
# By these the service knows whether the cluster manages its network, and what its API is called.
KEPT_FILES = (
    "/etc/kubernetes/manifests/coredns.yaml", "/etc/kubernetes/manifests/keepalived.yaml", "/etc/kubernetes/kubeconfig",
)  # fmt: skip
DOWNLOAD_FAILED = "ignition download error"


def fetch(request: dict[str, Any]) -> dict[str, Any]:
    """The config at the request's URL. ValueError says why there is none."""
    headers = {"Accept": ACCEPT}
    if token := request.get("ignition_endpoint_token"):
        headers["Authorization"] = f"Bearer {token}"
    headers |= {entry["key"]: entry["value"] for entry in request.get("request_headers") or ()}
    context = None
    if encoded := request.get("ca_certificate"):
        try:
            context = rest.tls(pem=base64.b64decode(encoded, validate=True).decode())
        except ValueError:
            raise ValueError("ignition endpoint CA certificate is not valid base64") from None
        except OSError as error:
            raise ValueError(f"unable to parse cert: {error}") from None
    answer = rest.send("GET", request["url"], headers, context=context)
    if answer.status == 0:
        raise ValueError(f"request failed: {answer.error}")
    text = answer.body.decode(errors="replace")
    if not answer.ok:
        raise ValueError(f"bad status code: {answer.status}. server response: {text[:SHOWN]}")
    if not text:
        raise ValueError(f"server responded with status code {answer.status} but the response was empty")
    try:
        config = json.loads(text)
    except ValueError as error:
        raise ValueError(f"expected ignition but got non-valid json, first {SHOWN} bytes are:\n{text[:SHOWN]}\n{error}") from None
    if not isinstance(config, dict) or not config.get("ignition", {}).get("version"):
        raise ValueError(f"response is not a valid ignition file:\n{text[:SHOWN]}")
    return config


def filtered(config: dict[str, Any]) -> dict[str, Any]:
    """What the service looks at: a config's other files and its units are large, and may be secret."""
    storage = config.get("storage") or {}
    files = [entry for entry in storage.get("files") or () if entry.get("path") in KEPT_FILES]
    return {**config, "storage": {**storage, "files": files}, "systemd": {**(config.get("systemd") or {}), "units": []}}


def step(args: list[str], context: Context) -> Result:
    request = argument("api-vip-connectivity-check", args[0], "url")
    answer: dict[str, Any] = {"url": request["url"], "is_success": True, "ignition": "", "download_error": ""}
    try:
        answer["ignition"] = dumps(filtered(fetch(request)))
    except ValueError as error:
        return Result(dumps(answer | {"is_success": False, "download_error": str(error)}), DOWNLOAD_FAILED)
    return Result(dumps(answer))


def main(argv: list[str] | None = None) -> int:
    return program("apivip_check", step, argv)


if __name__ == "__main__":
    raise SystemExit(main())
