# SPDX-License-Identifier: BSD-3-Clause
"""The sizes below which the MPI library carries operations."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from mpi4py import MPI

from mpimcast._mpi import sizes
from mpimcast._session.tally import Tally
from mpimcast._small import Express, Limits

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
        Whether the sizes are those for shared memory. They are until all ranks know
        that the data takes the network.
    agreed_bytes : int
        `least_bytes`, once all ranks have agreed on the settings; 0 before.
    limits, request_limits : Limits
        The same sizes in a form that is quick to check: for blocking operations, and
        for operations that return a request. The MPI library carries all of the latter
        until a transport is open.
    express : Express
        The express way of blocking operations, which asks `limits` first.
    tally : Tally
        Counts calls by what carried them.
    """

    def __init__(self, config: Config, nranks: int) -> None:
        sizes.learn()
        self.config = config
        self.shared = True
        self.agreed_bytes = 0
        self.limits = Limits()
        self.request_limits = Limits()
        self.request_limits.set(sys.maxsize, sys.maxsize)
        self.express = express_within(self.limits)
        self.tally = Tally((self.limits, self.request_limits), self.express)
        self._nranks = nranks
        self._traced = False

    @property
    def least_bytes(self) -> int:
        """The size of a block below which the MPI library carries it, as known now."""
        return self.config.least_bytes(shared=self.shared and self.config.may_share)

    def set_sizes(self, *, shared: bool) -> None:
        """Set the sizes to those for shared memory or for a network.

        All ranks must pass the same argument, once they have agreed on the settings.
        """
        self.shared = shared
        self.agreed_bytes = self.least_bytes
        self.limits.set(self.agreed_bytes * self._nranks, self.agreed_bytes)

    def apply_to_requests(self) -> None:
        """Apply the same sizes to operations that return a request."""
        self.request_limits.set(self.agreed_bytes * self._nranks, self.agreed_bytes)

    def trace(self, tally: Tally) -> None:
        """Have `tally` see all blocking calls but those of small blocks.

        It sees them even when all are left to the MPI library.
        """
        self.tally = tally
        self._traced = True
        self.limits.set(self.agreed_bytes * self._nranks, self.agreed_bytes)

    def leave_all_to_mpi(self) -> None:
        """Leave operations of every size to the MPI library."""
        if not self._traced:
            self.limits.set(sys.maxsize, sys.maxsize)
        self.request_limits.set(sys.maxsize, sys.maxsize)

    def clear_request_limits(self) -> None:
        """Let no operation that returns a request go to the MPI library unchecked."""
        self.request_limits.set(0, 0)


def express_within(limits: Limits) -> Express:
    """Return an express way that leaves what is below `limits` to the MPI library."""
    return Express(limits, MPI.Intracomm.Allgather, MPI.Intracomm.Bcast)
