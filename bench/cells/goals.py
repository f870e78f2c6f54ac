# SPDX-License-Identifier: BSD-3-Clause
"""The project's goals, and how far measurements reach them.

A goal must hold in all scenarios and sizes to which it applies. So its worst figure
decides, and a report shows where that was measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from bench.cells import summary
from bench.cells.case import Case
from bench.cells.goal import (
    ABOVE_1_MIB,
    ANY,
    BIG,
    FROM_4_KIB,
    FROM_64_KIB,
    KIB,
    MIB,
    TO_4_MIB,
    UP_TO_1_MIB,
    Goal,
    Reached,
)
from bench.cells.scenario import Scenario
from bench.cells.summary import Scenarios
from bench.jobs.payload import MIXED, STEP, STEPS

# mpimcast tries both ways in at most eight calls of a class of sizes, and decides in
# the next one, which still costs an exchange.
TRIALS = 9

# The payload's share of an Ethernet frame of 1,514 bytes. Every frame has the headers
# of Ethernet (14 bytes) and IP (20). A datagram of mpimcast adds UDP's header (8) and
# mpimcast's own (16); a segment of TCP adds TCP's header (20) and time stamps (12).
HEADERS_LEAVE = 1456 / 1514
TCP_HEADERS_LEAVE = 1448 / 1514


def reached(scenarios: Scenarios) -> Iterator[Reached]:
    """Yield the worst figure of each goal for which anything was measured."""
    for goal in GOALS:
        figures = [
            Reached(goal, figure, case.scenario, case.ours.block_bytes)
            for case in _cases(scenarios, goal)
            if (figure := goal.figure(case)) is not None
        ]
        if figures:
            worst = min if goal.is_minimum else max
            yield worst(figures, key=lambda each: each.figure)


def _cases(scenarios: Scenarios, goal: Goal) -> Iterator[Case]:
    """Yield the cases to which a goal applies."""
    for scenario, contenders in scenarios.items():
        if (scenario.cell, scenario.collective) != (goal.cell, goal.collective):
            continue
        for ours in contenders.get(goal.contender, ()):
            if ours.block_bytes in goal.sizes and goal.applies(scenario):
                yield Case(scenario, ours, contenders, scenarios)


# ---- the figures of a case -----------------------------------------------------


def _best(case: Case) -> float | None:
    return case.speed_over_best()


def _best_or_gloo(case: Case) -> float | None:
    speeds = [case.speed_over_best(), case.speed_over_gloo()]
    return min((speed for speed in speeds if speed is not None), default=None)


def _tuned(case: Case) -> float | None:
    return case.speed_over_best(tuned=True)


def _untuned(case: Case) -> float | None:
    return case.speed_over_best(tuned=False)


def _by_bare(case: Case) -> float | None:
    """Return mpimcast's time as a multiple of that of the only peer, the C program."""
    best = case.speed_over_best()
    return 1 / best if best else None


def _by_unprotected(case: Case) -> float | None:
    return case.time_over(summary.OURS)


def _lost(case: Case) -> float:
    return case.ours.lost_chunks


def _trunk_blocks(case: Case) -> float | None:
    return case.ours.trunk_blocks


def _host_blocks(case: Case) -> float | None:
    return case.ours.host_blocks


def _received(case: Case) -> float | None:
    """Return what a host is sent, as a multiple of the payload."""
    payload = case.scenario.payload_bytes(case.ours.block_bytes)
    blocks = case.ours.received_blocks
    return None if blocks is None else blocks * case.ours.block_bytes / payload


def _program(case: Case) -> float | None:
    return case.program_speed()


def _settled(case: Case) -> float | None:
    return case.program_speed(first=TRIALS)


def _link(case: Case) -> float | None:
    """Return the payload's share of what the link could carry besides headers."""
    part = summary.link_part(case.scenario, case.ours)
    return None if part is None else part / HEADERS_LEAVE


def _processors(case: Case) -> float | None:
    return case.quantity_over_smallest(lambda each: each.processor_s)


def _sent(case: Case) -> float | None:
    return case.quantity_over_smallest(lambda each: each.host_blocks)


def _repaired(case: Case) -> float | None:
    lost_bytes = case.ours.lost_bytes
    return case.ours.repair_bytes / lost_bytes if lost_bytes else None


def _rival(case: Case) -> float | None:
    """Return the TCP stream's share of what the link could carry besides headers."""
    rate_mbit = case.scenario.network.rate_mbit
    if rate_mbit is None:
        return None
    return case.ours.rival_bytes_per_s * 8 / (rate_mbit * 1e6) / TCP_HEADERS_LEAVE


def _at(**values: object) -> Callable[[Scenario], bool]:
    """Return a test of a scenario: whether its network's fields have these values.

    The name ``nranks`` stands for the scenario's number of ranks.
    """
    return lambda scenario: all(
        (scenario.nranks if name == "nranks" else getattr(scenario.network, name))
        == value
        for name, value in values.items()
    )


_PAIR = "Allgather+Reduce_scatter"

_OVER_MPICH = "mpimcast-mpich"
_SHARED = "mpimcast-shared"
_BY_DEFAULT = "mpimcast-default"
_AUTHENTICATED = "mpimcast-authenticate"

_LEAST, _MOST = True, False  # whether the bound of a goal is a minimum
_BY_CLEAN = "time as a multiple of that without loss"
_BEST = "times as fast as the best peer"
_SENT = ("bytes sent as a share of the best peer's", _MOST)
_CHAIN = "times as fast as the tuned chain"

