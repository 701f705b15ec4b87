"""Damaged states of a cluster, made from a seed, and what destroying them must not touch. Runs inside the host of a test.

    python states.py DIRECTORY SEED NUMBER

Prints a line of JSON for each state: what it was, the outcome, and what went wrong (nothing, if all is well).
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from ansible_collections.agentlab.ocp.plugins.module_utils import state
from ansible_collections.agentlab.ocp.plugins.module_utils.errors import LabError
from ansible_collections.agentlab.ocp.plugins.module_utils.libvirt import domain
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import names
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import guard, host, namespaces, processes, remove
from ansible_collections.agentlab.ocp.plugins.module_utils.state import owner

JUNK = ["", "{", "null", "{}", "[]", '"x"', "\0", '{"pid": -1, "start": null, "digest": ""}', '{"pid": 1, "start": 0}']
WHO = ("root", "lab", "digest")
REMEDY = ("estore", "remove", "Work from there", "move it aside")


class Object:
    """A domain, network or pool of a libvirt that is played."""

    def __init__(self, identity: str, xml: str = "") -> None:
        self.identity, self.xml, self.there = identity, xml, True

    def UUIDString(self) -> str:  # noqa: N802 (libvirt's name)
        return self.identity

    def XMLDesc(self, __: int = 0) -> str:  # noqa: N802
        return self.xml

    def isActive(self) -> bool:  # noqa: N802
        return True

    isPersistent = isActive  # noqa: N815

    def destroy(self) -> None:
        pass

    def undefine(self) -> None:
        self.there = False

    def undefineFlags(self, __: int) -> None:  # noqa: N802
        self.undefine()


class World:
    """One generated state: `ours` and `foreign` are tests of whether a thing is still there."""

    def __init__(self, base: Path, number: int, chance: random.Random) -> None:
        self.chance, self.reported = chance, []
        self.name = f"w{number}"
        self.parent, self.run_dir = base / f"parent{number}", base / f"run{number}"
        self.run_dir.mkdir()
        self.place = self.parent / self.name
        self.kind = chance.choices(["sandbox", "local", "ssh"], [10, 4, 6])[0]
        self.sandbox = self.kind == "sandbox"
        self.ours: dict[str, Callable[[], bool]] = {}
        self.foreign: dict[str, Callable[[], bool]] = {}
        self.children: list[subprocess.Popen[bytes]] = []
        self.objects: dict[tuple[str, str], Object] = {}
        self.plan = {"cluster": {"name": self.name}, "hypervisor": {"kind": self.kind}}
        # The owner. By ssh the host counts, too: paths and uids of another one may be the same.
        self.who = owner.caller(self.plan, self.run_dir)

    def choose(self, what: str, **weights: int) -> str:
        chosen = self.chance.choices(list(weights), list(weights.values()))[0]
        self.reported.append(f"{what}={chosen}")
        return chosen

    def process(self, mark: dict[str, str]) -> subprocess.Popen[bytes]:
        child = subprocess.Popen(["sleep", "600"], env={**os.environ, **mark}, start_new_session=True)
        while not Path(f"/proc/{child.pid}/environ").read_bytes():
            pass
        self.children.append(child)
        return child

    def file(self, path: Path, what: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("of somebody")
        self.foreign[what] = lambda: path.exists() and path.read_text() == "of somebody"

    def make(self) -> None:
        if self.choose("parent", new=3, with_others=1) == "with_others":
            self.file(self.parent / "data" / "photo", "the parent's other directory")
        others = {"other_host": 3} if self.kind == "ssh" else {}
        directory = self.choose("directory", ours=12, absent=2, foreign=2, empty=1, other_owner=1, link=1, **others)
        mark = ""
        if directory in ("ours", "other_owner", "other_host"):
            mark = self.claimed(directory)
        elif directory == "foreign":
            self.file(self.place / "photos" / "t.txt", "files in a directory without the marker")
        elif directory == "empty":
            self.place.mkdir(parents=True)
        elif directory == "link":
            self.file(self.parent / "elsewhere" / "file", "the target of a link")
            self.place.symlink_to(self.parent / "elsewhere")
        if self.chance.random() < 0.1:
            with host.update_shared(self.parent):
                (self.parent / f".{self.name}.agentlab").mkdir(exist_ok=True)
            self.ours["a directory that was half made"] = (self.parent / f".{self.name}.agentlab").exists
        if self.chance.random() < 0.2:
            self.neighbour()
        if self.sandbox:
            self.make_sandbox(mark)
        else:
            self.make_libvirt(mark)
        self.make_uplink(mark)
        self.make_records(mark)

    def claimed(self, directory: str) -> str:
        who = self.who
        if directory == "other_owner":
            who = owner.Caller(owner.Owner(self.name, "/home/bob/runs", 1001, "bob", "lab", ""))
        elif directory == "other_host":
            who = owner.Caller(replace(self.who.owner, host="another.example"))
        mark = host.claim(self.place, who).mark
        (self.place / "pool").mkdir()
        (self.place / "pool" / "disk").write_text("")
        outside = self.parent.with_name(f"outside-{self.name}")
        self.file(outside / "file", "what a link in the directory leads to")
        (self.place / "pool" / "link").symlink_to(outside)
        (self.ours if directory == "ours" else self.foreign)["the state directory"] = (self.place / "pool").exists
        damage = self.choose("marker", whole=10, damaged=2, gone=1)
        if damage == "damaged":
            (self.place / owner.FILE).write_text(self.chance.choice(JUNK))
        elif damage == "gone":
            (self.place / owner.FILE).unlink()
        self.make_processes()
        return mark

    def make_processes(self) -> None:
        place = self.place / "processes"
        place.mkdir()
        for name in ("bmc", "http"):
            kind = self.choose(name, ours=3, junk=3, foreign=2, absent=1)
            path = place / f"{name}.json"
            if kind == "ours":
                child = self.process(processes.mark(place, name))
                path.write_text(json.dumps({"pid": child.pid, "start": processes.start_time(child.pid), "digest": ""}))
                if not self.sandbox:  # there it would be in the sandbox, and end with it
                    self.ours[f"process {name}"] = lambda child=child: child.poll() is None
            elif kind == "foreign":
                child = self.process({})
                path.write_text(json.dumps({"pid": child.pid, "start": processes.start_time(child.pid), "digest": ""}))
                self.foreign[f"a process that {name}.json names"] = lambda child=child: child.poll() is None
            elif kind == "junk":
                path.write_text(self.chance.choice(JUNK))

    def neighbour(self) -> None:
        place = self.parent / "neighbour"
        host.claim(place, owner.Caller(owner.Owner("neighbour", "/other", 0, *WHO)))
        self.foreign["another cluster"] = (place / owner.FILE).exists

    def make_sandbox(self, mark: str) -> None:
        name = f"agentlab-{self.name}"
        there = (host.NETNS_DIR / name).exists
        kind = self.choose("namespace", ours=4, absent=2, foreign=2, unfinished=1)
        if kind == "ours" and mark:
            subprocess.run(["ip", "netns", "add", name], check=True)
            subprocess.run(["ip", "-n", name, "link", "set", "lo", "alias", f"agentlab {mark}"], check=True)
            self.ours["the network namespace"] = there
        elif kind == "foreign":
            subprocess.run(["ip", "netns", "add", name], check=True)
            self.foreign["a network namespace of this name"] = there
        elif kind == "unfinished" and mark:
            host.NETNS_DIR.mkdir(exist_ok=True)
            (host.NETNS_DIR / name).write_text("")
            self.ours["a namespace that was half made"] = there
        if not mark:
            return
        kind = self.choose("keeper", ours=4, lost=2, foreign=2, junk=2, absent=1)
        path = self.place / namespaces.FILE
        if kind in ("ours", "lost"):
            child = self.process(processes.mark(self.place, "keeper"))
            self.ours["the keeper"] = lambda: child.poll() is None
        elif kind == "foreign":
            child = self.process({})
            self.foreign["a process that sandbox.json names"] = lambda: child.poll() is None
        if kind in ("ours", "foreign"):
            path.write_text(
                json.dumps(
                    {
                        "cluster": self.name,
                        "netns": name,
                        "pid": child.pid,
                        "start": processes.start_time(child.pid),
                        "work": "/x",
                    }
                )
            )
        elif kind == "junk":
            path.write_text(self.chance.choice(JUNK))

    def make_libvirt(self, mark: str) -> None:
        for kind, name in (("domain", "vm"), ("network", "net"), ("pool", "store")):
            chosen = self.choose(kind, ours=3, foreign=2, absent=1)
            if chosen == "absent" or (chosen == "ours" and not mark):
                continue
            own = mark if chosen == "ours" else "11111111-2222-3333-4444-555555555555"
            xml = f"<domain><metadata><n:node xmlns:n='{domain.METADATA[1:].partition('}')[0]}' cluster='{self.name}' mark='{own}'/></metadata></domain>"
            made = self.objects[kind, name] = Object(owner.identity(own, kind, name), xml)
            (self.ours if chosen == "ours" else self.foreign)[f"{kind} {name}"] = lambda made=made: made.there

    def make_uplink(self, mark: str) -> None:
        """The link and the firewall table of the cluster's name: with its mark, or made by a cluster of the same name."""
        pair = names.uplink(self.name)
        for what, name, there in (
            ("link", pair["link"], Path(f"/sys/class/net/{pair['link']}").exists),
            ("table", pair["table"], lambda: self.nft("list", "table", "inet", pair["table"])),
        ):
            kind = self.choose(what, ours=3, foreign=2, absent=2)
            if kind == "absent" or (kind == "ours" and not mark):
                continue
            label = owner.label(mark if kind == "ours" else "11111111-2222-3333-4444-555555555555")
            if what == "link":
                subprocess.run(
                    ["ip", "link", "add", name, "type", "veth", "peer", "name", f"p-{self.name}"], check=True
                )
                subprocess.run(["ip", "link", "set", name, "alias", label], check=True)
            else:
                self.nft("-f", "-", data=guard.table(name, guard.marker(label.partition(" ")[2]), guard.host_side("x")))
            (self.ours if kind == "ours" else self.foreign)[f"the {what} {name}"] = there

    @staticmethod
    def nft(*options: str, data: str = "") -> bool:
        return subprocess.run(["nft", *options], input=data.encode(), capture_output=True, check=False).returncode == 0

    def make_records(self, mark: str) -> None:
        if (self.parent / host.HOST_FILE).exists() and self.choose("host.json", whole=8, damaged=1) == "damaged":
            (self.parent / host.HOST_FILE).write_text(self.chance.choice(["", "{", "{}", "[1]", "null"]))
        kind = self.choose("state.json", whole=5, lost=2, damaged=2, ownerless=1)
        path = self.run_dir / state.FILE
        if kind == "damaged":
            path.write_text(
                self.chance.choice(
                    [
                        *JUNK,
                        "[{}]",
                        "[1]",
                        '{"created": [{}], "stages": {}}',
                        '{"created": [], "stages": {}, "owner": 5}',
                    ]
                )
            )
        elif kind != "lost":
            record = None if kind == "ownerless" or not mark else {"mark": mark}
            path.write_text(json.dumps({"owner": record, "created": self.items(), "stages": {}}))

    def items(self) -> list[state.Item]:
        made = [("sandbox", f"agentlab-{self.name}")] if self.sandbox else []
        made += [
            ("uplink", self.name),
            ("state_dir", str(self.place)),
            ("network", "net"),
            ("pool", "store"),
            ("domain", "vm"),
            ("service", "bmc"),
            ("service", "http"),
        ]
        return [{"kind": kind, "name": name, "host": "hypervisor"} for kind, name in made]

    def destroy(self) -> None:
        # As the role destroy: the list where there is one, else what the plan makes. The caller comes as the fact of the role plan.
        listed = state.load(self.run_dir)["created"] or self.items()
        fact = json.dumps(owner.caller(self.plan, self.run_dir).fact())
        away = self.run_dir.with_name("elsewhere")
        if self.kind == "ssh":  # the hypervisor does not have the run directory
            self.run_dir.rename(away)
        try:
            remove.remove(listed, owner.from_fact(json.loads(fact)))
        finally:
            if self.kind == "ssh":
                away.rename(self.run_dir)

    def end(self) -> None:
        for child in self.children:
            child.kill()
            child.wait()
        subprocess.run(["ip", "netns", "delete", f"agentlab-{self.name}"], capture_output=True, check=False)
        pair = names.uplink(self.name)
        subprocess.run(["ip", "link", "delete", pair["link"]], capture_output=True, check=False)
        self.nft("delete", "table", "inet", pair["table"])
        with contextlib.suppress(OSError):
            (host.NETNS_DIR / f"agentlab-{self.name}").unlink()


