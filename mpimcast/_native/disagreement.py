# SPDX-License-Identifier: BSD-3-Clause
"""Explains which ranks started a different operation than the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mpimcast._support.naming import listed, minority, named

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence


class Fact(NamedTuple):
    """One rank's description, for the others, of the operation that it started.

    Attributes
    ----------
    kind : str
        Allgather, Allgatherv or Bcast.
    root : int
        The root of a Bcast.
    nbytes : int
        Bytes of a block, where all blocks are equal.
    counts : str
        Bytes of each block of an Allgatherv, in words; "" for other kinds.
    memory : str
        The memory that the result goes to, in words.
    """

    kind: str
    root: int
    nbytes: int
    counts: str
    memory: str


def explain(
    told: Mapping[int, Sequence[Hashable]], size: int
) -> tuple[str, tuple[int, ...]]:
    """Explain how the operations that the ranks started differ.

    Parameters
    ----------
    told
        Each rank's `Fact`, or a sequence of its fields, by rank. Some ranks may be
        missing.
    size
        The number of ranks.

    Returns
    -------
    text : str
        What differs, and what must be equal; empty if the facts do not show it.
    ranks : tuple of int
        The ranks that differ from most others.
    """
    facts = {rank: Fact(*fact) for rank, fact in told.items()}  # type: ignore[arg-type]
    values, text = _first_difference(facts)
    if not text:
        return "", ()
    silent = sorted(set(range(size)) - set(facts))
    unknown = f" ({named(silent)} did not say)" if silent else ""
    return text.format(listed(values)) + unknown, minority(values)


def _first_difference(facts: Mapping[int, Fact]) -> tuple[Mapping[int, Hashable], str]:
    """Return which of kind, root, sizes and memory differs first: values, and a text.

    The text has a place, "{}", for the values in words; it is "" if nothing differs.
    """
    kinds = {rank: fact.kind for rank, fact in facts.items()}
    if _differ(kinds):
        return kinds, "{}; all must call the same collective"
    kind = next(iter(kinds.values()), "")
    roots = {rank: f"root {fact.root}" for rank, fact in facts.items()}
    if kind == "Bcast" and _differ(roots):
        return roots, "{}; all must pass the same root"
    counts = {rank: fact.counts for rank, fact in facts.items()}
    if _differ(counts):
        return counts, "blocks have {}; all must pass the same counts"
    sizes = {rank: f"{fact.nbytes} bytes" for rank, fact in facts.items()}
    if _differ(sizes):
        what = "data has" if kind == "Bcast" else "blocks have"
        return sizes, what + " {}; all must pass the same number of bytes"
    memories = {rank: fact.memory for rank, fact in facts.items()}
    text = "the result goes to {}; the ranks of a node must pass the same shared memory"
    return memories, text if _differ(memories) else ""


def _differ(values: Mapping[int, Hashable]) -> bool:
    return len(set(values.values())) > 1
