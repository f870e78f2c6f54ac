# SPDX-License-Identifier: BSD-3-Clause
"""The files of traces: how one is written, and read with suspicion.

A file begins with a line that names its format and version. The next line is a JSON
object, the header (`Header`). The rest is an NPY file (NumPy's own format) of the
events, each of them EVENT, which has the fields of C's struct mmc_trace_event, in the
order in which they were added.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    Events = np.ndarray[Any, np.dtype[np.void]]

SUFFIX = ".mpimcast-trace"
MAGIC = b"mpimcast trace "
VERSION = 1

# Longer headers are refused. The longest part of one are the ranks of its tracks.
HEADER_BYTES_MAX = 64 << 20

EVENT = np.dtype(
    [
        ("begin_ns", "<u8"),
        ("end_ns", "<u8"),
        ("amount", "<u8"),
        ("epoch", "<u4"),
        ("peer", "<u4"),
        ("count", "<u4"),
        ("track", "<u2"),
        ("kind", "u1"),
        ("detail", "u1"),
    ]
)

# The `peer` of events that concern no rank in particular.
NOBODY = 2**32 - 1

# The values of `kind`, and of `detail` where it is a stage or an operation.
OPERATION, STAGE, WAIT, STALL, LOST, REPAIRED, RESENT, LIBRARY = range(1, 9)
# Those of simulated ranks and hosts alone.
TURN, MESSAGE = 9, 10
ENTRY = 1
STAGES = {1: "entry", 2: "multicast", 3: "repair", 4: "release", 5: "pieces"}
OPERATIONS = {
    1: "Allgather",
    2: "Allgatherv",
    3: "Bcast",
    4: "node_barrier",
    5: "Reduce_scatter",
}


class TraceFileError(ValueError):
    """A file that is no trace, or not one that this version can read."""


@dataclasses.dataclass(frozen=True)
class Process:
    """A process that has written a trace.

    Attributes
    ----------
    rank : int
        Its rank in MPI.COMM_WORLD.
    host : str
        Its host's name.
    pid : int
        Its number there.
    """

    rank: int
    host: str
    pid: int

    def __str__(self) -> str:
        """Return a name for people."""
        return f"rank {self.rank} ({self.host}:{self.pid})"


@dataclasses.dataclass(frozen=True)
class Track:
    """A stream whose operations are in a trace.

    Attributes
    ----------
    name : str
        What to call it, such as the communicator's name.
    channel : str
        What names the stream on all ranks; empty for the MPI library's operations.
    ranks : list of int
        The ranks in MPI.COMM_WORLD of the stream's ranks; -1 for other processes.
    """

    name: str
    channel: str
    ranks: list[int]


@dataclasses.dataclass(frozen=True)
class Offset:
    """How far this process's clock is behind another's, as measured once.

    Attributes
    ----------
    peer : Process
        The other process.
    offset_ns : int
        What is to be added to this process's times to get the other's.
    error_ns : int
        The offset's greatest possible error, when it was measured.
    """

    peer: Process
    offset_ns: int
    error_ns: int


@dataclasses.dataclass(frozen=True)
class Header:
    """What a file tells about its process besides events.

    Attributes
    ----------
    process : Process
        The process.
    ended : str
        Why the file was last written: "begin", "close", "exit", or a failure's text.
    begun_s, written_s : float
        When the trace began, and when the file was last written (UNIX time).
    ahead_ns : int
        What is to be added to the times of events to get UNIX time.
    nadded : int
        How many events were added. The file has the latest; the others were dropped.
    nsmall : int
        How many blocking calls were so small that they went to the MPI library at once.
        They are not among the events.
    tracks : list of Track
        The streams, as events number them.
    offsets : list of Offset
        The measured offsets of the clock.
    """

    process: Process
    ended: str
    begun_s: float
    written_s: float
    ahead_ns: int
    nadded: int
    nsmall: int
    tracks: list[Track]
    offsets: list[Offset]


# ---- writing -----------------------------------------------------------------


def path_of(folder: str, process: Process) -> Path:
    """Return the file of a process, which no other process of the job has."""
    host = "".join(c if c.isalnum() or c in "-." else "_" for c in process.host)
    return Path(folder, f"{process.rank:05}-{host}-{process.pid}{SUFFIX}")


def write(path: Path, header: Header, events: Events) -> None:
    """Write a file, all of it or nothing; replace an earlier one.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    draft = path.with_suffix(".part")
    try:
        with draft.open("wb") as file:
            file.write(MAGIC + b"%d\n" % VERSION)
            file.write(json.dumps(dataclasses.asdict(header)).encode() + b"\n")
            np.lib.format.write_array(file, events, allow_pickle=False)
        draft.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise


