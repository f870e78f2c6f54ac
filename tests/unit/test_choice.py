# SPDX-License-Identifier: BSD-3-Clause
"""The choice of a way: the faster one wins, and all ranks take the same way always."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
import support

from mpimcast._session.choice import Calls, Choice
from mpimcast._session.conditions import Conditions
from mpimcast._session.trials import Way

MS_NS = 1_000_000


class Meeting:
    """Gives each of several threads' numbers to all of them."""

    def __init__(self, nranks: int) -> None:
        self._numbers = [0] * nranks
        self._barrier = threading.Barrier(nranks, timeout=30)

    def of(self, rank: int) -> Callable[[int], Sequence[int]]:
        """Return what a rank calls."""

        def tell_all(number: int) -> Sequence[int]:
            self._numbers[rank] = number
            self._barrier.wait()
            told = list(self._numbers)
            self._barrier.wait()
            return told

        return tell_all


class Program:
    """One rank's run of calls whose times are given, by its own clock."""

    def __init__(
        self,
        tell_all: Callable[[int], Sequence[int]],
        rate: float,
        *,
        looks: bool = True,
        conditions: Callable[[], int] = lambda: 0,
    ) -> None:
        self.taken: list[Way] = []
        self.decisions: list[tuple[str, int, Way | None]] = []
        self._now_ns = 0.0
        self._rate = rate
        self._tell_all = tell_all
        self._calls = Calls()
        self.choice = Choice(
            tell_all,
            self._decided,
            lambda: int(self._now_ns),
            looks=looks,
            conditions=conditions,
            calls=self._calls,
        )

    def _decided(self, name: str, nbits: int, way: Way | None) -> None:
        self.decisions.append((name, nbits, way))

    def is_open(self, name: str, nbytes: int) -> bool:
        """Return whether calls of this size are still being measured."""
        decided = [
            way
            for each, nbits, way in self.decisions
            if (each, nbits) == (name, nbytes.bit_length())
        ]
        return not decided or decided[-1] is None

    def call_express(
        self, name: str, nbytes: int, ours_ns: int, library_ns: int
    ) -> None:
        """Run a call that takes so long on each way, as the express way does in C."""
        nbits = nbytes.bit_length()
        told_ns = self._tell_all(self._calls.take(name, nbits))
        way = self.choice.begin_trial(name, nbits, max(told_ns))
        self.taken.append(way)
        took_ns = (ours_ns if way is Way.OURS else library_ns) * self._rate
        self._now_ns += took_ns
        if self.is_open(name, nbytes):
            self._calls.keep(name, nbits, max(1, int(took_ns)))

    def call(self, name: str, nbytes: int, ours_ns: int, library_ns: int) -> None:
        """Run a call that takes so long on each way."""
        took_ns = {Way.OURS: ours_ns, Way.LIBRARY: library_ns}

        def run(way: Way) -> None:
            self.taken.append(way)
            self._now_ns += took_ns[way] * self._rate

        way = self.choice.way(name, nbytes)
        if way is None:
            runs = {each: lambda each=each: run(each) for each in Way}
            self.choice.run_trial(name, nbytes, runs)
        else:
            run(way)


def alone(*, looks: bool = True) -> Program:
    """Return a program of one rank."""
    return Program(lambda number: [number], 1, looks=looks)


@pytest.mark.parametrize("seed", range(20))
def test_all_ranks_take_the_same_way(seed: int) -> None:
    """Whatever their clocks say, however long each rank takes, and on any path."""
    draw = random.Random(support.choose_seed() + seed)
    nranks = draw.choice([2, 3, 5])
    calls = [
        (draw.choice(["Allgather", "Bcast"]), 1 << draw.randrange(12, 20))
        for _ in range(300)
    ]
    seeds = [draw.random() for _ in range(nranks)]
    meeting = Meeting(nranks)

    def run(rank: int) -> Program:
        own = random.Random(seeds[rank])
        program = Program(meeting.of(rank), own.uniform(0.2, 5))
        for name, nbytes in calls:
            times_ns = own.randrange(1, 3 * MS_NS), own.randrange(1, 3 * MS_NS)
            if own.random() < 0.5 and program.is_open(name, nbytes):
                program.call_express(name, nbytes, *times_ns)
            else:
                program.call(name, nbytes, *times_ns)
        return program

    with ThreadPoolExecutor(nranks) as pool:
        first, *others = pool.map(run, range(nranks))
    for other in others:
        assert other.taken == first.taken
        assert other.decisions == first.decisions


