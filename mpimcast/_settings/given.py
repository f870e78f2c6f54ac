# SPDX-License-Identifier: BSD-3-Clause
"""What users give for settings: how it is read, and what is said if it is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpimcast._support.spelling import suggestion
from mpimcast.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mpimcast._settings.values import Values

PREFIX = "MPIMCAST_"


def parse(domain: Values, given: object, name: str) -> object:
    """Return a setting's value from what the user gave, under this name."""
    try:
        return domain.parse(str(given))
    except ValueError as error:
        why = f" ({error})" if str(error) else ""
        example = domain.example
        if not name.startswith(PREFIX):
            example = repr(example)  # as Python code, since it is a keyword
        raise ConfigError(
            f"{name}={given!s} is not valid{why}: it must be {domain.expected}, for "
            f"example {name}={example}"
        ) from None


def unknown_keywords(unknown: Sequence[str], known: Sequence[str]) -> str:
    """Return what is said of keywords that are no settings."""
    hints = (suggestion(name, known) for name in unknown)
    each = (
        f"{name} ({hint})" if hint else name
        for name, hint in zip(unknown, hints, strict=True)
    )
    return (
        f"there is no such setting: {', '.join(each)}; the settings are "
        f"{', '.join(known)}"
    )
