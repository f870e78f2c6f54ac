# SPDX-License-Identifier: BSD-3-Clause
"""The cells of the benchmark, each of which has a letter.

A cell is a network and the collectives that are measured on it. In every cell all
contenders take turns, round by round, so that a disturbance affects all of them. The
docstring of a cell's function is a caption of the report. bench/README.md says how each
figure is made, and what it does not show.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from bench.cells.effort import Effort, Sizes
from bench.jobs import job, verbs
from bench.jobs.contenders import has_torch
from bench.jobs.measurement import Measurement, Network
from bench.jobs.payload import STEPS
from bench.jobs.setup import Setup
from bench.testbed.cluster import BURST_BYTES, SINGLE_BURST_BYTES, Cluster, address
from bench.testbed.flow import flowing

KIB, MIB = 1 << 10, 1 << 20

# The calls of a program in cell I.
CALLS = 50


def take_turns(
    cell: str, setup: Setup, effort: Effort, sizes: Sizes
) -> Iterator[Measurement]:
    """Measure blocks of these sizes; in each round every contender has a turn."""
    tasks = effort.tasks(setup, sizes)
    for round_ in effort.turns():
        for contender in effort.contenders_of(cell):
            yield from job.run(cell, setup, contender, tasks, round_)


# ---- the cells ---------------------------------------------------------------


def one_switch(effort: Effort) -> Iterator[Measurement]:
    """One switch with links of 200 Mbit/s, or 100 Mbit/s for 16 hosts."""
    shapes = {
        4: (200, (64 * KIB, 256 * KIB, MIB, 4 * MIB)),
        8: (200, (64 * KIB, 512 * KIB, 4 * MIB)),
        # Blocks of 4 MiB bring 63 MB to every host, which would take minutes in each
        # round.
        16: (100, (64 * KIB, 256 * KIB, MIB)),
    }
    with Cluster(max(shapes)) as cluster:
        for nranks, (rate_mbit, blocks) in shapes.items():
            cluster.shape(rate_mbit)
            network = Network("cluster", rate_mbit=rate_mbit, burst_bytes=BURST_BYTES)
            setup = Setup(network, range(nranks), cluster)
            sizes = {"Allgather": blocks, "Bcast": (64 * KIB, 512 * KIB, 4 * MIB)}
            yield from take_turns("A", setup, effort, sizes)


def thin_trunk(effort: Effort) -> Iterator[Measurement]:
    """Two switches with a trunk of half a link's rate, and ranks in two orders."""
    sizes = {"Allgather": (64 * KIB, 256 * KIB), "Bcast": (64 * KIB, 256 * KIB)}
    yield from _in_both_orders("B", effort, sizes)


def _in_both_orders(cell: str, effort: Effort, sizes: Sizes) -> Iterator[Measurement]:
    """Measure on two switches with a thin trunk, with ranks in two orders."""
    orders = {"block": range(8), "interleaved": (0, 4, 1, 5, 2, 6, 3, 7)}
    network = Network("cluster", 2, 200, 100, BURST_BYTES)
    with Cluster(8, two_switches=True) as cluster:
        cluster.shape(200, trunk_mbit=100)
        for order, numbers in orders.items():
            setup = Setup(replace(network, order=order), numbers, cluster)
            yield from take_turns(cell, setup, effort, sizes)


def unlimited(effort: Effort) -> Iterator[Measurement]:
    """One switch and links without limits, where the processors are the bottleneck."""
    sizes = dict.fromkeys(("Allgather", "Bcast"), (64 * KIB, MIB, 4 * MIB))
    with Cluster(8) as cluster:
        setup = Setup(Network("cluster"), range(8), cluster)
        yield from take_turns("C", setup, effort, sizes)


