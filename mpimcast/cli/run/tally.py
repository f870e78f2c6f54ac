# SPDX-License-Identifier: BSD-3-Clause
"""Counts this process's collectives by what carried them.

The counts are made by wrapping methods of the communicator's class, so that a program
whose collectives are not counted pays nothing.
"""

from __future__ import annotations

import functools
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from mpimcast import requests
from mpimcast._session import collectives, targets
from mpimcast.comm import Intracomm

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpimcast._session.state import CommunicatorState

# The collectives that mpimcast may carry, each with the class that checks its
# arguments, and the position and name of the argument with the whole result.
_OURS: dict[str, tuple[Callable[..., collectives.Collective], int, str]] = {
    "Allgather": (collectives.Allgather, 1, "recvbuf"),
    "Allgatherv": (collectives.Allgatherv, 1, "recvbuf"),
    "Bcast": (collectives.Bcast, 0, "buf"),
}
_OBJECTS = ("bcast", "allgather")

# The collectives that the MPI library always carries.
_THEIRS = (
    *("Barrier", "Gather", "Gatherv", "Scatter", "Scatterv", "Reduce", "Allreduce"),
    *("Reduce_scatter", "Reduce_scatter_block", "Scan", "Exscan"),
    *("Alltoall", "Alltoallv", "Alltoallw"),
    *("barrier", "gather", "scatter", "reduce", "allreduce", "scan", "exscan"),
    "alltoall",
)
_NOT_MULTICAST = "mpimcast does not multicast this collective"

_SENT = ("tx_multicast_bytes", "tx_repair_bytes", "tx_control_bytes", "read_bytes")

# With more communicators than this, closed ones are dropped.
_STATES_MAX = 64

LIBRARY = "mpi"


class Key(NamedTuple):
    """A kind of call, which is counted separately.

    Attributes
    ----------
    name : str
        The collective.
    way : str
        The transport that carried it, or "mpi", the MPI library.
    why : str
        The reason why the MPI library carried it; empty if it did not.
    """

    name: str
    way: str
    why: str


@dataclass
class Count:
    """Sums over the calls of one kind.

    Attributes
    ----------
    calls : int
        Calls on this rank.
    nbytes : int
        Sizes of the results; 0 where they are unknown.
    spent_ns : int
        Time in the calls; of non-blocking and persistent ones, the time in the starts.
    unicast_bytes : float
        This rank's share of the bytes that would be sent if each byte were sent to
        every rank separately, as by a ring or a binomial tree.
    """

    calls: int = 0
    nbytes: int = 0
    spent_ns: int = 0
    unicast_bytes: float = 0.0


class _Moved(NamedTuple):
    """What one call has moved.

    Attributes
    ----------
    block_bytes, nbytes : int
        Bytes of a block, and of the result.
    unicast_bytes : float
        As in `Count`.
    shared : bool
        Whether the result lies in an array that ranks share.
    """

    block_bytes: int = 0
    nbytes: int = 0
    unicast_bytes: float = 0.0
    shared: bool = False


