# SPDX-License-Identifier: BSD-3-Clause
"""Sends numbered datagrams between a team's ranks, and counts those that arrive."""

from __future__ import annotations

import time
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from mpimcast._native.endpoint import Heard
from mpimcast.errors import TransportError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mpimcast._native.endpoint import Endpoint
    from mpimcast.cli.doctor.trial import Trial
    from mpimcast.cli.doctor.world import World

_SLICE_S = 0.005

# How long listening goes on without news, and how long it lasts at most.
_QUIET_S = 0.15
_LISTEN_S = 2.0

# The rate of ranks that take turns, so that no queue on the way overflows.
_PACE_BYTES_PER_S = 12.5e6

_idents = count(1)


class Burst(NamedTuple):
    """Datagrams that a rank sends.

    Attributes
    ----------
    peer : int or None
        The receiving member, by its place in the team; None: all, by multicast.
    numbers : range
        The datagrams' numbers.
    nbytes : int
        The payload of each datagram.
    asks : bool
        Whether to send them as control messages that ask for answers.
    """

    peer: int | None
    numbers: range
    nbytes: int
    asks: bool = False


class SurveyPlan(NamedTuple):
    """The datagrams that a rank sends in a survey, and those that it listens for.

    Attributes
    ----------
    nnumbers : int
        How many numbers a rank may send.
    bursts : sequence of Burst
        The datagrams that this rank sends.
    is_whole : callable
        Takes a member's place and what was heard from it; returns whether nothing more
        from it need be awaited.
    in_turn : bool
        Whether members send one after the other.
    for_s : float
        How long a rank may send.
    """

    nnumbers: int
    bursts: Sequence[Burst]
    is_whole: Callable[[int, Heard], bool]
    in_turn: bool = False
    for_s: float = float("inf")


class Result(NamedTuple):
    """The result of a survey.

    Attributes
    ----------
    heard : dict
        What a receiver has heard from a sender, by pairs of sender and receiver.
    failures : dict
        The reason why a rank could not send, by rank.
    """

    heard: dict[tuple[int, int], Heard]
    failures: dict[int, str]


def survey(world: World, trial: Trial, plan: SurveyPlan) -> Result:
    """Let all members send, and count what arrives.

    Parameters
    ----------
    world
        All ranks, each of which must call, including those in no team.
    trial
        The team of the ranks to survey.
    plan
        What this rank sends and listens for.
    """
    endpoint = trial.endpoint
    ident = next(_idents)
    if endpoint is not None:
        endpoint.begin_survey(ident, plan.nnumbers)
    world.exchange()
    failure = _send(endpoint, plan)
    failures = world.exchange(failure, _listener(endpoint))
    heard = [] if endpoint is None else _listen(endpoint, plan.is_whole)
    rows = world.exchange(heard, _listener(endpoint))
    return Result(
        {
            (trial.members[place], rank): Heard(*each)
            for rank, row in enumerate(rows)
            for place, each in enumerate(row)
            if trial.members[place] != rank
        },
        {rank: text for rank, text in enumerate(failures) if text},
    )


def _listener(endpoint: Endpoint | None) -> Callable[[], None]:
    """Return a function that receives datagrams, to call while ranks are awaited."""

    def nothing() -> None:
        pass

    return nothing if endpoint is None else endpoint.make_progress


def _send(endpoint: Endpoint | None, plan: SurveyPlan) -> str:
    """Send all bursts; return the reason if that fails, else ""."""
    if endpoint is None:
        return ""
    if plan.in_turn:
        each_bytes = sum(len(each.numbers) * each.nbytes for each in plan.bursts)
        endpoint.listen_survey(endpoint.rank * each_bytes / _PACE_BYTES_PER_S)
    until_s = time.monotonic() + plan.for_s
    try:
        for burst in plan.bursts:
            if time.monotonic() < until_s:
                endpoint.send_survey(*burst[:3], asks=burst.asks)
    except TransportError as error:
        return str(error)
    return ""


def _listen(endpoint: Endpoint, is_whole: Callable[[int, Heard], bool]) -> list[Heard]:
    """Listen until everything has arrived, or nothing arrives any more."""
    begin_s = latest_s = now_s = time.monotonic()
    known: list[Heard] = []
    while now_s < latest_s + _QUIET_S and now_s < begin_s + _LISTEN_S:
        heard = endpoint.listen_survey(_SLICE_S)
        now_s = time.monotonic()
        if heard != known:
            known, latest_s = heard, now_s
        if all(
            is_whole(place, each)
            for place, each in enumerate(heard)
            if place != endpoint.rank
        ):
            break
    return known
