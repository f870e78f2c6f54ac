# SPDX-License-Identifier: BSD-3-Clause
"""Runs all checks, in turn, on all ranks."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from mpimcast._settings.config import Config
from mpimcast.cli.doctor import launch, launcher
from mpimcast.cli.doctor.finding import Finding
from mpimcast.cli.doctor.ranks import Ranks
from mpimcast.cli.info.firewall import passage
from mpimcast.cli.launch import node_name
from mpimcast.errors import TimedOut

if TYPE_CHECKING:
    from mpimcast.cli.doctor.launcher import Start
    from mpimcast.cli.doctor.report import Report


def check_world(report: Report, start: Start) -> bool:
    """Report, and return, whether MPI's world differs from what was started."""
    report.nodes = [{"name": node_name(), "ranks": [0]}]
    report.nranks = 1
    wrong = list(launch.check_size(start))
    report.add(wrong or launch.check_alone(start, os.environ))
    return bool(wrong)


def check(report: Report, deadline_s: float) -> Ranks:
    """Run the checks that the report asks for; return all ranks.

    Raises
    ------
    TimedOut
        If ranks are missing; MPI must not be used any more after that.
    """
    ranks = Ranks(deadline_s)
    report.nranks = ranks.size
    try:
        _check(report, ranks)
    except TimedOut as error:
        report.add(_absent(ranks, str(error)))
        raise
    return ranks


def _check(report: Report, ranks: Ranks) -> None:
    """Run the checks, each of which adds to the report."""
    ranks.meet()
    mine = launch.facts()
    told = ranks.exchange(mine)
    ranks.nodes = launch.node_names(told)
    names = ranks.names(range(ranks.size))
    report.nodes = [{"name": name, "ranks": ranks.ranks_of(name)} for name in names]
    report.add(launch.check_alike(ranks, told))
    report.add(launch.check_ignored(ranks, told))
    own = ("node", "host", "missing", "ignored", "falls_back")
    report.measured["launch"] = {k: v for k, v in mine.items() if k not in own}
    later = [name for name in report.checks if name != "launch"]
    lacking = [rank for rank, fact in enumerate(told) if fact["missing"]]
    if lacking:
        report.skip(later, f"rank {lacking[0]} cannot take part")
    elif report.verdict == "unusable":
        report.skip(later, "no communicator can be opened")
    elif later:
        _look_at_network(report, ranks)


def _look_at_network(report: Report, ranks: Ranks) -> None:
    """Run the checks that need the C library, which all ranks have."""
    from mpimcast.cli.doctor import network, nodes

    config = Config.read({})
    report.measured["firewall"] = passage(config)
    ranks.begin("nodes")
    nodes.check(report, ranks, config)
    if {*report.checks} - {"launch", "nodes"}:
        network.examine(report, ranks, config)


def _absent(ranks: Ranks, what: str) -> list[Finding]:
    """Return findings that name the missing ranks, as far as rank 0 knows them."""
    absent = ranks.absent()
    mend = "see whether its processes run and its network is up"
    lost = {ranks.nodes[rank]: f"rank {rank} does not answer" for rank in absent}
    if "" in lost:  # ranks are missing whose nodes are unknown
        present = ranks.present()
        silent = [name for name in launcher.job_nodes() if name not in present]
        if silent:
            del lost[""]
        lost |= dict.fromkeys(silent, "none of its ranks answers")
    if not absent and not ranks.rank:
        lost[""] = "all have sent a short word: is the time too short, or are others?"
        mend = "--limit; or compare the MTUs of interfaces and switches: ip link show"
    return [
        Finding(node, "launch", "unusable", f"{words} ({what})", mend, leave_out=True)
        for node, words in lost.items()
    ] or [Finding("", "launch", "unusable", what, mend)]