def lossy(effort: Effort) -> Iterator[Measurement]:
    """One switch that drops single datagrams, and TCP segments, to every host.

    Then one switch without loss, on which another program's TCP stream fills the link
    to one host.
    """
    with Cluster(5) as cluster:  # the last host has no rank, but sends the TCP stream
        cluster.shape(100, burst_bytes=SINGLE_BURST_BYTES)
        network = Network("cluster", rate_mbit=100, burst_bytes=SINGLE_BURST_BYTES)
        setup = Setup(network, range(4), cluster)
        kinds = ("Allgather", "Bcast")
        tasks = effort.tasks(setup, dict.fromkeys(kinds, (512 * KIB,)))
        # A TCP stream needs long operations to find its share of the link.
        longer = effort.tasks(setup, dict.fromkeys(kinds, (512 * KIB, 4 * MIB)))
        for round_ in effort.turns():
            for contender in effort.contenders_of("D"):
                yield from job.run("D", setup, contender, longer, round_)
                for loss in (0.001, 0.01):
                    with _losing(setup, loss) as impaired:
                        yield from job.run("D", impaired, contender, tasks, round_)
                with _beside_tcp(setup, source=4) as shared:
                    yield from job.run("D", shared, contender, longer, round_)


@contextlib.contextmanager
def _beside_tcp(setup: Setup, source: int) -> Iterator[Setup]:
    """Have host number `source` send TCP to rank 1's host as fast as it can.

    Yield the setup with that stream as its rival. Host `source` has no rank.
    """
    cluster = setup.cluster
    assert cluster is not None  # noqa: S101 -- cell D runs on a cluster
    ends = cluster.hosts[source], cluster.hosts[setup.numbers[1]]
    with flowing(*ends, address(setup.numbers[1])) as flow:
        yield setup._replace(network=replace(setup.network, rival=True), rival=flow)


@contextlib.contextmanager
def _losing(setup: Setup, fraction: float) -> Iterator[Setup]:
    """Drop this fraction of what the hosts receive; yield the setup with that loss."""
    network = replace(setup.network, loss=fraction)
    assert setup.cluster is not None  # noqa: S101 -- cell D runs on a cluster
    # The MPI libraries' TCP segments are lost like mpimcast's datagrams; ARP and IGMP
    # are not.
    tcp_and_udp = "ip protocol { tcp, udp }"
    with setup.cluster.losing(setup.numbers, fraction, tcp_and_udp) as loss:
        yield setup._replace(network=network, loss=loss)


def one_node(effort: Effort) -> Iterator[Measurement]:
    """One machine, where each contender uses the transport that it chooses."""
    sizes = dict.fromkeys(
        ("Allgather", "Bcast"),
        (4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB),
    )
    for nranks in (2, 4):
        setup = Setup(Network("node"), range(nranks))
        yield from take_turns("E", setup, effort, sizes)


def beside_a_reduction(effort: Effort) -> Iterator[Measurement]:
    """Allgather beside a Reduce_scatter, which the MPI library always carries out."""
    sizes = {"Allgather+Reduce_scatter": (64 * KIB, 512 * KIB)}
    with Cluster(8) as cluster:
        cluster.shape(200)
        network = Network("cluster", rate_mbit=200, burst_bytes=BURST_BYTES)
        setup = Setup(network, range(8), cluster)
        yield from take_turns("F", setup, effort, sizes)


def small(effort: Effort) -> Iterator[Measurement]:
    """Small blocks, where latency dominates."""
    sizes = dict.fromkeys(("Allgather", "Bcast"), (8, 64, 512, 4 * KIB, 16 * KIB))
    with Cluster(8) as cluster:
        cluster.shape(200)
        network = Network("cluster", rate_mbit=200, burst_bytes=BURST_BYTES)
        setup = Setup(network, range(8), cluster)
        yield from take_turns("G", setup, effort, sizes)


