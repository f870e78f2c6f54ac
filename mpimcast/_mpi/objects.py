# SPDX-License-Identifier: BSD-3-Clause
"""Sends Python objects to all ranks: pickled, with large buffers beside the stream.

A header of fixed size goes first, by the MPI library's own collective, so that all
ranks know what follows. The size of each following part decides what carries it. The
results are those of mpi4py's own methods: copies, whose buffers are writable where
the originals' were.
"""

from __future__ import annotations

import contextlib
import struct
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

from mpi4py import MPI

from mpimcast.errors import Error

if TYPE_CHECKING:
    from collections.abc import Sequence

# Bytes of the stream, number of buffers, and the name of the exception, if any.
_HEADER = struct.Struct("!QQ48s")
# The stream ends in each buffer's size in bytes, with this flag if it is read-only.
_READONLY = 1 << 63
_SIZE_BYTES = 8
_PROTOCOL_OF_BUFFERS = 5


class _Header(NamedTuple):
    """The description of what a rank is about to send."""

    stream_bytes: int
    nbuffers: int
    failure: bytes

    def packed(self) -> bytearray:
        return bytearray(_HEADER.pack(*self))


class _Parcel(NamedTuple):
    """A pickled object: the stream, and the buffers beside it."""

    stream: bytes
    buffers: Sequence[MPI.buffer]

    def header(self) -> bytearray:
        return _Header(len(self.stream), len(self.buffers), b"").packed()

    @classmethod
    def of(cls, obj: Any) -> _Parcel:
        data, buffers = _dumps(obj)
        sizes = [each.nbytes | _READONLY * each.readonly for each in buffers]
        # The data is copied only where there are buffers, and is small then.
        return cls(data + _sizes(len(sizes)).pack(*sizes) if sizes else data, buffers)


def bcast(comm: MPI.Intracomm, obj: Any, root: int) -> Any:
    """Send the root's object to all ranks, as ``comm.bcast`` does."""
    parcel = None
    if comm.Get_rank() == root:
        try:
            parcel = _Parcel.of(obj)
        except BaseException as error:
            with _whole(comm, "bcast"):
                MPI.Intracomm.Bcast(comm, _failure(error), root)
            raise
    with _whole(comm, "bcast"):
        stream, copies = _send(comm, parcel, root)
    return _loads(stream, copies)


def allgather(comm: MPI.Intracomm, obj: Any, small_bytes: int) -> list[Any]:
    """Gather every rank's object to all ranks, as ``comm.allgather`` does.

    The MPI library carries parts below `small_bytes` in all.
    """
    headers = bytearray(comm.Get_size() * _HEADER.size)
    try:
        parcel = _Parcel.of(obj)
    except BaseException as error:
        with _whole(comm, "allgather"):
            MPI.Intracomm.Allgather(comm, _failure(error), headers)
        raise
    with _whole(comm, "allgather"):
        MPI.Intracomm.Allgather(comm, parcel.header(), headers)
        streams, copies = _exchange(comm, parcel, headers, small_bytes)
    return [_loads(*each) for each in zip(streams, copies, strict=True)]


def _whole(comm: MPI.Intracomm, name: str) -> contextlib.AbstractContextManager[Any]:
    """Keep other threads' calls out with mpi4py's own lock."""
    return MPI._comm_lock(comm, name)  # noqa: SLF001 -- as mpi4py.util does


def _send(
    comm: MPI.Intracomm, parcel: _Parcel | None, root: int
) -> tuple[bytes | bytearray, list[bytes | bytearray]]:
    """Send the root's parcel to all ranks; return the stream and copies of buffers."""
    header = parcel.header() if parcel else bytearray(_HEADER.size)
    MPI.Intracomm.Bcast(comm, header, root)
    stream_bytes, nbuffers, _ = _check([header], [root], comm)[0]
    stream = parcel.stream if parcel else bytearray(stream_bytes)
    comm.Bcast(memoryview(stream), root)
    copies: list[bytes | bytearray] = []
    for index, (nbytes, readonly) in enumerate(_table(stream, nbuffers)):
        if parcel:
            comm.Bcast(parcel.buffers[index], root)
            copies.append(_copy(parcel.buffers[index], readonly=readonly))
        else:
            place = bytearray(nbytes)
            comm.Bcast(place, root)
            copies.append(bytes(place) if readonly else place)
    return stream, copies


