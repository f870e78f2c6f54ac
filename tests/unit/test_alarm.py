# SPDX-License-Identifier: BSD-3-Clause
"""The alarm warns of strangers, with their worst address, and not too often."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator

import pytest

from mpimcast._native.endpoint import CAUSES
from mpimcast._session import alarm
from mpimcast._session.alarm import Alarm
from mpimcast.stranger import Stranger


class World:
    """Strangers and a clock, which the test moves, and an alarm that looks at both."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.strangers: list[Stranger] = []
        self.alarm = Alarm(
            lambda: self.strangers,
            "udp on eth0",
            attended=False,
            clock_s=lambda: self.now_s,
        )

    def add(self, rank: int | None = None, address: str = "", **counts: int) -> None:
        """Add a stranger, or replace the one of the same address."""
        self.strangers = [
            each
            for each in self.strangers
            if (each.rank, each.address) != (rank, address)
        ]
        every = dict.fromkeys(CAUSES, 0) | counts
        self.strangers.append(Stranger(rank, address, every, 0, 1))

    def look(self, later_s: float) -> None:
        """Have the alarm look after this time."""
        self.now_s += later_s
        self.alarm.look()


@pytest.fixture
def warned(
    caplog: pytest.LogCaptureFixture,
) -> Iterator[pytest.LogCaptureFixture]:
    """Capture the warnings of the library's logger."""
    logger = logging.getLogger("mpimcast")
    propagate = logger.propagate
    logger.propagate = True
    caplog.set_level(logging.WARNING, logger="mpimcast")
    yield caplog
    logger.propagate = propagate


def test_nothing_to_warn_of(warned: pytest.LogCaptureFixture) -> None:
    """There is no warning of nobody, or of a few datagrams that come at the opening."""
    world = World()
    world.look(10)
    world.add(rank=2, foreign=5_000)
    world.add(address="10.0.0.9:77", foreign=99, malformed=9)
    world.look(1000)
    world.alarm.stop()
    assert not warned.messages


def test_the_worst_is_named(warned: pytest.LogCaptureFixture) -> None:
    """A warning tells the address that sent most, the cause, count and rate."""
    world = World()
    world.add(address="10.0.0.8:1", foreign=4_000)
    world.add(address="10.0.0.9:77", foreign=10, malformed=50_000)
    world.look(10)
    (text,) = warned.messages
    assert "udp on eth0" in text
    assert "50000 malformed ones (5000 each second) came from 10.0.0.9:77" in text
    assert "1 more" in text


@pytest.mark.parametrize("cause", ["forged", "replayed"])
def test_one_attack_is_enough(warned: pytest.LogCaptureFixture, cause: str) -> None:
    """A single datagram that only an attacker sends is reason to warn."""
    world = World()
    world.add(rank=3, **{cause: 1})
    world.look(0)
    (text,) = warned.messages
    assert f"1 {cause} ones" in text
    assert "the address of rank 3" in text


def test_once_a_minute(warned: pytest.LogCaptureFixture) -> None:
    """In an hour of flood there are at most sixty warnings, and the count goes on."""
    world = World()
    for second in range(3600):
        world.add(address="10.0.0.9:77", foreign=1000 * (second + 1))
        world.look(1)
    assert len(warned.messages) == 60
    assert all("60000 foreign" in text for text in warned.messages[1:])


def test_the_end_of_the_flood_ends_the_warnings(
    warned: pytest.LogCaptureFixture,
) -> None:
    """What was warned of is no reason to warn again."""
    world = World()
    world.add(address="10.0.0.9:77", foreign=100_000)
    for _ in range(100):
        world.look(60)
    assert len(warned.messages) == 1


def test_a_forgotten_stranger_may_come_back(warned: pytest.LogCaptureFixture) -> None:
    """C forgets strangers: one that comes back is counted anew, and warned of."""
    world = World()
    world.add(address="10.0.0.9:77", foreign=1_000)
    world.look(10)
    world.strangers = []
    world.look(60)
    world.add(address="10.0.0.9:77", foreign=500)
    world.look(60)
    assert len(warned.messages) == 2


def test_a_thread_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a thread the alarm looks by itself, and no more once it has stopped."""
    looked = threading.Event()

    def strangers() -> list[Stranger]:
        looked.set()
        return []

    monkeypatch.setattr(alarm, "_LOOK_S", 0)
    attended = Alarm(strangers, "udp on eth0", attended=True)
    assert looked.wait(60)
    attended.stop()
    names = [thread.name for thread in threading.enumerate()]
    assert "mpimcast alarm" not in names
