# SPDX-License-Identifier: BSD-3-Clause
"""What a person sees of a training: lines, and below them a progress bar."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.progress import Progress

from mpimcast.cli import terminal

if TYPE_CHECKING:
    from typing_extensions import Self


class Display:
    """Lines, and below them a progress bar if a person watches.

    Parameters
    ----------
    nsteps
        The number of steps of the whole training.
    shown
        Whether to show anything, as one rank does.
    """

    def __init__(self, nsteps: int, *, shown: bool) -> None:
        watched = terminal.is_watched()
        self._console = terminal.console(watched=watched)
        self._console.quiet = not shown
        self._bar = Progress(
            console=self._console, transient=True, disable=not (shown and watched)
        )
        self._task = self._bar.add_task("training", total=nsteps)

    def __enter__(self) -> Self:
        """Show the bar."""
        self._bar.start()
        # Launchers stop forwarding output before they end ranks, so after Ctrl-C no
        # rank could show a cursor again that the bar has hidden.
        self._console.show_cursor(True)  # noqa: FBT003 -- rich's
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the bar."""
        self._bar.stop()

    def say(self, line: str) -> None:
        """Print a line."""
        self._console.out(line, highlight=False)

    def advance_to(self, step: int) -> None:
        """Show that so many steps are done."""
        self._bar.update(self._task, completed=step)
