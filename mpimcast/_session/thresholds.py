# SPDX-License-Identifier: BSD-3-Clause
"""The sizes below which the MPI library carries operations."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from mpimcast._mpi import sizes
from mpimcast._small import Limits

if TYPE_CHECKING:
    from mpimcast._settings.config import Config


class Thresholds:
    """The sizes below which the MPI library carries a communicator's operations.

    Parameters
    ----------
    config
        The settings.
    nranks
        The number of ranks.

    Attributes
    ----------
    config : Config
        The settings.
    shared : bool
        Whether the sizes are those for shared memory, as they are until all ranks know
        better.
    agreed_bytes : int
        `least_bytes`, once all ranks have agreed on it; 0 before.
    limits, request_limits : Limits
        The same for a quick check of blocking operations, and of those that return a
        request, which are all the MPI library's until a transport is open.
    """

    def __init__(self, config: Config, nranks: int) -> None:
        sizes.learn()
        self.config = config
        self.shared = True
        self.agreed_bytes = 0
        self.limits = Limits()
        self.request_limits = Limits()
        self.request_limits.set(sys.maxsize, sys.maxsize)
        self._nranks = nranks

    @property
    def least_bytes(self) -> int:
        """The size of a block below which the MPI library carries it, as known now."""
        return self.config.least_bytes(shared=self.shared and self.config.may_share)

    def agree(self, *, shared: bool) -> None:
        """Set the sizes for shared memory or for a network, on all ranks alike."""
        self.shared = shared
        self.agreed_bytes = self.least_bytes
        self.limits.set(self.agreed_bytes * self._nranks, self.agreed_bytes)

    def take_requests(self) -> None:
        """Let operations that return a request have the same sizes."""
        self.request_limits.set(self.agreed_bytes * self._nranks, self.agreed_bytes)

    def leave_all(self) -> None:
        """Leave operations of every size to the MPI library."""
        self.limits.set(sys.maxsize, sys.maxsize)
        self.request_limits.set(sys.maxsize, sys.maxsize)

    def check_all_requests(self) -> None:
        """Leave no operation that returns a request to the MPI library unseen."""
        self.request_limits.set(0, 0)
