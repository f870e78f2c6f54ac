# SPDX-License-Identifier: BSD-3-Clause
"""An operation on more than 4 GiB in all, and more than 2 GiB from each rank."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import support

PROGRAM = Path(__file__).with_name("large.py")
NEEDED_KIB = 10 << 20  # 10 GiB: 4 GiB for each of two ranks, the rest for the system


@pytest.mark.long
@pytest.mark.timeout(200)
def test_over_4_gib() -> None:
    """Two ranks gather more than 4 GiB over loopback, and every byte is right."""
    found = re.search(r"MemAvailable: +(\d+)", Path("/proc/meminfo").read_text())
    available_kib = int(found[1]) if found else 0
    if available_kib < NEEDED_KIB:
        support.skip_or_fail(f"less than {NEEDED_KIB >> 20} GiB of memory are free")
    print(support.run([*support.mpirun(2), PROGRAM], limit_s=180))
