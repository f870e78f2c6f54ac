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
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

# The trials of a class end with this many, or once they have taken this long in all.
_TRIALS_MAX = 8
_TRIALS_NS_MAX = 100_000_000

# A way that is expected to take this many times as long as the other is not tried.
_HOPELESS = 1.5

# Once each way has been tried twice, trials end if the best of one way takes this many
# times as long as the best of the other: further trials would cost more than they gain.
_CLEAR = 1.2

# Once in so many calls of a class, rank 0 tells all ranks the network's conditions.
# If they have changed, the class is measured anew, and is then looked at half as often.
_CALLS_UNTIL_LOOK = 64

# After this many calls a class is measured anew in any case.
_CALLS_UNTIL_RETRIAL = 4096


# The names in stats() of what is counted.
COUNTERS = ("trials_ours", "trials_ours_ns", "trials_mpi", "trials_mpi_ns")


class Way(Enum):
    """A way for collectives: by mpimcast, or by the MPI library."""

    OURS = "ours"
    LIBRARY = "mpi"

    @property
    def other(self) -> Way:
        """The other way."""
        return Way.LIBRARY if self is Way.OURS else Way.OURS


@dataclass
class Trials:
    """What was measured for one class of sizes of one collective.

    Attributes
    ----------
    times_ns : dict
        The time of each trial, by way.
    decided : Way or None
        The faster way, once it is known.
    at_call : int
        The number of the call that decided.
    latest : Way
        The way of the latest trial.
    untold_ns : int
        The time of the latest trial on this rank until all ranks know it, otherwise 0.
    next_look : int
        The number of the call in which rank 0 tells the conditions next.
    """

    times_ns: dict[Way, list[int]] = field(
        default_factory=lambda: {way: [] for way in Way}
    )
    decided: Way | None = None
    at_call: int = 0
    latest: Way = Way.OURS
    untold_ns: int = 0
    next_look: int = 0
    _ncalls: int = 0
    _calls_until_look: int = _CALLS_UNTIL_LOOK
    _conditions: int | None = None  # of the network, as rank 0 told them last

    def next_way(self) -> Way:
        """Return the way of the next trial: the one that was tried less often."""
        ours, library = (len(self.times_ns[way]) for way in Way)
        return Way.LIBRARY if library < ours else Way.OURS

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
        self.times_ns = {way: [] for way in Way}
        self.decided = None
        return True

    def note(self, took_ns: int) -> bool:
        """Record the time of the latest trial; return whether that decides the way."""
        way, self.untold_ns = self.latest, 0
        self.times_ns[way].append(took_ns)
        if self.times_ns[way.other] and self._is_enough():
            self.decide(min(Way, key=self.best_ns))
        return self.decided is not None

    def decide(self, way: Way) -> None:
        """Choose a way from here on."""
        self.decided = way
        self.at_call = self._ncalls
        self.untold_ns = 0
        self.next_look = self._ncalls + self._calls_until_look

    def best_ns(self, way: Way) -> int:
        """Return the shortest time of a way that was tried."""
        return min(self.times_ns[way])

    def ratio(self) -> float | None:
        """Return mpimcast's time divided by the MPI library's; None if unknown."""
        if not all(self.times_ns.values()):
            return None
        return self.best_ns(Way.OURS) / self.best_ns(Way.LIBRARY)

    def _is_enough(self) -> bool:
        """Return whether the latest trial, after one of each way, was the last."""
        times_ns = [*self.times_ns[Way.OURS], *self.times_ns[Way.LIBRARY]]
        if len(times_ns) >= _TRIALS_MAX or sum(times_ns) >= _TRIALS_NS_MAX:
            return True
        # The first trial of a way may have set up connections or memory, and any trial
        # may have been held up by others on the machine.
        fewest = min(len(each) for each in self.times_ns.values())
        best_ns, other_ns = sorted(map(self.best_ns, Way))
        return fewest > 1 and other_ns > _CLEAR * best_ns

    def __str__(self) -> str:
        """Return what was measured, in words."""
        if self.decided is None or self.ratio() is None:
            return ""
        each = (
            f"{name} {self.best_ns(way) / 1e6:.3g} ms in {len(self.times_ns[way])}"
            for way, name in ((Way.OURS, "mpimcast"), (Way.LIBRARY, "the MPI library"))
        )
        return f"measured: {', '.join(each)} calls; decided at call {self.at_call}"


