# SPDX-License-Identifier: BSD-3-Clause
"""``python -m mpimcast doctor``: what is wrong with which node, and what mends it."""

from mpimcast.doctor.command import main

__all__ = ["main"]
