# SPDX-License-Identifier: BSD-3-Clause
"""The simulator's twin of the emulated cluster: the same links and queues."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bench.testbed.cluster import BURST_BYTES
from mpimcast._fabric.arrays import arrays
from mpimcast._fabric.clos import single
from mpimcast._fabric.link import Link
from mpimcast._fabric.routes import Routes
from mpimcast._fabric.subnet_manager import SubnetManager
from mpimcast.cli.sim import simulator
from mpimcast.cli.sim.scene import Scene
from mpimcast.cli.sim.simulator import Plain

# A train that has tokens passes a queue as fast as the machine can copy it.
_BURST_MBITS = 10_000
# From a queue to the next host: a softirq, and often another processor.
_LATENCY_NS = 30_000
_QUEUE_BYTES = 512 << 10
_PPB = 10**9
# The payload of a datagram in a frame of Ethernet's 1,500 bytes.
CHUNK_BYTES = 1456


def scene(
    nranks: int, rate_mbit: int, loss: float = 0.0, burst_bytes: int = BURST_BYTES
) -> Scene:
    """Return a cluster's twin: one switch, and links as `Cluster.shape` makes them.

    Parameters
    ----------
    nranks
        The number of hosts.
    rate_mbit
        The rate of all links.
    loss
        The share of datagrams that the switch drops on their way to each host.
    burst_bytes
        The bytes that an idle link carries at once.
    """
    link = Link(
        "host",
        mbits=rate_mbit,
        latency_ns=_LATENCY_NS,
        queue_bytes=_QUEUE_BYTES,
        burst_bytes=burst_bytes,
        burst_mbits=_BURST_MBITS,
    )
    fabric = single(nranks, link).changed(
        lambda _start, end, each: (
            replace(each, loss_ppb=round(loss * _PPB)) if end < nranks else each
        )
    )
    routes = Routes(fabric)
    trees = SubnetManager(fabric, routes).trees(range(nranks))
    return Scene(arrays(routes, trees))


def simulate(place: Scene, nranks: int, block_bytes: int, **spec: Any) -> Plain:
    """Simulate Allgathers as a cluster carries them out, and return the result.

    `spec` is more of the simulator's spec.
    """
    result = simulator.run(
        {
            "nranks": nranks,
            "block_bytes": block_bytes,
            "chunk_bytes": CHUNK_BYTES,
            "adaptive": 1,
            **spec,
        },
        place,
    )
    if result["violation"]:
        raise RuntimeError(result["violation"])
    return result


def counted_bytes(result: Plain, loss: float) -> float:
    """Return the bytes that the cluster's ports would count.

    The switch drops what is lost before its port to the host counts it.
    """
    return sum(
        link["bytes"] * (1 - loss) if "down" in link["name"] else link["bytes"]
        for link in result["links"]
    )
