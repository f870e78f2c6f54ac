# SPDX-License-Identifier: BSD-3-Clause
"""Requests that fail, and communicators that end before their requests."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import pytest
from gathering import Gathering, require_two_ranks, start_persistent
from mpi4py import MPI

import mpimcast
from mpimcast import Error, Intracomm
from mpimcast._mpi import error_codes

Make = Callable[..., Intracomm]

# The name of the thread that completes requests.
COMPLETER = "mpimcast completer"

# ---- failures ------------------------------------------------------------------


def start_to_fail(
    comm: Intracomm, start: Callable[[Gathering], MPI.Request]
) -> MPI.Request:
    """Start an operation that fails, since rank 0's block has another size."""
    require_two_ranks(comm)
    return start(Gathering(comm, 1000 + (comm.rank == 0)))


def wait_by(request: MPI.Request, way: str) -> None:
    """Complete a request by its own Wait or Test, or by a call for several requests."""
    if way == "Wait":
        request.Wait()
    elif way == "Test":
        while not request.Test():
            pass
    else:
        getattr(MPI.Request, way)([request])


@pytest.mark.parametrize("start", [Gathering.start, start_persistent])
@pytest.mark.parametrize("way", ["Wait", "Test", "Waitall", "Waitany", "Waitsome"])
def test_failure(
    make_opened: Make, way: str, start: Callable[[Gathering], MPI.Request]
) -> None:
    """A failed request's own calls raise mpimcast.Error, as do later operations.

    Calls for several requests raise MPI's exception. Waitany's has a code whose text is
    the error's; the others' says that the error is in a status.
    """
    comm = make_opened()
    request = start_to_fail(comm, start)
    text = "blocks have 4004 bytes on rank 0, but 4000 bytes on"
    if way in ("Wait", "Test"):
        with pytest.raises(Error, match=text):
            wait_by(request, way)
    else:
        with pytest.raises(MPI.Exception) as caught:
            wait_by(request, way)
        code = caught.value.Get_error_code()
        if way == "Waitany":
            assert caught.value.Get_error_class() == error_codes.error_class()
            assert text in MPI.Get_error_string(code)
        else:
            assert code == MPI.ERR_IN_STATUS
    assert request == MPI.REQUEST_NULL
    request.Wait()
    with pytest.raises(Error, match=r"unusable .* since its operation"):
        Gathering(comm, 10).start()
    if start is start_persistent:
        with pytest.raises(Error, match=r"unusable .* since its operation"):
            request.Start()


def test_several_failures(make_opened: Make) -> None:
    """Waitall's statuses tell which of two requests has failed, and why."""
    comms = [make_opened(), make_opened()]
    bad = start_to_fail(comms[0], Gathering.start)
    each = Gathering(comms[1], 1000)
    good = each.start()
    statuses = [MPI.Status(), MPI.Status()]
    with pytest.raises(MPI.Exception) as caught:
        MPI.Request.Waitall([good, bad], statuses)
    assert caught.value.Get_error_code() == MPI.ERR_IN_STATUS
    assert statuses[0].error in (MPI.SUCCESS, MPI.ERR_PENDING)
    good.Wait()
    each.check()
    text = MPI.Get_error_string(statuses[1].error)
    # MPICH replaces the code by one of its own.
    assert "disagree" in text or "request query function" in text


@pytest.mark.parametrize("way", ["blocking", "Wait", "Waitall", "later"])
def test_errhandler(make_opened: Make, way: str) -> None:
    """A communicator's error handler is called once for each failure.

    So it is in a blocking call, by Wait and by Waitall, and for a later operation on
    the unusable communicator.
    """
    comm = make_opened()
    require_two_ranks(comm)
    calls = []

    def tell(handle: MPI.Comm, code: int) -> None:
        calls.append((handle == comm, MPI.Get_error_string(code)))

    handler = MPI.Comm.Create_errhandler(tell)
    comm.Set_errhandler(handler)
    each = Gathering(comm, 1000 + (comm.rank == 0))
    if way == "blocking":
        with pytest.raises(Error, match="disagree"):
            comm.Allgather(each.block, each.place)
    else:
        request = each.start()
        with pytest.raises(MPI.Exception if way == "Waitall" else Error):
            wait_by(request, "Waitall" if way == "Waitall" else "Wait")
    assert [is_comm for is_comm, _ in calls] == [True]
    assert "disagree" in calls.pop()[1]
    if way == "later":
        with pytest.raises(Error, match="unusable"):
            each.start()
        assert "unusable" in calls.pop()[1]
    comm.Set_errhandler(MPI.ERRORS_RETURN)
    handler.Free()


@pytest.mark.network
def test_no_progress(make_comm: Make) -> None:
    """A request fails after TIMEOUT if no data arrives; other communicators go on."""
    comm = make_comm(timeout=0.5, eager_bytes=0)
    require_two_ranks(comm)
    comm.Allgather(np.zeros(1), np.zeros(comm.size))
    # Its settings differ, so it has a team of its own, whose datagrams alone are lost.
    lost = make_comm(timeout=0.5, fault="loss=1,kind=multicast+repair", eager_bytes=0)
    lost.Allgather(np.zeros(0), np.zeros(0))
    with pytest.raises(mpimcast.TimedOut, match="TIMEOUT"):
        Gathering(lost, 3000).start().Wait()
    each = Gathering(comm, 3000)
    each.start().Wait()
    each.check()


# ---- the end -------------------------------------------------------------------


@pytest.mark.parametrize("way", ["Wait", "Waitall"])
def test_free_with_operations_in_flight(make_opened: Make, way: str) -> None:
    """Operations in flight complete after their communicator is freed."""
    comm = make_opened()
    gatherings = [Gathering(comm, 4000, salt) for salt in range(6)]
    requests = [each.start() for each in gatherings]
    comm.Free()
    if way == "Wait":
        for request in requests:
            request.Wait()
    else:
        MPI.Request.Waitall(requests)
    for each in gatherings:
        each.check()


def test_persistent_outlives_its_communicator(make_opened: Make) -> None:
    """A persistent request may be started after its communicator was freed.

    Another request is freed before that on odd ranks, and after it on even ranks.
    """
    comm = make_opened()
    require_two_ranks(comm)
    odd = comm.rank % 2 == 1
    gatherings = [Gathering(MPI.COMM_WORLD, 2000, salt) for salt in range(2)]
    requests = [comm.Allgather_init(each.block, each.place) for each in gatherings]
    requests[0].Start()
    if odd:
        requests[0].Wait()
        requests[0].Free()
    comm.Free()
    if not odd:
        requests[0].Wait()
        requests[0].Free()
    gatherings[0].check()
    for turn in range(3):
        gatherings[1].fill(turn)
        requests[1].Start()
        requests[1].Wait()
        gatherings[1].check()
    requests[1].Free()


def count_completers() -> int:
    """Count the threads that complete requests."""
    return [thread.name for thread in threading.enumerate()].count(COMPLETER)


def test_one_completer(make_comm: Make, mpi_comm: MPI.Intracomm) -> None:
    """One thread completes the requests of all communicators.

    It begins with the first request, and ends with the last communicator.
    """
    require_two_ranks(mpi_comm)
    # A request that outlived its communicator in an earlier test may have left one.
    before = count_completers()
    comms = [make_comm() for _ in range(3)]
    for comm in comms:
        comm.Allgather(np.zeros(1), np.zeros(comm.size))
    assert count_completers() == before
    for comm in comms:
        Gathering(comm, 10).start().Wait()
        assert count_completers() == 1
    for comm in comms:
        assert count_completers() == 1
        comm.Free()
    assert count_completers() == before
