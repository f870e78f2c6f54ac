# SPDX-License-Identifier: BSD-3-Clause
"""All checks, in turn, on all ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpimcast.doctor import launch, launcher
from mpimcast.doctor.finding import Finding
from mpimcast.doctor.ranks import Ranks
from mpimcast.errors import TimedOut

if TYPE_CHECKING:
    from mpimcast.doctor.launcher import Start
    from mpimcast.doctor.report import Report


def check(report: Report, start: Start, deadline_s: float) -> bool:
    """Do the checks that the report is to tell of.

    Returns
    -------
    bool
        Whether this rank is the one to tell it.

    Raises
    ------
    TimeoutError
        If ranks are missing; MPI must not be used any more then.
    """
    wrong = list(launch.check_size(start))
    if wrong:
        report.add(wrong)
        report.nranks = 1
        report.nodes = [{"name": launcher.node_name(), "ranks": [0]}]
        return start.rank == 0
    ranks = Ranks(deadline_s)
    report.nranks = ranks.size
    try:
        _check(report, ranks)
    except TimedOut as error:
        report.add(_absent(ranks, str(error)))
        raise TimeoutError from None
    return ranks.rank == 0


def _check(report: Report, ranks: Ranks) -> None:
    """Do the checks."""
    ranks.begin("launch")
    mine = launch.facts()
    told = ranks.exchange(mine)
    ranks.nodes = [fact.pop("node") for fact in told]
    report.nodes = [
        {"name": name, "ranks": ranks.ranks_of(name)} for name in ranks.node_names()
    ]
    report.add(launch.check_alike(ranks, told))
    report.measured["launch"] = {k: v for k, v in mine.items() if k != "missing"}


def _absent(ranks: Ranks, what: str) -> list[Finding]:
    """Say who is missing, as far as this rank knows."""
    return [
        Finding(
            ranks.nodes[rank],
            "launch",
            "unusable",
            f"rank {rank} does not answer ({what})",
            "see whether its process runs and its node's network is up",
            leave_out=True,
        )
        for rank in ranks.absent()
    ] or [Finding(launcher.node_name(), "launch", "unusable", what, "")]
