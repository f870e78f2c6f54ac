# SPDX-License-Identifier: BSD-3-Clause
"""The register of shared memory: what lies where, and what an operation is called."""

from __future__ import annotations

import threading

import pytest

from mpimcast._support.shared_memory import PRIVATE, Register, SharedMemory

NODE = frozenset({0, 1})


def memory(begin: int, end: int, number: int = 1000) -> SharedMemory:
    """Return shared memory between two addresses."""
    return SharedMemory(begin, end, number, NODE)


@pytest.fixture
def register() -> Register:
    """Return a register with memory at 100 to 199, 200 to 299 and 400 to 499."""
    made = Register()
    for begin in (400, 100, 200):
        made.add(memory(begin, begin + 100, number=begin * 1000))
    return made


def test_find(register: Register) -> None:
    """An address is found from the first byte of memory to its last."""
    for address in (100, 199, 200, 299, 400, 499):
        found = register.find(address)
        assert found is not None
        assert found.begin == address // 100 * 100
    for address in (0, 99, 300, 399, 500, 2**64 - 1):
        assert register.find(address) is None


def test_remove(register: Register) -> None:
    """What was removed is not found; the register is empty in the end."""
    register.remove(150)  # nothing begins there
    register.remove(200)
    assert register.find(250) is None
    assert register.find(450) is not None
    register.remove(100)
    register.remove(400)
    assert not register.known
    assert register.find(150) is None


def test_addresses_used_again(register: Register) -> None:
    """Memory may begin where other memory has been."""
    register.remove(100)
    register.add(memory(100, 110, number=5))
    assert register.target(105, 1).key == 10
    assert register.find(150) is None


def test_targets(register: Register) -> None:
    """A target is named by the array's number and the offset in it."""
    keys = {
        register.target(begin + offset, 8).key
        for begin in (100, 200, 400)
        for offset in (0, 1, 60)
    }
    assert len(keys) == 9
    target = register.target(160, 8)
    assert target.memory == register.find(160)
    assert target.words == "byte 60 of a shared array (186a0)"
    assert register.target(300, 8) == register.target(100, 0) == PRIVATE


def test_displacements(register: Register) -> None:
    """Blocks in other places are another target, and the words say so."""
    orders = ([0, 8], [8, 0], [0, 16])
    targets = [register.target(100, 16, offsets_bytes=each) for each in orders]
    assert len({each.key for each in targets}) == 3
    assert len({each.words for each in targets}) == 3
    again = register.target(100, 16, offsets_bytes=[0, 8])
    assert again == targets[0]
    assert all(0 < each.key < 2**64 for each in targets)
    assert register.target(100, 16, in_place=True).words.endswith(", in place")


def test_threads() -> None:
    """Threads that add and remove at the same time lose nothing."""
    register = Register()
    wrong = []

    def work(thread: int) -> None:
        for turn in range(300):
            begin = 1000 * (10 * turn + thread)
            register.add(memory(begin, begin + 1000))
            if register.find(begin + 999) is None:
                wrong.append(begin)
            if turn % 3:
                register.remove(begin)

    threads = [threading.Thread(target=work, args=(each,)) for each in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    begins, memories = register.known or ([], [])
    assert len(begins) == len(memories) == 4 * 100
    assert begins == sorted(begins)
