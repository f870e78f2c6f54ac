# SPDX-License-Identifier: BSD-3-Clause
"""Kinds of command-line arguments, each with its unit, range and error messages."""

from __future__ import annotations

import argparse
import math
import re
from typing import TYPE_CHECKING, NamedTuple

from mpimcast._settings.values import one_of, parse_size
from mpimcast._support.spelling import suggestion

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_PPM = 1_000_000


class Kind(NamedTuple):
    """One kind of argument.

    Attributes
    ----------
    metavar : str
        The value's placeholder in usage lines: its unit, if it has one.
    parse : callable
        Reads a value; raises argparse.ArgumentTypeError, which says what is valid.
    show : callable
        Writes a value in the unit that `parse` reads.
    """

    metavar: str
    parse: Callable[[str], int]
    show: Callable[[int], str] = str


def whole(
    low: int,
    high: int | None = None,
    *,
    metavar: str = "N",
    words: Mapping[str, int] | None = None,
) -> Kind:
    """Return a kind that takes whole numbers, and `words` that stand for numbers."""
    known = dict(words or {})
    bounds = f"of at least {low}" if high is None else f"from {low} to {high}"
    expected = one_of([f"a whole number {bounds}", *known])

    def parse(text: str) -> int:
        if text in known:
            return known[text]
        if not re.fullmatch(r"-?[0-9]+", text):
            raise _bad(text, expected)
        if int(text) < low or (high is not None and int(text) > high):
            raise _bad(text, expected)
        return int(text)

    def show(value: int) -> str:
        return {number: word for word, number in known.items()}.get(value, str(value))

    return Kind(metavar, parse, show)


def size(low: int, high: int) -> Kind:
    """Return a kind that takes numbers of bytes, also written as 64K, 1M or 1G."""

    def parse(text: str) -> int:
        try:
            nbytes = parse_size(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None
        if not low <= nbytes <= high:
            raise _bad(text, f"from {_as_size(low)} to {_as_size(high)} bytes")
        return nbytes

    return Kind("BYTES", parse, _as_size)


def real(
    unit: str,
    metavar: str,
    *,
    scale: int,
    high: float,
    example: str,
    low: float = 0,
) -> Kind:
    """Return a kind that takes numbers of a unit, and counts in 1 / `scale` of it."""

    def parse(text: str) -> int:
        number = _float(text)
        if not low <= number <= high:
            expected = (
                f"a number of {unit} from {low:.12g} to {high:.12g}, such as {example}"
            )
            raise _bad(text, expected)
        return round(number * scale)

    return Kind(metavar, parse, lambda value: f"{value / scale:g}")


def probability() -> Kind:
    """Return a kind for probabilities below 1, or percent, counted in millionths."""

    def parse(text: str) -> int:
        percent = text.endswith("%")
        number = _float(text.removesuffix("%")) / (100 if percent else 1)
        if not (number == 0 or 1 / _PPM <= number <= 1 - 1 / _PPM):
            raise _bad(
                text, "0 or a probability from 0.000001 to 0.999999, such as 0.05 or 5%"
            )
        return round(number * _PPM)

    return Kind("PROBABILITY", parse, lambda value: f"{value / _PPM:g}")


def seconds(low: float, high: float, *, example: str) -> Callable[[str], float]:
    """Return a parser, for argparse, of times from `low` to `high` seconds."""

    def parse(text: str) -> float:
        number = _float(text)
        if not low <= number <= high:
            raise _bad(
                text, f"a number of seconds from {low:g} to {high:g}, such as {example}"
            )
        return number

    return parse


def names(what: str, known: Sequence[str]) -> Callable[[str], str]:
    """Return a parser, for argparse, of the `known` names, whatever their case."""
    by_lower = {name.lower(): name for name in known}

    def parse(text: str) -> str:
        if text.lower() in by_lower:
            return by_lower[text.lower()]
        hint = suggestion(text, known) or f"there are {', '.join(known)}"
        raise argparse.ArgumentTypeError(f"there is no {what} {text!r}; {hint}")

    return parse


def _float(text: str) -> float:
    """Return a number; if `text` is not one, return NaN, which lies in no range."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def _bad(text: str, expected: str) -> argparse.ArgumentTypeError:
    return argparse.ArgumentTypeError(f"{text!r} is not valid: it must be {expected}")


def _as_size(nbytes: int) -> str:
    for shift, suffix in ((30, "G"), (20, "M"), (10, "K")):
        if nbytes and nbytes % (1 << shift) == 0:
            return f"{nbytes >> shift}{suffix}"
    return str(nbytes)
