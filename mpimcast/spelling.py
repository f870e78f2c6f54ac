# SPDX-License-Identifier: BSD-3-Clause
"""Guesses which name a user meant by a misspelt one."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def nearest(word: str, names: Iterable[str], *, cutoff: float = 0.6) -> str:
    """Return the name that is most like `word`, whatever the case of its letters.

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
        Empty if no name is like it.
    """
    known = {name.lower(): name for name in names}
    word = word.lower()
    found = difflib.get_close_matches(word, known, n=1, cutoff=cutoff)
    # A long ending makes LOG_LEVEL unlike LOG, though it is what was meant.
    found += [name for name in known if name and word.startswith(f"{name}_")]
    return known[found[0]] if found else ""


def suggestion(word: str, names: Iterable[str]) -> str:
    """Return the question whether the nearest name was meant; empty without one."""
    name = nearest(word, names)
    return f"did you mean {name}?" if name else ""
