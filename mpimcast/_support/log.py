# SPDX-License-Identifier: BSD-3-Clause
"""Log lines: ``host:pid:tid [who] MPIMCAST WARN text`` on standard error."""

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

    def __init__(self, who: int | str) -> None:
        super().__init__()
        self._who = who

    def format(self, record: logging.LogRecord) -> str:
        where = f"{socket.gethostname()}:{os.getpid()}:{threading.get_native_id()}"
        level = _NAMES.get(record.levelno, record.levelname)
        return f"{where} [{self._who}] MPIMCAST {level} {record.getMessage()}"


def setup(level: str, who: int | str) -> None:
    """Set the level, and add a handler unless the program has added its own.

    Parameters
    ----------
    level
        The value of the setting LOG.
    who
        This process's rank in ``COMM_WORLD``, or what it is if it is no rank.
    """
    logger.setLevel(_LEVELS[level])
    if not logger.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(_Formatter(who))
        logger.addHandler(handler)
        logger.propagate = False
