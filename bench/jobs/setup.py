# SPDX-License-Identifier: BSD-3-Clause
"""The setup that a job runs on, and the tasks that it measures there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bench.jobs.measurement import Network
from bench.testbed.cluster import Cluster, Loss
from bench.testbed.flow import Flow


class Task(NamedTuple):
    """A collective with blocks of `nbytes` bytes, to be repeated `iterations` times."""

    collective: str
    nbytes: int
    iterations: int


class Setup(NamedTuple):
    """The hosts of a job's ranks, and the network between them.

    Attributes
    ----------
    network : Network
        The network, as measurements describe it.
    numbers : sequence of int
        The number of each rank's host. On one machine only their count matters.
    cluster : Cluster or None
        The cluster, or None for this machine.
    loss : Loss or None
        The filter that injects loss and counts it, if any.
    rival : Flow or None
        The TCP stream that shares the link to rank 1's host, if any.
    whole : bool
        Whether the first operations are measured too, instead of being a warm-up.
    """

    network: Network
    numbers: Sequence[int]
    cluster: Cluster | None = None
    loss: Loss | None = None
    rival: Flow | None = None
    whole: bool = False
