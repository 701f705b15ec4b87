"""Rules for where images come from: the proxy, and mirrors of repositories."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from .. import check, gojson
from ..errors import FieldErrors
from ..models import ImageSource, InstallConfig
from .networks import join_subnet
from .pull_secret import check_pull_secret

if TYPE_CHECKING:
    from ...log import Log

_PUBLISH = ("External", "Internal", "Mixed")


def check_proxy(config: InstallConfig, errors: FieldErrors) -> None:
    """Check the proxies' URLs and noProxy.

    A proxy must not have an address of the cluster's own networks. Without `proxy` there is nothing to check.
    """
    proxy = config.get("proxy")
    if proxy is None:
        return
    if not proxy.get("httpProxy") and not proxy.get("httpsProxy"):
        errors.required("proxy", "must include httpProxy or httpsProxy")
    for field, schemes in (("httpProxy", ("http",)), ("httpsProxy", ("http", "https"))):
        text = proxy.get(field, "")
        if not text:
            continue
        path = f"proxy.{field}"
        why = check.request_uri(text)
        if why:
            errors.invalid(path, text, why)
            continue
        scheme = text.partition(":")[0].lower()
        if scheme not in schemes:
            errors.unsupported(path, scheme, schemes)
        host = re.sub(r".*@", "", text.partition("://")[2]).partition("/")[0]
        ip = check.address(host.strip("[]") if host.startswith("[") else host.partition(":")[0])
        if ip is not None:
            _proxy_address(config, path, text, ip, errors)
    text = proxy.get("noProxy", "")
    if text and text != "*":
        if " " in text:
            errors.invalid("proxy.noProxy", text, "noProxy must not have spaces")
        for index, item in enumerate(part.strip() for part in text.split(",")):
            if (
                check.address(item) is None
                and check.network(item) is None
                and check.domain_name(item.removeprefix("."))
            ):
                errors.invalid(
                    "proxy.noProxy", text,
                    "each element of noProxy must be a IP, CIDR or domain without wildcard characters, which is "
                    f'violated by element {index} "{item}"',
                )  # fmt: skip


def _proxy_address(config: InstallConfig, path: str, text: str, ip: check.Address, errors: FieldErrors) -> None:
    networking = config["networking"]

    def within(nets: Iterable[str]) -> bool:
        return any(net is not None and net.version == ip.version and ip in net for net in map(check.network, nets))

    if within(entry.get("cidr", "") for entry in networking["clusterNetwork"]):
        errors.invalid(path, text, "proxy value is part of the cluster networks")
    if within(networking["serviceNetwork"]):
        errors.invalid(path, text, "proxy value is part of the service networks")
    if join_subnet(networking) and within([join_subnet(networking)]):
        errors.invalid(path, text, "proxy value is part of the ovn-kubernetes IPv4 InternalJoinSubnet")


_HOST = r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*|\[[0-9A-Fa-f:]+\])(?::[0-9]+)?"
_COMPONENT = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_REFERENCE = re.compile(
    rf"(?:(?P<host>{_HOST})/)?{_COMPONENT}(?:/{_COMPONENT})*(?P<tag>:[A-Za-z0-9_][A-Za-z0-9_.-]*)?(?P<digest>@[a-z0-9]+:[0-9a-fA-F]{{32,}})?"
)


def _repository(text: str) -> str | None:
    """Why `text` is not a repository name, or None; a registry's host name alone is one, too."""
    match = _REFERENCE.fullmatch(text)
    if not match:
        lower = _REFERENCE.fullmatch(text.lower())
        named = lower and ("." in text.partition("/")[0] or ":" in text.partition("/")[0])
        return "failed to parse: invalid reference format" + (": repository name must be lowercase" if named else "")
    host = match["host"] or ""
    if "." in host or ":" in host or host == "localhost":
        return "must be repository--not reference" if match["tag"] or match["digest"] else None
    name, separator, port = text.rpartition(":")
    name = name if separator and port.isdigit() else text
    why = None if check.address(name) else check.subdomain(name)
    return f"the repository provided is invalid: {why}" if why else None


def check_image_sources(config: InstallConfig, log: Log, errors: FieldErrors) -> None:
    """Check mirrors of images, and that `publish` is known.

    A mirror without credentials in the pull secret is a warning in `log`, because a registry may need none.
    """
    contents, digests = config.get("imageContentSources"), config.get("imageDigestSources")
    for kind, sources in (("imageContentSources", contents), ("imageDigestSources", digests)):
        for index, entry in enumerate(sources or []):
            path = f"{kind}[{index}]"
            why = _repository(entry.get("source", ""))
            if why:
                errors.invalid(f"{path}.source", entry.get("source", ""), why)
            for number, mirror in enumerate(entry.get("mirrors") or []):
                why = _repository(mirror)
                if why:
                    errors.invalid(f"{path}.mirrors[{number}]", mirror, why)
            policy = entry.get("sourcePolicy", "")
            if policy and not entry.get("mirrors"):
                errors.invalid(f"{path}.sourcePolicy", policy, "sourcePolicy cannot be configured without a mirror")
            if policy and policy not in ("AllowContactingSource", "NeverContactSource"):
                errors.invalid(
                    f"{path}.sourcePolicy", policy,
                    'supported values are "NeverContactSource" and "AllowContactingSource"',
                )  # fmt: skip
    publish = config["publish"]
    if publish not in _PUBLISH:
        errors.unsupported("publish", publish, _PUBLISH)
    if contents and digests:
        # Upstream shows the value of another field.
        errors.invalid(
            "imageContentSources", publish, "cannot set imageContentSources and imageDigestSources at the same time"
        )
    if contents:
        log.warning("imageContentSources is deprecated, please use ImageDigestSources")
    _mirrors_in_pull_secret(config, [*(contents or []), *(digests or [])], log)


def _mirrors_in_pull_secret(config: InstallConfig, sources: list[ImageSource], log: Log) -> None:
    secret = config.get("pullSecret", "")
    if not sources or check_pull_secret(secret):
        return
    auths = next(value for key, value in gojson.loads(secret).items() if key.lower() == "auths")
    known = {host.partition("/")[0] for host in auths}
    for host in dict.fromkeys(mirror.partition("/")[0] for entry in sources for mirror in entry.get("mirrors") or []):
        if host not in known:
            log.warning(f'Mirror registry "{host}" is not found in pullSecret')
