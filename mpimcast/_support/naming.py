# SPDX-License-Identifier: BSD-3-Clause
"""Words for messages about ranks, such as those that differ or are missing."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Mapping, Sequence

# The most ranks, or values, that a message lists.
_SHOWN_MAX = 8


def named(ranks: Collection[int]) -> str:
    """Return ranks in words, such as "ranks 1, 2"; of many, list only the first."""
    shown = ", ".join(map(str, sorted(ranks)[:_SHOWN_MAX]))
    hidden = len(ranks) - _SHOWN_MAX
    more = f" and {hidden} more" if hidden > 0 else ""
    return f"rank{'s' if len(ranks) > 1 else ''} {shown}{more}"


def usual_and_deviants(values: Sequence[Any]) -> tuple[Any, list[int]]:
    """Return the most frequent value, and the indices of all values that differ.

    Among equally frequent values, the first one counts as the most frequent. Values
    must be hashable.
    """
    usual = Counter(values).most_common(1)[0][0]
    return usual, [index for index, value in enumerate(values) if value != usual]


def minority(values: Mapping[int, Hashable]) -> tuple[int, ...]:
    """Return the ranks whose value is not the most frequent one.

    If several values tie for the most frequent, return all ranks.
    """
    holders = Counter(values.values()).most_common(2)
    if len(holders) > 1 and holders[0][1] == holders[1][1]:
        return tuple(sorted(values))
    return tuple(rank for rank in sorted(values) if values[rank] != holders[0][0])


def listed(values: Mapping[int, Hashable]) -> str:
    """Say which ranks have which value, as in "3 on rank 1, but 4 on ranks 0, 2"."""
    holders: dict[Hashable, list[int]] = {}
    for rank in sorted(values):
        holders.setdefault(values[rank], []).append(rank)
    shown = [f"{value} on {named(ranks)}" for value, ranks in holders.items()]
    if len(shown) > _SHOWN_MAX:
        hidden = len(shown) - _SHOWN_MAX
        return ", ".join([*shown[:_SHOWN_MAX], f"and {hidden} more values"])
    return ", but ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))
