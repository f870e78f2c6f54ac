# SPDX-License-Identifier: BSD-3-Clause
"""One setting as it is in effect, and its value as a user would write it."""

from __future__ import annotations

import math
from typing import NamedTuple

from mpimcast._settings.ranges import Range

# The largest number that fits into the 32 bits which the C API has for some settings.
UINT32_MAX = 2**32 - 1


class Setting(NamedTuple):
    """One setting as it is in effect.

    Attributes
    ----------
    name : str
        The setting's name, in upper case and without the prefix.
    value : object
        The value, as it would be written in a variable.
    source : str
        Where the value comes from: "argument", "variable" or "default".
    doc : str
        The meaning, and in parentheses the valid values.
    """

    name: str
    value: object
    source: str
    doc: str


def shown(name: str, value: object) -> object:
    """Return a setting's value as a user would write it; numbers stay numbers."""
    if name == "chains":
        return {0: "auto", UINT32_MAX: "all"}.get(value, value)  # type: ignore[call-overload]
    if isinstance(value, Range):
        return str(value)
    if value is None:
        return "auto"
    return "inf" if value == math.inf else value
