# SPDX-License-Identifier: BSD-3-Clause
"""Finds out which ranks are missing while this rank waits for all ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpimcast._mpi.roll import GAVE_UP, HERE, LEFT
from mpimcast._support.log import logger
from mpimcast._support.naming import named
from mpimcast._support.patience import Patience
from mpimcast.errors import RankLeft, TimedOut

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mpimcast._mpi.roll import Roll

# How long a wait lasts before the roll is called; most waits end sooner.
_ROLL_AFTER_S = 0.25

# The answers of ranks that have arrived.
_ARRIVED = (HERE, GAVE_UP)


class Absence:
    """One wait for all ranks, which finds out from the roll which ranks are missing.

    Parameters
    ----------
    what
        The purpose of the wait, as messages word it.
    limit_s
        The longest time that the wait may last.
    warn_after_s
        The value of the setting WARN_AFTER.
    roll
        The roll of some communicator that has all these ranks; None if there is none.
    topic
        The topic of the roll for this wait, equal on all ranks.
    members
        Each rank's number in the roll's communicator.
    """

    def __init__(
        self,
        what: str,
        limit_s: float,
        warn_after_s: float,
        *,
        roll: Roll | None,
        topic: str = "",
        members: Sequence[int] = (),
    ) -> None:
        self._what = what
        self._patience = Patience(warn_after_s)
        self._roll_after_s = min(_ROLL_AFTER_S, limit_s / 4, warn_after_s / 4)
        self._roll = roll
        self._topic = topic
        self._members = members

    def look(self) -> None:
        """Call the roll, and log now and then which ranks are missing.

        Return at once; callers call this again and again while they wait.

        Raises
        ------
        RankLeft
            If a rank has left, and so will never arrive.
        TimedOut
            If some rank has given up waiting.
        """
        if self._roll is not None and self._patience.waited_s() > self._roll_after_s:
            self._roll.tell(self._topic, HERE)
            self._roll.hear()
            self._check()
        if self._patience.take_warning():
            logger.warning(
                "%s has waited %.3g s: %s",
                self._what,
                self._patience.waited_s(),
                self.reason(),
            )

    def _check(self) -> None:
        """Raise if ranks are known to have left or to have given up."""
        words = self._words()
        left = [rank for rank, word in words.items() if word == LEFT]
        if left:
            raise RankLeft(
                f"{self._what}: {named(left)} left without taking part: the "
                "program ended there, was interrupted, or freed the communicator",
                ranks=left,
            )
        gave_up = [rank for rank, word in words.items() if word == GAVE_UP]
        if gave_up:
            missing = self.missing()
            raise TimedOut(
                f"{self._what}: {named(gave_up)} gave up waiting: "
                + (self.reason() if missing else "this rank arrived too late"),
                ranks=missing,
            )

    def give_up(self) -> None:
        """Tell ranks that arrive later that this one has given up."""
        if self._roll is not None:
            self._roll.tell(self._topic, GAVE_UP)

    def leave(self) -> None:
        """Tell the others that this rank was interrupted and will not take part."""
        if self._roll is not None:
            self._roll.tell(self._topic, LEFT)

    def missing(self) -> tuple[int, ...]:
        """Return the ranks that are not known to have arrived."""
        words = self._words()
        return tuple(
            rank
            for rank, number in enumerate(self._members)
            if words.get(rank) not in _ARRIVED and not self._is_own(number)
        )

    def _is_own(self, number: int) -> bool:
        return self._roll is not None and number == self._roll.rank

    def reason(self) -> str:
        """Return in words which ranks have not arrived."""
        if self._roll is None:
            return "the MPI library does not say which ranks are missing"
        missing = self.missing()
        if not missing:
            return "all ranks have arrived, but the MPI library has not finished"
        words = self._words()
        busy = [f"rank {rank} is in {words[rank]}" for rank in missing if rank in words]
        have = "have" if len(missing) > 1 else "has"
        return "; ".join([f"{named(missing)} {have} not arrived", *busy[:1]])

    def _words(self) -> dict[int, str]:
        """Return the answer of each rank that has given one, by rank.

        It is HERE, LEFT, GAVE_UP, or the operation that the rank is in.
        """
        if self._roll is None:
            return {}
        facts = self._roll.facts(self._topic)
        return {
            rank: facts[number]
            for rank, number in enumerate(self._members)
            if number in facts
        }
