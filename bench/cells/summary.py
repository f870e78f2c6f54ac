# SPDX-License-Identifier: BSD-3-Clause
"""Summarise measurements as the numbers that a report shows for each contender."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bench.cells.scenario import Scenario, scenario_of
from bench.jobs.contenders import OUR_CONTENDERS, TITLES
from bench.jobs.measurement import Measurement
from bench.page.spread import Spread, spread

# The contender that stands for mpimcast where no other variant of it is named.
OURS = "mpimcast"
STAGES = ("entry", "multicast", "repair", "release")


@dataclass(frozen=True)
class Summary:
    """The results of one contender for one size, over all rounds.

    Attributes
    ----------
    contender : str
        The contender's name.
    block_bytes : int
        The size of the blocks.
    rounds : dict
        By round, the median time of its operations, in seconds.
    seconds : Spread
        The spread of the rounds' medians.
    operations_s : dict
        By round, the time of each operation in order, in seconds.
    processor_s : float or None
        The median processor time that all ranks used in an operation.
    host_blocks, trunk_blocks : float or None
        The bytes that the busiest host, and the busier trunk end, sent in an operation:
        bytes with all frame headers, divided by those of a block.
    received_blocks : float or None
        The bytes that the host which receives most was sent in an operation: bytes with
        all frame headers, divided by those of a block.
    dropped_frames : int
        The frames that were dropped because the queues of ports were full.
    lost_chunks, repair_bytes, lost_bytes
        In all rounds: the chunks that mpimcast asked for again, the bytes that it sent
        as repairs, and the bytes that the network lost on purpose.
    stages_s : dict
        By stage, the seconds that a rank of mpimcast was in it in an operation, on
        average. The first stage, the entry barrier, includes the wait for ranks that
        begin later.
    rival_bytes_per_s : float
        The rate of the TCP stream to rank 1's host, over the operations and the gaps
        between them.
    control_datagrams : float
        The control datagrams that a rank of mpimcast sent in an operation, on average.
    sending_calls, receiving_calls : float
        The system calls of mpimcast's ranks that sent datagrams for each MiB of data
        that these carried, and that received or looked for datagrams for each MiB that
        came; 0 where nothing was sent or received.
    by_library : bool
        Whether mpimcast left the operations on its communicator to the MPI library.
    """

    contender: str
    block_bytes: int
    rounds: dict[int, float]
    seconds: Spread
    operations_s: dict[int, list[float]]
    processor_s: float | None
    host_blocks: float | None
    trunk_blocks: float | None
    received_blocks: float | None
    dropped_frames: int
    lost_chunks: int
    repair_bytes: int
    lost_bytes: int
    stages_s: dict[str, float]
    rival_bytes_per_s: float
    control_datagrams: float
    sending_calls: float
    receiving_calls: float
    by_library: bool


# By contender, its summaries in the order of sizes.
Summaries = dict[str, list[Summary]]
# By scenario, the summaries of its contenders.
Scenarios = dict[Scenario, Summaries]


def summarise(measurements: Iterable[Measurement]) -> Scenarios:
    """Return the summaries of all measurements."""
    groups: dict[tuple[Scenario, str, int], list[Measurement]] = defaultdict(list)
    for each in measurements:
        groups[scenario_of(each), each.contender, each.block_bytes].append(each)
    scenarios: Scenarios = {}
    for (scenario, contender, nbytes), group in sorted(groups.items(), key=_order):
        contenders = scenarios.setdefault(scenario, {})
        contenders.setdefault(contender, []).append(_summary(contender, nbytes, group))
    return scenarios


def _order(item: tuple[tuple[Scenario, str, int], object]) -> tuple[object, ...]:
    """Return the key by which groups of measurements are sorted."""
    scenario, contender, nbytes = item[0]
    network = scenario.network
    return (
        *(scenario.cell, scenario.collective, network.order, scenario.nranks),
        *(network.rival, network.loss, list(TITLES).index(contender), nbytes),
    )


def _summary(contender: str, nbytes: int, group: Sequence[Measurement]) -> Summary:
    rounds: dict[int, list[float]] = defaultdict(list)
    for each in group:
        rounds[each.round] += each.seconds
    medians = {number: statistics.median(each) for number, each in rounds.items()}
    processor = [second for each in group for second in each.processor_seconds]
    count = sum(len(each.seconds) for each in group)

    def busiest(kind: str) -> float | None:
        names = {name for each in group for name in each.ports if name.startswith(kind)}
        sent = [sum(each.ports[name]["sent_bytes"] for each in group) for name in names]
        return max(sent) / count / nbytes if sent else None

    def counted(name: str) -> int:
        return sum(each.counters.get(name, 0) for each in group)

    def calls(way: str) -> float:
        nbytes = counted(f"{way}_multicast_bytes") + counted(f"{way}_repair_bytes")
        return counted(f"{way}_calls") * 2**20 / nbytes if nbytes else 0.0

    epochs = counted("epochs")
    return Summary(
        contender=contender,
        block_bytes=nbytes,
        rounds=medians,
        seconds=spread(list(medians.values())),
        operations_s=dict(rounds),
        processor_s=statistics.median(processor) if processor else None,
        host_blocks=busiest("host"),
        trunk_blocks=busiest("trunk"),
        received_blocks=busiest("to"),
        dropped_frames=sum(
            port["dropped_frames"] for each in group for port in each.ports.values()
        ),
        lost_chunks=counted("rx_lost_chunks"),
        repair_bytes=counted("tx_repair_bytes"),
        lost_bytes=sum(each.lost.get("bytes", 0) for each in group),
        stages_s={
            name: 1e-9 * counted(f"{name}_ns") / max(1, epochs) for name in STAGES
        },
        rival_bytes_per_s=sum(each.rival_bytes for each in group)
        / max(1e-9, sum(each.span_s for each in group)),
        control_datagrams=counted("tx_control_datagrams") / max(1, epochs),
        sending_calls=calls("tx"),
        receiving_calls=calls("rx"),
        by_library=contender in OUR_CONTENDERS
        and epochs == counted("node_operations") == 0,
    )


def link_part(scenario: Scenario, summary: Summary) -> float | None:
    """Return the payload as a share of what a host's link could carry in that time.

    A link carries as much as its rate allows, plus the burst that it passes at once
    after it was idle. Return None if the link has no limit, or the trunk is the limit.
    """
    rate_mbit = scenario.network.rate_mbit
    if rate_mbit is None or scenario.network.switches == 2:
        return None
    could = summary.seconds.median * rate_mbit * 1e6 / 8 + scenario.network.burst_bytes
    return scenario.payload_bytes(summary.block_bytes) / could
