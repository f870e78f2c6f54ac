# SPDX-License-Identifier: BSD-3-Clause
"""How ranks agree on what each of them knows, on what each has done, and on settings.

All ranks learn the same facts, and so decide alike.
"""

from __future__ import annotations

import hashlib
import json
import socket
import struct
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from mpi4py import MPI

from mpimcast import __version__
from mpimcast._support.naming import listed, minority
from mpimcast.errors import ConfigError, Error, TransportError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mpimcast._mpi.private import Private
    from mpimcast._settings.config import Config

_T = TypeVar("_T")

# A slot holds the length of a fact's text, and the text. Most texts fit; if one does
# not, the slot holds its beginning.
_SLOT_TEXT_BYTES = 376
_SLOT = struct.Struct(f"=q{_SLOT_TEXT_BYTES}s")


# ---- facts -------------------------------------------------------------------


def exchange(
    private: Private,
    fact: object,
    limit_s: float,
    meanwhile: Callable[[], None] = lambda: None,
) -> list[Any]:
    """Give every rank's fact to all ranks. Collective.

    Ranks first share slots of equal size. Only if some fact does not fit into its slot
    do they share the facts themselves.

    Parameters
    ----------
    private
        The communicator of the ranks.
    fact
        This rank's fact, which JSON must be able to express.
    limit_s
        Seconds after which TimedOut is raised.
    meanwhile
        Called again and again while this rank waits.

    Returns
    -------
    list
        The facts, by rank.
    """

    def is_futile() -> bool:
        meanwhile()
        return False

    text = json.dumps(fact).encode()
    what = "agreeing on a communicator"
    sizes = [_SLOT.size] * private.Get_size()
    slot = _SLOT.pack(len(text), text)
    slots = private.share(slot, sizes, limit_s, what, is_futile=is_futile)
    lengths, texts = map(list, zip(*map(_SLOT.unpack, slots), strict=True))
    if max(lengths) > _SLOT_TEXT_BYTES:
        texts = private.share(text, lengths, limit_s, what, is_futile=is_futile)
    return [json.loads(t[:n]) for t, n in zip(texts, lengths, strict=True)]


# ---- what each rank did ------------------------------------------------------


@dataclass(frozen=True)
class Outcome(Generic[_T]):
    """The outcome of something that all ranks have done.

    Attributes
    ----------
    kept
        What this rank keeps; None if it has failed.
    facts : list
        What each rank tells the others, by rank.
    failures : dict
        Why ranks have failed, by rank; a rank that has not failed is not in it.
    """

    kept: _T | None
    facts: list[Any]
    failures: dict[int, str]


def act_on_all(
    act: Callable[[], tuple[_T, object]],
    tell: Callable[[tuple[str, object]], Sequence[Any]],
    kinds: tuple[type[Exception], ...] = (Error,),
) -> Outcome[_T]:
    """Run `act` on every rank, and tell all ranks which ranks have failed.

    Parameters
    ----------
    act
        Returns a value that this rank keeps, and a fact for the other ranks.
    tell
        Takes this rank's failure ("" for none) and its fact, gives both to all ranks,
        and returns the pairs of all ranks, by rank.
    kinds
        The errors by which a rank may fail; any other is raised on it at once.
    """
    kept, fact, failure = None, None, ""
    try:
        kept, fact = act()
    except kinds as error:
        failure = str(error) or type(error).__name__
    told = tell((failure, fact))
    failures = {rank: why for rank, (why, _) in enumerate(told) if why}
    return Outcome(kept, [fact for _, fact in told], failures)


def together(
    private: Private, config: Config, act: Callable[[], tuple[_T, object]]
) -> tuple[_T, list[Any]]:
    """Run `act` on every rank; return what this rank keeps, and all ranks' facts.

    If `act` raises an Error on some rank, all ranks raise the same TransportError.
    """

    def tell(told: tuple[str, object]) -> list[Any]:
        failure, fact = told
        if failure:
            failure += f" (on host {socket.gethostname()})"
        return exchange(private, [failure, fact], config.timeout)

    outcome = act_on_all(act, tell)
    if outcome.failures:
        rank, why = min(outcome.failures.items())
        raise TransportError(f"rank {rank}: {why}", ranks=(rank,))
    return cast("_T", outcome.kept), outcome.facts


# ---- settings ----------------------------------------------------------------


def agree(private: Private, config: Config) -> int:
    """Check that all ranks have equal settings; if not, all raise a ConfigError.

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
    """Return an error that names the settings that differ, their values and ranks."""
    parts = []
    culprits: set[int] = set()
    for name in sorted({name for each in settings for name in each}):
        values = {rank: each.get(name) for rank, each in enumerate(settings)}
        if len(set(values.values())) > 1:
            shown = {rank: repr(value) for rank, value in values.items()}
            parts.append(f"{name} is {listed(shown)}")
            culprits.update(minority(values))
    text = f"the ranks disagree: {'; '.join(parts)}. Give all ranks the same values"
    return ConfigError(text, ranks=sorted(culprits))