def _exchange(
    comm: MPI.Intracomm, parcel: _Parcel, place: bytearray, small_bytes: int
) -> tuple[list[memoryview], list[list[bytes | bytearray]]]:
    """Gather all ranks' parcels, whose headers are in `place`."""
    size = comm.Get_size()
    headers = _check(_cut(place, [_HEADER.size] * size), range(size), comm)
    streams = _gather(
        comm, parcel.stream, [each.stream_bytes for each in headers], small_bytes
    )
    tables = [
        _table(stream, header.nbuffers)
        for stream, header in zip(streams, headers, strict=True)
    ]
    copies: list[list[bytes | bytearray]] = [[] for _ in headers]
    for index in range(max(map(len, tables))):
        own = parcel.buffers[index] if index < len(parcel.buffers) else b""
        rows = [(*table[index : index + 1], (0, False))[0] for table in tables]
        pieces = _gather(comm, own, [nbytes for nbytes, _ in rows], small_bytes)
        for rank, (_, readonly) in enumerate(rows):
            if index < len(tables[rank]):
                copies[rank].append(_copy(pieces[rank], readonly=readonly))
    return streams, copies


def _gather(
    comm: MPI.Intracomm, own: bytes | MPI.buffer, sizes: Sequence[int], small_bytes: int
) -> list[memoryview]:
    """Gather one piece of bytes from every rank, of the given `sizes`."""
    place = bytearray(sum(sizes))
    spec = [own, MPI.BYTE], [place, sizes, MPI.BYTE]
    if len(place) < small_bytes:
        MPI.Intracomm.Allgatherv(comm, *spec)
    else:
        comm.Allgatherv(*spec)
    return _cut(place, sizes)


def _cut(place: bytearray, sizes: Sequence[int]) -> list[memoryview]:
    """Return the consecutive pieces of `place` that have the given `sizes`."""
    ends = accumulate(sizes)
    whole = memoryview(place)
    return [whole[end - nbytes : end] for nbytes, end in zip(sizes, ends, strict=True)]


def _copy(piece: Any, *, readonly: bool) -> bytes | bytearray:
    """Return a copy of a buffer, as pickle makes from one in the stream."""
    return bytes(piece) if readonly else bytearray(piece)


def _sizes(count: int) -> struct.Struct:
    return struct.Struct(f"!{count}Q")


def _table(
    stream: bytes | bytearray | memoryview, nbuffers: int
) -> list[tuple[int, bool]]:
    """Return each buffer's size in bytes, and whether it is read-only."""
    sizes = _sizes(nbuffers).unpack_from(stream, len(stream) - nbuffers * _SIZE_BYTES)
    return [(size & ~_READONLY, bool(size & _READONLY)) for size in sizes]


def _failure(error: BaseException) -> bytearray:
    """Return the header that tells of an error in place of an object."""
    return _Header(0, 0, type(error).__name__.encode()).packed()


def _check(
    headers: Sequence[bytes | bytearray | memoryview],
    ranks: Sequence[int],
    comm: MPI.Intracomm,
) -> list[_Header]:
    """Return the parsed headers; raise Error if one tells that its rank has failed."""
    read = [_Header(*_HEADER.unpack(each)) for each in headers]
    failed = [
        (rank, each.failure.rstrip(b"\0").decode(errors="replace"))
        for rank, each in zip(ranks, read, strict=True)
        if each.failure.strip(b"\0")
    ]
    if failed:
        who = ", ".join(f"rank {rank} ({failure})" for rank, failure in failed)
        raise Error(
            f"{who} of {comm.Get_size()} could not pickle the object to send; the "
            "exception there says why",
            ranks=[rank for rank, _ in failed],
        )
    return read


def _dumps(obj: Any) -> tuple[bytes, Sequence[MPI.buffer]]:
    """Pickle with the settings of ``MPI.pickle``, large buffers apart if possible."""
    protocol = MPI.pickle.PROTOCOL
    data, buffers = None, list[MPI.buffer]()
    if protocol is not None and not 0 <= protocol < _PROTOCOL_OF_BUFFERS:
        # The user's own pickling function may not support separate buffers.
        with contextlib.suppress(TypeError):
            data, buffers = MPI.pickle.dumps_oob(obj)
    if data is None:
        data = MPI.pickle.dumps(obj)
    if not isinstance(data, bytes):
        # The wording is mpi4py's.
        raise TypeError(f"expected bytes, {type(data).__name__} found")
    return data, buffers


def _loads(
    stream: bytes | bytearray | memoryview, copies: Sequence[bytes | bytearray]
) -> Any:
    """Unpickle the object with the settings of ``MPI.pickle``."""
    data = MPI.buffer.frombuffer(stream, readonly=True)
    if copies:
        end = data.nbytes - len(copies) * _SIZE_BYTES
        return MPI.pickle.loads_oob(data[:end], copies)
    return MPI.pickle.loads(data) if data.nbytes else None
