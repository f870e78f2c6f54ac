# SPDX-License-Identifier: BSD-3-Clause
"""What carries an open communicator's collectives: mpimcast, or the MPI library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from mpi4py import MPI

from mpimcast._mpi.agreement import exchange
from mpimcast._session import learnt
from mpimcast._session.choice import COUNTERS, Calls, Choice
from mpimcast._session.collectives import Allgather, Bcast
from mpimcast._session.conditions import Conditions
from mpimcast._session.trials import Way
from mpimcast._support.log import logger
from mpimcast.explanation import Explanation

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mpimcast._mpi.private import Private
    from mpimcast._session.collectives import Collective
    from mpimcast._session.streams import Streams
    from mpimcast._settings.config import Config
    from mpimcast._small import Express
    from mpimcast.requests import Prequest, Request
    from mpimcast.stranger import Stranger

# The express way's numbers of collectives, and of what carries them; nobody known is
# Python's, and None either of the two, in trials.
_KINDS = (Allgather, Bcast)
_NUMBERS = {kind.__name__: number for number, kind in enumerate(_KINDS)}
_UNKNOWN = 0
_CARRIERS = {Way.OURS: 1, Way.LIBRARY: 2, None: 3}

# As many classes of sizes as the express way has: one for each number of bits.
_CLASSES = 65


class _ExpressCalls(Calls):
    """Leaves the calls of collectives that have an express way to that."""

    def __init__(self, express: Express) -> None:
        super().__init__()
        self._express = express

    def count(self, name: str, nbits: int) -> int:
        number = _NUMBERS.get(name)
        if number is None:
            return super().count(name, nbits)
        return self._express.count_call(number, nbits)

    def keep(self, name: str, nbits: int, took_ns: int) -> None:
        number = _NUMBERS.get(name)
        if number is None:
            super().keep(name, nbits, took_ns)
        else:
            self._express.keep_untold(number, nbits, took_ns)

    def take(self, name: str, nbits: int) -> int:
        number = _NUMBERS.get(name)
        if number is None:
            return super().take(name, nbits)
        return self._express.take_untold(number, nbits)


class Carrier:
    """Runs collectives on the way that was found to be the better one.

    Parameters
    ----------
    streams
        The streams of the communicator.
    private
        Its private duplicate.
    config
        The settings.
    express
        The communicator's express way, which begins here.
    """

    def __init__(
        self, streams: Streams, private: Private, config: Config, express: Express
    ) -> None:
        self.streams = streams
        streams.begin_express(express)
        self._express = express
        # What the express way has the MPI library carry would not be traced.
        self._carriers = dict(_CARRIERS)
        if streams.tracer.traces:
            self._carriers |= {Way.LIBRARY: _UNKNOWN, None: _UNKNOWN}
        self._rank = private.Get_rank()
        self._nranks = private.Get_size()
        self._choice: Choice | None = None
        self._file = ""
        self._config = config
        if config.chooses:
            self._measure(config, private)
        else:
            self._take_all(Way.OURS)

    def _measure(self, config: Config, private: Private) -> None:
        """Begin to measure which way is better, and recall what earlier jobs found."""
        streams, express = self.streams, self._express
        self._choice = Choice(
            self._tell_all,
            self._decided,
            conditions=Conditions(streams.counters).number,
            # To look would take long in a node, where nothing changes.
            looks=streams.team.transport != "shm",
            calls=_ExpressCalls(express),
        )
        times_ns = np.zeros(self._nranks, np.uint64)
        express.measure(times_ns, self._begin_trial, self._run_numbered)
        self._take_all(None)
        if config.choice != "measure":
            self._recall(config.choice, private, config.timeout)

    def _take_all(self, way: Way | None) -> None:
        """Let the express way have all that is not cut into pieces."""
        self._express.take_all(self._carriers[way])
        if not self.streams.operations.cut_bytes:
            return
        for name, number in _NUMBERS.items():
            for nbits in range(_CLASSES):
                if self._is_cut(name, nbits):
                    self._express.take(number, nbits, _UNKNOWN, 0)

    def _is_cut(self, name: str, nbits: int) -> bool:
        nblocks = 1 if name == "Bcast" else self._nranks
        return self.streams.operations.cuts_class(nbits, nblocks)

    def _recall(self, file: str, private: Private, limit_s: float) -> None:
        """Take from a file, which rank 0 reads, what earlier jobs have measured."""
        self._file = file
        team, nranks = self.streams.team, private.Get_size()
        nnodes, nrails = nranks, 1
        if team.shared is not None:
            layout = team.shared.layout
            nnodes, nrails = layout.nnodes, len(layout.rails)
        where = f"{team.transport}, {nranks} ranks on {nnodes} nodes"
        if nrails > 1:
            where += f", {nrails} rails"
        self._key = f"{where}, {learnt.versions()}"
        known = learnt.read(file, self._key) if self._rank == 0 else {}
        if self._choice is not None:
            self._choice.recall(exchange(private, known, limit_s)[0])

    def run(
        self,
        collective: Collective,
        arguments: tuple[Any, ...],
        library: Callable[[], None],
    ) -> bool | None:
        """Run a blocking collective; return False if `library` has to run it.

        Where it is not known yet which way is better, run it on one of them as a trial,
        and return None.

        Parameters
        ----------
        collective, arguments
            The collective, and what it was made of besides the communicator.
        library
            Has the MPI library run it.
        """
        name, nbytes = type(collective).__name__, collective.nbytes
        way: Way | None = Way.OURS
        if self._choice is not None and collective.target.memory is None:
            way = self._choice.way(name, nbytes)
            self._direct(name, nbytes.bit_length(), way)
        if way is Way.OURS:
            self.streams.run(collective)
        elif way is None and self._choice is not None:
            library = self.streams.tracer.traced(name, nbytes, library)
            runs = {
                Way.OURS: lambda: self._run(collective, arguments),
                Way.LIBRARY: library,
            }
            self._choice.run_trial(name, nbytes, runs)
        return None if way is None else way is Way.OURS

    def _run(self, collective: Collective, arguments: tuple[Any, ...]) -> None:
        """Run a collective as later calls will, on the express way if it can."""
        comm, name = self.streams.comm, type(collective).__name__
        run = {
            "Allgather": self._express.run_allgather,
            "Bcast": self._express.run_bcast,
        }.get(name)
        if self.streams.operations.cuts(collective):
            run = None
        if run is None or not run(comm, *arguments):
            self.streams.run(collective)

    def _begin_trial(self, number: int, nbits: int, longest_ns: int) -> int:
        """Return who carries a call on the express way; called by C."""
        if self._choice is None:
            return _UNKNOWN
        name = _KINDS[number].__name__
        return self._carriers[self._choice.begin_trial(name, nbits, longest_ns)]

    def _run_numbered(self, number: int, *arguments: Any) -> None:
        """Run a collective that the express way cannot start; called by C."""
        self.streams.run(_KINDS[number](self.streams.comm, *arguments))

    def _direct(self, name: str, nbits: int, way: Way | None) -> None:
        """Tell the express way who carries a class of sizes, and until which call."""
        number = _NUMBERS.get(name)
        if number is not None and self._choice is not None:
            carrier = self._carriers[way]
            if way is not Way.LIBRARY and self._is_cut(name, nbits):
                carrier = _UNKNOWN
            next_look = self._choice.next_look(name, nbits)
            self._express.take(number, nbits, carrier, next_look)

    def _tell_all(self, number: int) -> Sequence[int]:
        """Give each rank's number to all ranks; return them by rank. Collective."""
        numbers, comm = np.full(self._nranks, number), self.streams.comm
        if not self._express.run_allgather(comm, None, numbers):
            self.streams.run(Allgather(comm, MPI.IN_PLACE, numbers))
        return list(map(int, numbers))

    def start(self, collective: Collective) -> Request | None:
        """Start a collective; return None if the MPI library is to carry it."""
        return self.streams.start(collective) if self._suits(collective) else None

    def prepare(self, collective: Collective) -> Prequest | None:
        """Make a persistent request; return None if it is the MPI library's."""
        return self.streams.prepare(collective) if self._suits(collective) else None

    def _suits(self, collective: Collective) -> bool:
        """Return whether mpimcast carries a call that returns a request."""
        if self._choice is None or collective.target.memory is not None:
            return True
        name = type(collective).__name__
        return self._choice.expected_way(name, collective.nbytes) is Way.OURS

    def _decided(self, name: str, nbits: int, way: Way | None) -> None:
        """Pass on, and log, who carries a class of sizes."""
        self._direct(name, nbits, way)
        if way is not None and self._rank == 0:
            logger.info(
                "%s of %d to %d bytes a block is carried by %s",
                name,
                1 << nbits >> 1,
                (1 << nbits) - 1,
                "mpimcast" if way is Way.OURS else "the MPI library",
            )

    def way(self, name: str, nbytes: int) -> tuple[str, str]:
        """Return what carried the latest such collective, and why if MPI's library."""
        if (
            self._choice is not None
            and self._choice.latest(name, nbytes) is not Way.OURS
        ):
            return "mpi", "it was faster in trials, or was tried"
        return self.streams.team.transport, ""

    def explain(self, nbytes: int) -> Explanation:
        """Return what carries operations with blocks of `nbytes`, and why."""
        path, refused = self.streams.path(), self.streams.refused
        reason = f"{path} ({refused})" if refused else path
        reason += self._reliability()
        measured = "" if self._choice is None else self._choice.explain(nbytes)
        return Explanation(
            self.streams.team.transport,
            f"{reason}; {measured}" if measured else reason,
            self.streams.team.runner,
        )

    def _reliability(self) -> str:
        """Return how losses are made up for unless they are just sent again."""
        team = self.streams.team
        config = self._config
        if not config.may_code or team.transport not in ("udp", "verbs"):
            return ""
        if team.has_firmware:
            return "; losses are sent again, since an adapter's firmware has no codes"
        data, parity = config.code_chunks
        if config.reliability == "code":
            return (
                f"; RELIABILITY=code mends losses by {parity} parity chunks with each "
                f"{data} chunks{self._coder()}"
            )
        found = self.streams.counters()
        return (
            f"; RELIABILITY=auto has mended losses by up to {parity} parity chunks "
            f"with each {data} chunks in {found['coded_epochs']} of {found['epochs']} "
            "operations, and sent lost chunks again in the others, as it forecast from "
            f"the losses, round trips and rate before{self._coder()}"
        )

    def _coder(self) -> str:
        """Return that a thread of this rank computes parity, if one does."""
        endpoint = self.streams.team.endpoint
        if endpoint is None or not self._config.has_coder(endpoint.nspare):
            return ""
        return "; a thread computes parity and mends (CODER)"

    def counters(self) -> dict[str, int]:
        """Return all counters of the streams and of the choice."""
        trials = dict(zip(COUNTERS, self._express.trial_counts(), strict=True))
        if self._choice is not None:
            for name, number in self._choice.counters.items():
                trials[name] += number
        return {**self.streams.counters(), **trials}

    def strangers(self) -> list[Stranger]:
        """Return the addresses from which this rank has refused datagrams."""
        endpoint = self.streams.team.endpoint
        return [] if endpoint is None else endpoint.strangers()

    def close(self, *, clean: bool) -> None:
        """Close the streams; keep what was measured, if CHOICE names a file."""
        self.streams.close(clean=clean)
        if self._choice is not None and self._file and self._rank == 0:
            learnt.write(self._file, self._key, self._choice.learnt())