def test_a_changed_network_is_measured_anew() -> None:
    """Rank 0 sees the network change, and all ranks try both ways again.

    The more often it changes, the later it is looked at.
    """
    network = {"rank 0": 1}
    meeting = Meeting(3)
    programs = [
        Program(
            meeting.of(rank),
            1,
            conditions=lambda rank=rank: network.get(f"rank {rank}", rank),
        )
        for rank in range(3)
    ]

    def run(program: Program) -> list[Way]:
        before = len(program.taken)
        fast = (1000, 2000) if network["rank 0"] % 2 else (2000, 1000)
        for _ in range(300):
            program.call("Bcast", 4096, *fast)
        return program.taken[before:]

    for change, best in enumerate((Way.OURS, Way.LIBRARY, Way.OURS), start=1):
        network["rank 0"] = change
        with ThreadPoolExecutor(3) as pool:
            first, *others = pool.map(run, programs)
        assert others == [first, first]
        assert first[-100:] == [best] * 100
        last = max(i for i, way in enumerate(first) if way is not best)
        assert last < 64 * (1 << (change - 1)) + 16


@pytest.mark.parametrize(
    ("lost", "unicast", "number"),
    [(0, 0, 0), (5, 0, 1), (50, 0, 2), (500, 0, 3), (0, 1, 4)],
)
def test_conditions(lost: int, unicast: int, number: int) -> None:
    """They are those since the last look, whatever came before."""
    spent = {
        "rx_multicast_datagrams": 1000,
        "rx_lost_chunks": lost,
        "unicast_epochs": unicast,
    }
    counters = Counter(dict.fromkeys(spent, 0))
    conditions = Conditions(counters.copy)
    assert conditions.number() == 0
    for _ in range(3):
        counters.update(spent)
        assert conditions.number() == number


def test_the_faster_way_wins() -> None:
    """After a few trials of both, all calls take the way that is faster."""
    for ours_ns, library_ns, best in ((20, 21, Way.OURS), (21, 20, Way.LIBRARY)):
        program = alone()
        for _ in range(50):
            program.call("Bcast", 4096, ours_ns * 1000, library_ns * 1000)
        assert program.taken[8:] == [best] * 42
        assert program.decisions == [("Bcast", 13, best)]
        assert "decided at call 9" in program.choice.explain(5000)


def test_a_first_trial_may_be_slow() -> None:
    """A way that has to set up its connections first is not given up for that."""
    program = alone()
    program.call("Bcast", 4096, 1000, 0)
    program.call("Bcast", 4096, 0, 90_000)
    for _ in range(20):
        program.call("Bcast", 4096, 1000, 500)
    assert program.taken[-1] is Way.LIBRARY


def test_a_hopeless_way_is_tried_twice() -> None:
    """If a way takes much longer than the other in two trials, these were enough."""
    program = alone()
    for _ in range(20):
        program.call("Bcast", 4096, 1000, 1600)
    assert program.taken.count(Way.LIBRARY) == 2


def test_long_trials_end_soon() -> None:
    """Once trials have taken 100 ms, the faster way is taken."""
    program = alone()
    for _ in range(5):
        program.call("Allgather", 1 << 30, 300 * MS_NS, 290 * MS_NS)
    assert program.taken == [Way.OURS, *[Way.LIBRARY] * 4]


def test_a_class_between_hopeless_ones_is_not_tried() -> None:
    """Where one way is much slower above and below, it is not tried in between."""
    program = alone()
    for nbits in (13, 15):
        for _ in range(10):
            program.call("Bcast", 1 << nbits, 1000, 5000)
    ntried = program.taken.count(Way.LIBRARY)
    for _ in range(10):
        program.call("Bcast", 1 << 14, 1000, 5000)
    assert program.taken.count(Way.LIBRARY) == ntried
    assert program.choice.expected_way("Bcast", 1 << 14) is Way.OURS


def test_requests_go_by_what_is_known() -> None:
    """A call that returns a request is no trial, and takes ours if nothing is known."""
    program = alone()
    assert program.choice.expected_way("Bcast", 4096) is Way.OURS
    for _ in range(10):
        program.call("Bcast", 4096, 5000, 1000)
    assert program.choice.expected_way("Bcast", 4096) is Way.LIBRARY


def test_a_choice_is_looked_at_again() -> None:
    """After thousands of calls both ways are tried anew, and another may win."""
    program = alone()
    for _ in range(10):
        program.call("Bcast", 4096, 2000, 1000)
    for _ in range(5000):
        program.call("Bcast", 4096, 2000, 3000)
    assert program.taken[100] is Way.LIBRARY
    assert program.taken[-1] is Way.OURS
    assert program.decisions[1] == ("Bcast", 13, None)


def test_a_choice_that_sees_not_all_calls_stands() -> None:
    """Ranks that count different numbers of calls must not try anew."""
    program = alone(looks=False)
    for _ in range(5000):
        program.call("Bcast", 4096, 2000, 1000)
    assert len(program.decisions) == 1


def test_what_was_learnt_is_recalled() -> None:
    """Choices of an earlier job need no trial."""
    earlier, later = alone(), alone()
    for _ in range(10):
        earlier.call("Bcast", 4096, 2000, 1000)
        earlier.call("Allgather", 1 << 20, 1000, 2000)
    later.choice.recall(earlier.choice.learnt())
    later.call("Bcast", 5000, 1, 1)
    later.call("Allgather", 1 << 20, 1, 1)
    assert later.taken == [Way.LIBRARY, Way.OURS]
