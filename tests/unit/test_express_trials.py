# SPDX-License-Identifier: BSD-3-Clause
"""The express way's trials: ranks tell each other times, Python says who carries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from stage import (
    ALLGATHER,
    BCAST,
    COMM,
    EAGAIN,
    LIBRARY,
    NRANKS,
    OURS,
    RANK,
    START,
    TRIAL,
    Stage,
    Started,
    address_of,
)

BITS = 4  # of the 8 bytes that all calls here have


class TrialStage(Stage):
    """A stage on which all classes are measured; Python's part is a list of carriers.

    If there is no carrier left, the class's call is decided for mpimcast.
    """

    def __init__(self, *carriers: int) -> None:
        super().__init__()
        self.carriers = list(carriers)
        self.begun: list[tuple[int, int, int]] = []
        self.ran: list[tuple[Any, ...]] = []
        self.told: list[int] = []  # what this rank told in each exchange
        self.times_ns = np.zeros(NRANKS, np.uint64)
        self.others_ns = 0
        self.later_status = 0  # of what starts after the times have been told
        start = self.functions[0]

        def tell(stream: int, operation: Any, slice_ns: int, request: Any) -> int:
            if operation.contents.recv == address_of(self.times_ns):
                self.told.append(int(self.times_ns[RANK]))
                self.times_ns[RANK - 1] = self.others_ns
                return int(start(stream, operation, slice_ns, request))
            return self.later_status or int(start(stream, operation, slice_ns, request))

        self.functions = (START(tell), *self.functions[1:])
        self.begin()
        self.way.measure(self.times_ns, self._begin, self._run)
        self.way.take_all(TRIAL)

    def _begin(self, collective: int, nbits: int, longest_ns: int) -> int:
        self.begun.append((collective, nbits, longest_ns))
        self.way.count_call(collective, nbits)
        if self.carriers:
            return self.carriers.pop(0)
        self.way.take(collective, nbits, OURS, 0)
        return OURS

    def _run(self, *given: Any) -> None:
        self.ran.append(given)

    def exchange(self) -> Started:
        """Return what C is told when ranks tell each other times."""
        return Started(ALLGATHER, 8, None, address_of(self.times_ns))


def test_trials() -> None:
    """Each begins with the times of the latest, and goes to the carrier of its turn."""
    stage = TrialStage(OURS, LIBRARY)
    block = np.zeros(1)
    for stage.others_ns in (0, 10**12, 0, 10**12):
        assert stage.way.bcast(COMM, block, 0)
    bcast = Started(BCAST, 8, None, address_of(block))
    told = stage.exchange()
    assert stage.started == [told, bcast, told, told, bcast, bcast]
    assert stage.library == [("B", COMM, block, 0)]
    assert stage.told[0] == 0
    assert min(stage.told[1:]) > 0
    assert stage.begun == [(1, BITS, 0), (1, BITS, 10**12), (1, BITS, stage.told[2])]
    assert stage.way.trial_counts()[::2] == (1, 1)
    assert sum(stage.way.trial_counts()[1::2]) == sum(stage.told)
    assert stage.way.counts()[::2] == (2, 0)
    assert stage.way.count_call(1, BITS) == 5


def test_trials_of_an_allgather() -> None:
    """The block that this rank sends is its own, whatever is told before."""
    stage = TrialStage(OURS)
    block, blocks = np.zeros(1), np.zeros(NRANKS)
    assert stage.way.allgather(COMM, block, blocks)
    addresses = address_of(block), address_of(blocks)
    assert stage.started == [stage.exchange(), Started(ALLGATHER, 8, *addresses)]
    assert stage.begun == [(0, BITS, 0)]


def test_trials_that_python_runs() -> None:
    """Their times are told on the express way, or by Python, once."""
    stage = TrialStage(LIBRARY)
    stage.way.keep_untold(1, BITS, 77)
    assert stage.way.bcast(COMM, np.zeros(1), 0)
    assert stage.begun == [(1, BITS, 77)]
    took_ns = stage.way.take_untold(1, BITS)
    assert took_ns == stage.way.trial_counts()[3] > 0
    assert stage.way.take_untold(1, BITS) == 0


def test_what_needs_thought_is_not_tried() -> None:
    """No rank tells anything for a call that this way does not carry."""
    stage = TrialStage()
    assert not stage.way.allgather(COMM, [np.zeros(1), 1], np.zeros(NRANKS))
    assert not stage.way.allgather(COMM, np.zeros(2), np.zeros(NRANKS))
    assert stage.started == []


def test_long_trials_are_finished_by_python() -> None:
    """So are the messages that tell the times."""
    stage = TrialStage(OURS)
    stage.status, stage.request = EAGAIN, 0x5000
    block = np.zeros(1)
    assert stage.way.bcast(COMM, block, 0)
    assert stage.finished == [
        (0x5000, "Allgather", None, stage.times_ns),
        (0x5000, "Bcast", block, 0),
    ]


def test_times_that_cannot_be_told() -> None:
    """The call is Python's, which finds out why, and tells the time that was kept."""
    stage = TrialStage()
    stage.way.keep_untold(1, BITS, 77)
    stage.status = -5
    assert not stage.way.bcast(COMM, np.zeros(1), 0)
    assert stage.begun == []
    assert stage.way.take_untold(1, BITS) == 77


@pytest.mark.parametrize("carriers", [[OURS], []])
def test_a_trial_that_does_not_start(carriers: list[int]) -> None:
    """Python runs it; it must not begin again, for the other ranks are in it."""
    stage = TrialStage(*carriers)
    stage.later_status = -5
    block = np.zeros(1)
    assert stage.way.bcast(COMM, block, 3)
    assert stage.ran == [(1, block, 3)]
    assert len(stage.begun) == 1


def test_exceptions() -> None:
    """What Python raises reaches the program, and buffers are free again."""

    def fail(*_: object) -> int:
        raise KeyboardInterrupt

    stage = Stage().begin()
    times_ns = np.zeros(NRANKS, np.uint64)
    stage.way.measure(times_ns, fail, lambda *_: None)
    stage.way.take_all(TRIAL)
    blocks = bytearray(8 * NRANKS)
    with pytest.raises(KeyboardInterrupt):
        stage.way.allgather(COMM, None, blocks)
    blocks.append(0)
    assert stage.way.trial_counts() == stage.way.counts() == (0, 0, 0, 0)


def test_wrong_uses() -> None:
    """Nothing is tried before ranks can tell times, in an array of the right size."""
    stage = Stage()
    times_ns = np.zeros(NRANKS, np.uint64)
    with pytest.raises(ValueError, match="measure"):
        stage.way.measure(times_ns, lambda *_: OURS, lambda *_: None)
    stage.begin()
    with pytest.raises(ValueError, match="carrier"):
        stage.way.take_all(TRIAL)
    for wrong in (times_ns[1:], np.zeros(NRANKS + 1, np.uint64)):
        with pytest.raises(ValueError, match="measure"):
            stage.way.measure(wrong, lambda *_: OURS, lambda *_: None)
    stage.way.measure(times_ns, lambda *_: OURS, lambda *_: None)
    with pytest.raises(ValueError, match="measure"):
        stage.way.measure(times_ns, lambda *_: OURS, lambda *_: None)
    with pytest.raises(ValueError, match="carrier"):
        stage.way.take(0, BITS, TRIAL + 1, 0)
    with pytest.raises(ValueError, match="class"):
        stage.way.keep_untold(2, BITS, 1)
