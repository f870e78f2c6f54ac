# SPDX-License-Identifier: BSD-3-Clause
"""Sends Python objects to all ranks: pickled, with large buffers beside the stream.

A header of fixed size goes first, by the MPI library's own collective, so that all
ranks know what follows. A short stream lies in the header, and nothing follows: that is
one collective, where mpi4py's own methods need two, the first of them for the size.
What is small goes through C, see ffi/python. Otherwise the size of each following part
decides what carries it. The results are those of mpi4py's
own methods: copies, whose buffers are writable where the originals' were.

A header says how to read what its rank sends. So all ranks go the same way even if
their objects differ in size, or their settings in ``MPI.pickle``.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from mpi4py import MPI

from mpimcast._small import (
    ALLGATHER_HEADER_BYTES,
    BCAST_HEADER_BYTES,
    Bcast,
    announced,
    are_short,
    prepare,
    seal,
    unseal,
)
from mpimcast.errors import Error

if TYPE_CHECKING:
    from collections.abc import Sequence

# Bytes of the stream, number of buffers, and the content: a short stream, or the name
# of an exception. The number of buffers says if there is one. ffi/python/sealing.c
# writes and reads the headers of small objects.
_BCAST_HEADER = struct.Struct(f"!Qq{BCAST_HEADER_BYTES - 16}s")
_ALLGATHER_HEADER = struct.Struct(f"!Qq{ALLGATHER_HEADER_BYTES - 16}s")
_SHORT, _FAILED = -1, -2
# The stream ends in each buffer's size in bytes, with this flag if it is read-only.
_READONLY = 1 << 63
_SIZE_BYTES = 8

_NOTHING = bytearray()

# The MPI library's own methods, found once, for the sake of small objects.
_ALLGATHER = MPI.Intracomm.Allgather
_ALLGATHERV = MPI.Intracomm.Allgatherv
_BCAST = MPI.Intracomm.Bcast
_frombuffer = MPI.buffer.frombuffer
prepare(MPI.pickle, _frombuffer)

# A pickled object: the stream, and the buffers beside it. Ranks receive copies of them.
_Parcel = tuple[bytes, "Sequence[MPI.buffer]"]
_Copy = tuple["bytes | bytearray | memoryview", "Sequence[bytes | bytearray]"]


class Objects:
    """Sends objects on one communicator.

    Threads that call the same method take turns, by mpi4py's own locks.
    """

    def __init__(self, comm: MPI.Intracomm) -> None:
        self._size = comm.Get_size()
        # As mpi4py.util does.
        self._bcast_lock = MPI._comm_lock(comm, "bcast")  # noqa: SLF001
        self._bcast = Bcast(_BCAST, self._bcast_lock)
        self._allgather_lock = MPI._comm_lock(comm, "allgather")  # noqa: SLF001

    def bcast(self, comm: MPI.Intracomm, obj: Any, root: int, small_bytes: int) -> Any:
        """Send the root's object to all ranks, as ``comm.bcast`` does.

        The MPI library carries parts below `small_bytes`.
        """
        done = self._bcast.run(comm, obj, root, small_bytes)
        if len(done) == 1:
            return done[0]
        stream, beside = done
        if stream is not None:
            return self._send(comm, stream, beside, root)
        if isinstance(beside, BaseException):
            with self._bcast_lock:
                _BCAST(comm, _failure(beside, _BCAST_HEADER), root)
            raise beside
        try:
            copy = _receive(comm, beside, root)
        finally:
            self._bcast_lock.release()
        return _loads(*copy)

    def _send(
        self,
        comm: MPI.Intracomm,
        stream: bytes,
        buffers: Sequence[MPI.buffer],
        root: int,
    ) -> Any:
        """Send an object that is not short to all ranks; return a copy of it."""
        if buffers:
            stream += _table_of(buffers)
        header = _BCAST_HEADER.pack(len(stream), len(buffers), b"")
        with self._bcast_lock:
            _BCAST(comm, header, root)
            comm.Bcast(stream, root)
            for each in buffers:
                comm.Bcast(each, root)
        if not buffers:
            return _loads(stream)
        return _loads(stream, [_copy(each, readonly=each.readonly) for each in buffers])

    def allgather(self, comm: MPI.Intracomm, obj: Any, small_bytes: int) -> list[Any]:
        """Gather every rank's object to all ranks, as ``comm.allgather`` does.

        The MPI library carries parts below `small_bytes` a rank.
        """
        place = bytearray(self._size * _ALLGATHER_HEADER.size)
        parcel: _Parcel = b"", ()
        try:
            header = seal(obj, small_bytes)
            if not isinstance(header, bytes):
                stream, buffers = header
                if buffers:
                    stream += _table_of(buffers)
                parcel = stream, buffers
                header = _ALLGATHER_HEADER.pack(len(stream), len(buffers), b"")
        except BaseException as error:
            with self._allgather_lock:
                _ALLGATHER(comm, _failure(error, _ALLGATHER_HEADER), place)
            raise
        pickles: bytearray | None = _NOTHING
        lock = self._allgather_lock
        lock.acquire()  # half the time of a with-statement
        try:
            _ALLGATHER(comm, header, place)
            if not are_short(place):
                pickles, copies = _exchange(
                    comm, parcel, place, small_bytes * self._size
                )
        finally:
            lock.release()
        if pickles is None:
            return [_loads(*each) for each in copies]
        return unseal(place, pickles)


# ---- what follows the headers ------------------------------------------------


def _receive(comm: MPI.Intracomm, header: bytearray, root: int) -> _Copy:
    """Receive what the header of a bcast's root announces."""
    nbytes, nbuffers, _ = known = _BCAST_HEADER.unpack(header)
    if nbuffers == _FAILED:
        raise _error([known], comm.Get_size(), root)
    stream = bytearray(nbytes)
    comm.Bcast(stream, root)
    copies: list[bytes | bytearray] = []
    for place_bytes, readonly in _table(stream, nbuffers):
        place = bytearray(place_bytes)
        comm.Bcast(place, root)
        copies.append(bytes(place) if readonly else place)
    return stream, copies


