# SPDX-License-Identifier: BSD-3-Clause
"""MPI collectives over multicast: a drop-in communicator for mpi4py.

The ``Bcast``, ``Allgather`` and ``Allgatherv`` of
``comm = mpimcast.Intracomm(MPI.COMM_WORLD)`` go through multicast, and so do ``bcast``
and ``allgather`` of Python objects; in every other way it is an ``MPI.Intracomm``.
Importing this package does not import ``mpi4py.MPI``, which would initialise MPI; the
first use of a name that needs MPI does. README.md in this folder is the guide.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpimcast.comm import Intercomm, Intracomm
    from mpimcast.errors import ConfigError, Error, RankLeft, TimedOut, TransportError
    from mpimcast.explanation import Explanation
    from mpimcast.memory import empty, is_shared
    from mpimcast.partial import Blocks, Partial
    from mpimcast.requests import (
        HostedPrequest,
        HostedRequest,
        Prequest,
        Request,
        Startall,
    )
    from mpimcast.stranger import Stranger

__all__ = [
    "Blocks",
    "ConfigError",
    "Error",
    "Explanation",
    "HostedPrequest",
    "HostedRequest",
    "Intercomm",
    "Intracomm",
    "Partial",
    "Prequest",
    "RankLeft",
    "Request",
    "Startall",
    "Stranger",
    "TimedOut",
    "TransportError",
    "__version__",
    "empty",
    "is_shared",
]

__version__ = "0.1.0"

# The module that each public name is imported from.
_HOMES = {
    "Blocks": "mpimcast.partial",
    "ConfigError": "mpimcast.errors",
    "Error": "mpimcast.errors",
    "Explanation": "mpimcast.explanation",
    "HostedPrequest": "mpimcast.requests",
    "HostedRequest": "mpimcast.requests",
    "Intercomm": "mpimcast.comm",
    "Intracomm": "mpimcast.comm",
    "Partial": "mpimcast.partial",
    "Prequest": "mpimcast.requests",
    "RankLeft": "mpimcast.errors",
    "Request": "mpimcast.requests",
    "Startall": "mpimcast.requests",
    "Stranger": "mpimcast.stranger",
    "TimedOut": "mpimcast.errors",
    "TransportError": "mpimcast.errors",
    "empty": "mpimcast.memory",
    "is_shared": "mpimcast.memory",
}

_USERS_OF_MPI = ("mpimcast.comm", "mpimcast.requests")


# A type checker that saw `__getattr__` would accept any attribute of this module.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Import a public name from its module at its first use (PEP 562)."""
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        if _HOMES[name] in _USERS_OF_MPI:
            # `python -m mpimcast run` imports these modules as soon as mpi4py.MPI is
            # imported. If mpimcast.comm, for example, were the first to import
            # mpi4py.MPI, `run` would find mpimcast.comm half imported.
            import_module("mpi4py.MPI")
        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    """List the public names."""
    return sorted(__all__)
