# SPDX-License-Identifier: BSD-3-Clause
"""How many instructions the engine runs for a chunk on a processor without a system."""

from __future__ import annotations

import re

import image
import pytest

# The indices of `ways` in counts.c.
WRITES, PREDICTED, BY_DMA, COPIED = range(4)
KEPT = 64  # as many events as the engine takes in at once

# The most instructions a chunk, in whole operations: what was measured, rounded up.
# A round with each chunk stands for a slow network, where nothing follows at once.
BUDGETS = {
    "writes, alone": (WRITES, 1, KEPT, 106),
    "writes, runs of 16": (WRITES, 16, KEPT, 46),
    "writes, a round with each": (WRITES, 1, 0, 1297),
    "predicted, alone": (PREDICTED, 1, KEPT, 138),
    "predicted, runs of 16": (PREDICTED, 16, KEPT, 97),
    "by DMA, alone": (BY_DMA, 1, KEPT, 132),
    "by DMA, runs of 16": (BY_DMA, 16, KEPT, 93),
    "by DMA, a round with each": (BY_DMA, 1, 0, 1523),
    "copied, alone": (COPIED, 1, KEPT, 1406),
    "copied, runs of 16": (COPIED, 16, KEPT, 1371),
}
# The most bytes of the adapter's program: instructions, and constants besides.
TEXT_BYTES_MAX = 64 * 1024
CONSTANTS_BYTES_MAX = 5 * 1024


@pytest.mark.parametrize("case", BUDGETS)
def test_instructions(case: str) -> None:
    """No case takes more instructions a chunk than it did, and each places as it says.

    The counts are exact, and the same at every run of one compiler's output.
    """
    way, found, kept, budget = BUDGETS[case]
    printed = image.execute("counts", way, found, kept, limit_s=60, counted=True)
    numbers = list(map(int, re.findall("[0-9]+", printed)))
    each, in_all, placed, lost = numbers
    assert (placed, lost) == (2048 if way in {WRITES, PREDICTED} else 0, 0)
    assert -(-in_all // 1024) == each
    assert each <= budget, printed


def test_text() -> None:
    """The adapter's program fits in a SmartNIC's memory: server, engine and driver."""
    sections = image.section_bytes("runner")
    assert sections[".text"] <= TEXT_BYTES_MAX
    assert sections[".rodata"] <= CONSTANTS_BYTES_MAX
