# SPDX-License-Identifier: BSD-3-Clause
"""Reports mpimcast's errors to MPI: as error codes with texts, to error handlers."""

from __future__ import annotations

import functools

from mpi4py import MPI

# MPICH has room for 2,047 codes, and the program may want some of them.
_CODES_MAX = 1024


@functools.cache
def error_class() -> int:
    """Return the error class of all mpimcast's errors, added to the MPI library."""
    made = MPI.Add_error_class()
    MPI.Add_error_string(made, "mpimcast: a collective operation failed")
    return made


def error_code(error: BaseException) -> int:
    """Return an error code with an error's text, while there is room for codes.

    Codes are never freed: once there are _CODES_MAX, a new text gets only the class.
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
    """Call a communicator's error handler, which may abort."""
    comm.Call_errhandler(error_code(error))
