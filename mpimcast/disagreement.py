# SPDX-License-Identifier: BSD-3-Clause
"""Which ranks started something else than the others, and what."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mpimcast.naming import listed, minority, named

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence


class Fact(NamedTuple):
    """What one rank started, as it tells the others.

    Attributes
    ----------
    kind : str
        Allgather, Allgatherv or Bcast.
    root : int
        Of a Bcast.
    nbytes : int
        Of a block, where all are equal.
    counts : str
        Of an Allgatherv the blocks' bytes, in words.
    """

    kind: str
    root: int
    nbytes: int
    counts: str


def explain(
    told: Mapping[int, Sequence[Hashable]], size: int
) -> tuple[str, tuple[int, ...]]:
    """Say how operations differ that were started as one.

    Parameters
    ----------
    told
        The facts by rank; of some ranks they may be missing.
    size
        How many ranks there are.

    Returns
    -------
    text : str
        What differs, and what must not; empty if that cannot be seen.
    ranks : tuple of int
        The minority.
    """
    facts = {rank: Fact(*fact) for rank, fact in told.items()}  # type: ignore[arg-type]
    values, text = _first_difference(facts)
    if not text:
        return "", ()
    silent = sorted(set(range(size)) - set(facts))
    unknown = f" ({named(silent)} did not tell)" if silent else ""
    return text.format(listed(values)) + unknown, minority(values)


def _first_difference(facts: Mapping[int, Fact]) -> tuple[Mapping[int, Hashable], str]:
    """Return what differs first of kind, root and sizes, and a text that takes it."""
    kinds = {rank: fact.kind for rank, fact in facts.items()}
    if _differ(kinds):
        return kinds, "{}; all must call the same"
    kind = next(iter(kinds.values()), "")
    roots = {rank: f"root {fact.root}" for rank, fact in facts.items()}
    if kind == "Bcast" and _differ(roots):
        return roots, "{}; all must pass the same"
    if kind == "Allgatherv":
        counts = {rank: fact.counts for rank, fact in facts.items()}
        what = "blocks are of {}; all must pass the same counts"
        return counts, what if _differ(counts) else ""
    sizes = {rank: f"{fact.nbytes} bytes" for rank, fact in facts.items()}
    what = "data is" if kind == "Bcast" else "blocks are"
    text = what + " of {}; all must pass equally many bytes"
    return sizes, text if _differ(sizes) else ""


def _differ(values: Mapping[int, Hashable]) -> bool:
    return len(set(values.values())) > 1
