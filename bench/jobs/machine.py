# SPDX-License-Identifier: BSD-3-Clause
"""The machine on which measurements were made."""

from __future__ import annotations

import contextlib
import os
import platform
from pathlib import Path
from typing import Any


def machine() -> dict[str, Any]:
    """Return a description of the machine, without its name."""
    processor = platform.processor() or platform.machine()
    with contextlib.suppress(OSError), Path("/proc/cpuinfo").open() as lines:
        models = (line.partition(":")[2] for line in lines if "model name" in line)
        processor = next(models, processor).strip()
    return {
        "processor": processor,
        "cores": os.cpu_count(),
        "kernel": platform.release(),
    }
