# SPDX-License-Identifier: BSD-3-Clause
"""The work that `mpimcast bench` measures: sizes, patterns, blocks, turns."""

from __future__ import annotations

from argparse import ArgumentTypeError
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpimcast.cli.bench.measure import Plan, percentile
from mpimcast.cli.bench.parser import sizes
from mpimcast.cli.bench.workload import Pattern, Workload, workload


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", [1]),
        ("64k", [65536]),
        ("3,1K,2M,1G", [3, 1024, 2 << 20, 1 << 30]),
        ("8:4M", [8 << bits for bits in range(20)]),
        ("7:9,100", [8, 100]),
        ("8:8", [8]),
    ],
)
def test_sizes(text: str, expected: list[int]) -> None:
    """Sizes can be listed one by one, or as ranges of powers of two."""
    assert sizes(text) == expected


def test_ranges() -> None:
    """A range contains the powers of two from its first to its last number."""
    powers = {1, 2, 4, 8, 16, 32}
    for low, high in product(range(1, 40), range(40)):
        expected = [n for n in range(low, high + 1) if n in powers]
        if expected:
            assert sizes(f"{low}:{high}") == expected
        else:
            with pytest.raises(ArgumentTypeError, match="no power of two"):
                sizes(f"{low}:{high}")


@pytest.mark.parametrize(
    "text", ["", "0", "0:8", "-1", "x", "1,", "8:", ":8", "1:2:3", "1.5K", "1T"]
)
def test_bad_sizes(text: str) -> None:
    """A text that is not a size is an error that shows valid sizes."""
    with pytest.raises(ArgumentTypeError, match=r"such as 8, 64K|begins below 1"):
        sizes(text)


@given(
    values=st.lists(st.floats(0, 10) | st.sampled_from([1.0, 2.0]), min_size=1),
    percent=st.integers(0, 100),
)
def test_percentile(values: list[float], percent: int) -> None:
    """The p-th percentile is the least value that p % of the values do not exceed."""
    enough = [
        value
        for value in values
        if 100 * sum(other <= value for other in values) >= percent * len(values)
    ]
    assert percentile(values, percent) == min(enough)


def test_pattern() -> None:
    """A pattern's wrong bytes are counted, even if they are another rank's or step's.

    From step to step all bytes change, and from rank to rank most of them. A pattern
    that is moved by some bytes differs from itself, so misplaced data is wrong data.
    """
    nbytes = 5000
    pattern = Pattern(nbytes)
    block, other = np.empty((2, nbytes), np.uint8)
    for rank, step in product((0, 1, 2, 7, 1000), (-1, 0, 255, 256)):
        pattern.write(rank, step, block)
        assert pattern.wrong_bytes(rank, step, block) == 0
        assert pattern.wrong_bytes(rank, step + 1, block) == nbytes
        assert pattern.wrong_bytes(rank + 1, step, block) > nbytes / 2
        for offset in (1, 8, 1000):
            assert np.count_nonzero(block[offset:] == block[:-offset]) < nbytes / 2
        other[:] = block
        other[[0, 17, nbytes - 1]] ^= 4
        assert pattern.wrong_bytes(rank, step, other) == 3


def perform(works: list[Workload], name: str) -> None:
    """Copy between the buffers of all ranks as the collective of this name would."""
    arguments = [work.arguments() for work in works]
    if name == "Bcast":
        root = arguments[0][1]
        for place, _ in arguments:
            place[:] = arguments[root][0]
        return
    for _, recv in arguments:
        if name == "Allgather":
            place, counts, begins = recv.reshape(-1), (7, 7, 7), (0, 7, 14)
        else:
            place, (counts, begins), _ = recv
        for (send, _), count, begin in zip(arguments, counts, begins, strict=True):
            place[begin : begin + count] = send


@pytest.mark.parametrize("name", ["Allgather", "Allgatherv", "Bcast"])
def test_workloads(name: str) -> None:
    """A right result has no wrong byte, but at another step all its bytes are wrong."""
    ranks = [SimpleNamespace(rank=rank, size=3) for rank in range(3)]
    works = [workload(name, comm, 7, root=None) for comm in ranks]
    for turn in range(4):
        for work in works:
            work.turn_to(2 * turn, turn)
            work.fill()
        perform(works, name)
        assert [work.wrong_bytes() for work in works] == [0, 0, 0]
        spoiled = works[0].arguments()[0 if name == "Bcast" else 1]
        (spoiled[0] if name == "Allgatherv" else spoiled).flat[5] ^= 1
        assert [work.wrong_bytes() for work in works] == [1, 0, 0]
        works[1].turn_to(2 * turn + 1, turn)
        assert works[1].wrong_bytes() == works[1].total_bytes


@pytest.mark.parametrize(
    ("size", "nbytes", "blocks"), [(3, 8, [4, 8, 12]), (2, 1, [0, 2]), (1, 5, [5])]
)
def test_uneven_blocks(size: int, nbytes: int, blocks: list[int]) -> None:
    """An Allgatherv's blocks grow with the rank, and their mean is the given size."""
    work = workload("Allgatherv", SimpleNamespace(rank=0, size=size), nbytes)
    _, (counts, begins), _ = work.arguments()[1]
    assert counts == blocks
    assert begins == [sum(blocks[:rank]) for rank in range(size)]
    assert work.total_bytes == size * nbytes


@pytest.mark.parametrize("warmup", [0, 3])
def test_turns(warmup: int) -> None:
    """Both libraries run in each round, and each runs first in every other round."""
    plan = Plan(
        iterations=8,
        warmup=warmup,
        in_place=False,
        root=0,
        verify=True,
        pre_barrier=True,
        gap_s=0,
    )
    ways = [plan.way(step) for step in range(plan.nsteps)]
    rounds = list(zip(ways[::2], ways[1::2], strict=True))
    assert len(rounds) == 8 + warmup
    assert all(sorted(each) == [0, 1] for each in rounds)
    assert {rounds[index] != rounds[index + 1] for index in range(7)} == {True}
    assert ways[plan.first_counted :].count(0) == 8
