# SPDX-License-Identifier: BSD-3-Clause
"""Messages, as programs pass buffers, are understood as mpi4py understands them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpi4py import MPI

from mpimcast._mpi import buffers

# Longer than any message below.
MEMORY = np.arange(100.0)
VECTOR = MPI.DOUBLE.Create_vector(2, 1, 2).Commit()  # a double, a gap, a double


@st.composite
def messages(draw: st.DrawFn) -> object:
    """Draw a message, often a wrong one."""
    piece = MEMORY[: draw(st.integers(0, 12))]
    wrong = draw(st.integers(0, 9))
    owners = [None, MEMORY[::2], piece.view("i4"), memoryview(piece)]
    buffer = owners[wrong] if wrong < len(owners) else piece
    count = draw(st.none() | st.integers(-1, 12) | st.just(1.5))
    displacement = draw(st.none() | st.integers(-1, 3))
    datatype = draw(st.sampled_from(["d", "i", "zz", MPI.DOUBLE, MPI.BYTE, VECTOR]))
    maybe = draw(st.sampled_from([None, datatype]))
    forms = [
        buffer,
        [buffer, count],
        [buffer, datatype],
        (buffer, (count, displacement)),
        [buffer, count, maybe],
        [buffer, (count, displacement), maybe],
        (buffer, count, displacement, maybe),
        [buffer, count, displacement, maybe, 1],
        [buffer],
    ]
    return forms[draw(st.integers(0, len(forms) - 1))]


def send(message: object) -> bytes:
    """Send a message to this rank by the MPI library; return the received bytes."""
    place = bytearray(2000)
    status = MPI.Status()
    request = MPI.COMM_SELF.Irecv([place, MPI.BYTE], 0)
    try:
        MPI.COMM_SELF.Send(message, 0)
    except BaseException:
        request.Cancel()
        raise
    finally:
        request.Wait(status)
    return bytes(place[: status.Get_count(MPI.BYTE)])


def take(message: object) -> bytes:
    """Interpret a message as an operation does, and return its bytes."""
    taken = buffers.sending(message)
    place = bytearray(taken.nbytes)
    if taken.packed:
        # A message without bytes need not have an address.
        place[:] = MPI.buffer.fromaddress(taken.address or 1, taken.nbytes).tobytes()
    else:
        taken.pack(MPI.Get_address(place))
    return bytes(place)


def outcome(act: Callable[[object], bytes], message: object) -> object:
    """Return the result of a message, or its error."""
    try:
        return act(message)
    except Exception as error:  # noqa: BLE001 -- whatever mpi4py raises
        return type(error), str(error)


@settings(max_examples=500, deadline=None)
@given(messages())
def test_as_mpi4py_sends(message: object) -> None:
    """Sending a message yields the same bytes, or the same error, as with mpi4py."""
    assert outcome(take, message) == outcome(send, message)


@pytest.mark.parametrize(
    ("message", "nblocks", "nbytes"),
    [
        (bytearray(12), 3, 12),
        ([bytearray(12), MPI.INT], 3, 12),
        ([bytearray(12), 1, MPI.INT], 3, 12),
        ([bytearray(12), 2, MPI.CHAR], 3, 6),
        ([bytearray(12), (None, 1), MPI.INT], 2, 8),
        ([MEMORY, 2, VECTOR], 3, 96),
        ([None, 0, "d"], 3, 0),
        (bytearray(), 3, 0),
    ],
)
def test_blocks(message: object, nblocks: int, nbytes: int) -> None:
    """A count is the count of one block; without it, equal blocks fill the buffer."""
    assert buffers.receiving(message, nblocks).nbytes == nbytes


def test_every_type_code() -> None:
    """A type may be given by any code that mpi4py knows."""
    for code, datatype in MPI._typedict.items():  # noqa: SLF001 -- its only list
        if datatype != MPI.DATATYPE_NULL:
            size = datatype.Get_size()
            assert buffers.sending([bytes(4 * size), code]).nbytes == 4 * size


def test_gaps_and_ends() -> None:
    """Unpacking does not change a datatype's gaps, nor the bytes after the message."""
    place = np.full(8, -1.0)
    message = buffers.receiving([place[:7], 2, VECTOR], 1)
    staging = np.arange(4.0)
    assert not message.packed
    message.unpack(staging.ctypes.data)
    assert place.tolist() == [0, -1, 1, 2, -1, 3, -1, -1]


def test_memory_stays() -> None:
    """While a message exists, its buffer cannot move, and its datatype may be freed."""
    memory = bytearray(MEMORY[:8].tobytes())
    datatype = VECTOR.Dup()
    message = buffers.sending([memory, 2, datatype])
    datatype.Free()
    packed = np.zeros(4)
    message.pack(packed.ctypes.data)
    assert packed.tolist() == [0, 2, 3, 5]
    with pytest.raises(BufferError):
        memory.append(1)
    del message
    memory.append(1)


def test_type_without_format() -> None:
    """Items that no type code describes are accepted if a message names a datatype."""
    dates = np.arange(3).astype("M8[s]")
    assert take([dates, MPI.BYTE]) == dates.tobytes()
