# SPDX-License-Identifier: BSD-3-Clause
"""Replays of message schedules, which notice whatever a message cannot carry."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import numpy as np

from mpimcast._peers.schedule import Schedule

# Takes the next message to be received out of those on their way.
Take = Callable[[list[int]], int]


def orderly(schedule: Schedule) -> None:
    """Check that messages have two ends, and wait for what their sender receives."""
    before, after = schedule.dependencies
    assert (schedule.receiver[before] == schedule.sender[after]).all()
    assert (schedule.sender != schedule.receiver).all()
    begin, items = schedule.contents.items()
    sizes = schedule.contents.sizes[items].astype(np.int64)
    sums = np.add.reduceat(sizes, begin[:-1]) if len(sizes) else sizes
    assert schedule.nbytes.tolist() == sums.tolist()


def following(schedule: Schedule, message: int) -> list[int]:
    """Return the messages that wait for one."""
    first, end = schedule.next_first[message : message + 2]
    return list(schedule.next[first:end].tolist())


def gather(
    schedule: Schedule, has: np.ndarray, *, needless: bool = False
) -> np.ndarray:
    """Prove that each message carries what its sender has, and return what all have.

    A sender surely has what it had at first, and what messages brought that came before
    this one in every order that the dependencies allow.

    Parameters
    ----------
    schedule
        The schedule.
    has
        Which items each rank has at first, of shape (nranks, nitems).
    needless
        Whether messages may bring what their receivers have already.
    """
    orderly(schedule)
    begin, items = schedule.contents.items()
    waits = np.bincount(schedule.next, minlength=len(schedule.sender))
    ready = np.flatnonzero(waits == 0).tolist()
    known = {message: has.copy() for message in ready}
    final = has.copy()
    ndone = 0
    while ready:
        message = ready.pop()
        know = known.pop(message)
        carried = items[begin[message] : begin[message + 1]]
        sender, receiver = schedule.sender[message], schedule.receiver[message]
        assert know[sender, carried].all(), f"message {message} comes too early"
        know[receiver, carried] = True
        assert needless or not final[receiver, carried].any(), f"{message} is needless"
        final[receiver, carried] = True
        ndone += 1
        for later in following(schedule, message):
            known[later] = known[later] | know if later in known else know.copy()
            waits[later] -= 1
            if waits[later] == 0:
                ready.append(later)
    assert ndone == len(waits), "messages wait for each other in a circle"
    return final


def reduce(schedule: Schedule, owners: list[int], ranks: list[int], take: Take) -> None:
    """Check that each item comes to its owner with one contribution of every rank.

    A message takes what its sender has at the moment when it may start.

    Parameters
    ----------
    schedule
        The schedule.
    owners
        The rank where each item is to be added up.
    ranks
        Who contributes to each item.
    take
        Decides the order in which messages are received.
    """
    orderly(schedule)
    begin, items = schedule.contents.items()
    sums: dict[int, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for rank in ranks:
        sums[rank].update(dict.fromkeys(range(len(owners)), 1 << rank))
    waits = np.bincount(schedule.next, minlength=len(schedule.sender))
    under_way: list[int] = []
    sent: dict[int, dict[int, int]] = {}

    def start(message: int) -> None:
        carried = items[begin[message] : begin[message + 1]].tolist()
        held = sums[int(schedule.sender[message])]
        sent[message] = {item: held[item] for item in carried}
        under_way.append(message)

    for message in np.flatnonzero(waits == 0).tolist():
        start(message)
    ndone = 0
    while under_way:
        message = take(under_way)
        held = sums[int(schedule.receiver[message])]
        for item, value in sent.pop(message).items():
            assert value, f"message {message} adds nothing"
            assert not held[item] & value, f"message {message} adds something twice"
            held[item] |= value
        ndone += 1
        for later in following(schedule, message):
            waits[later] -= 1
            if waits[later] == 0:
                start(later)
    assert ndone == len(waits), "messages wait for each other in a circle"
    everybody = sum(1 << rank for rank in ranks)
    for item, owner in enumerate(owners):
        assert sums[owner][item] == everybody, f"item {item} is not complete"


def without_a_dependency(schedule: Schedule, index: int) -> Schedule:
    """Return a schedule in which one message need not wait for another any more."""
    before, _ = schedule.dependencies
    first = schedule.next_first.copy()
    first[before[index] + 1 :] -= np.uint64(1)
    return Schedule(
        schedule.sender,
        schedule.receiver,
        schedule.nbytes,
        first,
        np.delete(schedule.next, index),
        schedule.contents,
    )
