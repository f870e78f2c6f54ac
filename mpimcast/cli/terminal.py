# SPDX-License-Identifier: BSD-3-Clause
"""Output for a person at a terminal, such as progress bars, but not for log files."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from rich import progress
from rich.console import Console

if TYPE_CHECKING:
    from collections.abc import Iterator

_REFRESH_S = 0.1


def is_watched() -> bool:
    """Return whether a person watches the output.

    Open MPI's launcher gives its ranks a terminal even if its own output goes to a
    file. So the output of the launcher, our parent process, must also be a terminal.
    """
    try:
        there = str(Path(f"/proc/{os.getppid()}/fd/1").readlink())
    except OSError:
        return False
    return sys.stdout.isatty() and there.startswith(("/dev/pts/", "/dev/tty"))


def console(*, watched: bool | None = None, stderr: bool = False) -> Console:
    """Return a console for tables.

    Parameters
    ----------
    watched
        The result of `is_watched` from before a fork; None asks now.
    stderr
        Whether to print on standard error.
    """
    if watched is None:
        watched = is_watched()
    width = None if watched else 100
    return Console(force_terminal=watched, width=width, stderr=stderr)


class Bar:
    """A progress bar that counts bytes, with lines printed above it.

    It is drawn only inside `advance`, since a separate thread would disturb timing.
    """

    def __init__(self, live: progress.Progress | None, total_bytes: int) -> None:
        self._live = live
        self._drawn_s = 0.0
        if live is not None:
            self._task = live.add_task("", total=total_bytes)

    def advance(self, nbytes: int, label: str) -> None:
        """Count `nbytes` more; `label` names their operation."""
        if self._live is None:
            return
        self._live.update(self._task, advance=nbytes, description=label)
        now_s = time.monotonic()
        if now_s >= self._drawn_s + _REFRESH_S:
            self._drawn_s = now_s
            self._live.refresh()

    def say(self, line: str) -> None:
        """Print a line, above the bar if there is one."""
        if self._live is None:
            print(line, flush=True)
        else:
            self._live.console.out(line, highlight=False)


@contextlib.contextmanager
def bar(total_bytes: int, *, shown: bool) -> Iterator[Bar]:
    """Show a bar if `shown` and a person watches; else `Bar.say` prints plain lines."""
    if not (shown and is_watched()):
        yield Bar(None, total_bytes)
        return
    columns = (
        progress.TextColumn("{task.description:>6}"),
        progress.BarColumn(),
        progress.DownloadColumn(),
        progress.TimeElapsedColumn(),
    )
    with progress.Progress(
        *columns, console=console(), transient=True, auto_refresh=False
    ) as live:
        yield Bar(live, total_bytes)
