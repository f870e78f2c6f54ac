# SPDX-License-Identifier: BSD-3-Clause
"""What a driver's thread rings for is called in a thread of Python's."""

from __future__ import annotations

import ctypes
import threading

from mpimcast._device.listener import listener

LIMIT_S = 30

# PyDLL keeps Python's lock: a bell that needed the lock would never return.
ring = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(listener.bell)


def test_calls_follow_rings() -> None:
    """Each function is called after its own ring, once, and not by who rings."""
    called: list[tuple[int, str]] = []
    ended = [threading.Event() for _ in range(3)]

    def make(number: int) -> int:
        def note() -> None:
            called.append((number, threading.current_thread().name))
            ended[number].set()

        return listener.expect(note)

    places = [make(number) for number in range(3)]
    for number in (1, 0, 2):
        assert not ended[number].is_set()
        ring(places[number])
        assert ended[number].wait(LIMIT_S)
    assert called == [(number, "mpimcast listener") for number in (1, 0, 2)]


def test_many_rings() -> None:
    """No ring is lost, however fast they come."""
    left, ended = list(range(2000)), threading.Event()

    def note() -> None:
        left.pop()
        if not left:
            ended.set()

    for place in [listener.expect(note) for _ in range(2000)]:
        ring(place)
    assert ended.wait(LIMIT_S)
