# SPDX-License-Identifier: BSD-3-Clause
"""The file in which rank 0 keeps, for later jobs, which way was better for what."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpi4py import MPI

from mpimcast import __version__
from mpimcast._support.log import logger

if TYPE_CHECKING:
    from collections.abc import Mapping

    Learnt = Mapping[str, Mapping[str, str]]


def versions() -> str:
    """Return what the choice depends on besides the network, in one line."""
    library = MPI.Get_library_version().splitlines()[0].split(",")[0].strip()
    return f"mpimcast {__version__}, {library}"


def read(file: str, key: str) -> dict[str, dict[str, str]]:
    """Return what the file has under a key; nothing if it is not there or not readable.

    Values that no version of mpimcast has written are dropped.
    """
    try:
        found = json.loads(Path(file).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        logger.warning("CHOICE=%s cannot be read, and is not used: %s", file, error)
        return {}
    known = found.get(key, {}) if isinstance(found, dict) else {}
    if not isinstance(known, dict):
        return {}
    return {
        str(name): {nbits: way for nbits, way in ways.items() if _is_valid(nbits, way)}
        for name, ways in known.items()
        if isinstance(ways, dict)
    }


def _is_valid(nbits: Any, way: Any) -> bool:
    return way in ("ours", "mpi") and str(nbits).isdigit() and int(nbits) <= 64  # noqa: PLR2004 -- bits of a size


def write(file: str, key: str, learnt: Learnt) -> None:
    """Put what was learnt under a key, beside what is there under others.

    Another job that reads the file at the same time sees the old or the new content.
    """
    path = Path(file)
    try:
        old = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        old = {}
    content = {**(old if isinstance(old, dict) else {}), key: learnt}
    try:
        with tempfile.NamedTemporaryFile(
            "w", dir=path.parent, delete=False, encoding="utf-8"
        ) as new:
            json.dump(content, new, indent=1, sort_keys=True)
        Path(new.name).replace(path)
    except OSError as error:
        logger.warning("CHOICE=%s cannot be written: %s", file, error)
