# SPDX-License-Identifier: BSD-3-Clause
"""The commands of ``python -m mpimcast``: what each does, and its exit statuses."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

_USAGE = "the arguments are not valid"


class Command(NamedTuple):
    """One command.

    Attributes
    ----------
    summary : str
        What it does, in a line.
    statuses : mapping
        When each exit status is returned.
    """

    summary: str
    statuses: Mapping[int | str, str]


COMMANDS = {
    "run": Command(
        "run an mpi4py program, with MPI.COMM_WORLD replaced",
        {
            "the program's own": "it ran to its end",
            1: "an exception ended it, or there is no such program",
            2: "no program was named, or an option is unknown",
        },
    ),
    "info": Command(
        "show what was built and found, what a job would use, and all settings",
        {
            0: "the report was printed",
            1: "a setting is not valid",
            2: _USAGE,
        },
    ),
    "doctor": Command(
        "find the nodes that break collectives, why, and how to fix them",
        {
            0: "programs run as they should",
            2: _USAGE,
            3: "programs run degraded, as the last line of the report says",
            4: "programs fail",
        },
    ),
    "demo": Command(
        "gather a model's layers by multicast and by the MPI library, and compare",
        {
            0: "every byte is equal",
            1: "a byte differs, a rank failed, or there is no MPI library",
            2: f"{_USAGE}, or the file cannot be read",
        },
    ),
    "bench": Command(
        "time collectives of mpimcast and of the MPI library, in turn",
        {
            0: "every byte was right",
            1: "a byte was wrong, a rank failed, or there is no MPI library",
            2: _USAGE,
        },
    ),
    "trace": Command(
        "merge what a job has traced, and show which ranks made others wait",
        {
            0: "the traces were merged",
            1: "a file is no valid trace, there is none, or the output cannot be "
            "written",
            2: _USAGE,
        },
    ),
    "proxy": Command(
        "run the operations of this user's ranks on this node, for PROGRESS=proxy",
        {
            0: "it ended as it was told, was idle, or listens in the background",
            1: "it cannot listen, or cannot serve ranks any more",
            2: _USAGE,
            3: "another process has the name",
        },
    ),
    "sim": Command(
        "simulate collectives of many ranks on a network, in virtual time",
        {
            0: "every property held",
            1: "a property was violated",
            2: f"{_USAGE}, or such a job cannot be simulated",
        },
    ),
}


def parser(name: str, doc: str | None) -> argparse.ArgumentParser:
    """Return a command's parser, whose help ends with the exit statuses.

    Parameters
    ----------
    name
        The command.
    doc
        The docstring of its module, which begins with the command in backquotes.
    """
    text = re.sub(r"^``[^`]+``: ", "", doc or "").replace("``", "")
    return argparse.ArgumentParser(
        prog=f"python -m mpimcast {name}",
        description=text[:1].upper() + text[1:],
        epilog=statuses(name),
    )


def statuses(name: str) -> str:
    """Return a sentence about a command's exit statuses."""
    each = (f"{code} if {what}" for code, what in COMMANDS[name].statuses.items())
    return f"Exit status: {'; '.join(each)}."
