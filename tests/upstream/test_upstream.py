# SPDX-License-Identifier: BSD-3-Clause
"""mpi4py's own tests: those that pass without mpimcast also pass under ``run``."""

from __future__ import annotations

import pytest
import sdist
import suite

# Slow files. Apart from the two in `PART`, they use none of this library's collectives,
# or only other forms of them; those two use the blocking and persistent collectives of
# buffers.
SLOW = (
    *("test_datatype", "test_io", "test_pack", "test_rma", "test_rma_nb", "test_spawn"),
    *("test_p2p_buf", "test_p2p_buf_matched", "test_p2p_buf_part", "test_util_dtlib"),
    *(f"test_cco_{kind}" for kind in ("buf", "vec", "nb_buf", "nb_vec", "pr_buf")),
    *(f"test_cco_{kind}" for kind in ("pr_vec", "ngh_buf", "pr_ngh_buf")),
)
PART = {("openmpi", 3): ["test_cco_buf"], ("mpich", 2): ["test_cco_pr_vec"]}
PART_LIMIT_S = 300
WHOLE_LIMIT_S = 1500


def files() -> list[str]:
    """Return the names of all test files."""
    return sorted(path.stem for path in suite.fetch().glob("test_*.py"))


def compare(library: str, nranks: int, chosen: list[str], limit_s: float) -> None:
    """Check that all tests that pass without mpimcast pass with it, on each rank."""
    without = suite.play(library, nranks, suite.WITHOUT, chosen, limit_s)
    assert without.ended, without.report
    assert all(without.passed), without.report
    ours = suite.play(library, nranks, suite.WITH, chosen, limit_s)
    missing = without.ended - ours.ended
    for theirs, mine in zip(without.passed, ours.passed, strict=True):
        missing |= theirs - mine
    if missing:
        names = "\n".join(sorted(missing))
        pytest.fail(f"{ours.report}\npass without us only:\n{names}", pytrace=False)


@pytest.mark.timeout(2 * PART_LIMIT_S + sdist.LIMIT_S)
@pytest.mark.parametrize(("library", "nranks"), PART)
def test_part(library: str, nranks: int) -> None:
    """Quick files, and one that takes some seconds, pass as without mpimcast."""
    quick = [each for each in files() if each not in SLOW]
    compare(library, nranks, quick + PART[library, nranks], PART_LIMIT_S)


@pytest.mark.long
@pytest.mark.timeout(4 * WHOLE_LIMIT_S)
@pytest.mark.parametrize("nranks", [1, 2, 3, 5])
@pytest.mark.parametrize("library", suite.LIBRARIES)
def test_whole(library: str, nranks: int) -> None:
    """All files pass as without mpimcast."""
    compare(library, nranks, files(), WHOLE_LIMIT_S)
