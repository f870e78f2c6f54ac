# SPDX-License-Identifier: BSD-3-Clause
"""A command that goes on in the background once it has begun well."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_FAILED = 1


def begin() -> Callable[[int], None]:
    """Go on in a child process, in a session of its own.

    This process ends with the status that the child tells, or with 1 if the child dies.

    Returns
    -------
    callable
        Tells the status, and then leaves the terminal and the working directory.
    """
    reader, writer = os.pipe()
    if os.fork():
        os.close(writer)
        told = os.read(reader, 1)
        os._exit(told[0] if told else _FAILED)
    os.close(reader)
    os.setsid()

    def tell(status: int) -> None:
        os.chdir("/")
        nothing = os.open(os.devnull, os.O_RDWR)
        for standard in range(3):
            os.dup2(nothing, standard)
        os.close(nothing)
        os.write(writer, bytes([status]))
        os.close(writer)

    return tell