class Counted:
    """Counts the calls of each class."""

    def __init__(self) -> None:
        self._ncalls: Counter[tuple[str, int]] = Counter()

    def __call__(self, name: str, nbits: int) -> int:
        """Count a call; return how many there have been."""
        self._ncalls[name, nbits] += 1
        return self._ncalls[name, nbits]


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
    count_call
        Counts a call of a collective's class, given by its number of bits; returns how
        many there have been. Calls whose way is known may be counted without `way`,
        but not those in `next_look`. By default `way` counts all of them.

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
        count_call: Callable[[str, int], int] | None = None,
    ) -> None:
        self._tell_all = tell_all
        self._conditions = conditions
        self._looks = looks
        self._count_call = count_call or Counted()
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
        trials = self._trials(name, nbytes)
        trials.count_call(self._count_call(name, nbytes.bit_length()))
        if self._looks and trials.is_to_look():
            conditions, *_ = self._tell_all(self._conditions())
            if trials.begin_anew(conditions):
                self._on_decided(name, nbytes.bit_length(), None)
        if trials.decided is None:
            self._skip_hopeless(trials, name, nbytes)
        if trials.decided is None:
            longest_ns = max(self._tell_all(trials.untold_ns))
            if longest_ns > 0 and trials.note(longest_ns):
                self._on_decided(name, nbytes.bit_length(), trials.decided)
        return trials.decided

    def next_look(self, name: str, nbytes: int) -> int:
        """Return the next call of a class for which `way` must be called; 0: none is.

        That is if the way of the class is known.
        """
        return self._trials(name, nbytes).next_look if self._looks else 0

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
        trials = self._trials(name, nbytes)
        way = trials.latest = trials.next_way()
        begin_ns = self._clock_ns()
        runs[way]()
        trials.untold_ns = max(1, self._clock_ns() - begin_ns)
        self.counters[f"trials_{way.value}"] += 1
        self.counters[f"trials_{way.value}_ns"] += trials.untold_ns

    def expected_way(self, name: str, nbytes: int) -> Way:
        """Return the way of a call that returns a request, which is never a trial."""
        trials = self._classes.get((name, nbytes.bit_length()))
        if trials is not None and trials.decided is not None:
            return trials.decided
        ratio = self._expected_ratio(name, nbytes)
        return Way.LIBRARY if ratio is not None and ratio > 1 else Way.OURS

    def latest(self, name: str, nbytes: int) -> Way:
        """Return the way of the latest call of a class."""
        trials = self._trials(name, nbytes)
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
                trials = self._classes.setdefault((name, int(nbits)), Trials())
                trials.decide(Way(way))
                self._on_decided(name, int(nbits), trials.decided)

    def _trials(self, name: str, nbytes: int) -> Trials:
        return self._classes.setdefault((name, nbytes.bit_length()), Trials())

    def _skip_hopeless(self, trials: Trials, name: str, nbytes: int) -> None:
        """Decide without a trial if the classes beside this one leave no doubt."""
        ratio = self._expected_ratio(name, nbytes)
        if ratio is None or 1 / _HOPELESS <= ratio <= _HOPELESS:
            return
        trials.decide(Way.OURS if ratio < 1 else Way.LIBRARY)
        self._on_decided(name, nbytes.bit_length(), trials.decided)

    def _expected_ratio(self, name: str, nbytes: int) -> float | None:
        """Return the ratio of times that both classes beside this one suggest."""
        nbits = nbytes.bit_length()
        beside = (self._classes.get((name, each)) for each in (nbits - 1, nbits + 1))
        ratios = [trials.ratio() for trials in beside if trials is not None]
        known = [ratio for ratio in ratios if ratio is not None]
        if len(known) == 2:  # noqa: PLR2004 -- the class below and the one above
            return min(known, key=lambda ratio: abs(ratio - 1))
        return None
