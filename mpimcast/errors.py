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
        """Return an equal error, to be raised another time."""
        return type(self)(
            str(self),
            epoch=self.epoch,
            ranks=self.ranks,
            missing_chunks=self.missing_chunks,
        )


class ConfigError(Error):
    """A setting has a bad value, or ranks disagree on it.

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
    """A rank was waited for longer than the settings allow.

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
    """A rank was waited for that has ended or has freed the communicator.

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
