# SPDX-License-Identifier: BSD-3-Clause
"""Describes for people what computes erasure codes on this machine."""

from __future__ import annotations

from typing import Any

from mpimcast._native import codec

# What installs ISA-L.
INSTALL = "apt install libisal2, or another system's package of ISA-L"


def gather() -> dict[str, Any]:
    """Return what computes them, and why not ISA-L if that is missing; fit for JSON."""
    why = codec.missing()
    return {"codec": "tables" if why else "ISA-L", "reason": why or None}
