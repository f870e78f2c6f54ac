# SPDX-License-Identifier: BSD-3-Clause
"""All links of a fabric in their order, as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from mpimcast._fabric.link import Link


@dataclass(frozen=True, eq=False)
class LinkTable:
    """The links of a fabric as arrays of shape (nlinks,).

    First come the links from each host to its switch, then those back, in the order of
    hosts, then those between switches, in the order of their first and second vertex.

    Parameters
    ----------
    links
        What each link is.
    start, end
        The vertices that it leads from and to.
    twin
        The link that leads the other way, on the same cable.
    """

    links: Sequence[Link]
    start: NDArray[np.uint32]
    end: NDArray[np.uint32]
    twin: NDArray[np.uint32]

    @property
    def classes(self) -> list[str]:
        """The names of all classes, in alphabetical order."""
        return sorted({link.name for link in self.links})

    def numbers(
        self, field: str, dtype: type[np.uint32 | np.uint64]
    ) -> NDArray[np.unsignedinteger]:
        """Return one field of each `Link` as an array."""
        return np.array([getattr(link, field) for link in self.links], dtype)

    def class_numbers(self) -> NDArray[np.uint32]:
        """Return for each link the index of its class in `classes`."""
        numbers = {name: number for number, name in enumerate(self.classes)}
        return np.array([numbers[link.name] for link in self.links], np.uint32)

    def by_class(self, amounts: NDArray[np.uint64]) -> dict[str, int]:
        """Return the sum of an amount for each link, such as bytes, over each class.

        Parameters
        ----------
        amounts
            Of shape (nlinks,).
        """
        sums = np.zeros(len(self.classes), np.uint64)
        np.add.at(sums, self.class_numbers(), amounts)
        return dict(zip(self.classes, map(int, sums), strict=True))
