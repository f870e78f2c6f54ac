# SPDX-License-Identifier: BSD-3-Clause
"""The explanation of what carries an operation."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Explanation:
    """The transport that carries an operation, and why; printed, it is one line.

    Attributes
    ----------
    path : str
        ``"verbs"`` or ``"udp"`` for multicast, ``"mpi"`` for the MPI library. The
        first operation chooses; until then it is the value of the setting TRANSPORT.
        ``"none"`` if the communicator cannot be used any more.
    reason : str
        The interface or device in use, or why the MPI library carries the operation.
    runner : str
        What runs this rank's part of it over the network: ``"host"`` for its own
        process, a proxy such as ``"proxy 1000 (process 4711)"``, or ``"firmware"``. If
        ranks differ, which ranks have which; empty if there is no network.

    Examples
    --------
    >>> from mpi4py import MPI
    >>> import mpimcast
    >>> explanation = mpimcast.Intracomm(MPI.COMM_SELF).explain(1 << 20)
    >>> explanation.path
    'mpi'
    >>> explanation.reason
    'there is only one rank'
    """

    path: str
    reason: str
    runner: str = ""

    def __str__(self) -> str:
        """Return path and reason in one line, and the runner unless it is the host."""
        by = f"; run by {self.runner}" if self.runner not in ("", "host") else ""
        return f"{self.path}: {self.reason}{by}"
