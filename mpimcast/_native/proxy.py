# SPDX-License-Identifier: BSD-3-Clause
"""A proxy, which runs the operations of other processes, and the search for one."""

from __future__ import annotations

from mpimcast._core import ffi, lib
from mpimcast._native import protection
from mpimcast._native.core import check, nanoseconds
from mpimcast._native.runner import Runner
from mpimcast.errors import TransportError

# The longest name, without the 0 that ends it in C.
NAME_BYTES_MAX = lib.MMC_PROXY_NAME_SIZE - 1


class NameTakenError(TransportError):
    """Another process is the proxy of that name."""


class Proxy:
    """A proxy that listens for ranks from now on.

    Parameters
    ----------
    name
        The name under which ranks find it.

    Raises
    ------
    NameTakenError
        If another process has the name.
    TransportError
        If it cannot listen.
    """

    def __init__(self, name: str) -> None:
        made = ffi.new("struct mmc_proxy **")
        status = lib.mmc_proxy_open(name.encode(), made)
        if status == -lib.MMC_EADDRINUSE:
            raise NameTakenError(f"another process is the proxy {name}")
        check(status, f"cannot open the proxy {name}")
        self._c = made[0]
        # Its ranks have chosen how they protect datagrams by what they have themselves.
        protection.missing()

    def run(self, idle_s: float) -> None:
        """Serve ranks until told to end, or until none was attached for `idle_s`.

        It is never idle for too long if `idle_s` is infinite. Other threads may call
        `drain` and `stop` meanwhile.
        """
        status = lib.mmc_proxy_run(self._c, nanoseconds(idle_s))
        check(status, "the proxy cannot serve ranks any more")

    def drain(self) -> None:
        """Take no more ranks, free the name, and end when the last rank has gone."""
        lib.mmc_proxy_drain(self._c)

    def stop(self) -> None:
        """End at once; the operations of ranks that are attached fail."""
        lib.mmc_proxy_stop(self._c)

    def close(self) -> None:
        """Free it. It must not run any more."""
        lib.mmc_proxy_close(self._c)


def find(name: str) -> Runner | None:
    """Return the proxy of that name on this node, or None if there is none.

    Raises
    ------
    TransportError
        If there is one that this process cannot use.
    """
    found = ffi.new("struct mmc_runner *")
    status = lib.mmc_proxy_find(name.encode(), found)
    if status == -lib.MMC_ENODEV:
        return None
    check(status, f"cannot use the proxy {name}")
    return Runner.of(found)