GOALS = (
    Goal("A", _BEST, _LEAST, 0.98, _best, sizes=BIG),
    Goal("A", "share of the link that headers leave", _LEAST, 0.985, _link, sizes=BIG),
    Goal("A", "blocks sent by a host", _MOST, 1.06, _host_blocks, sizes=BIG),
    Goal("A", "chunks lost", _MOST, 0, _lost, sizes=BIG),
    Goal(
        "A",
        "processor time as a share of the best peer's",
        _MOST,
        1 / 3,
        _processors,
        sizes=[512 * KIB],
        applies=_at(nranks=8),
        where="P = 8",
    ),
    Goal(
        "A",
        "processor time as a share of gloo's",
        _MOST,
        1,
        Case.processor_share_of_gloo,
        sizes=TO_4_MIB,
        applies=lambda scenario: scenario.nranks in (4, 8),
        where="P = 4 and 8",
    ),
    Goal("A", _CHAIN, _LEAST, 0.97, _tuned, "Bcast", [512 * KIB]),
    Goal("A", _CHAIN, _LEAST, 1.0, _tuned, "Bcast", [4 * MIB]),
    Goal(
        "A",
        "times as fast as the better default",
        _LEAST,
        2,
        _untuned,
        "Bcast",
        [512 * KIB],
    ),
    Goal("A", "blocks sent by the root", _MOST, 1.06, _host_blocks, "Bcast", BIG),
    Goal(
        "B",
        _BEST,
        _LEAST,
        1.7,
        _best,
        sizes=BIG,
        applies=_at(order="block"),
        where="block order",
    ),
    Goal(
        "B",
        _BEST,
        _LEAST,
        3,
        _best,
        sizes=BIG,
        applies=_at(order="interleaved"),
        where="interleaved order",
    ),
    Goal("B", "blocks over the trunk", _MOST, 4.3, _trunk_blocks, sizes=BIG),
    *(
        Goal(
            cell,
            "time with authentication as a multiple of that without",
            _MOST,
            1.05,
            _by_unprotected,
            name,
            contender=_AUTHENTICATED,
        )
        for cell in ("A", "B")
        for name in ("Allgather", "Bcast")
    ),
    Goal("C", _BEST, _LEAST, 0.97, _best, sizes=[64 * KIB]),
    Goal("C", _BEST, _LEAST, 1.1, _best, sizes=[MIB, 4 * MIB]),
    Goal("C", _BEST, _LEAST, 0.97, _best, "Bcast", [64 * KIB]),
    Goal("C", _BEST, _LEAST, 1, _best, "Bcast", [MIB]),
    Goal("C", _BEST, _LEAST, 1.25, _best, "Bcast", [4 * MIB]),
    *(
        Goal(
            "D",
            _BY_CLEAN,
            _MOST,
            bound,
            Case.time_over_undisturbed,
            name,
            applies=_at(loss=loss),
            where=f"{100 * loss:g} % lost",
        )
        for loss, bound in ((0.001, 1.05), (0.01, 1.2))
        for name in ("Allgather", "Bcast")
    ),
    *(
        Goal("D", "bytes repaired for each byte lost", _MOST, 1.3, _repaired, name)
        for name in ("Allgather", "Bcast")
    ),
    *(
        Goal("D", *what, name, applies=_at(rival=True), where="beside TCP")
        for what in (
            (
                "time as a multiple of that without the stream",
                _MOST,
                3,
                Case.time_over_undisturbed,
            ),
            ("TCP's share of the link", _LEAST, 1 / 3, _rival),
        )
        for name in ("Allgather", "Bcast")
    ),
    *(
        Goal("E", _BEST, _LEAST, bound, _best, name, sizes)
        for bound, sizes in ((1.2, UP_TO_1_MIB), (0.97, ABOVE_1_MIB))
        for name in ("Allgather", "Bcast")
    ),
    *(
        Goal(
            "E",
            f"{_BEST}, shared result",
            _LEAST,
            2,
            _best,
            name,
            FROM_64_KIB,
            contender=_SHARED,
        )
        for name in ("Allgather", "Bcast")
    ),
    Goal("F", f"{_BEST}, over MPICH", _LEAST, 1, _best, _PAIR, contender=_OVER_MPICH),
    Goal("F", *_SENT, 0.6, _sent, _PAIR, contender=_OVER_MPICH),
    *(
        Goal("H", *what, name, sizes)
        for what, sizes in (
            ((_BEST, _LEAST, 1, _best), ANY),
            (("share of the link that headers leave", _LEAST, 0.95, _link), BIG),
            (("bytes a host is sent by payload", _MOST, 1.06, _received), ANY),
        )
        for name in ("Allgather", "Bcast")
    ),
    *(
        Goal("I", *what, name, FROM_4_KIB, contender=_BY_DEFAULT)
        for what in (
            ("times as fast as the MPI library, with trials", _LEAST, 0.97, _program),
            ("times as fast after them", _LEAST, 0.99, _settled),
        )
        for name in ("Allgather", "Bcast")
    ),
    *(
        Goal("T", *_SENT, bound, _sent, name)
        for name, bound in ((STEP, 0.6), (MIXED, 0.7))
    ),
    *(
        Goal(
            "T",
            "times as fast as the best peer or gloo",
            _LEAST,
            bound,
            _best_or_gloo,
            name,
            applies=_at(switches=switches, order=order),
            where=where,
        )
        for bound, switches, order, where in (
            (1, 1, "block", "one switch"),
            (1.15, 2, "block", "thin trunk, block order"),
            (1.3, 2, "interleaved", "thin trunk, interleaved order"),
        )
        for name in STEPS
    ),
    Goal("V", "time as a multiple of the bare program's", _MOST, 1.25, _by_bare),
)
