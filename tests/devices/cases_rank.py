# SPDX-License-Identifier: BSD-3-Clause
"""What collectives of arrays on devices do in single cases, on two ranks.

The arguments are the transport and the cases, which are functions of this file.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import arrays
import numpy as np
import pytest
from mpi4py import MPI

import mpimcast
from mpimcast._device import device
from mpimcast._session import cutting, staged

WORLD = MPI.COMM_WORLD
RANK = WORLD.Get_rank()
PIECE_BYTES = 64 << 10


def opened(**settings: Any) -> mpimcast.Intracomm:
    """Return an open communicator, whose transport the command line names."""
    comm = mpimcast.Intracomm(
        WORLD.Dup(), **{"transport": sys.argv[1], "min_bytes": 0, **settings}
    )
    comm.Allgather(np.zeros(1), np.zeros(comm.size))
    return comm


def made(
    driver: arrays.Driver, nbytes: int, value: int, kind: Any = arrays.CudaArray
) -> Any:
    """Return an array, to which its stream writes the value some time."""
    array = kind(driver, nbytes)
    array.write(np.full(nbytes, value, np.uint8))
    return array


def check_gathered(comm: mpimcast.Intracomm, driver: arrays.Driver, n: int) -> None:
    """Check a Bcast, an Allgather and an Allgatherv of `n` bytes a block."""
    for kind in (arrays.CudaArray, arrays.DlpackArray):
        send, recv = made(driver, n, RANK + 1, kind), made(driver, 2 * n, 0, kind)
        comm.Allgather(send, recv)
        assert (recv.read().reshape(2, n) == [[1], [2]]).all()
        recv = made(driver, 2 * n, 0, kind)
        comm.Allgatherv(send, [recv, [n, n], [n, 0], MPI.BYTE])
        assert (recv.read().reshape(2, n) == [[2], [1]]).all()
        comm.Bcast(send, root=1)
        assert (send.read() == 2).all()


def a_missing_wait_is_noticed() -> None:
    """Check that without the order of streams the software gives wrong bytes."""
    comm, driver = opened(), arrays.open_driver()
    wrong = 0
    with mock.patch.object(device.Device, "follow"):
        for number in range(1, 30):
            recv = made(driver, 2000, 0)
            comm.Allgather(made(driver, 1000, number), recv)
            wrong += not (recv.read() == number).all()
    assert wrong > 0


def pinned_memory_is_bounded() -> None:
    """Check that three pieces have pinned memory, however large a result is."""
    driver, pin = arrays.open_driver(), device.Device.pin
    comm = opened()
    pool = mock.patch.object(staged, "pool", type(device.pool)())
    pins = mock.patch.object(device.Device, "pin", autospec=True, side_effect=pin)
    with pool, pins as pinned:
        check_gathered(comm, driver, 20 * PIECE_BYTES)
    sizes = [call.args[1] for call in pinned.call_args_list]
    assert 0 < sum(sizes) <= 3 * PIECE_BYTES


def steps_overlap() -> None:
    """Check that others fetch and store pieces while one is on the network.

    Rank 1 starts only once rank 0 has fetched three pieces. Its device then stores
    nothing until three have come.
    """
    driver, comm = arrays.open_driver(), opened()
    real_fetch, real_store = device.Device.fetch, device.Device.store
    fetched, held = [], []
    holds = RANK == 1

    def fetch(self: device.Device, copies: Any, then: Callable[[], None]) -> None:
        def end() -> None:
            fetched.append(copies)
            then()

        real_fetch(self, copies, end)

    def store(self: device.Device, copies: Any, then: Callable[[], None]) -> None:
        if holds:
            held.append((self, copies, then))
        else:
            real_store(self, copies, then)

    array = made(driver, 10 * PIECE_BYTES, RANK + 1)
    with (
        mock.patch.object(device.Device, "fetch", fetch),
        mock.patch.object(device.Device, "store", store),
    ):
        if RANK == 1:
            WORLD.recv(source=0)
        request = comm.Ibcast(array)
        until_s = time.monotonic() + 60
        while len(held if RANK == 1 else fetched) < 3:
            assert not request.Test()
            assert time.monotonic() < until_s
        if RANK == 0:
            WORLD.send(None, dest=1)
        holds = False
        for each in held:
            real_store(*each)
        request.Wait()
    assert (array.read() == 1).all()


def communicators_opened_without_devices() -> None:
    """Check that a result is one piece if no rank had a device at the opening."""
    comm = opened()
    driver = arrays.open_driver()
    before = comm.stats()["epochs"] + comm.stats()["node_operations"]
    recv = made(driver, 20 * PIECE_BYTES, 0)
    comm.Allgather(made(driver, 10 * PIECE_BYTES, RANK + 1), recv)
    assert recv.read()[:: 10 * PIECE_BYTES].tolist() == [1, 2]
    after = comm.stats()["epochs"] + comm.stats()["node_operations"]
    assert after == before + 1


def small_ones_are_the_librarys() -> None:
    """Check that the MPI library gets copies of small buffers."""
    comm, driver = opened(min_bytes=1 << 20), arrays.open_driver()
    before = comm.stats()["calls_ours"]
    check_gathered(comm, driver, 1000)
    recv = made(driver, 16, RANK + 1)
    comm.Allgather(MPI.IN_PLACE, [recv, 8, MPI.BYTE])
    assert recv.read().tolist() == [1] * 8 + [2] * 8
    assert comm.stats()["calls_ours"] == before


def requests_of_the_library_are_refused() -> None:
    """Check that a request which would be the library's says what to do instead."""
    comm, driver = opened(min_bytes=1 << 20), arrays.open_driver()
    array = made(driver, 1000, RANK)
    for begin in (comm.Ibcast, comm.Bcast_init):
        with pytest.raises(mpimcast.Error, match=rf"rank {RANK}: .* MIN_BYTES"):
            begin(array)
    word = np.full(1, RANK + 7)
    comm.Ibcast(word).Wait()
    assert word[0] == 7


