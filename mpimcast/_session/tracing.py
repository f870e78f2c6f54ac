# SPDX-License-Identifier: BSD-3-Clause
"""What this process traces, for each directory that TRACE names, and when it writes.

A process has one ring of events and one file in a directory, for all communicators that
name it. The file is written first when the first of them is made, so that a directory
that cannot be written is found out at once; then whenever a communicator ends or an
operation fails, and when the program ends.
"""

from __future__ import annotations

import atexit
import dataclasses
import functools
import os
import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from mpi4py import MPI

from mpimcast._mpi import clock
from mpimcast._mpi.agreement import together
from mpimcast._session.collectives import Bcast
from mpimcast._session.tally import Tally
from mpimcast._support import trace_file
from mpimcast._support.log import logger
from mpimcast.errors import ConfigError, TransportError

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpimcast._mpi.private import Private
    from mpimcast._native.calls import AnyStream
    from mpimcast._native.trace import Trace
    from mpimcast._session.thresholds import Thresholds
    from mpimcast._settings.config import Config
    from mpimcast._small import Limits

# Events number their tracks with 16 bits; what finds no number is not traced.
_TRACKS_MAX = 1 << 16

_KINDS = {name: number for number, name in trace_file.OPERATIONS.items()}


class Recorder:
    """The ring and the file of this process for one directory.

    Parameters
    ----------
    folder
        The directory, which is made if it does not exist.

    Raises
    ------
    ConfigError
        If the file cannot be written there.
    """

    def __init__(self, folder: str) -> None:
        from mpimcast._native.trace import Trace

        self.trace: Trace = Trace()
        self._limits: list[Limits] = []
        self.process = trace_file.Process(
            MPI.COMM_WORLD.Get_rank(), socket.gethostname(), os.getpid()
        )
        self._tracks: list[trace_file.Track] = []
        self._offsets: list[trace_file.Offset] = []
        self._begun_s = time.time()
        self._failed = False
        self._path = trace_file.path_of(folder, self.process)
        try:
            Path(folder).mkdir(parents=True, exist_ok=True)
            self._write("begin")
        except OSError as error:
            raise ConfigError(
                f"cannot write to TRACE={folder}: {error.strerror or error}"
            ) from None
        atexit.register(self.write, "exit")

    def add_track(self, name: str, channel: str, ranks: list[int]) -> int | None:
        """Give a stream a number, or return None if all are taken."""
        if len(self._tracks) == _TRACKS_MAX:
            return None
        self._tracks.append(trace_file.Track(name, channel, ranks))
        return len(self._tracks) - 1

    def compare_clocks(
        self, private: Private, first: trace_file.Process, limit_s: float
    ) -> None:
        """Measure how far this clock is from that of rank 0, `first`. Collective."""
        offset_ns, error_ns = clock.measure(private, limit_s)
        self._offsets.append(trace_file.Offset(first, offset_ns, error_ns))

    def watch_limits(self, thresholds: Thresholds) -> None:
        """Count the small calls of a communicator."""
        self._limits += [thresholds.limits, thresholds.request_limits]

    def add_library(
        self, track: int | None, name: str, nbytes: int, begin_ns: int
    ) -> None:
        """Trace an operation that the MPI library has carried until now."""
        if track is not None:
            kind, end_ns = _KINDS[name], time.monotonic_ns()
            self.trace.add_library(track, kind, nbytes, begin_ns, end_ns)

    def write(self, why: str) -> None:
        """Write the file anew; log why if that is impossible."""
        if os.getpid() != self.process.pid:  # a child of fork() has traced nothing
            return
        try:
            self._write(why)
        except OSError as error:
            logger.error("cannot write the trace %s: %s", self._path, error)

    def _write(self, why: str) -> None:
        self._failed |= why == "failure"
        events, nadded = self.trace.read()
        header = trace_file.Header(
            process=self.process,
            ended="failure" if self._failed else why,
            begun_s=self._begun_s,
            written_s=time.time(),
            ahead_ns=time.time_ns() - time.monotonic_ns(),
            nadded=nadded,
            nsmall=sum(each.nsmall() for each in self._limits),
            tracks=self._tracks,
            offsets=self._offsets,
        )
        trace_file.write(self._path, header, events)


@functools.cache
def _recorder(folder: str) -> Recorder:
    return Recorder(folder)


@functools.cache
def _recorder_or_none(folder: str) -> Recorder | None:
    """Return the recorder of a directory; log once why there can be none."""
    try:
        return _recorder(folder)
    except ConfigError as error:
        logger.error("%s", error)
        return None


def begin(comm: MPI.Intracomm, config: Config, thresholds: Thresholds) -> None:
    """Begin to trace what the MPI library carries on a communicator, if TRACE says so.

    If this rank cannot write to the directory, only log that: other ranks may await
    this one in the first operation, which then fails on all of them.
    """
    if not config.trace or comm.Get_size() == 1:
        return
    recorder = _recorder_or_none(_folder(config))
    if recorder is not None and not isinstance(thresholds.tally, _TracedTally):
        thresholds.trace(_TracedTally(thresholds, recorder, comm))
        recorder.watch_limits(thresholds)


def _folder(config: Config) -> str:
    return str(Path(config.trace).absolute())


