# SPDX-License-Identifier: BSD-3-Clause
"""A collective under way, as torch awaits it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Protocol

import torch
import torch.distributed as dist

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import timedelta


class Request(Protocol):
    """What a `Work` awaits: MPI's request, a call in another thread, or a `Work`."""

    def Wait(self) -> object:  # noqa: N802 -- mpi4py's name
        """Wait until it is complete; raise what made it fail."""

    def Test(self) -> bool:  # noqa: N802 -- mpi4py's name
        """Return at once whether it is complete; raise what made it fail."""


class Work(dist._Work):  # noqa: SLF001 -- torch's name for the base class
    """A collective of mpimcast that torch awaits, by ``wait`` or by a future.

    Any thread may wait. The first that learns of the end completes the collective for
    all of them; if it has failed, each of them raises the error.

    Parameters
    ----------
    requests
        What must be complete.
    results
        The tensors of the result, which the future will have as its value.
    finish
        Is called once, when the requests are complete: it brings what has arrived to
        where the caller wants it.
    """

    def __init__(
        self,
        requests: Sequence[Request],
        results: Sequence[torch.Tensor],
        finish: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__()
        self._requests = list(requests)
        self._results = list(results)
        self._finish: Callable[[], None] | None = finish
        # A callback of the future may wait for this work again.
        self._lock = threading.RLock()
        self._over = False
        self._error: Exception | None = None
        self._future: torch.futures.Future[Any] | None = None

    def wait(self, timeout: timedelta | None = None) -> bool:  # noqa: ARG002
        """Wait until the collective is complete.

        Parameters
        ----------
        timeout
            Without effect: mpimcast's settings limit how long an operation may take.

        Returns
        -------
        bool
            True.

        Raises
        ------
        mpimcast.Error
            If the collective has failed.
        """
        with self._lock:
            self._advance(waits=True)
        if self._error is not None:
            raise self._error
        return True

    def is_completed(self) -> bool:
        """Return at once whether the collective is complete, or has failed."""
        # Whoever holds the lock is waiting for the end, which has not come yet.
        if self._lock.acquire(blocking=False):
            try:
                self._advance(waits=False)
            finally:
                self._lock.release()
        return self._over

    # By these names of mpi4py's, a work can await others as it awaits requests.
    Wait, Test = wait, is_completed

    def is_success(self) -> bool:
        """Return at once whether the collective is complete and has not failed."""
        return self.is_completed() and self._error is None

    def exception(self) -> Exception | None:
        """Return why the collective has failed; None if it has not."""
        return self._error

    def result(self) -> list[torch.Tensor]:
        """Return the tensors of the result."""
        return self._results

    def synchronize(self) -> None:
        """Wait as `wait` does: tensors of the host have no streams."""
        self.wait()

    def get_future(self) -> torch.futures.Future[Any]:
        """Return a future, which has the tensors of the result as its value.

        A thread waits for the end, since a future's callbacks must run even if nobody
        else waits.
        """
        with self._lock:
            if self._future is None:
                self._future = torch.futures.Future()
                if self._over:
                    self._settle(self._future)
                else:
                    threading.Thread(
                        target=self._wait_quietly,
                        name="mpimcast future",
                        daemon=True,
                    ).start()
            return self._future

    # torch's C++ code calls `get_future`; its bindings have this name, too.
    def getFuture(self) -> torch.futures.Future[Any]:  # noqa: N802
        """Return what `get_future` returns."""
        return self.get_future()

    def _wait_quietly(self) -> None:
        """Wait; the future has the error, if there is one."""
        with self._lock:
            self._advance(waits=True)

    def _advance(self, *, waits: bool) -> None:
        """End the collective if all requests are over. The caller holds the lock."""
        if self._over:
            return
        try:
            while self._requests:
                if waits:
                    self._requests[-1].Wait()
                elif not self._requests[-1].Test():
                    return
                self._requests.pop()
            if self._finish is not None:
                self._finish()
        except Exception as error:  # noqa: BLE001 -- every waiter raises it
            self._error = error
        self._requests.clear()
        self._finish = None  # what it refers to is free from now on
        self._over = True
        if self._future is not None:
            self._settle(self._future)

    def _settle(self, future: torch.futures.Future[Any]) -> None:
        if self._error is None:
            future.set_result(self._results)
        else:
            future.set_exception(self._error)
