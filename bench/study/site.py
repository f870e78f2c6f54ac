# SPDX-License-Identifier: BSD-3-Clause
"""A site for simulated jobs: a fabric with routes and trees, and runs on it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from bench.study.case import Numbers
from mpimcast._fabric.arrays import arrays
from mpimcast._fabric.fabric import Fabric
from mpimcast._fabric.routes import Routes
from mpimcast._fabric.subnet_manager import SubnetManager
from mpimcast._peers.schedule import Messages
from mpimcast.cli.sim import simulator
from mpimcast.cli.sim.figures import percentile
from mpimcast.cli.sim.scene import Packets, Scene

MBITS = 100_000  # of a link, unless a fabric says otherwise
MULTICAST, CONTROL, REPAIR = range(3)  # kinds of traffic
_EVENTS_MAX = 10**12  # a run ends by itself
# The simulator's words for an operation whose result was right, at too great a cost.
_COSTLY = ("control datagrams in an operation", "repairs were sent for")
# By name, thousandths of the ranks.
_PERCENTILES = {"p50": 500, "p99": 990, "p999": 999}


def bound_ns(nranks: int, nbytes: int) -> float:
    """Return the time in which a rank's link carries the other ranks' blocks."""
    return (nranks - 1) * nbytes * 8000 / MBITS


class Site:
    """A fabric on which all of a job's ranks are the first hosts.

    Parameters
    ----------
    fabric
        The fabric.
    nranks
        The ranks; None: one on each host.
    nsubgroups
        How many multicast groups the job has.
    nreducing
        How many more trees there are for reductions in switches.
    """

    def __init__(
        self,
        fabric: Fabric,
        nranks: int | None = None,
        nsubgroups: int = 1,
        nreducing: int = 0,
    ) -> None:
        self.fabric = fabric
        self.nranks = nranks or fabric.nhosts
        self.nsubgroups = nsubgroups
        self.routes = Routes(fabric)
        manager = SubnetManager(fabric, self.routes)
        trees = manager.trees(range(self.nranks), nsubgroups + nreducing)
        self.trees, self.reducing = trees[:nsubgroups], trees[nsubgroups:]

    @property
    def racks(self) -> list[int]:
        """The rack of each rank."""
        return self.fabric.racks[: self.nranks].tolist()

    @cached_property
    def _arrays(self) -> Any:
        return arrays(self.routes, self.trees)

    def ours(self, beside: Messages | None = None, **spec: object) -> Numbers:
        """Run an operation of ours, perhaps beside other messages.

        `spec` is as in the simulator; by default the operation is as shipped: windows
        adapt to the queues.
        """
        spec = {"adaptive": 1, "subgroups": self.nsubgroups, **spec}
        return self._run(spec, beside, lambda rank: rank["end_ns"])

    def peer(self, schedule: Messages) -> Numbers:
        """Send the messages of another algorithm."""
        return self._run({"nops": 0}, schedule, lambda rank: rank["script_end_ns"])

    def _run(
        self,
        spec: dict[str, Any],
        schedule: Messages | None,
        end_ns: Callable[[simulator.Plain], int],
    ) -> Numbers:
        # Two convoys of a host take turns with as much of its multicasts.
        packets = Packets(convoy_bytes=8192)
        if schedule is not None:
            spec = {"send_bytes": packets.convoy_bytes, **spec}
        spec = {"nranks": self.nranks, "limit_events": _EVENTS_MAX, **spec}
        scene = Scene(self._arrays, schedule, packets=packets)
        result = simulator.run(spec, scene)
        costly = any(words in result["violation"] for words in _COSTLY)
        if result["violation"] and not costly:
            raise RuntimeError(f"{result['violation']}: {spec}")
        links, ranks = result["links"], result["ranks"]
        ends = np.array([end_ns(rank) for rank in ranks], np.int64)
        datagrams = [rank["tx"]["datagrams"] for rank in ranks]
        # A host's own queue holds what it has yet to send, and drops nothing.
        queues = links[self.fabric.nhosts :]
        return {
            "time_ns": max(result["time_ns"], result["script_ns"]),
            "ours_ns": result["time_ns"],
            "beside_ns": result["script_ns"],
            "bytes": sum(link["bytes"] for link in links),
            "repair_bytes": sum(link["kind_bytes"][REPAIR] for link in links),
            "control_bytes": sum(link["kind_bytes"][CONTROL] for link in links),
            "control_datagrams": sum(sent[CONTROL] for sent in datagrams),
            "control_most": max(sent[CONTROL] for sent in datagrams),
            "costly": int(costly),
            "overflowed": sum(link["overflowed_datagrams"] for link in links),
            "deepest_bytes": max(link["deepest_bytes"] for link in queues),
            **{name: percentile(ends, part) for name, part in _PERCENTILES.items()},
        }

    def by_class(self, amounts: np.ndarray[Any, Any]) -> Numbers:
        """Return the sums of the links' amounts by the links' classes, and of all."""
        sums = self.fabric.links.by_class(amounts)
        return {**sums, "all": sum(sums.values())}
