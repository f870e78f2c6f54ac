# SPDX-License-Identifier: BSD-3-Clause
"""Learns of what has ended on a device, without running Python in a driver's thread."""

from __future__ import annotations

import ctypes
import threading
from typing import TYPE_CHECKING

from mpimcast._small import bell, listen

if TYPE_CHECKING:
    from collections.abc import Callable


class _Listener:
    """A thread that calls functions once a driver has rung for them.

    Attributes
    ----------
    bell : int
        The address of C's function that rings, for a driver to call.
    """

    def __init__(self) -> None:
        self.bell = bell()
        self._lock = threading.Lock()
        self._awaited: dict[int, tuple[ctypes.c_uint32, Callable[[], None]]] = {}
        self._thread: threading.Thread | None = None

    def expect(self, function: Callable[[], None]) -> int:
        """Have a function called after a ring; return the argument to ring with."""
        ended = ctypes.c_uint32(0)
        address = ctypes.addressof(ended)
        with self._lock:
            self._awaited[address] = (ended, function)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="mpimcast listener", daemon=True
                )
                self._thread.start()
        return address

    def _run(self) -> None:
        nheard = 0
        while True:
            nheard = listen(nheard)
            with self._lock:
                rung = [at for at, (ended, _) in self._awaited.items() if ended.value]
                functions = [self._awaited.pop(at)[1] for at in rung]
            for function in functions:
                function()


listener = _Listener()
