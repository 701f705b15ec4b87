"""Connectivity between the hosts of a cluster, as bit sets: a report costs O(its size), a group O(hosts).

`Reach` holds, per network, the peers that each host reached and the peers that reached it. A host belongs to the
majority group when it and the others of the group reach each other, both ways.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from ...plugins.module_utils.addresses import version
from .bodies import ConnectivityReport
from .network import contains, family


class Reach:
    """Connectivity of one cluster's hosts, from the reports of the step `connectivity-check`.

    Networks are CIDRs (layer 2, for IPv6 also layer 3) and `IPv4`, `IPv6` (layer 3). `out` and `back` map network and
    host to a bit set of the peers that it reached, and that reached it; `index` gives a host's bit. `reached` has the
    addresses that a host reached, `count` how many hosts reached an address.
    """

    def __init__(self) -> None:
        self.index: dict[str, int] = {}
        self.ids: list[str] = []
        self.out: dict[str, dict[str, int]] = {}
        self.back: dict[str, dict[str, int]] = {}
        self.reached: dict[str, frozenset[str]] = {}
        self.count: Counter[str] = Counter()
        #: host -> peer -> (worst round trip in ms, worst loss in percent)
        self.quality: dict[str, dict[str, tuple[float, float]]] = {}
        #: host -> [(interface, remote address)] with a broken MTU
        self.mtu: dict[str, list[tuple[str, str]]] = {}
        #: host -> address -> MACs, where several answered
        self.collisions: dict[str, dict[str, list[str]]] = {}

    def _bit(self, host: str) -> int:
        number = self.index.get(host)
        if number is None:
            number = self.index[host] = len(self.ids)
            self.ids.append(host)
        return 1 << number

    def report(self, host: str, report: ConnectivityReport, networks: Iterable[str]) -> None:
        """Process a host's connectivity report; `networks` are the relevant CIDRs.

        It replaces the host's previous report. `networks` are the relevant CIDRs, usually the machine networks. An MTU
        that could not be verified is kept per interface; `quality` keeps the worst round trip (ms) and loss (%) per
        peer.
        """
        cidrs = tuple(networks)
        masks: dict[str, int] = dict.fromkeys((*cidrs, "IPv4", "IPv6"), 0)
        reached: set[str] = set()
        quality: dict[str, tuple[float, float]] = {}
        macs: dict[str, set[str]] = {}
        self.mtu[host] = []
        for remote in report.get("remote_hosts", ()):
            peer = remote.get("host_id", "")
            if peer == host:
                continue
            bit = self._bit(peer)
            for entry in remote.get("l2_connectivity", ()):
                if entry.get("successful"):
                    text = entry.get("remote_ip_address", "")
                    macs.setdefault(text, set()).add(entry.get("remote_mac", "").lower())
                    for cidr in cidrs:
                        if contains(cidr, text):
                            masks[cidr] |= bit
            rtt = loss = -1.0
            for probe in remote.get("l3_connectivity", ()):
                text = probe.get("remote_ip_address", "")
                if probe.get("successful"):
                    reached.add(text)
                    masks[family(text)] |= bit
                    if version(text) == 6:
                        for cidr in cidrs:
                            if contains(cidr, text):
                                masks[cidr] |= bit
                    rtt = max(rtt, float(probe.get("average_rtt_ms", 0)))
                loss = max(loss, float(probe.get("packet_loss_percentage", 0)))
            if loss >= 0:
                quality[peer] = (rtt, loss)
            self.mtu[host] += [
                (entry.get("outgoing_nic", ""), entry.get("remote_ip_address", ""))
                for entry in remote.get("mtu_report", ())
                if not entry.get("mtu_successful")
            ]
        self._update(host, masks)
        self.quality[host] = quality
        self.count.subtract(self.reached.get(host, frozenset()))
        self.reached[host] = frozenset(reached)
        self.count.update(reached)
        self.collisions[host] = {ip: sorted(found - {""}) for ip, found in macs.items() if len(found - {""}) > 1}

    def _update(self, host: str, masks: Mapping[str, int]) -> None:
        mine = self._bit(host)
        for name, mask in masks.items():
            out, back = self.out.setdefault(name, {}), self.back.setdefault(name, {})
            changed = out.get(host, 0) ^ mask
            out[host] = mask
            while changed:
                low = changed & -changed
                peer = self.ids[low.bit_length() - 1]
                back[peer] = back.get(peer, 0) ^ mine
                changed ^= low

    def drop(self, host: str) -> None:
        """Drop what a host reported (it was reset or removed).

        What others reported about it stays until their next report; its bit stays, too.
        """
        self._update(host, dict.fromkeys(list(self.out), 0))
        self.count.subtract(self.reached.pop(host, frozenset()))
        for table in (self.quality, self.mtu, self.collisions):
            table.pop(host, None)

    def group(self, name: str, hosts: Iterable[str], least: int) -> list[str]:
        """Return the largest set of hosts that all reach each other on the network; empty if smaller than `least`.

        The exact answer is a maximum clique. Hosts with equal neighbourhoods are grouped, largest group first, which
        is exact for the cases in practice (islands, single unreachable hosts) and cheap for a thousand hosts.
        """
        allowed = 0
        members = list(hosts)
        for host in members:
            allowed |= self._bit(host)
        out, back = self.out.get(name, {}), self.back.get(name, {})
        mutual = {host: (out.get(host, 0) & back.get(host, 0) & allowed) | self._bit(host) for host in members}
        kinds = Counter(mutual.values())
        best = 0
        for start, __ in sorted(
            kinds.items(), key=lambda item: (-min(item[1], item[0].bit_count()), -item[0].bit_count())
        )[:16]:
            chosen = candidates = start
            order = sorted(
                (host for host in members if start >> self.index[host] & 1), key=lambda host: -mutual[host].bit_count()
            )
            chosen = 0
            for host in order:
                bit = self._bit(host)
                if candidates & bit and chosen & ~mutual[host] == 0:
                    chosen |= bit
                    candidates &= mutual[host]
            if chosen.bit_count() > best.bit_count():
                best = chosen
        return [host for host in members if best >> self.index[host] & 1] if best.bit_count() >= least else []

    def connected_addresses(self, addresses: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
        """Return for each host its addresses (without prefix) that every other host reaches.

        `addresses` has the addresses of each host, also without prefix. Lists are empty for a single host. Used with
        user-managed networking, where hosts need no common network.
        """
        others = len(addresses) - 1
        return {
            host: [text for text in own if others > 0 and self.count[text] >= others] for host, own in addresses.items()
        }
