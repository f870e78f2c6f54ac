# SPDX-License-Identifier: BSD-3-Clause
"""The alarm of a team: it warns of datagrams that are not the job's."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from mpimcast._support.log import logger

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpimcast.stranger import Stranger

# How often to look for strangers, and to warn of them at most.
_LOOK_S = 10
_WARN_S = 60

# Fewer new datagrams of a cause are no reason to warn. A rank's own datagrams are
# foreign for a moment where it has opened a stream before this one, so many of these
# are needed. Others' should not be there at all, and some may be a mistake.
_LEAST = {"foreign": 100, "malformed": 10, "corrupt": 100, "forged": 1, "replayed": 1}
_LEAST_FOREIGN_OF_RANK = 10_000


class _Rise(NamedTuple):
    """By how much a cause's count has risen at an address."""

    ndatagrams: int
    cause: str
    stranger: Stranger


class Alarm:
    """Looks for strangers now and then, and warns at most once a minute.

    Parameters
    ----------
    strangers
        Returns those of the team.
    name
        The team in words.
    attended
        Whether a thread looks; otherwise only `look` and `stop` do.
    clock_s
        The time in seconds.
    """

    def __init__(
        self,
        strangers: Callable[[], list[Stranger]],
        name: str,
        *,
        attended: bool,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._strangers = strangers
        self._name = name
        self._clock_s = clock_s
        self._counted: Counter[tuple[str, str]] = Counter()
        self._since_s = clock_s()
        self._quiet_until_s = self._since_s
        self._attended = attended
        # Held while the alarm looks, so that it looks no more once it has stopped.
        self._lock = threading.Lock()
        self._stopped = False
        if attended:
            _watch.attend(self)

    def look(self) -> None:
        """Warn if strangers have sent much since the last warning."""
        with self._lock:
            if not self._stopped:
                self._look()

    def stop(self) -> None:
        """Look a last time. The endpoint can be closed after this."""
        if self._attended:
            _watch.leave(self)
        self.look()
        with self._lock:
            self._stopped = True

    def _look(self) -> None:
        now_s = self._clock_s()
        if now_s < self._quiet_until_s:
            return
        rises = self._rises()
        if not rises:
            return
        worst = max(rises, key=lambda rise: rise.ndatagrams)
        spent_s = max(now_s - self._since_s, 1)
        logger.warning(
            "%s receives datagrams that are not this job's: since the last such "
            "warning, or the beginning %.0f s ago, %d %s ones (%.0f each second) came "
            "from %s%s; they are counted and dropped; comm.strangers() lists them",
            self._name,
            spent_s,
            worst.ndatagrams,
            worst.cause,
            worst.ndatagrams / spent_s,
            worst.stranger,
            f", and others from {len(rises) - 1} more" if len(rises) > 1 else "",
        )
        for rise in rises:
            self._counted[str(rise.stranger), rise.cause] += rise.ndatagrams
        self._since_s = now_s
        self._quiet_until_s = now_s + _WARN_S

    def _rises(self) -> list[_Rise]:
        """Return what has risen so far that a warning is due."""
        rises = []
        strangers = self._strangers()
        known = {str(stranger) for stranger in strangers}
        # The C library forgets strangers; if one comes back, it is counted anew.
        for key in [key for key in self._counted if key[0] not in known]:
            del self._counted[key]
        for stranger in strangers:
            for cause, count in stranger.counts.items():
                rise = count - self._counted[str(stranger), cause]
                least = _LEAST[cause]
                if cause == "foreign" and stranger.rank is not None:
                    least = _LEAST_FOREIGN_OF_RANK
                if rise >= least:
                    rises.append(_Rise(rise, cause, stranger))
        return rises


class _Watch:
    """The thread that looks for the alarms of all teams, while there are any."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._alarms: set[Alarm] = set()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._pid = 0  # a child of fork() has its parent's memory, but not its thread

    def attend(self, alarm: Alarm) -> None:
        """Look for an alarm from now on."""
        with self._lock:
            if self._pid != os.getpid():
                self._alarms.clear()
            if not self._alarms:
                self._ended = threading.Event()
                self._pid = os.getpid()
                self._thread = threading.Thread(
                    target=self._run, name="mpimcast alarm", daemon=True
                )
                self._thread.start()
            self._alarms.add(alarm)

    def leave(self, alarm: Alarm) -> None:
        """Look for an alarm no more. The thread ends with the last one."""
        with self._lock:
            self._alarms.discard(alarm)
            if self._alarms or self._thread is None or self._pid != os.getpid():
                return
            self._ended.set()
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        from mpimcast._native import engine

        engine.unbind_thread()
        while not self._ended.wait(_LOOK_S):
            for alarm in self._alarms.copy():
                alarm.look()


_watch = _Watch()
