# SPDX-License-Identifier: BSD-3-Clause
"""The regions of a segment: which part of it each stream has.

The first rank of a node decides this for all of them.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_PAGE_BYTES = 4096


class Region(NamedTuple):
    """A part of a segment: where it begins, and how long it is."""

    offset_bytes: int
    nbytes: int


class Regions:
    """The regions of one segment, which consist of whole pages.

    Parameters
    ----------
    begin_bytes, end_bytes
        The part of the segment that regions may have; whole pages of it are used.
    clear
        Takes the offset and the bytes of pages, and makes them zero.
    """

    def __init__(
        self, begin_bytes: int, end_bytes: int, clear: Callable[[int, int], None]
    ) -> None:
        self._begin_bytes = _whole_pages(begin_bytes)
        self._end_bytes = end_bytes // _PAGE_BYTES * _PAGE_BYTES
        self._nbytes = max(self._end_bytes - self._begin_bytes, 0)
        self._clear = clear
        self._taken: list[Region] = []  # in their order in the segment
        self._used_bytes = 0  # beyond them, no region has ever been
        self._lock = threading.Lock()

    @property
    def left_bytes(self) -> int:
        """The bytes that no region has."""
        return self._nbytes - sum(each.nbytes for each in self._taken)

    def may_take(self, nbytes: int, share: int) -> bool:
        """Return whether `nbytes` is modest: at most 1 / `share` of an empty segment.

        The fuller the segment is, the less is modest, so that many streams find room.
        """
        return nbytes * share * self._nbytes <= self.left_bytes**2

    def take(self, nbytes: int) -> Region | None:
        """Return the first free region of this length, all zero; None if none is."""
        nbytes = _whole_pages(nbytes)
        with self._lock:
            begin = self._begin_bytes
            for index, each in enumerate([*self._taken, Region(self._end_bytes, 0)]):
                if each.offset_bytes - begin >= nbytes:
                    region = Region(begin, nbytes)
                    self._taken.insert(index, region)
                    break
                begin = each.offset_bytes + each.nbytes
            else:
                return None
            dirty = min(self._used_bytes - begin, nbytes)
            self._used_bytes = max(self._used_bytes, begin + nbytes)
        if dirty > 0:
            self._clear(begin, dirty)
        return region

    def trim(self, region: Region, nbytes: int) -> Region:
        """Return the beginning of a region, and give back the rest."""
        kept = Region(region.offset_bytes, _whole_pages(nbytes))
        with self._lock:
            self._taken[self._taken.index(region)] = kept
        return kept

    def give_back(self, region: Region) -> None:
        """Give back a region that no rank uses any more."""
        with self._lock:
            self._taken.remove(region)


def first_fit(
    regions: Regions, sizes: Sequence[int], share: int
) -> tuple[int, Region] | None:
    """Take a region of the first size that is modest and fits, or of the last size.

    Parameters
    ----------
    sizes
        Sizes in bytes, from the best on.
    share
        As `Regions.may_take` takes it.

    Returns
    -------
    tuple or None
        The size's number, and the region; None if none fits.
    """
    for number, nbytes in enumerate(sizes):
        if number == len(sizes) - 1 or regions.may_take(nbytes, share):
            region = regions.take(nbytes)
            if region is not None:
                return number, region
    return None


def _whole_pages(nbytes: int) -> int:
    return -(-nbytes // _PAGE_BYTES) * _PAGE_BYTES
