# SPDX-License-Identifier: BSD-3-Clause
"""The time that a process spends on hearing the rolls of its communicators.

By a roll, ranks learn which of them have not arrived in an agreement.
"""

from __future__ import annotations

import pytest

from mpimcast._mpi import roll

HEARING_S = 5e-6  # for one roll
MIN_PAUSE_S = 0.02  # between two rounds of all rolls


class Clock:
    """A clock that only the test advances."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def monotonic(self) -> float:
        """Return the clock's time."""
        return self.now_s


class SlowRoll(roll.Roll):
    """A roll that takes some time to hear."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self.clock, self.seconds = clock, seconds
        self.spent_s = 0.0
        self._pace = roll.Pace()

    def hear(self) -> None:
        """Advance the clock by the time that hearing takes."""
        self.clock.now_s += self.seconds
        self.spent_s += self.seconds


@pytest.mark.parametrize("nrolls", [1, 100, 10_000])
def test_share(monkeypatch: pytest.MonkeyPatch, nrolls: int) -> None:
    """Any number of rolls takes at most a tenth of the time, and each is heard often.

    The program makes progress for a minute, once a millisecond.
    """
    clock = Clock()
    rolls = [SlowRoll(clock, HEARING_S) for _ in range(nrolls)]
    monkeypatch.setattr(roll, "time", clock)
    monkeypatch.setattr(roll, "_rolls", rolls)
    monkeypatch.setattr(roll, "_pace", roll.Pace(MIN_PAUSE_S))
    begin_s = clock.now_s
    while clock.now_s < begin_s + 60:
        roll.hear_all()
        clock.now_s += 1e-3
    spent_s = sum(each.spent_s for each in rolls)
    assert spent_s <= 0.11 * (clock.now_s - begin_s)
    assert min(each.spent_s for each in rolls) >= 50 * HEARING_S


@pytest.mark.parametrize("seconds", [1e-6, 1e-4, 1e-2])
def test_a_waiting_rank_has_other_work(
    monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    """However slow its MPI library is, a rank that waits spends a tenth on hearing."""
    clock = Clock()
    monkeypatch.setattr(roll, "time", clock)
    one = SlowRoll(clock, seconds)
    begin_s = clock.now_s
    while clock.now_s < begin_s + 10:
        one.attend()
        clock.now_s += 1e-3
    spent_s = clock.now_s - begin_s
    assert one.spent_s <= 0.11 * spent_s
    # It is heard at once, each time, if that takes no longer than the pause.
    assert one.spent_s >= 0.9 * min(0.1 * spent_s, seconds * 1e4)
