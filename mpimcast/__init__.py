# SPDX-License-Identifier: BSD-3-Clause
"""MPI collectives over multicast: a drop-in communicator for mpi4py.

``comm = mpimcast.Intracomm(MPI.COMM_WORLD)`` is an ``MPI.Intracomm`` in every other
way; its ``Bcast``, ``Allgather`` and ``Allgatherv`` go through multicast, and so do
``bcast`` and ``allgather`` of Python objects. Importing this package does not
import ``mpi4py.MPI``, which would initialise MPI; the first use of a name does.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpimcast.comm import Intracomm
    from mpimcast.errors import ConfigError, Error, RankLeft, TimedOut, TransportError
    from mpimcast.memory import empty
    from mpimcast.requests import Startall

__all__ = [
    "ConfigError",
    "Error",
    "Intracomm",
    "RankLeft",
    "Startall",
    "TimedOut",
    "TransportError",
    "__version__",
    "empty",
]

__version__ = "0.1.0"

_HOMES = {
    "ConfigError": "mpimcast.errors",
    "Error": "mpimcast.errors",
    "Intracomm": "mpimcast.comm",
    "RankLeft": "mpimcast.errors",
    "Startall": "mpimcast.requests",
    "TimedOut": "mpimcast.errors",
    "TransportError": "mpimcast.errors",
    "empty": "mpimcast.memory",
}

_USERS_OF_MPI = ("mpimcast.comm", "mpimcast.requests")


# A type checker that saw it would take any name.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Import a public name where it lives, once (PEP 562)."""
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        if _HOMES[name] in _USERS_OF_MPI:
            # First, and not by them: `run` uses them as soon as it is there.
            import_module("mpi4py.MPI")
        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    """List the public names."""
    return sorted(__all__)