class Tracer:
    """Traces the streams of an open communicator: this one none of them.

    Attributes
    ----------
    traces : bool
        Whether it traces anything.
    """

    traces = False

    def follow(self, stream: AnyStream) -> None:
        """Trace a stream, and the one between nodes that it uses."""

    def traced(
        self,
        name: str,  # noqa: ARG002 -- for those who trace
        nbytes: int,  # noqa: ARG002
        library: Callable[[], None],
    ) -> Callable[[], None]:
        """Return a function that calls `library`, and traces that.

        Parameters
        ----------
        name
            The collective that the MPI library carries in `library`.
        nbytes
            The bytes of its blocks.
        """
        return library

    def write(self, why: str) -> None:
        """Write the file anew, since a stream has failed or is about to close."""


class _Recording(Tracer):
    """Traces the streams of an open communicator."""

    traces = True

    def __init__(self, recorder: Recorder, comm: MPI.Intracomm) -> None:
        self._recorder = recorder
        self._name = comm.Get_name() or "communicator"
        self._ranks = _world_ranks(comm)
        self._library = recorder.add_track(f"{self._name}: trials", "", self._ranks)

    def follow(self, stream: AnyStream) -> None:
        self._follow_one(stream, self._name, self._ranks)
        between = stream.between
        if between is not None and stream.layout is not None:
            leaders = [self._ranks[rank] for rank in stream.layout.rail(stream.rank)]
            self._follow_one(between, f"{self._name} between nodes", leaders)
        # Even if this process is killed, its file tells of which job it is.
        self._recorder.write("open")

    def _follow_one(self, stream: AnyStream, name: str, ranks: list[int]) -> None:
        track = self._recorder.add_track(name, f"{stream.channel:x}", ranks)
        if track is not None:
            self._recorder.trace.follow(stream, track)

    def traced(
        self, name: str, nbytes: int, library: Callable[[], None]
    ) -> Callable[[], None]:
        def run() -> None:
            begin_ns = time.monotonic_ns()
            library()
            self._recorder.add_library(self._library, name, nbytes, begin_ns)

        return run

    def write(self, why: str) -> None:
        self._recorder.write(why)


def opened(
    comm: MPI.Intracomm,
    private: Private,
    config: Config,
    undo: Callable[..., None],
) -> Tracer:
    """Return what traces the streams of a communicator, if anything. Collective.

    Parameters
    ----------
    undo
        Closes what was opened before, if that fails.

    Raises
    ------
    ConfigError
        On all ranks, if some rank cannot write to its directory.
    """
    if not config.trace:
        return Tracer()

    def act() -> tuple[Recorder, object]:
        recorder = _recorder(_folder(config))
        return recorder, dataclasses.astuple(recorder.process)

    try:
        recorder, processes = together(private, config, act)
        first = trace_file.Process(*processes[0])
        recorder.compare_clocks(private, first, config.timeout)
    except TransportError as error:
        undo(clean=False)
        raise ConfigError(str(error), ranks=error.ranks) from None
    except BaseException:
        undo(clean=False)
        raise
    return _Recording(recorder, comm)


class _TracedTally(Tally):
    """A tally that also traces the calls that the MPI library has carried."""

    def __init__(
        self, thresholds: Thresholds, recorder: Recorder, comm: MPI.Intracomm
    ) -> None:
        limits = thresholds.limits, thresholds.request_limits
        super().__init__(limits, thresholds.express)
        self._comm = MPI.Intracomm(comm)
        self._size = comm.Get_size()
        self._recorder = recorder
        name = comm.Get_name() or "communicator"
        self._track = recorder.add_track(f"{name}: MPI", "", _world_ranks(comm))

    def count(
        self,
        kind: Callable[..., Any],
        arguments: tuple[Any, ...],
        *,
        ours: bool,
        begin_ns: int,
    ) -> None:
        """Count a call, and trace it if the MPI library has carried it.

        What mpimcast has carried costs no more than without a trace, so nothing is
        left to the method of the parent.
        """
        self._ncalls[ours] += 1
        self._spent_ns[ours] += time.monotonic_ns() - begin_ns
        if not ours:
            nbytes = self._block_bytes(kind, arguments)
            self.add_library(getattr(kind, "__name__", ""), nbytes, begin_ns)

    def add_library(self, name: str, nbytes: int, begin_ns: int) -> None:
        """Trace an operation that the MPI library has carried until now."""
        self._recorder.add_library(self._track, name, nbytes, begin_ns)

    def _block_bytes(self, kind: Callable[..., Any], arguments: tuple[Any, ...]) -> int:
        """Return the bytes of a block, at once for the most common buffers."""
        place = arguments[0 if kind is Bcast else 1]
        if type(place) is not np.ndarray:
            return int(kind(self._comm, *arguments).nbytes)
        return place.nbytes if kind is Bcast else place.nbytes // self._size


def _world_ranks(comm: MPI.Intracomm) -> list[int]:
    """Return the rank in COMM_WORLD of each rank; -1 for processes outside of it."""
    group, world = comm.Get_group(), MPI.COMM_WORLD.Get_group()
    ranks = MPI.Group.Translate_ranks(group, list(range(comm.Get_size())), world)
    group.Free()
    world.Free()
    return [-1 if rank == MPI.UNDEFINED else rank for rank in ranks]
