# SPDX-License-Identifier: BSD-3-Clause
"""Calls the roll: finds out which ranks are there, and what each of them tells.

No collective call can find that out, since it waits for missing ranks. So facts spread
from neighbour to neighbour over a private communicator, in a graph with edges to the
ranks 1, 2, 4... away in both directions: a fact soon reaches all ranks that look for
messages, past those that do not, and no rank waits for another.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from array import array
from collections import Counter
from typing import TYPE_CHECKING, Any

from mpi4py import MPI

if TYPE_CHECKING:
    from collections.abc import Callable

# Messages of `private.Private.share` have tag 0.
_TAG = 1
_COUNT_TAG = 2

# How many topics are remembered; the oldest is forgotten first.
_TOPICS_MAX = 64

_DRAIN_PAUSE_S = 50e-6

# Requests that are no longer awaited, with the memory that MPI may still write to.
_abandoned: list[object] = []

# The shortest pause between two runs of `hear_all`.
_PAUSE_S = 0.02

# The shortest pause after a look for messages, as a multiple of its duration. Thus
# looks take at most a tenth of the time, even if a program has thousands of
# communicators, or if the MPI library yields the processor in each of its calls.
_PAUSE_PER_LOOK = 9

HERE = "here"
LEFT = "left"
GAVE_UP = "gave up"


class Pace:
    """The pace of looks for messages, which keeps them to a tenth of the time.

    Parameters
    ----------
    pause_s
        The shortest pause between two looks.
    """

    def __init__(self, pause_s: float = 0.0) -> None:
        self._pause_s = pause_s
        self._next_s = 0.0

    def take(self, look: Callable[[], None]) -> None:
        """Look, unless the pause after the look before has not ended yet."""
        begin_s = time.monotonic()
        if begin_s < self._next_s:
            return
        look()
        now_s = time.monotonic()
        pause_s = _PAUSE_PER_LOOK * (now_s - begin_s)
        self._next_s = now_s + max(self._pause_s, pause_s)


class Roll:
    """The facts that ranks of a private communicator tell each other, by topic.

    Any thread may call; where the MPI library does not allow that, only one does.

    Parameters
    ----------
    comm
        The communicator.
    answer
        Returns this rank's fact for a topic on which news arrived, or None if it has
        nothing to tell.

    Attributes
    ----------
    rank : int
        This rank in the communicator.
    """

    def __init__(
        self, comm: MPI.Intracomm, answer: Callable[[str], object] = lambda _topic: None
    ) -> None:
        self._comm = comm
        self._answer = answer
        self.rank, size = comm.Get_rank(), comm.Get_size()
        steps = [1 << k for k in range((size - 1).bit_length())]
        around = {(self.rank + way * step) % size for step in steps for way in (1, -1)}
        self._neighbours = sorted(around - {self.rank})
        self._lock = threading.Lock()
        # The fact of each rank, by topic, with a version that grows when it changes.
        self._topics: dict[str, dict[int, tuple[int, Any]]] = {}
        self._sends: list[tuple[MPI.Request, bytes]] = []
        self._arriving: list[tuple[MPI.Request, bytearray, int]] = []
        self._nsent: Counter[int] = Counter()
        self._nreceived: Counter[int] = Counter()
        self._closed = False
        self._pace = Pace()
        self._status = MPI.Status()

    def tell(self, topic: str, fact: object) -> None:
        """Tell all ranks a fact, which JSON must be able to express."""
        with self._lock, contextlib.suppress(MPI.Exception):
            if self._note(topic, fact):
                self._spread(topic)

    def hear(self) -> None:
        """Receive what has arrived, and pass on what is new, without waiting."""
        if not self._lock.acquire(blocking=False):
            return
        try:
            # The MPI library may refuse to send to any rank once one has died.
            with contextlib.suppress(MPI.Exception):
                for topic in self._receive():
                    fact = self._answer(topic)
                    if fact is not None:
                        self._note(topic, fact)
                    self._spread(topic)
        finally:
            self._lock.release()

    def attend(self) -> None:
        """Hear, unless that has just taken so long that the rank must do other work."""
        self._pace.take(self.hear)

    def facts(self, topic: str) -> dict[int, Any]:
        """Return the facts known by now, by rank."""
        with self._lock:
            known = self._topics.get(topic, {})
            return {rank: fact for rank, (_, fact) in known.items()}

    def numbers(self, group: MPI.Group) -> list[int]:
        """Return each of a group's ranks as numbered here, or MPI.UNDEFINED."""
        whole = self._comm.Get_group()
        try:
            return group.Translate_ranks(None, whole)
        finally:
            whole.Free()

    def gather(self, topic: str, fact: object, limit_s: float) -> dict[int, Any]:
        """Tell a fact; return the ranks' facts that arrive within `limit_s`."""
        self.tell(topic, fact)
        deadline_s = time.monotonic() + limit_s
        size = self._comm.Get_size()
        while len(facts := self.facts(topic)) < size:
            if time.monotonic() > deadline_s:
                break
            time.sleep(1e-3)
            self.hear()
        return facts

    def drain(self, limit_s: float) -> bool:
        """Receive all that is still on its way, and tell nothing more.

        All ranks call it before they free the communicator: Open MPI would deliver
        later arrivals on the next communicator with the same number, in place of its
        own messages. Returns whether all neighbours took part.
        """
        told = {each: array("q", [0]) for each in self._neighbours}
        with self._lock:
            self._closed = True
            sent = {each: array("q", [self._nsent[each]]) for each in told}
            requests = [
                self._comm.Irecv(n, each, _COUNT_TAG) for each, n in told.items()
            ]
            requests += [
                self._comm.Isend(n, each, _COUNT_TAG) for each, n in sent.items()
            ]
        deadline_s = time.monotonic() + limit_s
        while time.monotonic() < deadline_s:
            with self._lock:
                self._receive()
                self._tidy()
                done = [each.Test() for each in requests]
                here = [self._nreceived[each] == n[0] for each, n in told.items()]
                if all(done) and all(here) and not self._sends:
                    return True
            time.sleep(_DRAIN_PAUSE_S)
        _abandoned.append((requests, told, sent))
        return False

    def _note(self, topic: str, fact: object) -> bool:
        """Record this rank's own fact; return whether it is new."""
        known = self._known(topic)
        version, before = known.get(self.rank, (0, None))
        if before == fact:
            return False
        known[self.rank] = version + 1, fact
        return True

    def _known(self, topic: str) -> dict[int, tuple[int, Any]]:
        if topic not in self._topics and len(self._topics) == _TOPICS_MAX:
            del self._topics[next(iter(self._topics))]
        return self._topics.setdefault(topic, {})

    def _receive(self) -> list[str]:
        """Receive all that has arrived; return the topics that brought news."""
        fresh: dict[str, None] = {}
        status = self._status
        while self._comm.Iprobe(MPI.ANY_SOURCE, _TAG, status):
            text = bytearray(status.Get_count(MPI.BYTE))
            source = status.Get_source()
            request = self._comm.Irecv([text, MPI.BYTE], source, _TAG)
            self._arriving.append((request, text, source))
        # A long message arrives only while its sender makes MPI calls.
        arriving, self._arriving = self._arriving, []
        for request, text, source in arriving:
            if not request.Test():
                self._arriving.append((request, text, source))
                continue
            self._nreceived[source] += 1
            topic, told = json.loads(text)
            known = self._known(topic)
            for rank, version, fact in told:
                if known.get(rank, (0, None))[0] < version:
                    known[rank] = version, fact
                    fresh[topic] = None
        return list(fresh)

    def _spread(self, topic: str) -> None:
        """Send all that is known of a topic to the neighbours."""
        if self._closed:
            return
        told = [[rank, *fact] for rank, fact in self._topics[topic].items()]
        text = json.dumps([topic, told]).encode()
        self._tidy()
        self._nsent.update(self._neighbours)
        self._sends += [
            (self._comm.Isend([text, MPI.BYTE], neighbour, _TAG), text)
            for neighbour in self._neighbours
        ]

    def _tidy(self) -> None:
        """Remove the sends that have completed."""
        self._sends = [each for each in self._sends if not each[0].Test()]


# ---- all rolls of this process -----------------------------------------------

_rolls: list[Roll] = []
_pace = Pace(_PAUSE_S)


def add(roll: Roll) -> None:
    """Make `hear_all` attend to a roll."""
    _rolls.append(roll)


def remove(roll: Roll) -> None:
    """Make `hear_all` stop attending to a roll."""
    if roll in _rolls:
        _rolls.remove(roll)


def covering(group: MPI.Group) -> Roll | None:
    """Return the roll of a communicator that has all ranks of a group, if any."""
    for roll in _rolls:
        if MPI.UNDEFINED not in roll.numbers(group):
            return roll
    return None


def hear_all() -> None:
    """Hear all rolls that were added, though not more often than every `_PAUSE_S`."""
    _pace.take(_hear_each)


def _hear_each() -> None:
    for each in tuple(_rolls):
        each.hear()
