# SPDX-License-Identifier: BSD-3-Clause
"""Our errors in the MPI library's terms: codes with a text, and error handlers."""

from __future__ import annotations

import functools

from mpi4py import MPI

# MPICH has room for 2,047, and the program may want some.
_CODES_MAX = 1024


@functools.cache
def error_class() -> int:
    """Return the class of all our errors, which the library does not know."""
    made = MPI.Add_error_class()
    MPI.Add_error_string(made, "mpimcast: a collective operation failed")
    return made


def error_code(error: BaseException) -> int:
    """Return the code that says what an error says, as far as there is room.

    Codes are never given back: once there are many, further texts have only the
    class.
    """
    if isinstance(error, MPI.Exception):
        return error.Get_error_code()
    if _code.cache_info().currsize == _CODES_MAX:
        return error_class()
    text = str(error).encode()[: MPI.MAX_ERROR_STRING - 1]
    return _code(text.decode(errors="ignore"))


@functools.cache
def _code(text: str) -> int:
    made = MPI.Add_error_code(error_class())
    MPI.Add_error_string(made, text)
    return made


def call_errhandler(comm: MPI.Intracomm, error: BaseException) -> None:
    """Let a communicator's error handler do what it does, which may be to abort."""
    comm.Call_errhandler(error_code(error))
