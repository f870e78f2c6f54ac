# SPDX-License-Identifier: BSD-3-Clause
"""The errors that users catch."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class Error(RuntimeError):
    """An operation failed; the base class of all errors of mpimcast.

    Every rank that lacks data of the operation raises it. This communicator cannot be
    used any more, but other communicators can.

    Attributes
    ----------
    epoch : int or None
        The number of the failed operation among those of its communicator.
    ranks : tuple of int
        The ranks that caused the failure, if they are known.
    missing_chunks : int
        How many chunks, each the payload of one datagram, had not reached this rank.

    Examples
    --------
    >>> import numpy as np
    >>> from mpi4py import MPI
    >>> import mpimcast
    >>> comm = mpimcast.Intracomm(MPI.COMM_WORLD)
    >>> try:
    ...     comm.Bcast(np.zeros(1000))
    ... except mpimcast.Error as error:
    ...     print(f"operation {error.epoch} failed, due to {error.ranks}: {error}")
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
        """Return a copy of this error without its traceback, to be raised again."""
        return type(self)(
            str(self),
            epoch=self.epoch,
            ranks=self.ranks,
            missing_chunks=self.missing_chunks,
        )


class ConfigError(Error):
    """A setting has a bad value, or differs between ranks.

    Examples
    --------
    >>> import mpimcast
    >>> from mpi4py import MPI
    >>> mpimcast.Intracomm(MPI.COMM_WORLD, chains=-1)
    Traceback (most recent call last):
        ...
    mpimcast.errors.ConfigError: chains=-1 is not valid: it must be ...
    """


class TransportError(Error):
    """The network could not be used.

    Examples
    --------
    >>> import numpy as np
    >>> from mpi4py import MPI
    >>> import mpimcast
    >>> comm = mpimcast.Intracomm(MPI.COMM_WORLD)
    >>> try:
    ...     comm.Bcast(np.zeros(1000))
    ... except mpimcast.TransportError as error:
    ...     print(f"no multicast here: {error}")
    """


class TimedOut(Error):
    """A rank did not answer or enter within the time that the settings allow.

    See the settings TIMEOUT, LATE_TIMEOUT and ENTRY_TIMEOUT.

    Examples
    --------
    >>> import numpy as np
    >>> from mpi4py import MPI
    >>> import mpimcast
    >>> comm = mpimcast.Intracomm(MPI.COMM_WORLD.Dup(), entry_timeout=60)
    >>> try:
    ...     comm.Bcast(np.zeros(1000))
    ... except mpimcast.TimedOut as error:
    ...     print(f"ranks {error.ranks} are missing")
    >>> comm.Free()
    """


class RankLeft(Error):
    """A rank ended, or freed the communicator, while others waited for it.

    Examples
    --------
    >>> import numpy as np
    >>> from mpi4py import MPI
    >>> import mpimcast
    >>> comm = mpimcast.Intracomm(MPI.COMM_WORLD)
    >>> try:
    ...     comm.Bcast(np.zeros(1000))
    ... except mpimcast.RankLeft as error:
    ...     print(f"ranks {error.ranks} have ended before this operation")
    """
