# SPDX-License-Identifier: BSD-3-Clause
"""Runs all checks, in turn, on all ranks."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from mpimcast._settings.config import Config
from mpimcast.cli.doctor import launch
from mpimcast.cli.doctor.finding import Finding
from mpimcast.cli.doctor.start import job_nodes
from mpimcast.cli.doctor.world import World
from mpimcast.cli.info.firewall import passage
from mpimcast.cli.node import node_name
from mpimcast.errors import TimedOut

if TYPE_CHECKING:
    from mpimcast.cli.doctor.report import Report
    from mpimcast.cli.doctor.start import Start


def check_world(report: Report, start: Start) -> bool:
    """Report and return whether MPI's world differs from the processes started."""
    report.nodes = [{"name": node_name(), "ranks": [0]}]
    report.nranks = 1
    wrong = list(launch.check_size(start))
    report.add(wrong or launch.check_alone(start, os.environ))
    return bool(wrong)


def check(report: Report, deadline_s: float) -> World:
    """Run the checks that the report asks for; return all ranks.

    Raises
    ------
    TimedOut
        If ranks are missing; MPI must not be used any more after that.
    """
    world = World(deadline_s)
    report.nranks = world.size
    try:
        _check(report, world)
    except TimedOut as error:
        report.add(_absent(world, str(error)))
        raise
    return world


def _check(report: Report, world: World) -> None:
    """Run the checks, each of which adds to the report."""
    world.meet()
    mine = launch.facts()
    told = world.exchange(mine)
    world.nodes = launch.node_names(told)
    names = world.names(range(world.size))
    report.nodes = [{"name": name, "ranks": world.ranks_of(name)} for name in names]
    report.add(launch.check_alike(world, told))
    report.add(launch.check_ignored(world, told))
    own = ("node", "host", "missing", "ignored", "falls_back")
    report.measured["launch"] = {k: v for k, v in mine.items() if k not in own}
    later = [name for name in report.checks if name != "launch"]
    lacking = [rank for rank, fact in enumerate(told) if fact["missing"]]
    if lacking:
        report.skip(later, f"rank {lacking[0]} cannot take part")
    elif report.verdict == "unusable":
        report.skip(later, "no communicator can be opened")
    elif later:
        _look_at_network(report, world)


def _look_at_network(report: Report, world: World) -> None:
    """Run the checks that need the C library, which all ranks have."""
    from mpimcast.cli.doctor import network, nodes

    config = Config.read({})
    report.measured["firewall"] = passage(config)
    world.begin("nodes")
    nodes.check(report, world, config)
    if {*report.checks} - {"launch", "nodes"}:
        network.examine(report, world, config)


def _absent(world: World, what: str) -> list[Finding]:
    """Return findings that name the missing ranks, as far as rank 0 knows them."""
    absent = world.absent()
    mend = "check that its processes are running and its network is up"
    lost = {world.nodes[rank]: f"rank {rank} does not answer" for rank in absent}
    if "" in lost:  # ranks are missing whose nodes are unknown
        present = world.present()
        silent = [name for name in job_nodes() if name not in present]
        if silent:
            del lost[""]
        lost |= dict.fromkeys(silent, "none of its ranks answers")
    if not absent and not world.rank:
        lost[""] = "all ranks sent a short message, but a longer one has not arrived"
        mend = "raise --limit, or compare MTUs of interfaces and switches: ip link show"
    return [
        Finding(node, "launch", "unusable", f"{words} ({what})", mend, leave_out=True)
        for node, words in lost.items()
    ] or [Finding("", "launch", "unusable", what, mend)]