def _exchange(
    comm: MPI.Intracomm, parcel: _Parcel, place: bytearray, small_bytes: int
) -> tuple[bytearray | None, list[_Copy]]:
    """Gather what an allgather's headers, in `place`, announce.

    `parcel` is what this rank has to add to its header. The MPI library carries parts
    below `small_bytes` in all. If there are no others, return the streams that are not
    in headers, one after the other; else return None, and the copies of all objects.
    """
    pickles_bytes = announced(place)
    if pickles_bytes is not None and sum(pickles_bytes) < small_bytes:
        pickles = bytearray(sum(pickles_bytes))
        _ALLGATHERV(comm, [parcel[0], MPI.BYTE], [pickles, pickles_bytes, MPI.BYTE])
        return pickles, []
    headers = list(_ALLGATHER_HEADER.iter_unpack(place))
    sizes, most = [], 0
    for nbytes, nbuffers, _ in headers:
        if nbuffers == _FAILED:
            raise _error(headers, len(headers))
        sizes.append(0 if nbuffers == _SHORT else nbytes)
        most = max(most, nbuffers)
    streams: list[memoryview | bytes] = [*_gather(comm, parcel[0], sizes, small_bytes)]
    for rank, (nbytes, nbuffers, content) in enumerate(headers):
        if nbuffers == _SHORT:
            streams[rank] = content[:nbytes]
    if most == 0:
        return None, [(stream, ()) for stream in streams]
    tables = [
        _table(stream, header[1])
        for stream, header in zip(streams, headers, strict=True)
    ]
    copies = _gather_buffers(comm, parcel[1], tables, small_bytes)
    return None, list(zip(streams, copies, strict=True))


