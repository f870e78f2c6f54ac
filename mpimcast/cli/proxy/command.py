# SPDX-License-Identifier: BSD-3-Clause
"""``python -m mpimcast proxy``: run the operations of this user's ranks on this node.

Ranks with ``MPIMCAST_PROGRESS=proxy`` use the proxy of their user and node, and the
first of them starts one if there is none. SIGTERM drains a proxy: it takes no more
ranks, so that another one may take its name at once, and ends when its last rank has
gone. A second SIGTERM, or SIGINT, ends it at once, and its ranks' operations fail.
"""

from __future__ import annotations

import math
import os
import sys
from typing import TYPE_CHECKING

from mpimcast._settings.config import Config
from mpimcast._settings.given import PREFIX
from mpimcast._support import log
from mpimcast._support.log import logger
from mpimcast.cli import arguments, commands
from mpimcast.cli.proxy import background, service, unit
from mpimcast.errors import ConfigError, TransportError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

_OK, _FAILED, _TAKEN = 0, 1, 3

_IDLE_S_MAX = 1e9

# The settings that concern a proxy itself. Its ranks tell it all others.
_OWN = ("PROXY", "LOG")


def main(argv: Sequence[str] | None = None) -> int:
    """Run a proxy, or print a unit for one; return the exit status."""
    parser = _parser()
    options = parser.parse_args(argv)
    environment = {PREFIX + name: os.environ.get(PREFIX + name, "") for name in _OWN}
    try:
        config = Config.read({"proxy": options.name}, environment)
    except ConfigError as error:
        parser.error(str(error))
    if options.unit:
        name = ["--name", config.proxy] if options.name else []
        idle = ["--idle", f"{options.idle:g}"] if options.idle else []
        print(unit.text([*name, *idle]), end="")
        return _OK
    # Whoever starts a proxy wants to know what becomes of it.
    log.setup(config.log if "log" in config.sources else "info", "proxy")
    tell = background.begin() if options.background else _tell_nobody
    return _run(config.proxy_name, options.idle or math.inf, tell)


def _run(name: str, idle_s: float, tell: Callable[[int], None]) -> int:
    """Run a proxy; return the exit status.

    Parameters
    ----------
    name, idle_s
        Its name, and after how long without ranks it ends.
    tell
        Called with a status of 0 once it listens, or else with the exit status.
    """
    from mpimcast._native.engine import unbind_thread
    from mpimcast._native.proxy import NameTakenError, Proxy

    service.block_signals()
    unbind_thread()  # a launcher may have bound the rank that has started this
    try:
        proxy = Proxy(name)
    except TransportError as error:
        print(f"mpimcast proxy: {error}", file=sys.stderr, flush=True)
        status = _TAKEN if isinstance(error, NameTakenError) else _FAILED
        tell(status)
        return status
    tell(_OK)
    logger.info("the proxy %s listens for ranks", name)
    try:
        service.run(proxy, idle_s)
    except TransportError as error:
        logger.error("%s", error)
        return _FAILED
    finally:
        proxy.close()
    logger.info("the proxy %s has ended", name)
    return _OK


def _tell_nobody(_status: int) -> None:
    """Have nobody wait for a proxy that runs in the foreground."""


def _parser() -> argparse.ArgumentParser:
    made = commands.parser("proxy", __doc__)
    made.add_argument(
        "--name",
        metavar="NAME",
        help="its name, which ranks give as MPIMCAST_PROXY (default: that variable, or "
        "else the number of the user)",
    )
    made.add_argument(
        "--idle",
        type=arguments.seconds(0, _IDLE_S_MAX, example="60"),
        default=0.0,
        metavar="SECONDS",
        help="end when there have been no ranks for so long; 0: never (default: 0)",
    )
    made.add_argument(
        "--background",
        action="store_true",
        help="return when it listens, and let it run on without a terminal",
    )
    made.add_argument(
        "--unit",
        action="store_true",
        help="only print a unit by which systemd's user manager runs it",
    )
    return made
