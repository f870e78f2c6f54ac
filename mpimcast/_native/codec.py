# SPDX-License-Identifier: BSD-3-Clause
"""What computes erasure codes here."""

from __future__ import annotations

from mpimcast._core import lib
from mpimcast._native.core import last_error


def missing() -> str:
    """Return why ISA-L cannot be used, so that our tables compute; "" if it can."""
    return "" if lib.mmc_code_library_open() == 0 else last_error()
