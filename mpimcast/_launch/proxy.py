# SPDX-License-Identifier: BSD-3-Clause
"""Starts a proxy on this node for a rank that needs one, unless there is one."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from mpimcast._launch import place
from mpimcast.errors import TransportError

if TYPE_CHECKING:
    from collections.abc import Callable

# A proxy that ranks have started ends after so long without ranks, for the next job
# may well follow soon.
_IDLE_S = 60

# How the command ends: the proxy listens in the background, or another one does.
_LISTENS, _TAKEN = 0, 3


def ensure(name: str, exists: Callable[[], bool], limit_s: float) -> None:
    """Start the proxy of this name unless it exists; return once it does.

    Several ranks may call this at the same time. The proxies of all but one then find
    the name taken, and end. Their ranks look for the one that has it, and start another
    should it have ended by then.

    Parameters
    ----------
    name
        The proxy's name.
    exists
        Looks for the proxy.
    limit_s
        Seconds after which to give up.

    Raises
    ------
    TransportError
        If there is none by then.
    """
    until_s = time.monotonic() + limit_s
    while not exists():
        left_s = until_s - time.monotonic()
        if left_s <= 0:
            raise _failed(name, f"it does not listen after {limit_s:g} s")
        _start(name, left_s)


def _start(name: str, limit_s: float) -> None:
    """Start a proxy in the background, which belongs to no job.

    Return when it listens, when another one has the name, or after `limit_s`.
    """
    if not sys.executable:
        raise _failed(name, "this program does not know where Python is")
    options = ["--name", name, "--idle", str(_IDLE_S), "--background"]
    try:
        ended = subprocess.run(
            [sys.executable, "-m", "mpimcast", "proxy", *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env=place.without(os.environ),
            timeout=limit_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return
    except OSError as error:
        why = f"{sys.executable}: {error.strerror or error}"
    else:
        if ended.returncode in (_LISTENS, _TAKEN):
            return
        lines = ended.stderr.strip().splitlines()
        why = lines[-1] if lines else f"its exit status is {ended.returncode}"
    raise _failed(name, why)


def _failed(name: str, why: str) -> TransportError:
    return TransportError(
        f"cannot start the proxy {name}: {why}; try `python -m mpimcast proxy --name "
        f"{name}` there, or leave out PROGRESS=proxy"
    )
