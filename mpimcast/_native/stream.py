# SPDX-License-Identifier: BSD-3-Clause
"""Streams: the operations that all ranks start in the same order."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mpimcast._core import ffi, lib
from mpimcast._native.core import NOBODY, REPAIRS, check, counters, nanoseconds

if TYPE_CHECKING:
    from collections import Counter

    from mpimcast._native.endpoint import Endpoint
    from mpimcast._settings.config import Config


class Detour(NamedTuple):
    """Why blocks go from neighbour to neighbour by unicast."""

    epoch: int  # the first operation without multicast
    rank: int  # the rank that receives no multicast of the sender
    sender: int | None  # None: it receives multicast of no rank

    def __str__(self) -> str:
        """Return the reason as words that follow "since"."""
        sender = "any rank" if self.sender is None else f"rank {self.sender}"
        return (
            f"operation {self.epoch} blocks go round a ring by unicast, because rank "
            f"{self.rank} hears no multicast from {sender}"
        )


class Stream:
    """A sequence of operations that all ranks start in the same order."""

    def __init__(self, endpoint: Endpoint, config: Config, channel: int) -> None:
        options = ffi.new(
            "struct mmc_stream_options *",
            {
                "channel": channel,
                "chains": min(config.chains, endpoint.nranks),
                "window_bytes": config.window_bytes,
                "eager_bytes": config.eager_bytes,
                "repair": REPAIRS[_repair(endpoint, config)],
                "timeout_ns": nanoseconds(config.timeout),
                "entry_timeout_ns": nanoseconds(config.entry_timeout),
                "late_timeout_ns": nanoseconds(config.late_timeout),
            },
        )
        made = ffi.new("struct mmc_stream **")
        check(
            lib.mmc_stream_create(endpoint.c, options, made), "cannot create a stream"
        )
        self.c = made[0]
        self.channel = channel
        self.endpoint = endpoint
        self.config = config
        # The first failure on this rank, if any: its reason, and the ranks at fault.
        self.first_failure: tuple[str, tuple[int, ...]] | None = None

    def counters(self) -> Counter[str]:
        """Return all counters by name."""
        return counters(lib.mmc_stream_counters, self.c)

    def poisoned(self) -> bool:
        """Return whether an operation of the stream has failed."""
        return self._error() != 0

    def deserted(self) -> bool:
        """Return whether an operation failed because some rank no longer answers.

        A rank that cannot send counts as one: nothing more will arrive from it.
        """
        return self._error() in (
            -lib.MMC_EIO,
            -lib.MMC_ENOANSWER,
            -lib.MMC_EGONE,
            -lib.MMC_ELATE,
        )

    def _error(self) -> int:
        failure = ffi.new("struct mmc_failure *")
        lib.mmc_stream_failure(self.c, failure)
        return int(failure.error)

    def leave(self) -> None:
        """Start nothing more; ranks that await this one in a later operation fail."""
        lib.mmc_stream_leave(self.c)

    def detours(self) -> bool:
        """Return whether multicast is suspended for the time being."""
        return bool(lib.mmc_stream_unicast_epoch(self.c))

    def detour(self) -> Detour:
        """Return since when, and why, multicast is suspended."""
        detour = ffi.new("struct mmc_detour *")
        lib.mmc_stream_detour(self.c, detour)
        sender = None if detour.sender == NOBODY else int(detour.sender)
        return Detour(int(detour.epoch), int(detour.rank), sender)

    def close(self) -> None:
        """Free the stream; its peers must have finished or failed."""
        lib.mmc_stream_close(self.c)


def _repair(endpoint: Endpoint, config: Config) -> str:
    if config.repair != "auto":
        return config.repair
    return "read" if endpoint.rdma else "nak"
