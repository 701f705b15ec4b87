"""The proxy of a lab whose machines have no other way out, and what they reach through it."""

from __future__ import annotations

from ..addresses import in_url
from ..vocabulary import REGISTRY
from .model import Plan, ProxyService, Services
from .options import Profile

PORT = 3128
"""Of the proxy; squid's usual one."""


def registry(plan: Plan) -> str | None:
    """Return the name by which machines reach the lab's registry through the proxy; None where they do not."""
    proxy = plan["services"].get("proxy")
    return proxy.get("registry") if proxy else None


def add(services: Services, profile: Profile) -> None:
    """Give the services of a complete profile the proxy, if `network.connection` is `proxied`.

    With the lab payload, the lab's registry is behind the proxy by the name that the pullspecs have, unless the profile has mirrors.
    """
    if profile["network"]["connection"] != "proxied":
        return
    made: ProxyService = {"port": PORT, "url": f"http://{in_url(services['address'])}:{PORT}"}
    if profile["release"]["payload"] == "lab" and profile["installer"]["image_digest_sources"] is None:
        made["registry"] = REGISTRY
    services["proxy"] = made
