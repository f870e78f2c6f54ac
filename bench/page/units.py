# SPDX-License-Identifier: BSD-3-Clause
"""Numbers as text, with their units."""

from __future__ import annotations


def size(nbytes: float) -> str:
    """Return a size with its unit, such as "64 KiB"."""
    for unit, name in ((1 << 30, " GiB"), (1 << 20, " MiB"), (1 << 10, " KiB")):
        if nbytes >= unit:
            return f"{nbytes / unit:g}{name}"
    return f"{nbytes:g} B"


def number(value: float) -> str:
    """Return a number with three digits, or rounded to a whole one from 100 on."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def ms(seconds: float) -> str:
    """Return a time in milliseconds, with its unit."""
    return f"{number(1e3 * seconds)} ms"


def percent(share: float | None) -> str:
    """Return a share as a percentage, or an empty text for None."""
    return "" if share is None else f"{100 * share:.0f} %"
