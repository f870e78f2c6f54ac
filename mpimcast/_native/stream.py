# SPDX-License-Identifier: BSD-3-Clause
"""Streams: the operations that all ranks start in the same order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpimcast._core import ffi, lib
from mpimcast._native.calls import Calls, UnicastReason
from mpimcast._native.core import NOBODY, REPAIRS, check, counters, nanoseconds
from mpimcast._native.engine import Notifications
from mpimcast._native.words import Words

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable

    from mpimcast._core import _CData as CData
    from mpimcast._native.calls import Notifications as AnyNotifications
    from mpimcast._native.endpoint import Endpoint
    from mpimcast._native.layout import Layout
    from mpimcast._settings.config import Config


# The errors after which some rank no longer answers.
DESERTIONS = (-lib.MMC_EIO, -lib.MMC_ENOANSWER, -lib.MMC_EGONE, -lib.MMC_ELATE)

_CALLS = Calls(
    request="struct mmc_request **",
    start=lib.mmc_start,
    wait=lib.mmc_request_wait,
    ready=lib.mmc_request_ready,
    cancel=lib.mmc_request_cancel,
    free=lib.mmc_request_free,
    failure=lib.mmc_request_failure,
    waiting=lib.mmc_request_waiting,
    wait_range=lib.mmc_request_wait_range,
    wait_block=lib.mmc_request_wait_block,
    tell_blocks=lib.mmc_request_tell_blocks,
    present=lib.mmc_request_present,
    stream_failure=lib.mmc_stream_failure,
    names=("mmc_start", "mmc_request_cancel", "mmc_request_free"),
    set_trace=lib.mmc_stream_set_trace,
)


class Stream:
    """A sequence of operations that all ranks start in the same order.

    Parameters
    ----------
    endpoint
        This rank's endpoint of the team.
    config
        The settings.
    channel
        The stream's name on the wire, equal on all ranks.
    """

    calls = _CALLS
    sources: tuple[Callable[[], AnyNotifications], ...] = (Notifications,)
    layout: Layout | None = None
    words = Words()

    def __init__(self, endpoint: Endpoint, config: Config, channel: int) -> None:
        code_data, code_parity = config.code_chunks
        options = ffi.new(
            "struct mmc_stream_options *",
            {
                "channel": channel,
                "chains": min(config.chains, endpoint.nranks),
                "window_bytes": config.window_bytes,
                "eager_bytes": config.eager_bytes,
                "repair": REPAIRS[_repair_policy(endpoint, config)],
                "code_data": code_data,
                "code_parity": code_parity,
                "code_auto": config.reliability == "auto",
                "coder": config.has_coder(endpoint.nspare),
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
        self.rank, self.nranks = endpoint.rank, endpoint.nranks
        self.config = config
        # The first failure on this rank, if any: the reason, and the ranks at fault.
        self.first_failure: tuple[str, tuple[int, ...]] | None = None

    @property
    def between(self) -> Stream:
        """The stream that sends this rank's data to other nodes: this one."""
        return self

    def counters(self) -> Counter[str]:
        """Return all counters by name."""
        return counters(lib.mmc_stream_counters, self.c)

    def failure(self) -> CData:
        """Return C's struct mmc_failure of the first failure; `error` 0 for none."""
        failure = ffi.new("struct mmc_failure *")
        self.calls.stream_failure(self.c, failure)
        return failure

    def poisoned(self) -> bool:
        """Return whether an operation of the stream has failed."""
        return bool(self.failure().error)

    def deserted(self) -> bool:
        """Return whether an operation failed because some rank no longer answers.

        That rank may be this one: if it cannot send any more, the others hear nothing.
        """
        return self.failure().error in DESERTIONS

    def how_gone(self, rank: int) -> str:  # noqa: ARG002 -- of every rank
        """Return how this rank knows that a rank's process has ended."""
        return ": its host refuses connections"

    def make_progress(self) -> None:
        """Make progress, without waiting, where no thread of the C library does."""
        self.endpoint.make_progress()

    def leave(self) -> None:
        """Tell the other ranks that this rank will start no further operation.

        Their operations that wait for this rank to enter then fail.
        """
        lib.mmc_stream_leave(self.c)

    def multicast_is_suspended(self) -> bool:
        """Return whether multicast is suspended, see `UnicastReason`."""
        return bool(lib.mmc_stream_unicast_epoch(self.c))

    def unicast_reason(self) -> UnicastReason:
        """Return why multicast is suspended; `epoch` is 0 if it no longer is."""
        reason = ffi.new("struct mmc_unicast_reason *")
        lib.mmc_stream_unicast_reason(self.c, reason)
        sender = None if reason.sender == NOBODY else int(reason.sender)
        return UnicastReason(int(reason.epoch), int(reason.rank), sender)

    def close(self) -> None:
        """Free the stream. No other rank may need this one's answers any more."""
        lib.mmc_stream_close(self.c)


def _repair_policy(endpoint: Endpoint, config: Config) -> str:
    """Return the policy that REPAIR names, or that "auto" means for a transport."""
    if config.repair != "auto":
        return config.repair
    return "read" if endpoint.reads_memory else "nak"
