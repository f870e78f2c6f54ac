# SPDX-License-Identifier: BSD-3-Clause
"""How far clocks are apart: what questions and answers tell of it."""

from __future__ import annotations

import random

import pytest
from support import choose_seed

from mpimcast._mpi.clock import Sample, estimate
from mpimcast._support.trace_file import Header, Offset, Process
from mpimcast.cli.trace.clocks import align


def asked(rng: random.Random, offset_ns: int, forth_ns: int, back_ns: int) -> Sample:
    """Return a question to a clock that is ahead, and an answer with these delays."""
    asked_ns = rng.randrange(10**12)
    theirs_ns = asked_ns + forth_ns + offset_ns
    return Sample(asked_ns, theirs_ns, asked_ns + forth_ns + back_ns)


def test_equal_delays() -> None:
    """If both ways take equally long, the offset is exact."""
    rng = random.Random(1)
    found = estimate([asked(rng, -12345, 500, 500)])
    assert found == (-12345, 500)


@pytest.mark.parametrize(("forth_ns", "back_ns"), [(1000, 0), (0, 1000), (999, 2)])
def test_the_worst_delays(forth_ns: int, back_ns: int) -> None:
    """Even if one way takes all the time, the error is no greater than said."""
    offset_ns, error_ns = estimate(
        [asked(random.Random(1), 77, forth_ns, back_ns)],
    )
    assert abs(offset_ns - 77) <= error_ns
    assert error_ns <= (forth_ns + back_ns + 1) // 2


def test_random_delays() -> None:
    """With any delays the offset is right within the error; the fastest one counts."""
    rng = random.Random(choose_seed())
    for _ in range(500):
        true_ns = rng.randrange(-(10**12), 10**12)
        delays = [
            (rng.randrange(10**6), rng.randrange(10**3, 10**6))
            for _ in range(rng.randrange(1, 20))
        ]
        offset_ns, error_ns = estimate([asked(rng, true_ns, *each) for each in delays])
        assert abs(offset_ns - true_ns) <= error_ns
        assert error_ns == (min(map(sum, delays)) + 1) // 2


# ---- one clock for all -------------------------------------------------------


def header(rank: int, *offsets: tuple[int, int, int], ahead_ns: int = 0) -> Header:
    """Return a header with offsets, each of a rank, in time, and with an error."""
    return Header(
        process=process(rank),
        ended="exit",
        begun_s=0,
        written_s=1,
        ahead_ns=ahead_ns,
        nadded=0,
        nsmall=0,
        tracks=[],
        offsets=[Offset(process(peer), *rest) for peer, *rest in offsets],
    )


def process(rank: int) -> Process:
    """Return a process on a host of its own."""
    return Process(rank, f"host{rank}", 100 + rank)


def test_the_way_with_the_least_error() -> None:
    """Offsets add up along the way whose errors are the least."""
    shifts = align(
        [
            header(0, (0, 0, 0)),
            header(1, (0, 1000, 5)),
            # Directly to rank 0 with an error of 100; over rank 1 with one of 12.
            header(2, (0, 3333, 100), (1, 2000, 7)),
        ]
    )
    assert shifts == [(0, 0), (1000, 5), (3000, 12)]


def test_over_a_process_without_a_file() -> None:
    """Two processes that were compared with a third, which left no file, are joined."""
    shifts = align([header(1, (0, 1000, 5)), header(2, (0, -500, 6))])
    assert shifts == [(0, 0), (-1500, 11)]


def test_random_ways() -> None:
    """However clocks were compared, the true shift is within the error."""
    rng = random.Random(choose_seed())
    for _ in range(100):
        n = rng.randrange(2, 12)
        true_ns = [rng.randrange(-(10**9), 10**9) for _ in range(n)]
        headers = []
        for rank in range(n):
            offsets = []
            for peer in {rng.randrange(rank) if rank else 0, rng.randrange(n)}:
                error_ns = rng.randrange(10**5)
                wrong_ns = rng.randint(-error_ns, error_ns)
                offset_ns = true_ns[rank] - true_ns[peer] + wrong_ns
                offsets.append((peer, offset_ns, error_ns))
            headers.append(header(rank, *offsets))
        for rank, (shift_ns, error_ns) in enumerate(align(headers)):
            assert error_ns is not None
            assert abs(shift_ns - (true_ns[rank] - true_ns[0])) <= error_ns


def test_clocks_that_were_not_compared() -> None:
    """Without a comparison the hosts' own time counts, and no error is claimed."""
    shifts = align([header(0, ahead_ns=500), header(1, ahead_ns=700)])
    assert shifts == [(0, 0), (200, None)]
    assert align([]) == []
