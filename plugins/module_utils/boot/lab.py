"""Boot the machines of a plan by one of the modes, whole: publish what they fetch, drive each of them, remember the image."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..bmc.machine import Machine
from ..errors import LabError
from ..installer import foreign
from ..libvirt.connection import connect
from ..plan import iscsi
from ..plan.faults import of_kind
from ..plan.machines import Node, own_machines
from ..plan.model import Plan
from ..plan.modes import MODES
from . import bmc, domain, media, sequence

if TYPE_CHECKING:
    import libvirt


@dataclass(frozen=True, kw_only=True)
class Lab:
    """The machines of `plan`, which boot by `mode` from `image`, a file of the hypervisor.

    authority: PEM text of the CA that the BMCs' certificates are checked with; without it they are not checked. check: change nothing.
    only: names of the nodes to boot; none: all but day-2 nodes, which join the cluster later.
    """

    plan: Plan
    mode: str
    image: Path
    authority: str | None = None
    check: bool = False
    only: Sequence[str] = ()

    def url(self) -> str:
        """Return where the machines find the image: a URL, or in the mode `cdrom` a path.

        It is known before the image is published; `boot` does that.
        """
        return self._place(self.image)

    def boot(self) -> list[dict[str, str]]:
        """Boot the machines that were not booted from this image; return what was done (`name`, `before`, `after`).

        In the mode `manual` these are left to a person, and nothing is recorded: `note` does that. Raises `LabError` when
        there is no image, and what reading and writing images and the machines' drivers raise.
        """
        if not self.image.exists():
            raise LabError(f"{self.image}: no such image: agentlab image --cluster {self.plan['cluster']['name']}")
        images = self._images()
        state_dir, pool = Path(self.plan["hypervisor"]["state_dir"]), self.plan["hypervisor"]["pool"]
        if not MODES[self.mode].boots:
            return sequence.unbooted_machines(self.nodes(), lambda node: images[node["name"]], state_dir)
        with connect() as connection, self._machines(connection) as machine:
            return sequence.boot(
                self.nodes(),
                machine,
                lambda node: images[node["name"]],
                state_dir,
                lambda node: domain.blank(connection, pool, node) if own_machines([node]) else None,
                check=self.check,
            )

    def note(self) -> list[str]:
        """Record that the machines were booted from this image by hand; return the names of those that were not recorded.

        Raises `OSError` when there is no image.
        """
        state_dir, identity = (
            Path(self.plan["hypervisor"]["state_dir"]),
            sequence.identity(MODES[self.mode].files(self.image)),
        )
        return sequence.note(self.nodes(), identity, state_dir, check=self.check)

    def eject(self) -> list[str]:
        """Eject the media; return the names of the nodes that had one.

        Nothing is done in check mode, or in the mode `manual`, in which a person boots the machines.
        """
        if self.check or not MODES[self.mode].boots:
            return []
        with connect() as connection, self._machines(connection) as machine:
            return sequence.eject(self.nodes(), machine)

    def release(self) -> list[str]:
        """Switch off the existing machines that were booted, and eject their media; return the names of those that were changed.

        One that was never booted from an image of this lab is left as it is. Raises `LabError`, after all have been tried.
        """
        if not MODES[self.mode].bmc:
            return []
        booted = sequence.booted_machines(Path(self.plan["hypervisor"]["state_dir"]))
        mine = [node for node in self.nodes() if node.get("bare_metal") and node["name"] in booted]
        if self.check:
            return [node["name"] for node in mine]
        with self._bmcs() as machine:
            return sequence.release(mine, machine)

    def nodes(self) -> list[Node]:
        """Return the nodes in the order in which they boot.

        The rendezvous host is the first; the others follow in the order of the plan. Raises `LabError` for a name in
        `only` that no node has.
        """
        names = [node["name"] for node in self.plan["nodes"]]
        if unknown := [name for name in self.only if name not in names]:
            raise LabError(f"unknown node {', '.join(unknown)}; nodes: {', '.join(names)}")
        chosen = [
            node for node in self.plan["nodes"] if (node["name"] in self.only if self.only else not node.get("day2"))
        ]
        return sequence.order(chosen, self.plan["rendezvous"]["node"])

    def _place(self, path: Path) -> str:
        return media.published_url(self.plan, path) if MODES[self.mode].published else str(path)

    def _images(self) -> dict[str, sequence.Image]:
        """Return the image of each node by its name, published."""
        files = MODES[self.mode].files(self.image)
        identity = sequence.identity(files)
        images = {node["name"]: sequence.Image(self.url(), identity) for node in self.nodes()}
        if foreigners := {fault["node"] for fault in of_kind(self.plan, "wrong_token")}:
            other = Path(self.plan["hypervisor"]["state_dir"]) / f"wrong-token-{self.image.name}"
            images |= dict.fromkeys(foreigners, sequence.Image(self._place(other), f"wrong-token {identity}"))
            if not self.check:
                foreign.image(self.image, other)
            files.append(other)
        if not self.check:
            mode = MODES[self.mode]
            for path in files if mode.published else mode.next_to(self.image):
                media.publish(self.plan, path)
            if mode.medium == "lun":
                media.write(self.plan, self.plan["boot"]["script"], iscsi.script(self.plan))
        return images

    def _lun(self, node: Node) -> Path:
        return Path(self.plan["hypervisor"]["pool_dir"]) / node["disks"][0]["name"]

    @contextmanager
    def _machines(self, connection: libvirt.virConnect) -> Iterator[Callable[[Node], Machine]]:
        """Give what drives a node's machine."""
        mode = MODES[self.mode]
        if not mode.bmc:
            more = [str(path) for path in mode.extra_files(self.image)]
            yield (
                lambda node: (
                    domain.LunMachine(connection, node["domain"], self._lun(node))
                    if mode.medium == "lun"
                    else domain.Machine(connection, node["domain"], mode.medium, more)
                )
            )
            return
        with self._bmcs() as reach:
            yield reach

    @contextmanager
    def _bmcs(self) -> Iterator[Callable[[Node], Machine]]:
        """Give what reaches a node's machine through its BMC."""

        def reach(node: Node) -> Machine:
            return bmc.of_node(node, verify)

        with tempfile.NamedTemporaryFile("w", suffix=".crt") as file:
            file.write(self.authority or "")
            file.flush()
            verify = file.name if self.authority else False
            yield reach
