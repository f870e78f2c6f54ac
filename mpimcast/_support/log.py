# SPDX-License-Identifier: BSD-3-Clause
"""Log lines: ``host:pid:tid [rank] MPIMCAST WARN text`` on standard error."""

from __future__ import annotations

import logging
import os
import socket
import threading

logger = logging.getLogger("mpimcast")

_LEVELS = {
    "error": logging.ERROR,
    "warn": logging.WARNING,
    "info": logging.INFO,
    "debug": logging.DEBUG,
}
_NAMES = {level: name.upper() for name, level in _LEVELS.items()}


class _Formatter(logging.Formatter):
    """Formats a record as one line, with the id of the thread that logs it."""

    def __init__(self, rank: int) -> None:
        super().__init__()
        self._rank = rank

    def format(self, record: logging.LogRecord) -> str:
        where = f"{socket.gethostname()}:{os.getpid()}:{threading.get_native_id()}"
        level = _NAMES.get(record.levelno, record.levelname)
        return f"{where} [{self._rank}] MPIMCAST {level} {record.getMessage()}"


def setup(level: str, rank: int) -> None:
    """Set the level, and add a handler unless the program has added its own.

    Parameters
    ----------
    level
        The value of the setting LOG.
    rank
        This process's rank in ``COMM_WORLD``.
    """
    logger.setLevel(_LEVELS[level])
    if not logger.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(_Formatter(rank))
        logger.addHandler(handler)
        logger.propagate = False
