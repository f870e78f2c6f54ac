# SPDX-License-Identifier: BSD-3-Clause
"""What operations need of the streams that they run on, whatever a stream's kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable

    from mpimcast._core import _CData as CData
    from mpimcast._native.layout import Layout
    from mpimcast._native.words import Words
    from mpimcast._settings.config import Config


class Calls(NamedTuple):
    """The C functions for the operations of one kind of stream.

    Attributes
    ----------
    request : str
        The C type of a request.
    start, wait, ready, cancel, free, failure, waiting
        C's functions for an operation and its request, as ``mmc_start`` and its like
        in the header request.h.
    wait_range, wait_block, tell_blocks, present
        C's functions for parts of its result, as ``mmc_request_wait_range`` and its
        like in the header partial.h.
    stream_failure
        C's function for the first failure of a stream.
    names
        The names in C of the functions `start`, `cancel` and `free`.
    set_trace
        C's function that has a stream traced.
    """

    request: str
    start: Callable[[CData, CData, int, CData], int]
    wait: Callable[[CData, int], int]
    ready: Callable[[CData], None]
    cancel: Callable[[CData], None]
    free: Callable[[CData], None]
    failure: Callable[[CData, CData], None]
    waiting: Callable[[CData, CData], None]
    wait_range: Callable[[CData, CData, int], int]
    wait_block: Callable[[CData, int, int, CData], int]
    tell_blocks: Callable[[CData], None]
    present: Callable[[CData, CData], int]
    stream_failure: Callable[[CData, CData], None]
    names: tuple[str, str, str]
    set_trace: Callable[[CData, CData, int], int]


class Notifications(Protocol):
    """Notifications of the progress of operations, which one thread awaits."""

    def wait(self) -> None:
        """Sleep until something has happened since the last call, or until `rouse`."""

    def rouse(self) -> None:
        """Wake the thread that sleeps in `wait`; if none does, end the next wait."""

    def close(self) -> None:
        """Release what the notifications come from."""


class UnicastReason(NamedTuple):
    """Since when, and why, blocks go from neighbour to neighbour by unicast.

    They do while multicast is suspended, since it does not reach all ranks.

    Attributes
    ----------
    epoch : int
        The first operation without multicast; 0 if multicast is not suspended.
    rank : int
        The rank that multicast does not reach.
    sender : int or None
        The rank whose multicast does not reach it; None if no rank's does.
    """

    epoch: int
    rank: int
    sender: int | None

    def __str__(self) -> str:
        """Return the reason in words that follow "since"."""
        sender = "any rank" if self.sender is None else f"rank {self.sender}"
        return (
            f"operation {self.epoch} blocks go round a ring by unicast, because rank "
            f"{self.rank} hears no multicast from {sender}"
        )


class AnyStream(Protocol):
    """A sequence of operations that all ranks start in the same order.

    Attributes
    ----------
    calls : Calls
        C's functions for its operations.
    c
        C's stream.
    channel : int
        The stream's name, equal on all ranks.
    rank, nranks : int
        This rank, and how many there are.
    config : Config
        The settings.
    sources : tuple
        For each place from which news of its operations may come, a function that
        makes the notifications.
    first_failure : tuple or None
        The first failure on this rank, if any: the reason, and the ranks at fault.
    words : Words
        How errors name what it belongs to, and its ranks.
    """

    calls: Calls
    c: CData
    channel: int
    rank: int
    nranks: int
    config: Config
    sources: tuple[Callable[[], Notifications], ...]
    first_failure: tuple[str, tuple[int, ...]] | None
    words: Words

    @property
    def layout(self) -> Layout | None:
        """Which ranks share memory, by which it carries data; None if none do."""

    @property
    def between(self) -> AnyStream | None:
        """The stream that sends this rank's data to other nodes, if one does."""

    def failure(self) -> CData:
        """Return C's struct mmc_failure of the first failure; `error` 0 for none."""

    def poisoned(self) -> bool:
        """Return whether an operation of the stream has failed."""

    def deserted(self) -> bool:
        """Return whether an operation failed because some rank no longer answers."""

    def how_gone(self, rank: int) -> str:
        """Return how this rank knows that a rank's process has ended.

        The words follow "has ended".
        """

    def make_progress(self) -> None:
        """Make progress, without waiting, where no thread of the C library does."""

    def leave(self) -> None:
        """Tell the other ranks that this rank will start no further operation."""

    def multicast_is_suspended(self) -> bool:
        """Return whether multicast is suspended, see `UnicastReason`."""

    def unicast_reason(self) -> UnicastReason:
        """Return why multicast is suspended; `epoch` is 0 if it no longer is."""

    def counters(self) -> Counter[str]:
        """Return all counters by name."""

    def close(self) -> None:
        """Free the stream. No other rank may need this one's answers any more."""