# ---- reading -----------------------------------------------------------------


def read(path: Path) -> tuple[Header, Events]:
    """Return a file's header and events.

    The events are mapped into memory, not read, so that many large files can be open.

    Raises
    ------
    TraceFileError
        If the file is not a whole and valid trace of this version.
    OSError
        If it cannot be read.
    """
    try:
        with path.open("rb") as file:
            _check_version(file)
            header = _read_header(file)
            events = _map_events(path, file)
        _check_events(header, events)
    except TraceFileError as error:
        raise TraceFileError(f"{path}: {error}") from None
    return header, events


def _check_version(file: BinaryIO) -> None:
    line = file.readline(len(MAGIC) + 16)
    if not line.startswith(MAGIC):
        raise TraceFileError("this is no trace of mpimcast")
    version = line[len(MAGIC) :].strip()
    if version != b"%d" % VERSION:
        shown = version.decode(errors="replace")
        raise TraceFileError(
            f"version {shown!r} of the format, but this mpimcast reads {VERSION}"
        )


def _read_header(file: BinaryIO) -> Header:
    line = file.readline(HEADER_BYTES_MAX)
    if not line.endswith(b"\n"):
        raise TraceFileError("the header has been cut off, or is too long")
    try:
        found = json.loads(line)
        header = Header(
            process=_process(found["process"]),
            ended=_typed(found["ended"], str),
            begun_s=float(found["begun_s"]),
            written_s=float(found["written_s"]),
            ahead_ns=_typed(found["ahead_ns"], int),
            nadded=_typed(found["nadded"], int),
            nsmall=_typed(found["nsmall"], int),
            tracks=[
                Track(
                    _typed(each["name"], str),
                    _typed(each["channel"], str),
                    [_typed(rank, int) for rank in each["ranks"]],
                )
                for each in found["tracks"]
            ],
            offsets=[
                Offset(
                    _process(each["peer"]),
                    _typed(each["offset_ns"], int),
                    _typed(each["error_ns"], int),
                )
                for each in found["offsets"]
            ],
        )
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise TraceFileError(f"the header is not valid: {error!r}") from None
    return header


def _typed(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise TypeError(f"{value!r} is not of type {kind.__name__}")
    return value


def _process(found: Mapping[str, Any]) -> Process:
    rank, pid = _typed(found["rank"], int), _typed(found["pid"], int)
    if rank < 0:
        raise ValueError(f"rank {rank}")
    return Process(rank, _typed(found["host"], str), pid)


def _map_events(path: Path, file: BinaryIO) -> Events:
    try:
        version = np.lib.format.read_magic(file)
        shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    except Exception as error:  # noqa: BLE001 -- whatever its parser of Python raises
        raise TraceFileError(f"the events cannot be read: {error}") from None
    if version != (1, 0) or dtype != EVENT or len(shape) != 1:
        raise TraceFileError("the events have another form")
    begin = file.tell()
    nbytes = os.fstat(file.fileno()).st_size - begin
    if nbytes != shape[0] * EVENT.itemsize:
        raise TraceFileError(
            f"{shape[0]} events take {shape[0] * EVENT.itemsize} bytes, but the file "
            f"has {nbytes} for them: it has been cut off, or something was appended"
        )
    if nbytes == 0:
        return np.zeros(0, EVENT)
    return np.memmap(path, EVENT, "r", begin, shape)


def _check_events(header: Header, events: Events) -> None:
    """Raise TraceFileError unless each event is one that a header's process can add."""
    if header.nadded < len(events):
        raise TraceFileError("there are more events than were ever added")
    if len(events) == 0:
        return
    nranks = np.array([len(track.ranks) for track in header.tracks], np.int64)
    right = events["track"] < len(nranks)
    if right.all():
        peer = events["peer"]
        right &= (peer == NOBODY) | (peer < nranks[events["track"]])
        right &= (events["begin_ns"] <= events["end_ns"]) & (events["end_ns"] < 2**62)
        right &= (events["kind"] >= OPERATION) & (events["kind"] <= TURN)
    if not right.all():
        raise TraceFileError(f"event {int(np.argmin(right))} is not valid")