def both_ways_are_tried() -> None:
    """Check that both ways are measured, with copies on either."""
    comm, driver = opened(transport="auto"), arrays.open_driver()
    for _ in range(10):
        check_gathered(comm, driver, 10_000)
    assert comm.stats()["trials_ours"] > 0
    assert comm.stats()["trials_mpi"] > 0


def everything_is_the_librarys() -> None:
    """Check that with TRANSPORT=mpi blocking collectives go by copies, too."""
    comm, driver = opened(transport="mpi"), arrays.open_driver()
    check_gathered(comm, driver, 100_000)


def views_of_a_devices_memory() -> None:
    """Check that nobody touches what mpi4py shows of a device's memory."""
    comm, driver = opened(), arrays.open_driver()
    small = opened(min_bytes=1 << 20)
    for each in (comm, small):
        for wrap in (lambda array: array, memoryview):
            send, recv = made(driver, 1000, RANK + 1), made(driver, 2000, 0)
            sendbuf, recvbuf = (
                wrap(MPI.buffer.frombuffer(array)) for array in (send, recv)
            )
            each.Allgather(sendbuf, recvbuf)
            assert recv.read().tolist() == [1] * 1000 + [2] * 1000
            each.Bcast(sendbuf)
            assert send.read().tolist() == [1] * 1000


def memory_of_a_pool() -> None:
    """Check that memory of no context is used in the device's primary one."""
    comm, driver = opened(), arrays.open_driver()
    send, recv = made(driver, 1000, RANK + 1), made(driver, 2000, 0)
    for array in (send, recv):
        address = arrays.c_void_p()
        driver.do(
            "cuMemAllocAsync",
            *(arrays.byref(address), arrays.c_size_t(array.nbytes)),
            arrays.c_void_p(array.stream),
        )
        array.address = address.value
    send.write(np.full(1000, RANK + 1, np.uint8))
    comm.Allgather(send, recv)
    assert recv.read().tolist() == [1] * 1000 + [2] * 1000


