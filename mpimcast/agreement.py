# SPDX-License-Identifier: BSD-3-Clause
"""How ranks agree: on what each of them knows, did, and has for settings.

Every MPI call here is non-blocking, on a communicator of our own, and tested
against a deadline. Whoever decides something has the same facts as the others.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import socket
import struct
import sys
import time
from itertools import accumulate
from typing import TYPE_CHECKING, Any, TypeVar, cast

from mpi4py import MPI

from mpimcast import __version__
from mpimcast.errors import ConfigError, Error, TimedOut, TransportError
from mpimcast.log import logger

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
_PATIENCE_S = 60.0

# What a rank tells, with its length before it; most facts fit.
_SLOT_TEXT_BYTES = 248
_SLOT = struct.Struct(f"=q{_SLOT_TEXT_BYTES}s")

# What MPI may still write to although nobody waits for it any more.
_abandoned: list[object] = []


# ---- waiting and exchanging --------------------------------------------------


def complete(
    request: MPI.Request,
    limit_s: float,
    what: str,
    *,
    buffers: object = None,
    vain: Callable[[], bool] = lambda: False,
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
    """
    waited_s = 0.0
    warned = False
    pause_s = _PAUSE_S_MIN
    now_s = time.monotonic()
    try:
        while not (request.Test() or vain()):
            time.sleep(pause_s)
            before_s, now_s = now_s, time.monotonic()
            waited_s += min(now_s - before_s, _POLL_S_MAX)
            pause_s = min(max(_PAUSE_S_MIN, _PAUSE_SHARE * waited_s), _PAUSE_S_MAX)
            if waited_s > limit_s:
                raise TimedOut(f"{what}: not all ranks took part within {limit_s:g} s")
            if waited_s > _PATIENCE_S and not warned:
                logger.warning("%s waits for other ranks since %g s", what, _PATIENCE_S)
                warned = True
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
    """

    nmessages = 0
    nbytes = 0

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
        rank, size = self.Get_rank(), self.Get_size()
        blocks = [block]  # of this rank and of those after it
        while (have := len(blocks)) < size:
            lacking = range(rank + have, rank + min(2 * have, size))
            lengths = [sizes[each % size] for each in lacking]
            place = bytearray(sum(lengths))
            sent = b"".join(blocks[: len(lacking)])
            requests = (
                self.Irecv([place, MPI.BYTE], (rank + have) % size),
                self.Isend([sent, MPI.BYTE], (rank - have) % size),
            )
            for request in requests:
                complete(request, limit_s, what, buffers=(place, sent), vain=vain)
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
        self._private, self._request = MPI.Intracomm.Idup(comm)

    def wait(self, config: Config) -> Private:
        """Return the duplicate."""
        complete(self._request, config.entry_timeout, "opening a communicator")
        return Private(self._private)

    def give_up(self, config: Config) -> None:
        """Let ranks that come late finish, or the library fails on freed memory."""
        _abandoned.append(self)
        with contextlib.suppress(TimedOut):
            complete(self._request, config.timeout, "closing a communicator")


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
    raise ConfigError(_difference(exchange(private, mine, config.timeout)))


def _difference(settings: Sequence[dict[str, object]]) -> str:
    """Name the settings that differ, with values and ranks."""
    parts = []
    for name in sorted({name for each in settings for name in each}):
        ranks: dict[object, list[int]] = {}
        for rank, each in enumerate(settings):
            ranks.setdefault(each.get(name), []).append(rank)
        if len(ranks) > 1:
            values = ", ".join(f"{v!r} on {_named(r)}" for v, r in ranks.items())
            parts.append(f"{name} is {values}")
    return f"the ranks disagree: {'; '.join(parts)}. Give all ranks the same"


def _named(ranks: list[int]) -> str:
    """Name some ranks, not all of thousands."""
    many = 8
    shown = ", ".join(map(str, ranks[:many]))
    more = f" and {len(ranks) - many} more" if len(ranks) > many else ""
    return f"rank{'s' if len(ranks) > 1 else ''} {shown}{more}"
