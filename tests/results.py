# SPDX-License-Identifier: BSD-3-Clause
"""Read the results that the ranks of a gather.py job leave in the job's folder."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

# By rank, the content of its file.
Results = dict[int, dict[str, Any]]


def read(
    folder: Path, ranks: Iterable[int], *, failing: bool = False, why: str = ""
) -> Results:
    """Return the results of some ranks.

    The test fails if one of them has left no result or received a wrong byte, or if an
    operation failed there.

    Parameters
    ----------
    folder
        The job's folder, with a file of JSON for each rank.
    ranks
        The ranks that leave a result.
    failing
        Whether operations may fail.
    why
        What to show if a rank has left no result.
    """
    results: Results = {}
    for rank in ranks:
        path = folder / f"{rank}.json"
        assert path.exists(), f"rank {rank} wrote no result: {why}"
        result = results[rank] = json.loads(path.read_text())
        assert not result["wrong"], f"rank {rank}: {result['wrong']}"
        errors = result.get("errors")
        assert failing or not errors, f"rank {rank}: {errors}"
    return results


def total(results: Results, counter: str) -> int:
    """Return the sum of a counter over the ranks."""
    return sum(result["stats"][counter] for result in results.values())
