# SPDX-License-Identifier: BSD-3-Clause
"""Turns failures of operations into errors that say what failed, where and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpimcast._core import lib
from mpimcast._native.core import KIND_NAMES, NOBODY, last_error, string
from mpimcast.errors import Error, RankLeft, TimedOut, TransportError

if TYPE_CHECKING:
    from mpimcast._core import _CData as CData
    from mpimcast._native.calls import AnyStream

_ERRORS = {
    -lib.MMC_ENOANSWER: TimedOut,
    -lib.MMC_ENOPROGRESS: TimedOut,
    -lib.MMC_ENOENTRY: TimedOut,
    -lib.MMC_ELEFT: RankLeft,
    -lib.MMC_EGONE: RankLeft,
    -lib.MMC_ELATE: TimedOut,
    -lib.MMC_EIO: TransportError,
    -lib.MMC_ENODEV: TransportError,
}

_SAME_MEMORY = "the ranks of a node must pass the same shared memory"

# Texts that say what the rank at fault did, by error. Each follows the rank's name.
_WHAT_A_RANK_DID = {
    -lib.MMC_ECANCELED: "was interrupted and gave up the operation",
    -lib.MMC_ELEFT: "left without entering the operation: the program ended there, or "
    "freed the communicator",
}


def operation_error(
    stream: AnyStream, name: str, failure: CData, reason: str, ranks: tuple[int, ...]
) -> Error:
    """Return the error of an operation that failed on this rank.

    Record the failure as the stream's first if the stream has had none.

    Parameters
    ----------
    stream
        The operation's stream.
    name
        The operation in words, with which the error's text begins.
    failure
        C's struct mmc_failure.
    reason
        Why it failed, in words.
    ranks
        The ranks that caused the failure, if they are known.
    """
    stream.first_failure = stream.first_failure or (reason, ranks)
    missing = ""
    if failure.missing_chunks:
        missing = f". {failure.missing_chunks} chunks were missing here"
    return _ERRORS.get(failure.error, Error)(
        f"{name} failed on {_here(stream)}, "
        f"operation {failure.epoch}: {reason}{missing}",
        epoch=int(failure.epoch),
        ranks=ranks,
        missing_chunks=int(failure.missing_chunks),
    )


def poison_error(stream: AnyStream) -> Error:
    """Return the error of operations after a failure, which tells of that failure."""
    failure = stream.failure()
    reason, ranks = stream.first_failure or (
        reason_of(stream, failure, last_error()),
        culprits_of(stream, failure),
    )
    return _ERRORS.get(failure.error, Error)(
        f"{stream.words.whole} is unusable on {_here(stream)} since its operation "
        f"{failure.epoch} failed: {reason}. {stream.words.remedy}",
        epoch=int(failure.epoch),
        ranks=ranks,
    )


def _here(stream: AnyStream) -> str:
    """Return this rank in words."""
    return stream.words.here(stream.rank, stream.nranks)


def culprits_of(stream: AnyStream, failure: CData) -> tuple[int, ...]:
    """Return the ranks that caused a failure, if they are known."""
    if failure.culprit == NOBODY:
        return ()
    return (stream.words.number(int(failure.culprit)),)


def _difference(failure: CData) -> str:
    """Return in words what differs between the ranks, and what must be equal."""
    if failure.kind_min != failure.kind_max:
        some, others = (KIND_NAMES[k] for k in (failure.kind_min, failure.kind_max))
        return f"some called {some}, others {others}; all must call the same collective"
    if failure.root_min != failure.root_max:
        low, high = failure.root_min, failure.root_max
        return f"roots range from {low} to {high}; all must pass the same root"
    if failure.kind_min == lib.MMC_ALLGATHERV:
        return (
            "blocks have different sizes, or go to different memory; all must pass "
            f"the same counts, and {_SAME_MEMORY}"
        )
    if failure.block_bytes_min == failure.block_bytes_max:
        return (
            "ranks of a node passed different shared memory, or some passed private "
            f"memory; {_SAME_MEMORY}"
        )
    what = "data has" if failure.kind_min == lib.MMC_BCAST else "blocks have"
    return (
        f"{what} {failure.block_bytes_min} to {failure.block_bytes_max} bytes; all "
        "must pass the same number of bytes"
    )


def _overdue(stream: AnyStream, failure: CData, who: str, seen: str) -> str:
    """Return in words that rank `who` was awaited in vain, and for how long.

    Return "" for errors that are not about a wait. `seen` is as for `reason_of`.
    """
    config = stream.config
    how = f"({seen})" if seen else f"within TIMEOUT ({config.timeout:g} s)"
    gone = stream.how_gone(int(failure.culprit))
    return {
        -lib.MMC_ENOANSWER: (
            f"{who} has not answered {how}; check that its process is running and "
            "its network works"
        ),
        -lib.MMC_ENOPROGRESS: (
            f"all ranks had entered, but nothing new arrived from {who} within TIMEOUT "
            f"({config.timeout:g} s); check that the network passes multicast, or set "
            "a longer MPIMCAST_TIMEOUT"
        ),
        -lib.MMC_ENOENTRY: (
            f"{who} did not enter the operation within ENTRY_TIMEOUT "
            f"({config.entry_timeout:g} s)"
        ),
        -lib.MMC_EGONE: (f"the process of {who} has ended{gone}"),
        -lib.MMC_ELATE: (
            f"the process of {who} has stood still for longer than LATE_TIMEOUT "
            f"({config.late_timeout:g} s), although its host answers; check whether a "
            "debugger or a signal has stopped it"
        ),
    }.get(int(failure.error), "")


def reason_of(stream: AnyStream, failure: CData, seen: str) -> str:
    """Return in words why an operation failed.

    Parameters
    ----------
    stream
        The operation's stream.
    failure
        C's struct mmc_failure.
    seen
        The report of this rank's device or kernel on the failure; "" if there is none.
    """
    who = (
        " and ".join(f"rank {rank}" for rank in culprits_of(stream, failure))
        or "a rank"
    )
    overdue = _overdue(stream, failure, who, seen)
    if overdue:
        return overdue
    if failure.error == -lib.MMC_EMISMATCH:
        return f"the ranks disagree: {_difference(failure)}"
    if failure.error in _WHAT_A_RANK_DID:
        return f"{who} {_WHAT_A_RANK_DID[failure.error]}"
    what = f"{string(lib.mmc_strerror(failure.error))}, at {who}"
    return f"{what} ({seen})" if seen else what
