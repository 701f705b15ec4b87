"""The types of the load balancer of a plan; see `model`, and `balancers` for which cluster has one."""

from __future__ import annotations

from typing import Annotated, TypedDict

from .fields import File, Ip, Label, Name, Port


class Backend(TypedDict):
    """A node behind the load balancer."""

    name: Label
    """Its name."""
    ip: Ip
    """Its address."""


class Frontend(TypedDict):
    """A port of the load balancer."""

    name: Name
    """What is served: `api`, `machine-config`, `ingress`, `ingress-http`."""
    port: Port
    """The port, here and on the nodes."""
    health: Annotated[str, "http"] | None
    """Path that a node which serves answers over HTTPS; null: it accepts a connection."""
    backends: list[Backend]
    """The nodes that may serve it; those that do are found by their health."""


class _Balancer(TypedDict):
    addresses: list[Ip]
    """Where it listens."""
    frontends: list[Frontend]
    """Its ports."""
    stats: File
    """Socket at which it reports its nodes, on the hypervisor or on its machine."""


class Balancer(_Balancer, total=False):
    """The load balancer (haproxy)."""

    machine: Label | None
    """Name of the machine outside of the cluster that it is; null, or not given: it is a service of the sandbox."""
