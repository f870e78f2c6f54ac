# SPDX-License-Identifier: BSD-3-Clause
"""What goes wrong, as users see it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class Error(RuntimeError):
    """An operation could not be done.

    Attributes
    ----------
    epoch : int or None
        Number of the failed operation among those of its communicator.
    ranks : tuple of int
        The ranks that the failure is about, if any in particular.
    missing_chunks : int
        Datagrams' worth of data that had not come to this rank.
    """

    def __init__(
        self,
        text: str,
        *,
        epoch: int | None = None,
        ranks: Iterable[int] = (),
        missing_chunks: int = 0,
    ) -> None:
        super().__init__(text)
        self.epoch = epoch
        self.ranks = tuple(ranks)
        self.missing_chunks = missing_chunks

    def again(self) -> Error:
        """Return an equal error, to be raised another time."""
        return type(self)(
            str(self),
            epoch=self.epoch,
            ranks=self.ranks,
            missing_chunks=self.missing_chunks,
        )


class ConfigError(Error):
    """A setting has a bad value, or ranks disagree on it."""


class TransportError(Error):
    """The network could not be used."""


class TimedOut(Error):
    """A rank was waited for longer than the settings allow."""
