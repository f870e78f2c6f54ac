# SPDX-License-Identifier: BSD-3-Clause
"""Follows whether multicast is suspended on a communicator, and logs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpimcast._support.log import logger

if TYPE_CHECKING:
    from mpimcast._native.calls import AnyStream, UnicastReason


class Suspension:
    """Whether multicast is suspended on a communicator, as last seen.

    Attributes
    ----------
    reason : UnicastReason or None
        Since when, and why; None while multicast is used.
    """

    def __init__(self) -> None:
        self.reason: UnicastReason | None = None

    def path(self, path: str) -> str:
        """Return in words what path data takes, of which `path` is the team's."""
        return path if self.reason is None else f"since {self.reason} ({path})"

    def watch(self, stream: AnyStream) -> None:
        """Log once when multicast is suspended, and when it is resumed."""
        if stream.multicast_is_suspended() == (self.reason is not None):
            return
        layout = stream.layout
        first = stream.rank in ([0] if layout is None else layout.leaders(0))
        if self.reason is not None:
            self.reason = None
            if first:
                logger.info("the network delivers multicast again")
            return
        reason = stream.unicast_reason()
        if not reason.epoch:  # multicast has just been resumed
            return
        self.reason = reason
        if first:
            logger.warning(
                "the network no longer delivers multicast: since %s; multicast is "
                "tried again now and then; `python -m mpimcast doctor` looks for the "
                "cause",
                reason,
            )
