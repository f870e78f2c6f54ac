# SPDX-License-Identifier: BSD-3-Clause
"""The forms of a collective: blocking, non-blocking and persistent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mpimcast import Intracomm


def run_at_once(comm: Intracomm, name: str, *arguments: Any) -> None:
    """Make a blocking call."""
    getattr(comm, name)(*arguments)


def run_by_request(comm: Intracomm, name: str, *arguments: Any) -> None:
    """Make the non-blocking call, and wait for its request."""
    getattr(comm, f"I{name.lower()}")(*arguments).Wait()


def run_persistent(comm: Intracomm, name: str, *arguments: Any) -> None:
    """Make a persistent request, and run it."""
    request = getattr(comm, f"{name}_init")(*arguments)
    request.Start()
    request.Wait()
    request.Free()


# By the name of a form: what runs a collective to its end.
FORMS: dict[str, Callable[..., None]] = {
    "blocking": run_at_once,
    "request": run_by_request,
    "persistent": run_persistent,
}
