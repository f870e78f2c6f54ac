# SPDX-License-Identifier: BSD-3-Clause
"""The setup that jobs run on, and the tasks that they repeat there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bench.jobs.measurement import Network
from bench.testbed.cluster import Cluster, Loss
from bench.testbed.flow import Flow


class Task(NamedTuple):
    """A collective to repeat, with blocks of one size."""

    collective: str
    nbytes: int
    iterations: int


class Setup(NamedTuple):
    """What jobs run on: the hosts of their ranks, and the network between them.

    Attributes
    ----------
    network : Network
        The network, as measurements describe it.
    numbers : sequence of int
        The host of each rank; on one machine only their count matters.
    cluster : Cluster or None
        The cluster, or None for this machine.
    loss : Loss or None
        The active loss, if any.
    rival : Flow or None
        The TCP stream that shares the link to rank 1's host, if any.
    """

    network: Network
    numbers: Sequence[int]
    cluster: Cluster | None = None
    loss: Loss | None = None
    rival: Flow | None = None