class Tally:
    """The counts of this process.

    Attributes
    ----------
    counts : dict
        The sums for each kind of call.
    """

    def __init__(self) -> None:
        self.counts: dict[Key, Count] = {}
        self._lock = threading.Lock()
        # For each thread that is moving an object, the calls that move its parts.
        self._parts: dict[int, list[tuple[Key, _Moved]]] = {}
        self._states: dict[int, CommunicatorState] = {}
        self._closed_bytes = 0

    def sent_bytes(self) -> int:
        """Return the bytes that this rank has sent, and those of its RDMA reads."""
        with self._lock:
            return self._closed_bytes + sum(map(_sent, self._states.values()))

    def watch(self) -> None:
        """Count from here on; counting cannot be stopped."""
        for name in _OURS:
            self._wrap(name, self._blocking)
            self._wrap(f"I{name.lower()}", self._nonblocking)
            self._wrap(f"{name}_init", self._persistent)
        for name in _OBJECTS:
            self._wrap_objects(name)
        for name in _THEIRS:
            self._wrap(name, self._theirs)
        start = requests.Prequest.Start

        def counted_start(request: requests.Prequest) -> None:
            begin_ns = time.perf_counter_ns()
            start(request)
            if hasattr(request, "counted"):
                key, moved = request.counted
                self._note(key, moved, time.perf_counter_ns() - begin_ns)

        requests.Prequest.Start = counted_start  # type: ignore[assignment,method-assign]

    def _wrap(self, name: str, note: Callable[..., None]) -> None:
        """Note a method's calls once they have succeeded."""
        method = getattr(Intracomm, name)

        @functools.wraps(method)
        def counted(comm: Intracomm, *args: Any, **kwargs: Any) -> Any:
            begin_ns = time.perf_counter_ns()
            result = method(comm, *args, **kwargs)
            spent_ns = time.perf_counter_ns() - begin_ns
            note(_Call(name, comm, args, kwargs, result, spent_ns))
            return result

        setattr(Intracomm, name, counted)

    def _wrap_objects(self, name: str) -> None:
        """Note the calls of a method that calls others for an object's parts."""
        method = getattr(Intracomm, name)

        @functools.wraps(method)
        def counted(comm: Intracomm, *args: Any, **kwargs: Any) -> Any:
            thread = threading.get_ident()
            parts = self._parts[thread] = []
            begin_ns = time.perf_counter_ns()
            try:
                result = method(comm, *args, **kwargs)
            finally:
                del self._parts[thread]
            spent_ns = time.perf_counter_ns() - begin_ns
            self._note_object(name, comm, parts, spent_ns)
            return result

        setattr(Intracomm, name, counted)

    # ---- noting calls --------------------------------------------------------

    def _blocking(self, call: _Call) -> None:
        moved = call.moved(call.name)
        self._note(self._key(call, moved, call.name), moved, call.spent_ns)

    def _nonblocking(self, call: _Call) -> None:
        blocking = call.name[1:].capitalize()
        moved = call.moved(blocking)
        self._note(self._key(call, moved, blocking, waits=False), moved, call.spent_ns)

    def _persistent(self, call: _Call) -> None:
        """Note each later start of mpimcast's request; of another, only the making."""
        blocking = call.name.removesuffix("_init")
        moved = call.moved(blocking)
        key = self._key(call, moved, blocking, waits=False)
        if isinstance(call.result, requests.Prequest):
            call.result.counted = (key, moved)  # type: ignore[attr-defined]
        else:
            self._note(key, _Moved(), call.spent_ns)

    def _key(
        self, call: _Call, moved: _Moved, blocking: str, *, waits: bool = True
    ) -> Key:
        """Return what kind of call it was; `blocking` is its collective."""
        state = self._state(call.comm)
        if moved.shared:  # mpimcast carries it whatever its size
            return Key(call.name, state.explain(targets.EVERY_BYTES).path, "")
        return Key(call.name, *state.way(moved.block_bytes, blocking, waits=waits))

    def _theirs(self, call: _Call) -> None:
        self._note(Key(call.name, LIBRARY, _NOT_MULTICAST), _Moved(), call.spent_ns)

    def _note_object(
        self,
        name: str,
        comm: Intracomm,
        parts: list[tuple[Key, _Moved]],
        spent_ns: int,
    ) -> None:
        """Note a call, as carried by what carried its largest part."""
        _, way, why = Key("", *self._state(comm).way(0, name))
        if parts:
            _, way, why = max(parts, key=lambda part: part[1].nbytes)[0]
        moved = _Moved(
            nbytes=sum(part.nbytes for _, part in parts),
            unicast_bytes=sum(part.unicast_bytes for _, part in parts),
        )
        self._note(Key(name, way, why), moved, spent_ns)

    def _note(self, key: Key, moved: _Moved, spent_ns: int) -> None:
        parts = self._parts.get(threading.get_ident())
        if parts is not None:
            parts.append((key, moved))
            return
        with self._lock:
            count = self.counts.setdefault(key, Count())
            count.calls += 1
            count.nbytes += moved.nbytes
            count.spent_ns += spent_ns
            if key.way != LIBRARY:
                count.unicast_bytes += moved.unicast_bytes

    def _state(self, comm: Intracomm) -> CommunicatorState:
        """Return a communicator's state, and keep it for its counters."""
        state = comm._comm_state or comm._need_state()  # noqa: SLF001 -- our own class
        if id(state) not in self._states:
            with self._lock:
                self._states[id(state)] = state
                if len(self._states) > _STATES_MAX:
                    self._forget_closed()
        return state

    def _forget_closed(self) -> None:
        closed = [key for key, each in self._states.items() if each.bypass]
        for key in closed:
            self._closed_bytes += _sent(self._states.pop(key))


class _Call(NamedTuple):
    """A call that has succeeded."""

    name: str
    comm: Intracomm
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    result: Any
    spent_ns: int

    def moved(self, kind: str) -> _Moved:
        """Return the bytes of this call, which is some form of collective `kind`."""
        judge, place, name = _OURS[kind]
        nranks = self.comm.Get_size()
        whole = self.args[place] if place < len(self.args) else self.kwargs.get(name)
        total_bytes = getattr(whole, "nbytes", None)
        if not isinstance(total_bytes, int):
            total_bytes = self._judged(judge) * (1 if kind == "Bcast" else nranks)
        block_bytes = total_bytes if kind == "Bcast" else total_bytes // nranks
        share = total_bytes * (nranks - 1) / nranks
        return _Moved(block_bytes, total_bytes, share, targets.holds(whole))

    def _judged(self, judge: Callable[..., collectives.Collective]) -> int:
        """Return the bytes of a block, by parsing buffers that have no `nbytes`."""
        kwargs = {name: each for name, each in self.kwargs.items() if name != "info"}
        args = self.args[:2]
        if judge is collectives.Bcast and len(args) + len(kwargs) == 1:
            kwargs["root"] = 0
        try:
            return judge(self.comm, *args, **kwargs).nbytes
        except Exception:  # noqa: BLE001 -- for arguments that cannot be parsed
            return 0


def _sent(state: CommunicatorState) -> int:
    counters = state.stats()
    return sum(counters[name] for name in _SENT)
