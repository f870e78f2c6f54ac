# SPDX-License-Identifier: BSD-3-Clause
"""The rule that expects the times of repetition and codes, and its verdicts."""

from __future__ import annotations

import itertools
import math
import random
import statistics

import pytest

from bench.study.rule import (
    CODES,
    Code,
    Link,
    expected_more,
    expected_ns,
    expected_rounds,
    more_rounds,
)
from bench.study.verdicts import verdict
from mpimcast.cli.sim import simulator

REPEAT = CODES["repeat"]
LOSS = 0.01
ONE_CHUNK = Link(2, 1456, 1000, 25_000, round(LOSS * 10**6))
FAILS = 1 - (1 - LOSS) ** 2  # a repair, of which either way may lose a datagram


def test_without_loss_parity_alone_takes_time() -> None:
    """Without loss a code adds the time of its parity, and no round."""
    link = Link(16, 1 << 20, 1000, 25_000, 0)
    assert expected_ns(link, REPEAT) == expected_ns(link, Code(32, 0)) == 0
    assert expected_ns(link, Code(32, 4)) == pytest.approx((1 << 20) * 8 / 8)


def test_one_chunk() -> None:
    """A chunk is sent until it arrives; a copy of it is parity that saves rounds."""
    send_ns, round_ns = ONE_CHUNK.send_ns, ONE_CHUNK.round_ns
    assert send_ns == 1456 * 8
    assert round_ns == 25_000_000 + 1_000_000 + 120_000
    assert expected_ns(ONE_CHUNK, REPEAT) == pytest.approx(
        send_ns * LOSS / (1 - LOSS) + round_ns * LOSS / (1 - FAILS)
    )
    assert expected_ns(ONE_CHUNK, Code(1, 1)) == pytest.approx(
        send_ns * (1 + LOSS**2) + round_ns * LOSS**2 / (1 - FAILS)
    )


def rounds_until_all(link: Link, code: Code, draw: random.Random) -> int:
    """Draw the rounds until all receivers have all groups."""
    loss = link.loss_ppm / 10**6
    fails = 1 - (1 - loss) ** 2
    most = 0
    for _ in range((link.nranks - 1) * (link.nchunks // code.data)):
        lost = sum(draw.random() < loss for _ in range(code.data + code.parity))
        rounds = 0
        while lost > code.parity and (rounds == 0 or draw.random() < fails):
            rounds += 1
        most = max(most, rounds)
    return most


def test_rounds_are_those_of_the_unluckiest(seed: int) -> None:
    """The rounds that are expected are the mean of what is drawn."""
    link = Link(5, 8 * 16 * 1456, 1000, 100_000, 50_000)
    code, draw, ndraws = Code(8, 2), random.Random(seed), 1000
    drawn = [rounds_until_all(link, code, draw) for _ in range(ndraws)]
    error = statistics.pstdev(drawn) / math.sqrt(ndraws)
    assert statistics.mean(drawn) == pytest.approx(
        expected_rounds(link, code), abs=6 * error
    )


def test_repairs_of_the_unluckiest_are_for_all(seed: int) -> None:
    """Of a group so much parity is sent as its unluckiest receiver lacks."""
    link = Link(9, 32 * 1456, 1000, 100_000, 100_000)
    draw, ndraws = random.Random(seed), 1000
    drawn = [
        max(sum(draw.random() < 0.1 for _ in range(32)) for _ in range(link.nranks - 1))
        for _ in range(ndraws)
    ]
    error = statistics.pstdev(drawn) / math.sqrt(ndraws)
    assert statistics.mean(drawn) == pytest.approx(
        32 * expected_more(link, Code(32, 0)), abs=6 * error
    )


def test_parity_pays_off_where_round_trips_are_long() -> None:
    """The rule chooses repetition for a short link, and parity for a long one."""

    def chosen(trip_us: int, loss_ppm: int) -> str:
        link = Link(2, 16 << 20, 1000, trip_us, loss_ppm)
        return min(CODES, key=lambda name: expected_ns(link, CODES[name]))

    assert chosen(10, 1000) == chosen(25_000, 1) == "repeat"
    assert chosen(100_000, 100) == "32,1"
    assert chosen(100_000, 100_000) == "32,8"


def forecast_ns(link: Link, code: Code) -> int:
    """Return what the core forecasts: half the mean and half the 99th percentile."""
    outlook = {
        "data_ns": round(link.send_ns),
        "trip_ns": round(link.round_ns),
        "block_chunks": link.nchunks,
        "tail_chunks": link.last_chunks,
        "nreceivers": link.nranks - 1,
        "loss_ppm": link.loss_ppm,
    }
    return simulator.forecast_ns(outlook, *code)


@pytest.mark.parametrize("code", [*CODES.values(), Code(8, 2), Code(128, 32)], ids=str)
def test_core_forecasts_by_the_rule(code: Code) -> None:
    """The core's integers agree with the rule, and sum the same rounds."""
    for nranks, nbytes, trip_us, loss_ppm in itertools.product(
        (3, 16, 188), (40_000, 1 << 20, 16 << 20), (10, 25_000), (10, 1000, 50_000)
    ):
        link = Link(nranks, nbytes, 1000, trip_us, loss_ppm)
        more = more_rounds(link, code)
        chances = list(itertools.takewhile(lambda p: p > 1e-9, map(more, range(32))))
        # Near 1 % it is open whether a round belongs to the percentile.
        if any(0.0099 < chance < 0.0101 for chance in chances):
            continue
        tail = sum(chance > 0.01 for chance in chances)
        rounds = (expected_rounds(link, code) + tail) / 2
        cost_ns = link.send_ns * (1 + expected_more(link, code))
        cost_ns += link.round_ns * rounds
        # The core counts in microseconds.
        assert forecast_ns(link, code) == pytest.approx(cost_ns, rel=0.002, abs=3000)


def test_verdict() -> None:
    """A verdict compares the rule's choice with the fastest code, and their errors."""
    link = Link(2, 16 << 20, 1000, 100_000, 100)
    times = {"repeat": 400, "32,0": 400, "32,1": 240, "32,4": 200, "32,8": 300}
    numbers = {f"{name} mean_ns": ms * 10**6 for name, ms in times.items()}
    numbers |= {"32,1 error_ns": 3 * 10**6, "32,4 error_ns": 4 * 10**6}
    lossless = {f"{name} mean_ns": 150 * 10**6 for name in CODES}
    results = {link.name: numbers, link._replace(loss_ppm=0).name: lossless}
    found = verdict(results, link)
    assert (found.chosen, found.fastest) == ("32,1", "32,4")
    assert found.cost == pytest.approx(0.2)
    assert found.error == pytest.approx(5 / 200)
    expected = 150 * 10**6 + expected_ns(link, CODES["32,1"])
    assert found.off == pytest.approx(abs(expected / (240 * 10**6) - 1))