def gaps_are_refused() -> None:
    """Check that data with gaps is refused before anything is sent."""
    comm, driver = opened(), arrays.open_driver()
    array = made(driver, 1000, RANK)
    every_other = MPI.BYTE.Create_vector(4, 1, 2).Commit()
    with pytest.raises(mpimcast.Error, match="must have no gaps"):
        comm.Bcast([array, 10, every_other])

    class Strided:
        def __init__(self) -> None:
            whole = array.__cuda_array_interface__
            self.__cuda_array_interface__ = {**whole, "shape": (10,), "strides": (2,)}

    with pytest.raises(BufferError, match="not contiguous"):
        comm.Bcast(Strided())
    comm.Bcast(array)
    assert (array.read() == 0).all()


def datatypes_of_the_host() -> None:
    """Check that gaps on the host meet a device on the other end."""
    comm, driver = opened(), arrays.open_driver()
    pairs = MPI.BYTE.Create_vector(500, 1, 2).Commit()
    spread = np.full(1000, RANK + 1, np.uint8)
    spread[1::2] = 9
    recv = made(driver, 1000, 0)
    comm.Allgather([spread, 1, pairs], [recv, 500, MPI.BYTE])
    assert (recv.read().reshape(2, 500) == [[1], [2]]).all()
    resized = pairs.Create_resized(0, 1000).Commit()
    result = np.full((2, 1000), 9, np.uint8)
    comm.Allgather([made(driver, 500, RANK + 1), 500, MPI.BYTE], [result, 1, resized])
    assert (result[:, ::2] == [[1], [2]]).all()
    assert (result[:, 1::2] == 9).all()
    for datatype in (pairs, resized):
        datatype.Free()


def results_that_ranks_share() -> None:
    """Check that blocks of devices arrive in an array that the ranks share."""
    comm, driver = opened(), arrays.open_driver()
    result = mpimcast.empty((2, 3 * PIECE_BYTES), np.uint8, comm=comm)
    for value in (1, 5):
        comm.Allgather(made(driver, 3 * PIECE_BYTES, RANK + value), result)
        assert (result == [[value], [value + 1]]).all()
        comm.Iallgather(made(driver, 3 * PIECE_BYTES, RANK), result).Wait()
        assert (result == [[0], [1]]).all()


def without_a_progress_thread() -> None:
    """Check that calls for later operations move earlier ones of a device."""
    driver = arrays.open_driver()
    comm = opened(progress_thread="off")
    array = made(driver, 10 * PIECE_BYTES, RANK + 1)
    request = comm.Ibcast(array)
    for number in range(3):
        word = np.full(1, RANK + number)
        comm.Bcast(word)
        assert word[0] == number
    request.Wait()
    assert (array.read() == 1).all()


def a_copy_fails_on_one_rank() -> None:
    """Check that a rank whose device fails says so, and ends the other's wait."""
    comm, driver = opened(), arrays.open_driver()
    array = made(driver, 1000, RANK)
    comm.Bcast(array)
    WORLD.Barrier()  # the failure ends what rank 1 has not completed
    if RANK == 0:
        driver.library.device_break(700)
    expected = "CUDA: .*CUDA_ERROR_ILLEGAL_ADDRESS" if RANK == 0 else "rank 0"
    with pytest.raises(mpimcast.Error, match=expected):
        comm.Bcast(array)
    WORLD.Barrier()  # lest rank 1 learns of it by the end of rank 0


@contextlib.contextmanager
def ending() -> Iterator[None]:
    """End all ranks if this one fails, lest the other waits for it."""
    try:
        yield
    except BaseException:
        sys.excepthook(*sys.exc_info())
        sys.stderr.flush()
        WORLD.Abort(1)
        raise


if __name__ == "__main__":
    cutting.PIECE_BYTES = PIECE_BYTES
    for case in sys.argv[2:]:
        with ending():
            globals()[case]()
        print(f"{case} passed", flush=True)
