# SPDX-License-Identifier: BSD-3-Clause
"""Over what the ranks reach each other, and which of them are well.

The endpoints are those that a communicator would open, over the transport that it
would choose. Where nodes are to blame the others are tried without them, and what
else there is to check is checked among these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpimcast.doctor import bandwidth, control, multicast, reads
from mpimcast.doctor.finding import Finding
from mpimcast.doctor.team import Team, isolate
from mpimcast.transport import TRANSPORTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mpimcast.config import Config
    from mpimcast.doctor.ranks import Ranks
    from mpimcast.doctor.report import Report
    from mpimcast.doctor.team import Part
    from mpimcast.transport import Transport

# What is checked among those that are well.
_LATER = {
    "control": control.check,
    "reads": reads.check,
    "bandwidth": bandwidth.check,
}

# What a check may take.
_LEAST_S = 3.0

LIBRARY = "the MPI library's own collectives"


def examine(report: Report, ranks: Ranks, config: Config) -> None:
    """Do the checks of the network that were asked for."""
    kinds = [k for k in TRANSPORTS if config.transport in ("auto", k.name)]
    if not kinds:
        what = "TRANSPORT=mpi: there is nothing to check of the network"
        report.add([Finding("", "multicast", "note", what, "")])
    for kind, worse in zip(kinds, [*kinds[1:], None], strict=True):
        # What a team that cannot be opened comes down to.
        instead = worse.name if worse else LIBRARY
        if config.transport != "auto":
            instead = ""
        team = _open(report, ranks, config, kind, instead)
        if team is None:
            continue
        report.measured["transport"] = kind.name
        _check(report, ranks, team, instead)
        return


def _check(report: Report, ranks: Ranks, team: Team, instead: str) -> None:
    """Do the checks on an open team, the first of which may leave ranks out."""
    if {"multicast", "mtu"} & set(report.checks) and _has_time(report, ranks):
        ranks.begin("multicast")
        team = multicast.check(report, ranks, team, instead)
    for name, check in _LATER.items():
        if name in report.checks and _has_time(report, ranks):
            ranks.begin(name)
            check(report, ranks, team)
    team.close()


def _has_time(report: Report, ranks: Ranks) -> bool:
    """Return whether there is time for one more check; if not, say so once."""
    if min(ranks.exchange(ranks.left_s)) > _LEAST_S:
        return True
    what = "the time was too short for all checks"
    late = Finding("", "launch", "note", what, "--limit SECONDS")
    report.add([late] if late not in report.findings else [])
    return False


def _open(
    report: Report,
    ranks: Ranks,
    config: Config,
    kind: type[Transport],
    instead: str,
) -> Team | None:
    """Open a team of as many ranks as can be in one; None if that is none."""
    ranks.begin(kind.name)
    everybody = tuple(range(ranks.size))
    team = Team(ranks, config, kind, [everybody])
    if not team.failures:
        return team
    next_kind = instead not in ("", LIBRARY)
    if len(team.failures) == ranks.size and next_kind:
        return None  # nobody has what the next does without
    told = dict(team.failures)
    well = _well(ranks, config, kind, everybody)
    severity = "degraded" if instead else "unusable"
    bad = [rank for rank in everybody if rank not in well]
    for node in ranks.names(bad):
        why = next(
            (f"rank {r}: {told[r]}" for r in ranks.ranks_of(node) if r in told),
            "nobody can with it",
        )
        report.add(
            [
                Finding(
                    node,
                    "multicast",
                    severity,
                    f"{kind.name} cannot be opened; {why}",
                    f"on {node}: python -m mpimcast info",
                    f"{instead}, as {kind.name} cannot be opened",
                    leave_out=True,
                )
            ]
        )
    if next_kind or len(well) <= 1:
        return None  # a communicator of all ranks would take the next
    return Team(ranks, config, kind, [well])


def _well(ranks: Ranks, config: Config, kind: type[Transport], members: Part) -> Part:
    """Return the ranks that open a team together."""

    def opens(parts: Sequence[Part]) -> list[bool]:
        team = Team(ranks, config, kind, parts)
        team.close()
        return [not team.failures.keys() & set(part) for part in parts]

    # Who says that it has failed may be another's victim, unless it is so alone.
    able = opens([(rank,) for rank in members])
    rest = tuple(rank for rank, alone in zip(members, able, strict=True) if alone)
    return rest if not rest or all(opens([rest])) else isolate(opens, rest)
