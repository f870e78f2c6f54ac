# SPDX-License-Identifier: BSD-3-Clause
"""Finds which ranks started another operation than the others, and which one."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mpimcast._support.naming import listed, minority, named

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence


class Fact(NamedTuple):
    """A description of the operation that one rank started, for the other ranks.

    Attributes
    ----------
    kind : str
        Allgather, Allgatherv or Bcast.
    root : int
        The root of a Bcast.
    nbytes : int
        Bytes of a block, where all blocks are equal.
    counts : str
        Bytes of an Allgatherv's blocks, in words.
    """

    kind: str
    root: int
    nbytes: int
    counts: str


def explain(
    told: Mapping[int, Sequence[Hashable]], size: int
) -> tuple[str, tuple[int, ...]]:
    """Explain how the operations differ that ranks started in place of the same one.

    Parameters
    ----------
    told
        The facts by rank; those of some ranks may be missing.
    size
        The number of ranks.

    Returns
    -------
    text : str
        What differs, and what must be equal; empty if the facts do not show it.
    ranks : tuple of int
        The minority.
    """
    facts = {rank: Fact(*fact) for rank, fact in told.items()}  # type: ignore[arg-type]
    values, text = _first_difference(facts)
    if not text:
        return "", ()
    silent = sorted(set(range(size)) - set(facts))
    unknown = f" ({named(silent)} did not say)" if silent else ""
    return text.format(listed(values)) + unknown, minority(values)


def _first_difference(facts: Mapping[int, Fact]) -> tuple[Mapping[int, Hashable], str]:
    """Return the first of kind, root and sizes that differs, and a text around it."""
    kinds = {rank: fact.kind for rank, fact in facts.items()}
    if _differ(kinds):
        return kinds, "{}; all must call the same collective"
    kind = next(iter(kinds.values()), "")
    roots = {rank: f"root {fact.root}" for rank, fact in facts.items()}
    if kind == "Bcast" and _differ(roots):
        return roots, "{}; all must pass the same root"
    if kind == "Allgatherv":
        counts = {rank: fact.counts for rank, fact in facts.items()}
        what = "blocks have {}; all must pass the same counts"
        return counts, what if _differ(counts) else ""
    sizes = {rank: f"{fact.nbytes} bytes" for rank, fact in facts.items()}
    what = "data has" if kind == "Bcast" else "blocks have"
    text = what + " {}; all must pass the same number of bytes"
    return sizes, text if _differ(sizes) else ""


def _differ(values: Mapping[int, Hashable]) -> bool:
    return len(set(values.values())) > 1
