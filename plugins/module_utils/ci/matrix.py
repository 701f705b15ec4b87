"""Which jobs run at the same time on one machine: by what their machines take, and by how long they usually take."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..plan.capacity import Facts, Needs
from ..plan.presets import OVERCOMMIT

NOTHING = Needs(0, 0, 0)


@dataclass(frozen=True, kw_only=True)
class Task:
    """One run of a job. turn: counts the runs of one job from 1; cluster: its name, which no other task has.

    usual: seconds that the job usually takes, 0 if it never passed.
    """

    job: str
    turn: int
    cluster: str
    needs: Needs
    usual: float = 0.0

    @property
    def name(self) -> str:
        """The job, and from the second run on which one it is: unique in a matrix, and a valid file name if the job's name is."""
        return self.job if self.turn == 1 else f"{self.job}.{self.turn}"


@dataclass(frozen=True, kw_only=True)
class Budget:
    """What all labs together may take; `most` labs run at the same time."""

    resources: Needs
    most: int

    @classmethod
    def of(cls, facts: Facts, *, memory_gib: float | None, most: int) -> Budget:
        """Return the budget of a host, as `capacity.measure` has it; memory_gib: at most this much of its memory."""
        memory = facts["memory_mib"]
        if memory_gib is not None:
            memory = min(memory, int(memory_gib * 1024))
        return cls(resources=Needs(memory, facts["cpus"] * OVERCOMMIT, facts["disk_free_gib"]), most=most)

    def lacking(self, needs: Needs) -> str:
        """Return what a lab needs more of than there is, for a message; empty if it fits when nothing else runs."""
        units = ("MiB of memory", "virtual CPUs", "GiB of disk")
        return "; ".join(
            f"it needs {need} {unit}, there are {has}"
            for need, has, unit in zip(needs, self.resources, units, strict=True)
            if need > has
        )

    def fits(self, needs: Needs, running: Iterable[Task]) -> bool:
        """Return whether a lab fits next to those that run."""
        others = list(running)
        taken = [sum(kind) for kind in zip(needs, *(task.needs for task in others), strict=True)]
        return len(others) < self.most and all(need <= has for need, has in zip(taken, self.resources, strict=True))


def tasks(needs: Mapping[str, Needs], usual: Mapping[str, float], *, repeat: int, prefix: str) -> list[Task]:
    """Return the runs of jobs in the order in which they should start: first turns first, within a turn the longest first.

    needs: by job; usual: seconds by job, where known; jobs without any come first, since they may be long; repeat: runs
    of each. Clusters are named `PREFIX-1` and so on, in this order.
    """
    order = sorted(needs, key=lambda job: (-usual.get(job, float("inf")), -needs[job].memory_mib, job))
    runs = [(job, turn) for turn in range(1, repeat + 1) for job in order]
    return [
        Task(job=job, turn=turn, cluster=f"{prefix}-{number}", needs=needs[job], usual=usual.get(job, 0.0))
        for number, (job, turn) in enumerate(runs, 1)
    ]


def next_task(waiting: Sequence[Task], running: Sequence[Task], budget: Budget) -> Task | None:
    """Return the first task that fits next to those that run; None if none does.

    A large one cannot starve: the ones that pass it end, and `waiting` gets shorter.
    """
    return next((task for task in waiting if budget.fits(task.needs, running)), None)
