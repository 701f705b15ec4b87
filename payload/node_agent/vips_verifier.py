"""`vips_verifier`: check that the cluster's virtual addresses are not in use."""

from __future__ import annotations

import ipaddress
import socket

from . import fields, network, probes
from .network import Nic
from .program import main as program
from .program import marshal
from .protocol import Result
from .steps import Context, arguments

PORTS = (443, 80)
MOST_VIPS = 32


def in_use(vip: str, nics: list[Nic]) -> bool:
    """Return whether an address answers: on the link to ARP or NDP, elsewhere to an echo request or on a web port."""
    if any(ipaddress.ip_address(vip) == address.ip for nic in nics for address in nic.addresses):
        return True
    on_link = False
    for nic in nics:
        if source := nic.on_link(vip):
            on_link = True
            ask = probes.arp if source.version == 4 else probes.ndp
            if ask(nic.name, nic.mac, str(source.ip), [vip], 2):
                return True
    return not on_link and (
        bool(probes.ping([vip], 2, 1.0, 1.0)[vip].times) or any(answers(vip, port) for port in PORTS)
    )


def answers(address: str, port: int) -> bool:
    try:
        socket.create_connection((address, port), 2).close()
    except ConnectionRefusedError:
        return True
    except OSError:
        return False
    return True


def step(args: list[str], context: Context) -> Result:
    nics = network.outgoing_nics()
    verified = []
    for wanted in arguments("verify-vips", args[0], dict, MOST_VIPS):
        try:
            fields.address("vip", wanted["vip"])
            failed = not context.dry.enabled and in_use(wanted["vip"], nics)
        except (KeyError, ValueError) as error:
            raise ValueError(f"failed to verify vip {wanted}: {error}") from None
        verified.append(
            {
                "vip": wanted["vip"],
                "vip_type": wanted.get("vip_type", ""),
                "verification": "failed" if failed else "succeeded",
            }
        )
    return Result(marshal(verified or None))


def main(argv: list[str] | None = None) -> int:
    return program("vips_verifier", step, argv)


if __name__ == "__main__":
    raise SystemExit(main())
