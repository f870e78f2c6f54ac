# SPDX-License-Identifier: BSD-3-Clause
"""Runs of mpimcast and of peer algorithms on the same fabric, and what they cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mpimcast._peers.catalogue import ALLGATHERS, BROADCASTS, REDUCE_SCATTERS
from mpimcast.cli.sim import simulator
from mpimcast.cli.sim.choices import collective, wants_all
from mpimcast.cli.sim.ground import Ground
from mpimcast.cli.sim.scene import Packets, Scene
from mpimcast.cli.sim.tracing import new_trace

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from mpimcast._fabric.fabric import Fabric
    from mpimcast._native.trace import Trace
    from mpimcast._peers.schedule import Messages, Schedule
    from mpimcast.cli.sim.choices import Choices
    from mpimcast.cli.sim.simulator import Plain

OURS = "mpimcast"

# A host sends so much of a message at a time, in whole packets, before it turns to
# another, or to as many of mpimcast's chunks.
_CONVOY_BYTES = 8192

# The index of repairs in a link's `kind_bytes`.
_REPAIR = 2


@dataclass(frozen=True, eq=False)
class Run:
    """The costs of one run.

    Parameters
    ----------
    seed
        Its seed.
    time_ns
        The time until its last rank had ended.
    ends_ns
        When each rank had ended, of shape (nranks,).
    link_bytes, repair_bytes, deepest_bytes, lost
        What each link has carried, and that of it which were repairs; the most that its
        queue has held; the datagrams that it has lost. Of shape (nlinks,).
    violation
        Which property was violated, and how; "" if none was.
    """

    seed: int
    time_ns: int
    ends_ns: NDArray[np.int64]
    link_bytes: NDArray[np.int64]
    repair_bytes: NDArray[np.int64]
    deepest_bytes: NDArray[np.int64]
    lost: NDArray[np.int64]
    violation: str


@dataclass(frozen=True)
class Contestant:
    """An algorithm and its runs, one for each seed."""

    name: str
    runs: list[Run]


@dataclass(frozen=True)
class Comparison:
    """All runs on a fabric.

    Parameters
    ----------
    ground
        The fabric and the ranks on it, with the first seed.
    contestants
        mpimcast and the peer algorithms.
    left_out
        Why peer algorithms did not run that were not named.
    bound_ns
        The least time that any algorithm can take.
    first
        The simulator's result of mpimcast's first run.
    """

    ground: Ground
    contestants: list[Contestant]
    left_out: list[str]
    bound_ns: int
    first: Plain

    @property
    def violations(self) -> list[str]:
        """The violations, each with the run that had it."""
        return [
            f"{contestant.name}, seed {run.seed}: {run.violation}"
            for contestant in self.contestants
            for run in contestant.runs
            if run.violation
        ]


def compared(
    fabric: Fabric, choices: Choices, spec: Plain, traces: dict[str, Trace] | None
) -> Comparison:
    """Run mpimcast and its peers, with all seeds.

    Parameters
    ----------
    fabric
        The fabric, without placement.
    choices
        What the command line says.
    spec
        The simulator's spec.
    traces
        Takes a trace of each algorithm's first run, by its name; None if there are to
        be none.

    Raises
    ------
    ValueError
        If a peer algorithm cannot run on so many ranks, or with such blocks.
    """
    names, left_out = _able(choices, spec)
    contestants = [Contestant(name, []) for name in [OURS, *names]]
    first: Plain = {}
    ground = here = Ground(fabric, choices, spec)
    varies = choices.placement == "shuffled" or choices.trees == "pim"
    for seed in range(spec["seed"], spec["seed"] + choices.nseeds):
        if varies and seed != spec["seed"]:
            here = Ground(fabric, choices, {**spec, "seed": seed})
        stage = _Stage(here, choices, seed)
        for contestant in contestants:
            trace = None
            if traces is not None and not contestant.runs:
                trace = traces[contestant.name] = new_trace()
            if contestant.name != OURS:
                contestant.runs.append(stage.peer(contestant.name, trace))
                continue
            run, result = stage.ours(trace)
            first = first or result
            contestant.runs.append(run)
    bound_ns = ground.bound_ns(beside=bool(choices.beside))
    return Comparison(ground, contestants, left_out, bound_ns, first)


def _able(choices: Choices, spec: Plain) -> tuple[list[str], list[str]]:
    """Return the peer algorithms that are to run, and why others cannot."""
    if not wants_all(choices):
        return list(choices.against), []
    names, left_out = [], []
    of = ALLGATHERS if collective(spec) == "allgather" else BROADCASTS
    for name in of:
        if why := _obstacle(name, spec):
            left_out.append(f"{name}: {why}")
        else:
            names.append(name)
    return names, left_out


def _obstacle(name: str, spec: Plain) -> str:
    """Return why a peer algorithm cannot run; "" if it can."""
    try:
        _schedule(name, [0] * spec["nranks"], spec)
    except ValueError as error:
        return str(error)
    return ""


def _schedule(name: str, groups: list[int], spec: Plain) -> Schedule:
    nbytes = spec["block_bytes"]
    if collective(spec) == "bcast":
        return BROADCASTS[name](spec["nranks"], nbytes, spec["root"])
    return ALLGATHERS[name](groups, nbytes)


class _Stage:
    """Runs algorithms on a ground with one seed."""

    def __init__(self, ground: Ground, choices: Choices, seed: int) -> None:
        self._ground = ground
        self._spec = {**ground.spec, "seed": seed}
        chunk_bytes = ground.spec["chunk_bytes"]
        npackets = max(1, _CONVOY_BYTES // chunk_bytes)
        self._packets = Packets(
            payload_bytes=chunk_bytes, convoy_bytes=npackets * chunk_bytes
        )
        self._adaptive = choices.routing == "adaptive"
        self._background = (
            ground.background(choices.background_ppm, seed)
            if choices.background_ppm
            else None
        )
        if self._background:
            self._spec["send_bytes"] = self._packets.convoy_bytes
        self._beside: Messages | None = None
        if choices.beside:
            make = REDUCE_SCATTERS[choices.beside]
            self._beside = make(ground.reducing, self._spec["block_bytes"])
            self._spec["send_bytes"] = self._packets.convoy_bytes

    def ours(self, trace: Trace | None) -> tuple[Run, Plain]:
        """Run mpimcast."""
        result = simulator.run(self._spec, self._scene(self._beside), trace)
        return self._run(result), result

    def peer(self, name: str, trace: Trace | None) -> Run:
        """Run a peer algorithm."""
        schedule: Messages = _schedule(name, self._ground.groups, self._spec)
        if self._beside:
            schedule = schedule.beside(self._beside)
        spec = {**self._spec, "nops": 0}
        return self._run(simulator.run(spec, self._scene(schedule), trace))

    def _scene(self, schedule: Messages | None) -> Scene:
        return Scene(
            self._ground.arrays,
            schedule,
            packets=self._packets,
            background=self._background,
            adaptive=self._adaptive,
        )

    def _run(self, result: Plain) -> Run:
        ranks, links = result["ranks"], result["links"]
        both = [[rank["end_ns"], rank["script_end_ns"]] for rank in ranks]
        return Run(
            self._spec["seed"],
            max(result["time_ns"], result["script_ns"]),
            np.array(both, np.int64).max(axis=1),
            np.array([link["bytes"] for link in links], np.int64),
            np.array([link["kind_bytes"][_REPAIR] for link in links], np.int64),
            np.array([link["deepest_bytes"] for link in links], np.int64),
            np.array([link["lost_datagrams"] for link in links], np.int64)
            + np.array([link["overflowed_datagrams"] for link in links], np.int64),
            result["violation"],
        )
