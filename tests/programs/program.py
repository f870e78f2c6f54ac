# SPDX-License-Identifier: BSD-3-Clause
"""Random programs that are legal in MPI: their operations, and the order of steps.

A program has a common order of steps, which every rank could follow. A rank may start
an operation that does not block earlier than in this order, and complete it later. But
it must enter the collectives of each communicator in the common order; persistent
requests may be started in any order. So no program has a deadlock: of all steps in
which ranks are blocked, take the first in the common order. The steps of other ranks
that it needs come before it in that order. Those ranks are blocked in later steps, so
they have done what it needs.
"""

from __future__ import annotations

import random
from typing import NamedTuple

from hypothesis import strategies as st

COUNTS = (0, 1, 7, 127, 128, 129, 500, 3000, 20_000)
SHARES_MAX = 4


class Comm(NamedTuple):
    """A communicator.

    Attributes
    ----------
    settings : int
        Index of its settings.
    ranks : str
        Its key in player.GROUPS.
    derived : bool
        Whether it is a duplicate of one that has been used.
    """

    settings: int
    ranks: str
    derived: bool


class Op(NamedTuple):
    """An operation, done once, or several times by a persistent request.

    Attributes
    ----------
    comm : int
        Index of its communicator.
    what : str
        The name of a collective, or "message" for a message to the next rank.
    form : str
        "blocking", "request" or "persistent".
    count : int
        Number of items.
    root : int
        The root, modulo the number of ranks.
    shares : tuple of int
        The ranks' contributions to an Allgatherv, in parts of `count`.
    in_place : bool
        Whether a rank's block is in its place before the call.
    strided : int
        The ranks whose places have gaps, one bit for each.
    nstarts : int
        Number of starts of a persistent request.
    """

    comm: int
    what: str
    form: str
    count: int
    root: int
    shares: tuple[int, ...]
    in_place: bool
    strided: int
    nstarts: int


class Step(NamedTuple):
    """A step of an operation: "call", "start", "wait", "init" or "free"."""

    kind: str
    op: int


class Program(NamedTuple):
    """A program, and the number that determines the orders of its ranks."""

    comms: list[Comm]
    ops: list[Op]
    steps: list[Step]
    salt: int


def _steps(number: int, op: Op) -> list[Step]:
    """Return the steps of one operation."""
    if op.form == "blocking":
        kinds = ["call"]
    elif op.form == "request":
        kinds = ["start", "wait"]
    else:
        kinds = ["init", *["start", "wait"] * op.nstarts, "free"]
    return [Step(kind, number) for kind in kinds]


FORMS = {
    **dict.fromkeys(
        ("Bcast", "Allgather", "Allgatherv"), ("blocking", "request", "persistent")
    ),
    **dict.fromkeys(("bcast", "allgather"), ("blocking",)),
    # Operations of the MPI library.
    **dict.fromkeys(("message", "Allreduce"), ("blocking", "request")),
}


@st.composite
def ops(draw: st.DrawFn, ncomms: int) -> Op:
    """Draw an operation."""
    what = draw(st.sampled_from(list(FORMS)))
    shares = st.lists(st.integers(0, SHARES_MAX), min_size=1, max_size=4)
    # MPICH's own Allgatherv hangs if ranks differ in their types.
    strided = st.sampled_from((0, 15) if what == "Allgatherv" else range(16))
    return Op(
        comm=draw(st.integers(0, ncomms - 1)),
        what=what,
        form=draw(st.sampled_from(FORMS[what])),
        count=draw(st.sampled_from(COUNTS)),
        root=draw(st.integers(0, 3)),
        shares=tuple(draw(shares)),
        in_place=draw(st.booleans()),
        strided=draw(strided),
        nstarts=draw(st.integers(1, 3)),
    )


@st.composite
def programs(draw: st.DrawFn, nsettings: int, groups: tuple[str, ...]) -> Program:
    """Draw a program."""
    comms = draw(
        st.lists(
            st.builds(
                Comm,
                st.integers(0, nsettings - 1),
                st.sampled_from(groups),
                st.booleans(),
            ),
            min_size=1,
            max_size=3,
        )
    )
    done = draw(st.lists(ops(len(comms)), min_size=4, max_size=12))
    tracks = [_steps(number, op) for number, op in enumerate(done)]
    steps = []
    while tracks:
        track = tracks[draw(st.integers(0, len(tracks) - 1))]
        steps.append(track.pop(0))
        tracks = [track for track in tracks if track]
    return Program(comms, done, steps, draw(st.integers(0, 2**16)))


# ---- the order of a rank -------------------------------------------------------


def order(program: Program, rank: int) -> list[Step]:
    """Return a program's steps in the order of a rank."""
    steps = list(program.steps)
    rng = random.Random(f"{program.salt} {rank}")
    if program.salt == 0:
        return steps
    for _ in range(4 * len(steps)):
        at = rng.randrange(max(1, len(steps) - 1))
        if _may_swap(program, *steps[at : at + 2]):
            steps[at : at + 2] = reversed(steps[at : at + 2])
    return steps


def _may_swap(program: Program, first: Step, *later: Step) -> bool:
    """Return whether a rank may swap a step with the step that follows it."""
    if not later or first.op == later[0].op:
        return False
    second = later[0]
    one, other = (_entered(program, step) for step in (first, second))
    if one is not None and one == other:
        return False
    return second.kind == "start" or first.kind == "wait"


def _entered(program: Program, step: Step) -> int | None:
    """Return the communicator in whose order of collectives a step counts, if any."""
    op = program.ops[step.op]
    if op.what == "message" or step.kind in ("wait", "free"):
        return None
    if op.form == "persistent" and step.kind == "start":
        return None
    return op.comm
