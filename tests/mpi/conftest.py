# SPDX-License-Identifier: BSD-3-Clause
"""Communicators for tests that run on several ranks."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from mpi4py import MPI
from proxied import WHO, Make, Proxies

from mpimcast import Intracomm

# With small chunks even a few kilobytes make several. With no least size mpimcast
# carries out every operation, and leaves none to the MPI library. With --shm the
# transport is shm, which has no chunks.
SETTINGS = {"transport": "udp", "min_bytes": 0, "chunk_bytes": 512}


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Choose what carries the data, and give each rank a temporary folder of its own.

    In the folder that pytest would choose, ranks that end remove each other's.
    """
    if config.getoption("--shm"):
        SETTINGS["transport"] = "shm"
    config.option.basetemp = tempfile.mkdtemp(prefix="mpimcast-tests-")
    config.add_cleanup(lambda: shutil.rmtree(config.option.basetemp))


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Mark all tests of this folder as tests of several ranks.

    With ``--shm`` skip those marked ``network``.
    """
    for item in items:
        if "tests/mpi" not in item.path.as_posix():
            continue
        item.add_marker(pytest.mark.mpi)
        if config.getoption("--shm") and item.get_closest_marker("network"):
            item.add_marker(pytest.mark.skip(reason="network: runs without --shm"))


@pytest.fixture
def mpi_comm() -> MPI.Intracomm:
    """Return a communicator of all ranks that is the MPI library's alone."""
    return MPI.Intracomm(MPI.COMM_WORLD)


@pytest.fixture
def make_comm(mpi_comm: MPI.Intracomm) -> Iterator[Callable[..., Intracomm]]:
    """Yield a function that makes communicators of all ranks; free them at the end.

    Its arguments are settings, which add to SETTINGS or replace some.
    """
    made = []

    def make_one(**settings: object) -> Intracomm:
        comm = Intracomm(mpi_comm.Dup(), **{**SETTINGS, **settings})
        made.append(comm)
        return comm

    yield make_one
    for comm in made:
        if comm != MPI.COMM_NULL:
            comm.Free()


@pytest.fixture
def comm(make_comm: Callable[..., Intracomm]) -> Intracomm:
    """Return a communicator of all ranks with SETTINGS."""
    return make_comm()


@pytest.fixture(scope="module")
def shared_comm() -> Iterator[Intracomm]:
    """Yield a communicator of all ranks with SETTINGS, shared by a file's tests."""
    comm = Intracomm(MPI.Intracomm(MPI.COMM_WORLD).Dup(), **SETTINGS)
    yield comm
    comm.Free()


@pytest.fixture
def make_opened(make_comm: Callable[..., Intracomm]) -> Callable[..., Intracomm]:
    """Return a function that makes communicators whose transport is open.

    It takes the same settings as `make_comm`, and runs one Allgather, since the first
    blocking collective opens the transport.
    """

    def make_one(**settings: object) -> Intracomm:
        comm = make_comm(**settings)
        comm.Allgather(np.zeros(1), np.zeros(comm.size))
        return comm

    return make_one


@pytest.fixture(scope="module")
def proxies() -> Iterator[Proxies]:
    """Yield the proxies of this run, and end them."""
    made = Proxies(MPI.Intracomm(MPI.COMM_WORLD))
    yield made
    made.end()


@pytest.fixture(scope="module")
def adapter(request: pytest.FixtureRequest) -> str:
    """Return the name of adapters to be used instead of proxies; "" for none."""
    return str(request.config.getoption("--adapter"))


@pytest.fixture
def make_proxied(make_comm: Make, proxies: Proxies, adapter: str) -> Make:
    """Return a function that makes communicators some of whose ranks have proxies.

    With --adapter, these have adapters instead.
    """
    rank = MPI.COMM_WORLD.rank

    def make_one(who: str, **settings: object) -> Intracomm:
        has_one = WHO[who](rank)
        # Beside adapters, some of the other ranks have a proxy.
        has_any = has_one or (adapter != "" and rank % 4 == 2)
        chosen = {
            "progress": "proxy" if has_any else "auto",
            "proxy": adapter if has_one and adapter else proxies.name,
            "node_bytes": 0,
            "choice": "always",
        }
        return make_comm(**{**chosen, **settings})

    return make_one
