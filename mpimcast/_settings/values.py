# SPDX-License-Identifier: BSD-3-Clause
"""The values that settings take: how they are written, read and described."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, NamedTuple

from mpimcast._settings.ranges import Groups, Ports
from mpimcast._support.spelling import suggestion

if TYPE_CHECKING:
    from collections.abc import Callable

_SECONDS_MAX = 10**9

# MMC_CODE_DATA_MAX and MMC_CODE_PARITY_MAX.
CODE_DATA_MAX = 128
CODE_PARITY_MAX = 32

_SHIFTS = {"": 0, "k": 10, "m": 20, "g": 30}

_WORDS = {"on": True, "true": True, "1": True, "off": False, "false": False, "0": False}


class Values(NamedTuple):
    """The values that one setting takes.

    Attributes
    ----------
    parse : callable
        Reads a value from text. Raises ValueError if it is not valid, with a hint as
        the error's text, or with none.
    expected : str
        A description of all valid values, which follows "must be" in messages.
    example : object
        A valid value, as a keyword argument would be given.
    """

    parse: Callable[[str], object]
    expected: str
    example: object


def parse_size(text: str) -> int:
    """Return a number of bytes, which `text` may write as 64K, 1M or 1G."""
    match = re.fullmatch(r"([0-9]+)([kmg]?)", text.strip().lower())
    if match is None:
        raise ValueError(
            f"{text!r} is not a valid size: it must be a whole number of bytes, which "
            "may end in K, M or G, such as 8, 64K, 1M or 1G"
        )
    return int(match[1]) << _SHIFTS[match[2]]


def choice(*choices: str, example: str) -> Values:
    """Return the values of a setting that takes one of some words."""

    def parse(text: str) -> str:
        word = text.strip().lower()
        if word not in choices:
            raise ValueError(suggestion(word, choices))
        return word

    return Values(parse, one_of(choices), example)


def ordered(*names: str, last: str, word: str, example: str) -> Values:
    """Return the values of a setting that takes a list of names, or `word` for all.

    The names are in the order in which they are to be tried. None may follow the name
    `last`, which always works, since it would never be tried.
    """

    def parse(text: str) -> str:
        given = [name.strip() for name in text.lower().split(",")]
        unknown = [name for name in given if name not in names]
        if given != [word] and unknown:
            raise ValueError(suggestion(unknown[0], (*names, word)))
        if len(given) != len(set(given)) or last in given[:-1]:
            raise ValueError
        return ",".join(given)

    expected = (
        f"{word}, or one or more of {', '.join(names[:-1])} and {names[-1]}, separated "
        f"by commas, {last} last"
    )
    return Values(parse, expected, example)


def number(low: int, high: int, *, example: object, **words: int) -> Values:
    """Return the values of a setting that takes a whole number from `low` to `high`.

    It also takes each of `words`, which stands for the number given with it.
    """

    def parse(text: str) -> int:
        word = text.strip().lower()
        if word in words:
            return words[word]
        if not re.fullmatch(r"[+-]?[0-9]+", word):
            raise ValueError(suggestion(word, words))
        value = int(word)
        if not low <= value <= high:
            raise ValueError
        return value

    expected = one_of([f"a whole number from {low} to {high}", *words])
    return Values(parse, expected, example)


def size(high: int, *, example: object, **words: int | None) -> Values:
    """Return the values of a setting that takes a number of bytes, `high` at most.

    It also takes each of `words`, which stands for the value given with it.
    """

    def parse(text: str) -> int | None:
        word = text.strip().lower()
        if word in words:
            return words[word]
        try:
            value = parse_size(text)
        except ValueError:
            raise ValueError(suggestion(word, words)) from None
        if value > high:
            raise ValueError
        return value

    expected = (
        f"a whole number of bytes from 0 to {high}, which may end in K, M or G "
        "(1024, 1024^2 or 1024^3 bytes)"
    )
    return Values(parse, ", or ".join([expected, *words]), example)


def seconds(*, infinite: bool, example: float) -> Values:
    """Return the values of a setting that takes a time in seconds."""

    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            raise ValueError from None  # without the text of Python's own error
        if not (0 < value <= _SECONDS_MAX or (infinite and value == math.inf)):
            raise ValueError
        return value

    expected = f"a number of seconds above 0 and up to {_SECONDS_MAX}"
    return Values(parse, f"{expected}, or inf" if infinite else expected, example)


def groups(*, example: str) -> Values:
    """Return the values of a setting that takes multicast groups."""

    def parse(text: str) -> Groups:
        try:
            return Groups.parse(text)
        except ValueError:
            raise ValueError from None  # without the text of Python's own error

    return Values(
        parse,
        "IPv4 multicast addresses from 224.0.1.0 on, written as 239.1.2.3, "
        "239.1.2.0-239.1.2.15 or 239.1.2.0/28",
        example,
    )


def ports(*, example: str) -> Values:
    """Return the values of a setting that takes ports, or "auto", which gives None."""

    def parse(text: str) -> Ports | None:
        try:
            return None if text.strip().lower() == "auto" else Ports.parse(text)
        except ValueError:
            raise ValueError from None  # without the text of Python's own error

    return Values(parse, "auto, or ports from 1 to 65535 as 30000-30999", example)


def switch(*, example: object) -> Values:
    """Return the values of a setting that takes on or off; also true, false, 1, 0."""

    def parse(text: str) -> bool:
        word = text.strip().lower()
        if word not in _WORDS:
            raise ValueError(suggestion(word, ("on", "off")))
        return _WORDS[word]

    return Values(parse, "on or off", example)


def text(*, example: object) -> Values:
    """Return the values of a setting that takes any text."""
    return Values(str.strip, "text", example)


def name(most: int, *, example: object) -> Values:
    """Return the values of a setting that takes a name of at most `most` characters."""

    def parse(text: str) -> str:
        given = text.strip()
        if not re.fullmatch(rf"[A-Za-z0-9._-]{{0,{most}}}", given):
            raise ValueError
        return given

    expected = f"nothing, or up to {most} letters, digits, dots, hyphens or underscores"
    return Values(parse, expected, example)


def code(*, example: object) -> Values:
    """Return the values of a setting that takes an erasure code, such as 32,4."""

    def parse(text: str) -> str:
        match = re.fullmatch(r"([0-9]+) *, *([0-9]+)", text.strip())
        if match is None:
            raise ValueError
        data, parity = int(match[1]), int(match[2])
        if not (1 <= data <= CODE_DATA_MAX and parity <= min(data, CODE_PARITY_MAX)):
            raise ValueError
        return f"{data},{parity}"

    expected = (
        f"two numbers K,M: from 1 to {CODE_DATA_MAX} data chunks, and at most as many "
        f"parity chunks, from 0 to {CODE_PARITY_MAX}"
    )
    return Values(parse, expected, example)


def fault() -> Values:
    """Return the values of a setting that takes faults, which the C library checks."""

    def parse(given: str) -> str:
        given = given.strip()
        if given:
            # Only here, so that the settings can be read without the C library.
            from mpimcast._native import core

            core.check_fault(given)
        return given

    expected = (
        "comma-separated KEY=VALUE pairs of loss, dup, reorder, corrupt "
        "(probabilities), loss_period (how many datagrams in a row are lost, on "
        "average), delay_us, stall_ms, seed (whole numbers), rank=R+R..., "
        "dir=rx|tx, kind=multicast|control|repair|all; a semicolon begins faults of "
        "other ranks or kinds"
    )
    return Values(parse, expected, "loss=0.1,dup=0.02,seed=99")


def one_of(words: list[str] | tuple[str, ...]) -> str:
    """Return the words joined by commas and "or", such as "a, b or c"."""
    *others, last = words
    return f"{', '.join(others)} or {last}" if others else last
