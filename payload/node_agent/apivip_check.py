"""`apivip_check`: can this host get its Ignition config from the cluster that it joins?"""

from __future__ import annotations

import base64
from typing import Any

from ...plugins.module_utils.bounded import load_json
from . import fields, rest
from .program import dumps, marshal
from .program import main as program
from .protocol import Result
from .steps import Context, argument

SPEC = "3.2.0"
COMPATIBLE = ("3.0.0", "3.1.0", SPEC)
ACCEPT = f"application/vnd.coreos.ignition+json; version={SPEC}"
SHOWN = 512
# The service derives from these whether the cluster manages its network, and the name of its API.
KEPT_FILES = (
    "/etc/kubernetes/manifests/coredns.yaml", "/etc/kubernetes/manifests/keepalived.yaml", "/etc/kubernetes/kubeconfig",
)  # fmt: skip
DOWNLOAD_FAILED = "ignition download error"


def fetch(request: dict[str, Any]) -> str:
    """Return the JSON at the request's URL, as text. ValueError if it cannot be read."""
    headers = {"Accept": ACCEPT}
    if token := request.get("ignition_endpoint_token"):
        headers["Authorization"] = f"Bearer {fields.text('ignition_endpoint_token', token, 65536)}"
    for entry in fields.entries("request_headers", request.get("request_headers"), dict, 100):
        headers[fields.text("request_headers: key", entry.get("key"))] = fields.text(
            "request_headers: value", entry.get("value")
        )
    context = None
    if encoded := request.get("ca_certificate"):
        try:
            context = rest.tls(pem=base64.b64decode(encoded, validate=True).decode())
        except (ValueError, TypeError):
            raise ValueError("ignition endpoint CA certificate is not valid base64") from None
        except OSError as error:
            raise ValueError(f"unable to parse cert: {error}") from None
    answer = rest.send("GET", fields.text("url", request["url"]), headers, context=context, direct=context is not None)
    if answer.status == 0:
        raise ValueError(f"request failed: {answer.error}")
    text = answer.body.decode(errors="replace")
    if not answer.ok:
        raise ValueError(f"bad status code: {answer.status}. server response: {text[:SHOWN]}")
    if not text:
        raise ValueError(f"server responded with status code {answer.status} but the response was empty")
    try:
        load_json(text, name="ignition")
    except ValueError as error:
        what = (
            "response is not valid json"
            if len(text) <= SHOWN
            else f"expected ignition but got non-valid json, first {SHOWN} bytes are"
        )
        raise ValueError(f"{what}:\n{text[:SHOWN]}\nparse error is: {error}") from None
    return text


def checked_config(config: Any) -> dict[str, Any]:
    """Return the config in version SPEC. ValueError if its version is not compatible."""
    if not isinstance(config, dict) or not isinstance(ignition := config.get("ignition"), dict):
        raise ValueError("it has no ignition section")
    if ignition.get("version") not in COMPATIBLE:
        raise ValueError(f"unsupported config version {ignition.get('version')!r}, want one of {', '.join(COMPATIBLE)}")
    for section, lists in (("storage", ("files", "luks")), ("systemd", ("units",))):
        found = config.get(section)
        if not isinstance(found or {}, dict) or any(
            not isinstance((found or {}).get(key) or [], list) for key in lists
        ):
            raise ValueError(f"{section} is not as the specification has it")
    return {**config, "ignition": {**ignition, "version": SPEC}}


def evaluated_parts(config: dict[str, Any]) -> dict[str, Any]:
    """Return the parts that the service evaluates: other files and units of a config are large, and may be secret."""
    storage = config.get("storage") or {}
    files = [
        entry for entry in storage.get("files") or () if isinstance(entry, dict) and entry.get("path") in KEPT_FILES
    ]
    return {**config, "storage": {**storage, "files": files}, "systemd": {**(config.get("systemd") or {}), "units": []}}


def step(args: list[str], context: Context) -> Result:
    def failed(url: str, reason: str, code: int = 0) -> Result:
        return Result(marshal({"url": url, "is_success": False, "download_error": reason}), DOWNLOAD_FAILED, code)

    try:
        request = argument("api-vip-connectivity-check", args[0], "url")
    except ValueError as error:
        return failed("<unknown URL due to internal error>", f"internal error - {error}", -1)
    url = str(request["url"])
    try:
        text = fetch(request)
    except ValueError as error:
        return failed(url, f"ignition file download failed: {error}")
    try:
        return Result(
            marshal(
                {
                    "url": url,
                    "is_success": True,
                    "ignition": dumps(evaluated_parts(checked_config(load_json(text, name="ignition")))),
                }
            )
        )
    except ValueError as error:
        return failed(url, f"response is not a valid ignition file:\n{text[:SHOWN]}\nparse error is: {error}")


def main(argv: list[str] | None = None) -> int:
    return program("apivip_check", step, argv)


if __name__ == "__main__":
    raise SystemExit(main())
