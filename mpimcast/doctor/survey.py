# SPDX-License-Identifier: BSD-3-Clause
"""Numbered datagrams between the ranks of a team, and who has heard how many."""

from __future__ import annotations

import time
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from mpimcast._ffi import Heard
from mpimcast.errors import TransportError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from mpimcast import _ffi
    from mpimcast.doctor.ranks import Ranks
    from mpimcast.doctor.team import Team

_SLICE_S = 0.005

# What comes later than that after the last is not waited for, nor what takes longer.
_QUIET_S = 0.15
_LISTEN_S = 2.0

# How fast ranks that take turns may be, so that no queue on the way overflows.
_PACE_BYTES_PER_S = 12.5e6

_idents = count(1)


class Salvo(NamedTuple):
    """Datagrams that a rank sends.

    Attributes
    ----------
    peer : int or None
        A member of the team, by its place in it; None: all, by multicast.
    numbers : range
        Theirs.
    nbytes : int
        The payload of each.
    asks : bool
        Whether they go the way of control, and want answers.
    """

    peer: int | None
    numbers: range
    nbytes: int
    asks: bool = False


class Result(NamedTuple):
    """What became of a survey.

    Attributes
    ----------
    heard : dict
        By pairs of ranks, the sender first: what the second has heard.
    failures : dict
        Why a rank could not send, by rank.
    """

    heard: dict[tuple[int, int], Heard]
    failures: dict[int, str]


def survey(
    ranks: Ranks,
    team: Team,
    nnumbers: int,
    salvos: Sequence[Salvo],
    is_whole: Callable[[int, Heard], bool],
    *,
    in_turn: bool = False,
    for_s: float = float("inf"),
) -> Result:
    """Let all members send, and count what comes.

    Parameters
    ----------
    ranks
        All of which call, also those that are in no team.
    team
        Of those that are to be surveyed.
    nnumbers
        That a rank may send.
    salvos
        What this rank sends.
    is_whole
        Tells by a member's place whether nothing of it need be waited for any more.
    in_turn
        Whether members send one after the other.
    for_s
        How long a rank may send.
    """
    endpoint = team.endpoint
    ident = next(_idents)
    if endpoint is not None:
        endpoint.begin_survey(ident, nnumbers)
    ranks.exchange()
    failure = _send(endpoint, salvos, for_s, in_turn=in_turn)
    failures = ranks.exchange(failure, _listener(endpoint))
    heard = [] if endpoint is None else _listen(endpoint, is_whole)
    rows = ranks.exchange(heard, _listener(endpoint))
    return Result(
        {
            (team.members[place], rank): Heard(*each)
            for rank, row in enumerate(rows)
            for place, each in enumerate(row)
            if team.members[place] != rank
        },
        {rank: text for rank, text in enumerate(failures) if text},
    )


def _listener(endpoint: _ffi.Endpoint | None) -> Callable[[], None]:
    """Return what takes in what has come, for use while others are waited for."""

    def nothing() -> None:
        pass

    return nothing if endpoint is None else endpoint.move


def _send(
    endpoint: _ffi.Endpoint | None,
    salvos: Iterable[Salvo],
    for_s: float,
    *,
    in_turn: bool,
) -> str:
    """Send all; return why not, if it fails."""
    if endpoint is None:
        return ""
    if in_turn:
        each_bytes = sum(len(salvo.numbers) * salvo.nbytes for salvo in salvos)
        endpoint.listen_survey(endpoint.rank * each_bytes / _PACE_BYTES_PER_S)
    until_s = time.monotonic() + for_s
    try:
        for salvo in salvos:
            if time.monotonic() < until_s:
                endpoint.send_survey(*salvo[:3], asks=salvo.asks)
    except TransportError as error:
        return str(error)
    return ""


def _listen(
    endpoint: _ffi.Endpoint, is_whole: Callable[[int, Heard], bool]
) -> list[Heard]:
    """Listen until all has come or nothing comes any more."""
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
