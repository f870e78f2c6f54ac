# SPDX-License-Identifier: BSD-3-Clause
"""Communicators for tests that run on several ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from mpi4py import MPI

from mpimcast import Intracomm

# Small chunks make many of few bytes; no operation goes to the MPI library.
SETTINGS = {"transport": "udp", "min_bytes": 0, "chunk_bytes": 512}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all tests of this folder as tests of several ranks."""
    for item in items:
        if "tests/mpi" in item.path.as_posix():
            item.add_marker(pytest.mark.mpi)


@pytest.fixture
def library() -> MPI.Intracomm:
    """Return the MPI library's communicator of all ranks."""
    return MPI.Intracomm(MPI.COMM_WORLD)


@pytest.fixture
def make(library: MPI.Intracomm) -> Iterator[Callable[..., Intracomm]]:
    """Yield a function that makes communicators of all ranks; free them at the end."""
    made = []

    def make(**settings: object) -> Intracomm:
        comm = Intracomm(library.Dup(), **{**SETTINGS, **settings})
        made.append(comm)
        return comm

    yield make
    for comm in made:
        if comm != MPI.COMM_NULL:
            comm.Free()


@pytest.fixture
def comm(make: Callable[..., Intracomm]) -> Intracomm:
    """Return a communicator of all ranks."""
    return make()


@pytest.fixture(scope="module")
def shared() -> Iterator[Intracomm]:
    """Yield a communicator of all ranks that all tests of a file share."""
    comm = Intracomm(MPI.Intracomm(MPI.COMM_WORLD).Dup(), **SETTINGS)
    yield comm
    comm.Free()


@pytest.fixture
def opened(make: Callable[..., Intracomm]) -> Callable[..., Intracomm]:
    """Return a function that makes communicators whose transport is open."""

    def make_opened(**settings: object) -> Intracomm:
        comm = make(**settings)
        comm.Allgather(np.zeros(1), np.zeros(comm.size))
        return comm

    return make_opened
