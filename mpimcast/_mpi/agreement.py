# SPDX-License-Identifier: BSD-3-Clause
"""How ranks agree on their facts, on what each of them did, and on settings.

Ranks wait only for non-blocking MPI calls, which are tested against a deadline, and
exchange facts on private communicators. All ranks decide by the same facts.
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

from mpimcast import __version__
from mpimcast._mpi import roll
from mpimcast._mpi.absence import Absence
from mpimcast._support.naming import listed, minority
from mpimcast.errors import ConfigError, Error, TimedOut, TransportError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mpimcast._settings.config import Config

_T = TypeVar("_T")

# A longer poll (of a stopped process, or a suspended machine) is charged only this.
_POLL_S_MAX = 0.1
_PAUSE_S_MIN = 20e-6
_PAUSE_S_MAX = 1e-3
# The share of the time waited that each pause lasts, so that long waits cost no core.
_PAUSE_SHARE = 1 / 16

# A communicator that some rank does not free within this time is never freed.
_DRAIN_S = 10.0

# The text of a fact, after its length; most facts fit.
_SLOT_TEXT_BYTES = 376
_SLOT = struct.Struct(f"=q{_SLOT_TEXT_BYTES}s")

# Requests that are no longer awaited, with the memory that MPI may still write to.
_abandoned: list[object] = []

# Topics of the roll: the numbered calls of `share`, and the numbered entries into a
# communicator of the same processes.
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
        The request to wait for.
    limit_s
        Seconds of observed time after which TimedOut is raised.
    what
        The purpose of the wait, as messages word it.
    buffers
        The memory that the call uses; not every mpi4py request keeps it alive.
    vain
        Called before each pause; returns whether to give up waiting.
    absence
        Finds out which ranks are missing; None where that does not matter.
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
        Messages and bytes that `share` has sent. It receives as many messages, and as
        many bytes where all blocks have one size.
    warn_after : float
        The setting WARN_AFTER.
    doing : str
        The operation that this rank is in, as told to ranks that wait for it here.
    leaving : bool
        Whether this rank will take part in no further `share`.
    """

    nmessages = 0
    nbytes = 0
    warn_after = math.inf
    doing = ""
    leaving = False
    _nshares = 0

    @cached_property
    def roll(self) -> roll.Roll:
        """The roll of this communicator's ranks."""
        return roll.Roll(self, self._answer)

    def attend(self) -> None:
        """Answer the roll from now on even while this rank waits elsewhere."""
        roll.add(self.roll)

    def _answer(self, topic: str) -> str | None:
        """Return this rank's answer to a topic: HERE, LEFT, or what it is doing."""
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
        """Free the communicator once no message is under way. Collective."""
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
        """Give every rank's block to all ranks, which know all blocks' sizes.

        Bruck's algorithm sends one message in each of ceil(log2 P) rounds, while an
        Iallgather may send one to every other rank, as Open MPI's does.
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
        blocks = [block]  # from this rank's on, in rank order
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
    """A private duplicate in the making, which is ready once all ranks have entered."""

    def __init__(self, comm: MPI.Intracomm) -> None:
        self._group = comm.Get_group()
        self._key = _key_of(self._group)
        _entries[self._key] += 1
        self._number = _entries[self._key]
        self._private, self._request = MPI.Intracomm.Idup(comm)

    def join(self) -> Private:
        """Return the duplicate to a rank that ends and will not use it itself."""
        complete(self._request, math.inf, "ending")
        return self._made()

    def wait(self, config: Config) -> Private:
        """Return the duplicate once all ranks have entered."""
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
        """Return a wait that finds missing ranks over a communicator already open."""
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
        """Let late ranks finish, since the MPI library would fail on freed memory."""
        _abandoned.append(self)
        with contextlib.suppress(TimedOut):
            complete(self._request, config.timeout, "closing a communicator")


def depart() -> None:
    """Answer from now on that this process opens no further communicator."""
    global _departing  # noqa: PLW0603 -- there is one in a process
    _departing = True


def _key_of(group: MPI.Group) -> str:
    """Return a key equal on a group's ranks; "" if one of them is not in COMM_WORLD."""
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
    """Give every rank's `fact`, which JSON must be able to express, to all ranks.

    One gathering suffices where all facts fit into slots of equal size, as most do.
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
    """Run `act` on every rank, and tell all ranks the results.

    `act` returns a value to keep and a fact, fit for JSON, to tell. If it raises an
    Error on one rank, all ranks raise the same TransportError.
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
        The least thread level of all ranks' MPI libraries.
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
