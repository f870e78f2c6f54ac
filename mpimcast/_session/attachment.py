# SPDX-License-Identifier: BSD-3-Clause
"""What a rank does before a proxy can run its operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpimcast._launch import proxy

if TYPE_CHECKING:
    from mpimcast._settings.config import Config

# The share of TIMEOUT for which a rank waits for a proxy. The others wait for that rank
# meanwhile.
_SHARE = 0.8


def need_proxy(config: Config) -> None:
    """Start the proxy of this rank if it is to have one, and there is none.

    Raises
    ------
    TransportError
        If there is none in time, or if the one that there is cannot be used.
    """
    if not config.has_proxy:
        return
    from mpimcast._native.proxy import find

    name = config.proxy_name
    proxy.ensure(name, lambda: find(name) is not None, _SHARE * config.timeout)
