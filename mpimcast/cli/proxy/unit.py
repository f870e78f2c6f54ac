# SPDX-License-Identifier: BSD-3-Clause
"""The unit by which systemd's user manager runs a proxy."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_FILE = Path(__file__).with_name("mpimcast-proxy.service")

# What stands in the file for the command.
_COMMAND = "@COMMAND@"


def text(arguments: Sequence[str]) -> str:
    """Return the unit of a proxy that this Python runs with these arguments."""
    words = [sys.executable, "-m", "mpimcast", "proxy", *arguments]
    unit = _FILE.read_text(encoding="ascii")
    return unit.replace(_COMMAND, " ".join(map(_quoted, words)))


def _quoted(word: str) -> str:
    """Return a word as units write it, where blanks, quotes, % and $ have a meaning."""
    plain = word.replace("\\", "\\\\").replace('"', '\\"')
    plain = plain.replace("%", "%%").replace("$", "$$")
    return plain if re.fullmatch(r"[\w./+=:@-]+", plain) else f'"{plain}"'
