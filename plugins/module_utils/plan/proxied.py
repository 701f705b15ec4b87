"""The proxy of a lab whose machines have no other way out, and what they reach through it."""

from __future__ import annotations

from ..addresses import in_url
from ..vocabulary import REGISTRY
from .model import ProxyService, Services
from .options import Profile

PORT = 3128
"""Of the proxy; squid's usual one."""


def registry(services: Services) -> str | None:
    """Return the name by which machines reach the lab's registry through the proxy; None where they do not."""
    proxy = services.get("proxy")
    return proxy.get("registry") if proxy else None


def url(gateway: str) -> str:
    """Return the address of the proxy. gateway: the first one of the machine network."""
    return f"http://{in_url(gateway)}:{PORT}"


def add(services: Services, profile: Profile, domain: str) -> None:
    """Give the services of a complete profile the proxy, if `network.connection` is `proxied`. domain: of the cluster.

    With the lab payload, the lab's registry is behind the proxy by the name that the pullspecs have, unless the profile has mirrors.
    """
    if profile["network"]["connection"] != "proxied":
        return
    own = url(services["address"])
    made: ProxyService = {"port": PORT, "url": own, "environment": {"HTTPS_PROXY": own, "NO_PROXY": domain}}
    if profile["release"]["payload"] == "lab" and profile["installer"]["image_digest_sources"] is None:
        made["registry"] = REGISTRY
    services["proxy"] = made
