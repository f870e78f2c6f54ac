# SPDX-License-Identifier: BSD-3-Clause
"""The trials of one class of sizes of one collective, and the way that they decide."""

from __future__ import annotations

from enum import Enum

# The trials of a class end with this many, or once they have taken this long in all.
_TRIALS_MAX = 8
_TRIALS_NS_MAX = 100_000_000

# Once the slower way has been tried twice, trials end if its best takes this many times
# as long as the best of the other: further trials would cost more than they gain.
_CLEAR = 1.2

# Once in so many calls of a class, rank 0 tells all ranks the network's conditions.
# If they have changed, the class is measured anew, and is then looked at half as often.
_CALLS_UNTIL_LOOK = 64

# After this many calls a class is measured anew in any case.
_CALLS_UNTIL_RETRIAL = 4096


class Way(Enum):
    """A way for collectives: by mpimcast, or by the MPI library."""

    OURS = "ours"
    LIBRARY = "mpi"


class Tried:
    """The trials of one way.

    Attributes
    ----------
    ntrials : int
        How many there have been.
    best_ns : int
        The shortest time of them; 0 if there was none.
    """

    __slots__ = ("best_ns", "ntrials")

    def __init__(self) -> None:
        self.ntrials = 0
        self.best_ns = 0

    def add(self, took_ns: int) -> None:
        """Add the time of a trial."""
        self.best_ns = min(self.best_ns, took_ns) if self.ntrials else took_ns
        self.ntrials += 1


class Trials:
    """What was measured for one class of sizes of one collective.

    All ranks wait while one of them does what is here, so that it must take little.

    Attributes
    ----------
    ours, library : Tried
        The trials of each way.
    decided : Way or None
        The faster way, once it is known.
    at_call : int
        The number of the call that decided.
    latest : Way
        The way of the latest trial.
    next_look : int
        The number of the call in which rank 0 tells the conditions next.
    """

    def __init__(self) -> None:
        self.ours = Tried()
        self.library = Tried()
        self.decided: Way | None = None
        self.at_call = 0
        self.latest = Way.OURS
        self.next_look = 0
        self._spent_ns = 0
        self._ncalls = 0
        self._calls_until_look = _CALLS_UNTIL_LOOK
        self._conditions: int | None = None  # of the network, as rank 0 told them last

    def next_way(self) -> Way:
        """Return the way of the next trial: the one that was tried less often.

        If each was tried once, it is the slower one, which something else on the
        machine may have held up: the other needs no second trial if this one does not
        do better.
        """
        ours, library = self.ours, self.library
        if ours.ntrials == library.ntrials == 1:
            return Way.LIBRARY if library.best_ns > ours.best_ns else Way.OURS
        return Way.LIBRARY if library.ntrials < ours.ntrials else Way.OURS

    def count_call(self, ncalls: int) -> None:
        """Record how many calls there have been."""
        self._ncalls = ncalls

    def is_to_look(self) -> bool:
        """Return whether this call has to ask for the conditions of the network."""
        return self.decided is not None and self._ncalls == self.next_look

    def begin_anew(self, conditions: int) -> bool:
        """Begin anew if the network has changed, or the choice has stood for long.

        Parameters
        ----------
        conditions
            The conditions of the network, as rank 0 knows them.

        Returns
        -------
        bool
            Whether trials begin anew.
        """
        changed = self._conditions not in (None, conditions)
        self._conditions = conditions
        if changed:
            self._calls_until_look *= 2
        elif self._ncalls - self.at_call < _CALLS_UNTIL_RETRIAL:
            self.next_look += self._calls_until_look
            return False
        self.ours, self.library, self._spent_ns = Tried(), Tried(), 0
        self.decided = None
        return True

    def note(self, took_ns: int) -> bool:
        """Record the time of the latest trial; return whether that decides the way."""
        (self.ours if self.latest is Way.OURS else self.library).add(took_ns)
        self._spent_ns += took_ns
        if self.ours.ntrials and self.library.ntrials and self._is_enough():
            slower = self.library.best_ns < self.ours.best_ns
            self.decide(Way.LIBRARY if slower else Way.OURS)
        return self.decided is not None

    def decide(self, way: Way) -> None:
        """Choose a way from here on."""
        self.decided = way
        self.at_call = self._ncalls
        self.next_look = self._ncalls + self._calls_until_look

    def ratio(self) -> float | None:
        """Return mpimcast's time divided by the MPI library's; None if unknown."""
        if not (self.ours.ntrials and self.library.ntrials):
            return None
        return self.ours.best_ns / self.library.best_ns

    def _is_enough(self) -> bool:
        """Return whether the latest trial, after one of each way, was the last."""
        ours, library = self.ours, self.library
        if ours.ntrials + library.ntrials >= _TRIALS_MAX:
            return True
        if self._spent_ns >= _TRIALS_NS_MAX:
            return True
        # The first trial of a way may have set up connections or memory, and any trial
        # may have been held up by others on the machine.
        slower, faster = ours, library
        if slower.best_ns < faster.best_ns:
            slower, faster = faster, slower
        return slower.ntrials > 1 and slower.best_ns > _CLEAR * faster.best_ns

    def __str__(self) -> str:
        """Return what was measured, in words."""
        if self.decided is None or self.ratio() is None:
            return ""
        each = (
            f"{name} {tried.best_ns / 1e6:.3g} ms in {tried.ntrials}"
            for tried, name in (
                (self.ours, "mpimcast"),
                (self.library, "the MPI library"),
            )
        )
        return f"measured: {', '.join(each)} calls; decided at call {self.at_call}"
