# SPDX-License-Identifier: BSD-3-Clause
"""No ring of a doorbell is lost on processors that delay stores: see doorbell.pml.

The model checker visits all courses that the model has. What it proves holds for the
handshake as the model has it, with a few entries, and no further:

- A store may be delayed past later loads of the same processor, and becomes visible to
  all others at once. That loads overtake loads, or that others see stores in different
  orders, is not modelled; acquire, release and sequential consistency forbid it in C.
- That an entry is read as it was written, and that the compiler and the processor do
  what C says of the atomic functions, is not proven either. `ring_test` runs them.
- The kernel's bell is taken to lose nothing.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from support import require_tool, run, run_unchecked

MODEL = Path(__file__).with_name("doorbell.pml")
NEEDED = ("PRODUCER_FENCE", "CONSUMER_FENCE", "LOOK")
NENTRIES = 4


def check(folder: Path, names: tuple[str, ...]) -> str:
    """Check the model with these names defined; return what the checker says."""
    spin, compiler = map(require_tool, ("spin", "gcc"))
    given = [f"-D{name}" for name in names]
    run([spin, *given, f"-DNENTRIES={NENTRIES}", "-a", MODEL], limit_s=60, cwd=folder)
    program = folder / "pan"
    run([compiler, "-O2", "-DSAFETY", folder / "pan.c", "-o", program], limit_s=60)
    status, said = run_unchecked([program, "-m100000"], limit_s=60, cwd=folder)
    assert status == 0, said
    assert "max search depth too small" not in said
    return said


def test_no_ring_is_lost(tmp_path: Path) -> None:
    """With both fences and the second look, the consumer never sleeps for ever."""
    said = check(tmp_path, NEEDED)
    assert "errors: 0" in said
    assert "invalid end states\t+" in said  # it has looked for them


@pytest.mark.parametrize("missing", NEEDED)
def test_each_part_is_needed(missing: str, tmp_path: Path) -> None:
    """Without one of the parts, the checker finds a ring that is lost."""
    said = check(tmp_path, tuple(name for name in NEEDED if name != missing))
    assert "invalid end state" in said.partition("Spin Version")[0], said
    assert "errors: 1" in said
