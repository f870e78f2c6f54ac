# SPDX-License-Identifier: BSD-3-Clause
"""How ranks agree: on what each of them knows, did, and has for settings.

Every MPI call here is non-blocking, on a communicator of our own, and tested
against a deadline. Whoever decides something has the same facts as the others.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import socket
import struct
import sys
import time
from array import array
from collections import Counter
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any, TypeVar, cast

from mpi4py import MPI

from mpimcast import __version__, roll
from mpimcast.absence import Absence
from mpimcast.errors import ConfigError, Error, TimedOut, TransportError
from mpimcast.naming import listed, minority

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mpimcast.config import Config

_T = TypeVar("_T")

# A poll that takes longer (a stopped process, a suspended machine) counts as this.
_POLL_S_MAX = 0.1
_PAUSE_S_MIN = 20e-6
_PAUSE_S_MAX = 1e-3
# Of what has been waited already, so that long waits cost no core.
_PAUSE_SHARE = 1 / 16

# A communicator that some rank does not free in time is never freed.
_DRAIN_S = 10.0

# What a rank tells, with its length before it; most facts fit.
_SLOT_TEXT_BYTES = 376
_SLOT = struct.Struct(f"=q{_SLOT_TEXT_BYTES}s")

# What MPI may still write to although nobody waits for it any more.
_abandoned: list[object] = []

# Topics of the roll: a call of `share` by its number, and the entry into the next
# communicator of certain processes.
_SHARE, _ENTRY = "share", "entry"
_entries: Counter[str] = Counter()
_departing = False


# ---- waiting and exchanging --------------------------------------------------


def complete(
    request: MPI.Request,
    limit_s: float,
    what: str,
    *,
    buffers: object = None,
    vain: Callable[[], bool] = lambda: False,
    absence: Absence | None = None,
) -> None:
    """Wait for a non-blocking call.

    Parameters
    ----------
    request
        What to wait for.
    limit_s
        Seconds of observed time after which TimedOut is raised.
    what
        What is waited for, for messages.
    buffers
        What the call writes to; not every request of mpi4py's holds on to that.
    vain
        Asked now and then whether to give up waiting.
    absence
        Finds out who is missing, where that matters.
    """
    waited_s = 0.0
    pause_s = _PAUSE_S_MIN
    now_s = time.monotonic()
    try:
        while not (request.Test() or vain()):
            time.sleep(pause_s)
            before_s, now_s = now_s, time.monotonic()
            waited_s += min(now_s - before_s, _POLL_S_MAX)
            pause_s = min(max(_PAUSE_S_MIN, _PAUSE_SHARE * waited_s), _PAUSE_S_MAX)
            roll.hear_all()
            if absence is not None:
                absence.look()
            if waited_s > limit_s:
                text = f"{what}: not all ranks took part within {limit_s:g} s"
                if absence is None:
                    raise TimedOut(text)
                error = TimedOut(f"{text}: {absence.reason()}", ranks=absence.missing())
                absence.give_up()
                raise error
    finally:
        if request:
            _abandoned.append((request, buffers))


class Private(MPI.Intracomm):
    """A private duplicate of a communicator, which counts what it costs this rank.

    Attributes
    ----------
    nmessages, nbytes : int
        What `share` has sent. It receives as many messages, and as many bytes where
        blocks are of one size.
    warn_after : float
        The setting WARN_AFTER.
    doing : str
        What this rank waits for elsewhere, for those that wait for it here.
    leaving : bool
        Whether this rank will not share anything any more.
    """

    nmessages = 0
    nbytes = 0
    warn_after = math.inf
    doing = ""
    leaving = False
    _nshares = 0

    @cached_property
    def roll(self) -> roll.Roll:
        """The roll of its ranks."""
        return roll.Roll(self, self._answer)

    def attend(self) -> None:
        """Answer from here on also while this rank waits for something else."""
        roll.add(self.roll)

    def _answer(self, topic: str) -> str | None:
        """Tell a rank that waits whether this one has come, or ever will."""
        kind, *words = topic.split()
        if kind == _SHARE:
            come, leaving = int(words[0]) <= self._nshares, self.leaving
        elif kind == _ENTRY:
            come, leaving = int(words[1]) <= _entries[words[0]], _departing
        else:
            return None
        if come:
            return roll.HERE
        return roll.LEFT if leaving else self.doing or None

    def Free(self) -> None:  # noqa: N802 -- mpi4py's name
        """Free it, once nothing is on its way to any rank. Collective."""
        roll.remove(self.roll)
        if self.roll.drain(_DRAIN_S):
            super().Free()

    def share(
        self,
        block: bytes,
        sizes: Sequence[int],
        limit_s: float,
        what: str,
        *,
        vain: Callable[[], bool] = lambda: False,
    ) -> list[bytes]:
        """Give every rank's block, whose sizes all know, to all ranks.

        Bruck's way: a message a round, and so many rounds as P has bits. Iallgather
        may send one to every other rank, as Open MPI's does.
        """
        self._nshares += 1
        absence = Absence(
            what,
            limit_s,
            self.warn_after,
            roll=self.roll,
            topic=f"{_SHARE} {self._nshares}",
            members=range(self.Get_size()),
        )

        def wait(request: MPI.Request, buffers: object) -> None:
            complete(
                request, limit_s, what, buffers=buffers, vain=vain, absence=absence
            )

        try:
            return self._share(block, sizes, wait)
        except Error:
            raise
        except BaseException:
            absence.leave()
            raise

    def _share(
        self,
        block: bytes,
        sizes: Sequence[int],
        wait: Callable[[MPI.Request, object], None],
    ) -> list[bytes]:
        rank, size = self.Get_rank(), self.Get_size()
        blocks = [block]  # of this rank and of those after it
        while (have := len(blocks)) < size:
            lacking = range(rank + have, rank + min(2 * have, size))
            lengths = [sizes[each % size] for each in lacking]
            place = bytearray(sum(lengths))
            sent = b"".join(blocks[: len(lacking)])
            requests = (
                self.Irecv([place, MPI.BYTE], (rank + have) % size, tag=0),
                self.Isend([sent, MPI.BYTE], (rank - have) % size),
            )
            for request in requests:
                wait(request, (place, sent))
            blocks += _split(place, lengths)
            self.nmessages += 1
            self.nbytes += len(sent)
        first = size - rank
        return blocks[first:] + blocks[:first]


def _split(whole: bytearray, lengths: Sequence[int]) -> list[bytes]:
    ends = accumulate(lengths)
    return [bytes(whole[end - n : end]) for end, n in zip(ends, lengths, strict=True)]


class Entry:
    """A private duplicate of a communicator, there once all ranks have entered."""

    def __init__(self, comm: MPI.Intracomm) -> None:
        self._group = comm.Get_group()
        self._key = _key_of(self._group)
        _entries[self._key] += 1
        self._number = _entries[self._key]
        self._private, self._request = MPI.Intracomm.Idup(comm)

    def join(self) -> Private:
        """Return the duplicate, for a rank that ends and will not use it itself."""
        complete(self._request, math.inf, "ending")
        return self._made()

    def wait(self, config: Config) -> Private:
        """Return the duplicate."""
        what = "opening a communicator"
        limit_s = config.entry_timeout
        absence = self._absence(what, limit_s, config.warn_after)
        complete(self._request, limit_s, what, absence=absence)
        private = self._made()
        private.warn_after = config.warn_after
        return private

    def _made(self) -> Private:
        self._group.Free()
        private = Private(self._private)
        private.attend()
        return private

    def _absence(self, what: str, limit_s: float, warn_after_s: float) -> Absence:
        """Find who is missing by way of a communicator that is open already."""
        whole = roll.covering(self._group) if self._key else None
        return Absence(
            what,
            limit_s,
            warn_after_s,
            roll=whole,
            topic=f"{_ENTRY} {self._key} {self._number}",
            members=whole.numbers(self._group) if whole is not None else (),
        )

    def give_up(self, config: Config) -> None:
        """Let ranks that come late finish, or the library fails on freed memory."""
        _abandoned.append(self)
        with contextlib.suppress(TimedOut):
            complete(self._request, config.timeout, "closing a communicator")


def depart() -> None:
    """Tell whoever asks from now on that this process opens nothing any more."""
    global _departing  # noqa: PLW0603 -- there is one in a process
    _departing = True


def _key_of(group: MPI.Group) -> str:
    """Return what is equal on all ranks of a group; "" if they differ in the world."""
    world = MPI.COMM_WORLD.Get_group()
    ranks = group.Translate_ranks(None, world)
    world.Free()
    if MPI.UNDEFINED in ranks:
        return ""
    return hashlib.sha256(array("q", ranks).tobytes()).hexdigest()[:16]


def exchange(
    private: Private,
    fact: object,
    limit_s: float,
    meanwhile: Callable[[], None] = lambda: None,
) -> list[Any]:
    """Give every rank's `fact`, anything that JSON can say, to all ranks.

    Facts that fit into slots of equal size, as most do, are gathered once.
    """

    def vain() -> bool:
        meanwhile()
        return False

    text = json.dumps(fact).encode()
    what = "agreeing on a communicator"
    sizes = [_SLOT.size] * private.Get_size()
    slot = _SLOT.pack(len(text), text)
    slots = private.share(slot, sizes, limit_s, what, vain=vain)
    lengths, texts = map(list, zip(*map(_SLOT.unpack, slots), strict=True))
    if max(lengths) > _SLOT_TEXT_BYTES:
        texts = private.share(text, lengths, limit_s, what, vain=vain)
    return [json.loads(t[:n]) for t, n in zip(texts, lengths, strict=True)]


def together(
    private: Private, config: Config, act: Callable[[], tuple[_T, object]]
) -> tuple[_T, list[Any]]:
    """Let every rank `act`, and tell all what came of it.

    `act` returns something to keep and something, fit for JSON, to tell. Where it
    raises an Error on one rank, all ranks raise the same TransportError.
    """
    kept, fact = None, None
    failure = ""
    try:
        kept, fact = act()
    except Error as error:
        failure = f"{error} (on host {socket.gethostname()})"
    facts = exchange(private, [failure, fact], config.timeout)
    for rank, (failure, _) in enumerate(facts):
        if failure:
            raise TransportError(f"rank {rank}: {failure}", ranks=(rank,))
    return cast("_T", kept), [fact for _, fact in facts]


# ---- settings ----------------------------------------------------------------


def agree(private: Private, config: Config) -> int:
    """Raise the same ConfigError on all ranks unless their settings are equal.

    Returns
    -------
    int
        The thread level that every rank's MPI library has.
    """
    mine: dict[str, object] = {
        **config.agreed(),
        "version of mpimcast": __version__,
        "byte order": sys.byteorder,
    }
    digest = hashlib.sha256(json.dumps(mine).encode()).digest()
    packed = struct.Struct(f"={len(digest)}si")
    facts = private.share(
        packed.pack(digest, MPI.Query_thread()),
        [packed.size] * private.Get_size(),
        config.timeout,
        "agreeing on settings",
    )
    digests, levels = zip(*map(packed.unpack, facts), strict=True)
    if set(digests) == {digest}:
        return int(min(levels))
    raise _disagreement(exchange(private, mine, config.timeout))


def _disagreement(settings: Sequence[dict[str, object]]) -> ConfigError:
    """Name the settings that differ, with their values and ranks."""
    parts = []
    culprits: set[int] = set()
    for name in sorted({name for each in settings for name in each}):
        values = {rank: each.get(name) for rank, each in enumerate(settings)}
        if len(set(values.values())) > 1:
            shown = {rank: repr(value) for rank, value in values.items()}
            parts.append(f"{name} is {listed(shown)}")
            culprits.update(minority(values))
    text = f"the ranks disagree: {'; '.join(parts)}. Give all ranks the same"
    return ConfigError(text, ranks=sorted(culprits))
