# SPDX-License-Identifier: BSD-3-Clause
"""Checks the network between ranks, and finds the ranks for which it works.

The endpoints are those that a communicator would open, over the transport that it
would choose. If nodes are to blame, the others are tried again without them, and all
further checks run among those others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpimcast._native.transport import wanted
from mpimcast._session import introduction
from mpimcast.cli.doctor import bandwidth, control, multicast, reads
from mpimcast.cli.doctor.finding import Finding
from mpimcast.cli.doctor.launch import LIBRARY
from mpimcast.cli.doctor.trial import Trial, isolate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mpimcast._native.transport import Transport
    from mpimcast._session.opening import Part
    from mpimcast._settings.config import Config
    from mpimcast.cli.doctor.report import Report
    from mpimcast.cli.doctor.world import World

# The checks among the ranks that the multicast check leaves.
_LATER = {
    "control": control.check,
    "reads": reads.check,
    "bandwidth": bandwidth.check,
}

# The time that must be left for a check to begin.
_LEAST_S = 3.0

# All checks of the network.
_CHECKS = ("multicast", "mtu", *_LATER)


def examine(report: Report, world: World, config: Config) -> None:
    """Run the checks of the network that were asked for."""
    kinds = wanted(config)
    if not kinds:
        report.skip(_CHECKS, "TRANSPORT=mpi leaves everything to the MPI library")
        return
    told = len(report.findings)
    _examine(report, world, config, kinds)
    if config.transport == "auto" and world.size > 1 and _share_host(world):
        report.findings[told:] = map(_without_harm, report.findings[told:])


def _examine(
    report: Report, world: World, config: Config, kinds: Sequence[type[Transport]]
) -> None:
    """Run the checks over the first transport that can be opened."""
    for kind, worse in zip(kinds, [*kinds[1:], None], strict=True):
        # The transport that takes over if a team cannot be opened over `kind`.
        instead = worse.name if worse else LIBRARY
        if worse is None and "mpi" not in config.transports:
            instead = ""
        trial = _open(report, world, config, kind, instead)
        if trial is None:
            continue
        report.measured["transport"] = kind.name
        if len(trial.members) > 1:
            _check(report, world, trial, instead)
        else:
            report.skip(_CHECKS, _why_alone(world))
            trial.close()
        return
    report.skip(_CHECKS, "no transport can be opened")


def _why_alone(world: World) -> str:
    """Return in words why no rank has another one to test with."""
    if world.size > 1:
        return "no two ranks can use the same transport"
    return "one rank; run it under mpirun or srun to test with others"


def _share_host(world: World) -> bool:
    """Return whether all ranks reach each other's loopback."""
    return len(set(world.exchange(introduction.host_key()))) == 1


def _without_harm(finding: Finding) -> Finding:
    """Return a finding as a note, since here TRANSPORT=auto needs no network."""
    if finding.severity == "note":
        return finding
    what = f"{finding.what} (on one host TRANSPORT=auto uses no network)"
    return finding._replace(severity="note", what=what, leave_out=False)


def _check(report: Report, world: World, trial: Trial, instead: str) -> None:
    """Run the checks on an open team, from which the first check may drop ranks."""
    first = {"multicast", "mtu"} & set(report.checks)
    if first and _has_time(report, world, tuple(first)):
        world.begin("multicast")
        trial = multicast.check(report, world, trial, instead)
    for name, check in _LATER.items():
        if len(trial.members) == 1:
            report.skip([name], "the other ranks are left out, see above")
        elif name in report.checks and _has_time(report, world, (name,)):
            world.begin(name)
            check(report, world, trial)
    trial.close()


def _has_time(report: Report, world: World, checks: Sequence[str]) -> bool:
    """Return whether there is time for more checks; if not, report them as skipped."""
    if min(world.exchange(world.left_s)) > _LEAST_S:
        return True
    report.skip(checks, "the time ran out: --limit SECONDS gives more")
    return False


def _open(
    report: Report,
    world: World,
    config: Config,
    kind: type[Transport],
    instead: str,
) -> Trial | None:
    """Open a team of as many ranks as can be in one; return None if none can."""
    world.begin(kind.name)
    everybody = tuple(range(world.size))
    trial = Trial(world, config, kind, [everybody])
    if not trial.failures:
        return trial
    next_kind = instead not in ("", LIBRARY)
    if len(trial.failures) == world.size and next_kind:
        return None  # no rank can open this transport: try the next
    told = dict(trial.failures)
    well = _well(world, config, kind, everybody)
    severity = "degraded" if instead else "unusable"
    bad = [rank for rank in everybody if rank not in well]
    for node in world.names(bad):
        why = next(
            (_by(r, told[r]) for r in world.ranks_of(node) if r in told),
            "no other node can open it together with this one",
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
        return None  # a communicator of all ranks would take the next transport
    return Trial(world, config, kind, [well])


def _by(rank: int, text: str) -> str:
    """Return a rank's text, with its number in front unless it is there already."""
    begin = f"rank {rank}: "
    return text if text.startswith(begin) else f"{begin}{text}"


def _well(world: World, config: Config, kind: type[Transport], members: Part) -> Part:
    """Return ranks that can open a team together."""

    def opens(parts: Sequence[Part]) -> list[bool]:
        trial = Trial(world, config, kind, parts)
        trial.close()
        return [not trial.failures.keys() & set(part) for part in parts]

    # A rank that fails in a team may be another's victim, but not one that fails alone.
    able = opens([(rank,) for rank in members])
    rest = tuple(rank for rank, alone in zip(members, able, strict=True) if alone)
    return rest if not rest or all(opens([rest])) else isolate(opens, rest)