def several_ranks_a_host(effort: Effort) -> Iterator[Measurement]:
    """One switch and four hosts with two, and with four ranks each."""
    sizes = dict.fromkeys(("Allgather", "Bcast"), (64 * KIB, 256 * KIB, MIB))
    with Cluster(4) as cluster:
        cluster.shape(200)
        network = Network("cluster", rate_mbit=200, burst_bytes=BURST_BYTES)
        for nranks in (2, 4):
            numbers = [host for host in range(4) for _ in range(nranks)]
            setup = Setup(replace(network, ranks_per_host=nranks), numbers, cluster)
            yield from take_turns("H", setup, effort, sizes)


def training(effort: Effort) -> Iterator[Measurement]:
    """Forward and backward of a model that PyTorch's FSDP2 has sharded over all hosts.

    First on one switch, then on two with a trunk of half a link's rate, and ranks in
    two orders. A block is a rank's shard of a layer. Parameters have 32 bits, or in
    mixed steps 16; gradients are always reduced with 32.
    """
    if not has_torch():
        print("# cell T is left out, since torch is not installed")
        return
    # To start a job takes so long that more steps cost little.
    effort = replace(effort, task_s=10 * effort.task_s)
    sizes = dict.fromkeys(STEPS, (256 * KIB,))
    with Cluster(8) as cluster:
        cluster.shape(200)
        network = Network("cluster", rate_mbit=200, burst_bytes=BURST_BYTES)
        for nranks in (4, 8):
            setup = Setup(network, range(nranks), cluster)
            yield from take_turns("T", setup, effort, sizes)
    yield from _in_both_orders("T", effort, sizes)


def programs(effort: Effort) -> Iterator[Measurement]:
    """Programs of 50 calls, for which mpimcast finds out by trials what carries them.

    The only peer is the MPI library that mpimcast runs over; gloo takes part, too.
    """
    sizes = dict.fromkeys(
        ("Allgather", "Bcast"), (512, 4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB)
    )
    contenders = tuple(
        each
        for each in effort.contenders
        if each.defaults or each.gloo or each.name == "openmpi"
    )
    effort = replace(effort, contenders=contenders)
    with Cluster(8) as cluster:
        for rate_mbit in (200, None):
            cluster.shape(rate_mbit)
            burst_bytes = BURST_BYTES if rate_mbit else 0
            network = Network("cluster", rate_mbit=rate_mbit, burst_bytes=burst_bytes)
            yield from _take_whole_turns(
                Setup(network, range(8), cluster), effort, sizes
            )
    for nranks in (2, 4):
        setup = Setup(Network("node"), range(nranks))
        yield from _take_whole_turns(setup, effort, sizes)


def _take_whole_turns(
    setup: Setup, effort: Effort, sizes: Sizes
) -> Iterator[Measurement]:
    """Measure programs of cell I from their first call on."""
    tasks = [task._replace(iterations=CALLS) for task in effort.tasks(setup, sizes)]
    for round_ in effort.turns():
        for contender in effort.contenders_of("I"):
            yield from job.run(
                "I", setup._replace(whole=True), contender, tasks, round_
            )


def devices(effort: Effort) -> Iterator[Measurement]:
    """RDMA devices in software, where a bare C program is the peer."""
    yield from verbs.measurements("V", 4, MIB, effort.turns(), effort.iterations)


class Cell(NamedTuple):
    """A cell's title, and the function that measures it."""

    title: str
    measure: Callable[[Effort], Iterable[Measurement]]


CELLS = {
    "A": Cell("One switch, limited links", one_switch),
    "B": Cell("Two switches with a thin trunk", thin_trunk),
    "C": Cell("One switch, unlimited links", unlimited),
    "D": Cell("Loss", lossy),
    "E": Cell("One node", one_node),
    "F": Cell("Allgather beside Reduce_scatter", beside_a_reduction),
    "G": Cell("Small blocks", small),
    "H": Cell("Several ranks a host", several_ranks_a_host),
    "I": Cell("Programs of 50 calls", programs),
    "T": Cell("Training steps of FSDP2", training),
    "V": Cell("RDMA devices in software", devices),
}
