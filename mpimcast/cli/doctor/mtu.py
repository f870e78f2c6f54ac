# SPDX-License-Identifier: BSD-3-Clause
"""Finds how long a datagram may be to reach all nodes: the path MTU of multicast."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mpimcast.cli.doctor.finding import Finding
from mpimcast.cli.doctor.survey import Burst, SurveyPlan, survey

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mpimcast.cli.doctor.blame import Fault
    from mpimcast.cli.doctor.trial import Trial
    from mpimcast.cli.doctor.world import World

    Largest = dict[str, Any]

# How many datagrams of each length are sent, so that chance may lose one or two.
_COPIES = 4


def largest(world: World, trial: Trial, *, narrow: bool) -> Largest:
    """Return the full payload, and the largest that passes to and from each node.

    Parameters
    ----------
    world, trial
        All ranks, and the team of the ranks concerned.
    narrow
        Whether full datagrams do not arrive everywhere. If they do, they are the
        largest for each node.
    """
    full = trial.chunk_bytes
    if not narrow:
        nodes = dict.fromkeys(world.names(trial.members), full)
        return {"full_bytes": full, "largest_bytes": nodes}
    lengths = sorted({n for n in trial.kind.smaller_chunk_bytes if n < full} | {full})
    bursts = [
        Burst(None, range(i * _COPIES, (i + 1) * _COPIES), nbytes)
        for i, nbytes in enumerate(lengths)
    ]
    nnumbers = len(lengths) * _COPIES
    plan = SurveyPlan(
        nnumbers, bursts, lambda _, heard: heard.ndistinct == nnumbers, in_turn=True
    )
    result = survey(world, trial, plan)
    names = world.names(trial.members)
    leaving, coming = dict.fromkeys(names, 0), dict.fromkeys(names, 0)
    for (source, target), heard in result.heard.items():
        for way, rank in ((leaving, source), (coming, target)):
            node = world.nodes[rank]
            way[node] = max(way[node], heard.longest_bytes)
    nodes = {name: min(leaving[name], coming[name]) for name in names}
    return {"full_bytes": full, "largest_bytes": nodes}


def findings(
    faults: Iterable[Fault], largest: Largest, world: World, trial: Trial
) -> list[Finding]:
    """Return a finding for each node to blame, with the length that it lets pass."""
    full, nodes = largest["full_bytes"], largest["largest_bytes"]
    return [
        Finding(
            fault.node,
            "mtu",
            "degraded",
            f"datagrams of {full} bytes do not pass, those of {nodes[fault.node]} do",
            _mend(fault, trial.devices, world),
            f"chunks of {nodes[fault.node]} bytes in place of {full}",
            leave_out=True,
        )
        for fault in faults
    ]


def _mend(fault: Fault, devices: Sequence[str], world: World) -> str:
    device = devices[world.ranks_of(fault.node)[0]]
    return (
        f"set the MTU of {fault.node}'s switch port to that of the others; on "
        f"{fault.node}: ip link show dev {device}"
    )
