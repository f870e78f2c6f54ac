# SPDX-License-Identifier: BSD-3-Clause
"""What requests ask of an operation whose blocks land one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray


class Landing(Protocol):
    """Which blocks of an operation have landed; modules of `_session` implement it.

    Attributes
    ----------
    polls : bool
        Whether who waits must look now and then, since no thread tells of blocks.
    """

    polls: bool

    @property
    def ranks(self) -> range:
        """The ranks that have a block."""

    def look(self, index: int) -> int | None:
        """Return whose block was number `index` to land; None if none was so far."""

    def wait(self, index: int) -> int:
        """Wait until so many blocks have landed; return whose the last one is."""

    def wait_block(self, rank: int) -> None:
        """Wait until the block of `rank` has landed."""

    def test_range(self, first: int, count: int) -> bool:
        """Return whether items of the receive buffer are present."""

    def wait_range(self, first: int, count: int) -> None:
        """Wait until items of the receive buffer are present."""

    def chunks(self) -> tuple[NDArray[np.uint64], int]:
        """Return the array of the bits of the chunks, and how many there are."""

    def help_on(self) -> None:
        """Make progress, where no thread does."""

    def on_block(self, call: Callable[[int], object]) -> None:
        """Have a function called for each block that has landed or will land."""

    def listen(self, wake: Callable[[], None]) -> None:
        """Have a function called, in any thread, when blocks may have landed."""

    def unlisten(self, wake: Callable[[], None]) -> None:
        """End what `listen` has begun."""