def _gather_buffers(
    comm: MPI.Intracomm,
    buffers: Sequence[MPI.buffer],
    tables: list[list[tuple[int, bool]]],
    small_bytes: int,
) -> list[list[bytes | bytearray]]:
    """Gather the buffers of all ranks, of which the ranks' tables tell."""
    copies: list[list[bytes | bytearray]] = [[] for _ in tables]
    for index in range(max(map(len, tables))):
        own = buffers[index] if index < len(buffers) else b""
        rows = [(*table[index : index + 1], (0, False))[0] for table in tables]
        pieces = _gather(comm, own, [nbytes for nbytes, _ in rows], small_bytes)
        for rank, (_, readonly) in enumerate(rows):
            if index < len(tables[rank]):
                copies[rank].append(_copy(pieces[rank], readonly=readonly))
    return copies


def _gather(
    comm: MPI.Intracomm, own: bytes | MPI.buffer, sizes: Sequence[int], small_bytes: int
) -> list[memoryview]:
    """Gather one piece of bytes from every rank, of the given `sizes`."""
    place = bytearray(sum(sizes))
    spec = [own, MPI.BYTE], [place, sizes, MPI.BYTE]
    if len(place) < small_bytes:
        _ALLGATHERV(comm, *spec)
    else:
        comm.Allgatherv(*spec)
    whole = memoryview(place)
    begin, pieces = 0, []
    for nbytes in sizes:
        pieces.append(whole[begin : begin + nbytes])
        begin += nbytes
    return pieces


def _copy(piece: Any, *, readonly: bool) -> bytes | bytearray:
    """Return a copy of a buffer, as pickle makes from one in the stream."""
    return bytes(piece) if readonly else bytearray(piece)


def _sizes(count: int) -> struct.Struct:
    return struct.Struct(f"!{count}Q")


def _table_of(buffers: Sequence[MPI.buffer]) -> bytes:
    """Return what a stream ends in if it has buffers; it is small then."""
    sizes = [each.nbytes | _READONLY * each.readonly for each in buffers]
    return _sizes(len(sizes)).pack(*sizes)


def _table(
    stream: bytes | bytearray | memoryview, nbuffers: int
) -> list[tuple[int, bool]]:
    """Return each buffer's size in bytes, and whether it is read-only."""
    if nbuffers <= 0:
        return []
    sizes = _sizes(nbuffers).unpack_from(stream, len(stream) - nbuffers * _SIZE_BYTES)
    return [(size & ~_READONLY, bool(size & _READONLY)) for size in sizes]


# ---- headers -----------------------------------------------------------------


def _failure(error: BaseException, header: struct.Struct) -> bytes:
    """Return the header that tells of an error in place of an object."""
    return header.pack(0, _FAILED, type(error).__name__.encode())


def _error(
    headers: Sequence[tuple[int, int, bytes]], size: int, first: int = 0
) -> Error:
    """Return the error that headers tell of, that of rank `first` and the next ones.

    The communicator has `size` ranks.
    """
    failed = [
        (rank, content.rstrip(b"\0").decode(errors="replace"))
        for rank, (_, nbuffers, content) in enumerate(headers, first)
        if nbuffers == _FAILED
    ]
    who = ", ".join(f"rank {rank} ({name})" for rank, name in failed)
    return Error(
        f"{who} of {size} could not pickle the object to send; the exception there "
        "says why",
        ranks=[rank for rank, _ in failed],
    )


# ---- pickles -----------------------------------------------------------------


def _loads(
    stream: bytes | bytearray | memoryview, copies: Sequence[bytes | bytearray] = ()
) -> Any:
    """Unpickle the object with the settings of ``MPI.pickle``."""
    if not stream:
        return None
    data = _frombuffer(stream, readonly=True)
    if copies:
        end = data.nbytes - len(copies) * _SIZE_BYTES
        return MPI.pickle.loads_oob(data[:end], copies)
    return MPI.pickle.loads(data)
