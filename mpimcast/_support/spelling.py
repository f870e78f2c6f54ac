# SPDX-License-Identifier: BSD-3-Clause
"""Guesses which name a user meant by a misspelt one."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def nearest(word: str, names: Iterable[str], *, cutoff: float = 0.6) -> str:
    """Return the name that is most similar to `word`, whatever the letters' case.

    Parameters
    ----------
    word
        The misspelt name.
    names
        The names to choose from.
    cutoff
        The least similarity, from 0 to 1, of a name that is worth a guess.

    Returns
    -------
    str
        The name; empty if none is similar.
    """
    known = {name.lower(): name for name in names}
    word = word.lower()
    found = difflib.get_close_matches(word, known, n=1, cutoff=cutoff)
    # LOG_LEVEL means LOG, although its long ending makes the two dissimilar.
    found += [name for name in known if name and word.startswith(f"{name}_")]
    return known[found[0]] if found else ""


def suggestion(word: str, names: Iterable[str]) -> str:
    """Return "did you mean NAME?" with the nearest name; "" if none is similar."""
    name = nearest(word, names)
    return f"did you mean {name}?" if name else ""
