# SPDX-License-Identifier: BSD-3-Clause
"""Chooses what carries collectives, mpimcast or the MPI library, by measuring both.

Sizes are measured by class: all whose numbers of bytes have equally many bits. In the
first blocking calls of a class the two ways take turns. The results are the same, so
that a trial wastes nothing but time. Each trial begins once all ranks have entered it,
and counts as long as its slowest rank says. As they enter the next call of the class,
all ranks learn the times of all, and compute the same choice from them, whatever their
clocks say.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING

from mpimcast._session.trials import Trials, Way

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

# A way that is expected to take this many times as long as the other is not tried.
_HOPELESS = 1.5

# The names in stats() of what is counted.
COUNTERS = ("trials_ours", "trials_ours_ns", "trials_mpi", "trials_mpi_ns")


class Calls:
    """Counts the calls of each class, and keeps the time of its latest trial."""

    def __init__(self) -> None:
        self._ncalls: Counter[tuple[str, int]] = Counter()
        self._untold_ns: dict[tuple[str, int], int] = {}

    def count(self, name: str, nbits: int) -> int:
        """Count a call; return how many there have been."""
        self._ncalls[name, nbits] += 1
        return self._ncalls[name, nbits]

    def keep(self, name: str, nbits: int, took_ns: int) -> None:
        """Keep the time of a trial on this rank until all ranks are told."""
        self._untold_ns[name, nbits] = took_ns

    def take(self, name: str, nbits: int) -> int:
        """Return what was kept, to tell it; 0 if all ranks know the latest."""
        return self._untold_ns.pop((name, nbits), 0)


class Choice:
    """The choice of a way for every collective and class of sizes.

    Parameters
    ----------
    tell_all
        Gives each rank's number to all ranks, and returns them by rank. Collective; no
        rank returns before all have called.
    on_decided
        Called with a collective's name, the number of bits of a class, and the way that
        was chosen for it, or None when the choice is open again.
    clock_ns
        This rank's clock.
    conditions
        Returns a number for the conditions of the network, as far as this rank knows
        them; rank 0's counts. If it changes, classes are measured anew.
    looks
        Whether classes are ever measured anew.
    calls
        What knows of calls that this object does not see. Calls whose way is known may
        be counted without `way`, but not those in `next_look`; trials may be run by
        others, which call `begin_trial`.

    Attributes
    ----------
    counters : dict
        The number of trials on each way, and this rank's time in them, by COUNTERS.
    """

    def __init__(
        self,
        tell_all: Callable[[int], Sequence[int]],
        on_decided: Callable[[str, int, Way | None], None],
        clock_ns: Callable[[], int] = time.monotonic_ns,
        *,
        conditions: Callable[[], int] = lambda: 0,
        looks: bool = True,
        calls: Calls | None = None,
    ) -> None:
        self._tell_all = tell_all
        self._conditions = conditions
        self._looks = looks
        self._calls = calls or Calls()
        self._on_decided = on_decided
        self._clock_ns = clock_ns
        self._classes: dict[tuple[str, int], Trials] = {}
        self.counters = dict.fromkeys(COUNTERS, 0)

    def way(self, name: str, nbytes: int) -> Way | None:
        """Return the way of a blocking call, or None if the call has to be a trial.

        Collective while the way is not known: ranks tell each other how long the last
        trial took, and begin the next one together. Later it is collective only in the
        calls in which rank 0 tells the conditions of the network.

        Parameters
        ----------
        name
            The collective's name.
        nbytes
            Bytes of a block, equal on all ranks.
        """
        nbits = nbytes.bit_length()
        trials = self._count(name, nbits)
        if self._looks and trials.is_to_look():
            conditions, *_ = self._tell_all(self._conditions())
            if trials.begin_anew(conditions):
                self._on_decided(name, nbits, None)
                self._skip_hopeless(name, nbits)
        if trials.decided is None:
            told_ns = self._tell_all(self._calls.take(name, nbits))
            self._note(trials, name, nbits, max(told_ns))
        return trials.decided

    def begin_trial(self, name: str, nbits: int, longest_ns: int) -> Way:
        """Return the way of a blocking call of a class whose way is not known yet.

        Parameters
        ----------
        name
            The collective's name.
        nbits
            The number of bits of the class.
        longest_ns
            The time of the class's latest trial on the rank that took longest, equal on
            all ranks; 0 if there was none.
        """
        trials = self._count(name, nbits)
        self._note(trials, name, nbits, longest_ns)
        trials.latest = trials.decided or trials.next_way()
        return trials.latest

    def next_look(self, name: str, nbits: int) -> int:
        """Return the next call of a class for which `way` must be called; 0: none is.

        That is if the way of the class is known.
        """
        trials = self._classes.get((name, nbits))
        return trials.next_look if trials is not None and self._looks else 0

    def run_trial(
        self, name: str, nbytes: int, runs: Mapping[Way, Callable[[], None]]
    ) -> None:
        """Run a blocking call on one way, and measure it. Collective.

        Parameters
        ----------
        name, nbytes
            As for `way`, which has returned None.
        runs
            Runs the call, by way.
        """
        trials = self._trials(name, nbytes.bit_length())
        way = trials.latest = trials.next_way()
        begin_ns = self._clock_ns()
        runs[way]()
        took_ns = max(1, self._clock_ns() - begin_ns)
        self._calls.keep(name, nbytes.bit_length(), took_ns)
        self.counters[f"trials_{way.value}"] += 1
        self.counters[f"trials_{way.value}_ns"] += took_ns

    def expected_way(self, name: str, nbytes: int) -> Way:
        """Return the way of a call that returns a request, which is never a trial."""
        trials = self._classes.get((name, nbytes.bit_length()))
        if trials is not None and trials.decided is not None:
            return trials.decided
        ratio = self._expected_ratio(name, nbytes.bit_length())
        return Way.LIBRARY if ratio is not None and ratio > 1 else Way.OURS

    def latest(self, name: str, nbytes: int) -> Way:
        """Return the way of the latest call of a class."""
        trials = self._trials(name, nbytes.bit_length())
        return trials.decided or trials.latest

    def explain(self, nbytes: int) -> str:
        """Return in words what was measured for blocks of `nbytes`."""
        said = (
            f"{name} {trials}"
            for (name, nbits), trials in sorted(self._classes.items())
            if nbits == nbytes.bit_length() and str(trials)
        )
        return "; ".join(said)

    def learnt(self) -> dict[str, dict[str, str]]:
        """Return the choices, for a file: the way by number of bits, by collective."""
        learnt: dict[str, dict[str, str]] = {}
        for (name, nbits), trials in sorted(self._classes.items()):
            if trials.decided is not None:
                learnt.setdefault(name, {})[str(nbits)] = trials.decided.value
        return learnt

    def recall(self, learnt: Mapping[str, Mapping[str, str]]) -> None:
        """Take choices that `learnt` has returned, in this job or an earlier one."""
        for name, ways in learnt.items():
            for nbits, way in ways.items():
                trials = self._trials(name, int(nbits))
                trials.decide(Way(way))
                self._on_decided(name, int(nbits), trials.decided)

    def _trials(self, name: str, nbits: int) -> Trials:
        trials = self._classes.get((name, nbits))
        if trials is None:
            trials = self._classes[name, nbits] = Trials()
        return trials

    def _count(self, name: str, nbits: int) -> Trials:
        trials = self._trials(name, nbits)
        trials.count_call(self._calls.count(name, nbits))
        return trials

    def _note(self, trials: Trials, name: str, nbits: int, took_ns: int) -> None:
        """Record the time of the latest trial, if there was one, on all ranks alike."""
        if took_ns > 0 and trials.note(took_ns):
            self._on_decided(name, nbits, trials.decided)
            self._skip_hopeless(name, nbits - 1)
            self._skip_hopeless(name, nbits + 1)

    def _skip_hopeless(self, name: str, nbits: int) -> None:
        """Decide without a trial if the classes beside this one leave no doubt."""
        ratio = self._expected_ratio(name, nbits)
        if ratio is None or 1 / _HOPELESS <= ratio <= _HOPELESS:
            return
        trials = self._trials(name, nbits)
        if trials.decided is None:
            trials.decide(Way.OURS if ratio < 1 else Way.LIBRARY)
            self._calls.take(name, nbits)
            self._on_decided(name, nbits, trials.decided)

    def _expected_ratio(self, name: str, nbits: int) -> float | None:
        """Return the ratio of times that both classes beside this one suggest."""
        below = self._classes.get((name, nbits - 1))
        above = self._classes.get((name, nbits + 1))
        if below is None or above is None:
            return None
        low, high = below.ratio(), above.ratio()
        if low is None or high is None:
            return None
        return low if abs(low - 1) < abs(high - 1) else high