def check_world(world: World) -> tuple[str, list[str]]:
    """Destroy; return the outcome, and what is wrong with it."""
    before = {what for what, there in world.ours.items() if there()}
    assert all(there() for there in world.foreign.values()), world.reported
    try:
        world.destroy()
        refusal = ""
    except (ValueError, LabError) as error:
        refusal = str(error)
    wrong = [f"{what} was removed" for what, there in world.foreign.items() if not there()]
    left = {what for what, there in world.ours.items() if there()}
    if refusal:
        wrong += [f"refused, but {what} was removed" for what in before - left]
        wrong += (
            []
            if "/" in refusal and any(word in refusal for word in REMEDY)
            else [f"neither a file nor a remedy: {refusal}"]
        )
        return f"refused: {refusal}", wrong
    wrong += [f"{what} is left" for what in left]
    if (
        not any(what.startswith(("the parent", "another", "files in", "the target")) for what in world.foreign)
        and world.parent.exists()
    ):
        rest = [entry.name for entry in world.parent.iterdir()]
        wrong += [f"left in the parent: {rest}"] if rest != [world.place.name] else []
    return "removed", wrong


@contextlib.contextmanager
def connect() -> Iterator[Any]:
    """The libvirt that is played."""
    yield None


def main(base: Path, seed: str, number: int) -> None:
    chance = random.Random(seed)
    for index in range(number):
        world = World(base, index, chance)
        remove.connect = connect
        finders = {method: kind for kind, method in remove.FINDERS.items()}

        def lookup(
            __: Any, method: str, name: str, world: World = world, finders: dict[str, str] = finders
        ) -> Object | None:
            found = world.objects.get((finders[method], name))
            return found if found and found.there else None

        for module in (remove, remove.domain, remove.network, remove.storage):
            module.lookup = lookup  # type: ignore[attr-defined]
        try:
            world.make()
            outcome, wrong = check_world(world)
        finally:
            world.end()
        print(
            json.dumps(
                {
                    "state": " ".join([world.kind, *world.reported]),
                    "outcome": outcome,
                    "wrong": wrong,
                }
            ),
            flush=True,
        )
        shutil.rmtree(world.parent, ignore_errors=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
