# SPDX-License-Identifier: BSD-3-Clause
"""The words in which errors speak of a stream and its ranks."""

from __future__ import annotations

from typing import NamedTuple


class Words(NamedTuple):
    """How errors name what a stream belongs to, and its ranks.

    Attributes
    ----------
    whole : str
        What the stream belongs to.
    remedy : str
        What to do once it is unusable.
    numbers : tuple of int
        The numbers by which programs know the ranks; empty if these are their own.
    """

    whole: str = "this communicator"
    remedy: str = "Free it and create another"
    numbers: tuple[int, ...] = ()

    def number(self, rank: int) -> int:
        """Return the number by which programs know a rank."""
        return self.numbers[rank] if self.numbers else rank

    def here(self, rank: int, nranks: int) -> str:
        """Return in words where an error has occurred."""
        if not self.numbers:
            return f"rank {rank} of {nranks}"
        return f"rank {self.number(rank)}"
