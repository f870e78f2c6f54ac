# SPDX-License-Identifier: BSD-3-Clause
"""Environment variables that look like settings, but are none."""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING

from mpimcast._settings.given import PREFIX
from mpimcast._settings.options import option_names
from mpimcast._support.log import logger
from mpimcast._support.spelling import nearest

if TYPE_CHECKING:
    from collections.abc import Mapping

# Variables with this prefix belong to the project's own tests, and are no settings.
_TESTS_PREFIX = f"{PREFIX}TEST_"

# If a variable's name is at least this similar to that of a setting's variable, the
# user probably misspelt it. Equal names have a similarity of 1 (see difflib).
_ALIKE = 0.9

_ADVICE = "`python -m mpimcast info` lists the settings"


def ignored_variables(environment: Mapping[str, str] | None = None) -> list[str]:
    """Return a sentence for each variable that looks like a setting, but is none.

    It says which setting was probably meant.

    Parameters
    ----------
    environment
        Where to look for the variables; ``os.environ`` if None.
    """
    if environment is None:
        environment = os.environ
    known = [PREFIX + name.upper() for name in option_names()]
    sentences = []
    for name, value in sorted(environment.items()):
        if value == "" or name in known or name.startswith(_TESTS_PREFIX):
            continue
        is_ours = name.upper().startswith(PREFIX)
        if is_ours:
            meant = nearest(name[len(PREFIX) :], option_names()).upper()
            meant = PREFIX + meant if meant else ""
        else:  # maybe the prefix itself is misspelt
            alike = name.upper().startswith("MP")
            meant = nearest(name, known, cutoff=_ALIKE) if alike else ""
        if is_ours or meant:
            hint = f"did you mean {meant}?" if meant else _ADVICE
            sentences.append(
                f"{name}={value} is ignored: there is no such setting; {hint}"
            )
    return sentences


@functools.cache
def warn_of_ignored_variables() -> None:
    """Warn, once in a process, about variables that look like settings but are not."""
    for sentence in ignored_variables():
        logger.warning("%s", sentence)
