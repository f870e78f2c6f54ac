# SPDX-License-Identifier: BSD-3-Clause
"""The results that a job's ranks leave in its folder."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Results = dict[int, dict[str, Any]]


def read(
    folder: Path, ranks: Iterable[int], *, failing: bool = False, why: str = ""
) -> Results:
    """Return the results of ranks, with every byte right.

    Fails the test if a rank has left no result, or saw an error.

    Parameters
    ----------
    folder
        The job's folder, with a file of JSON for each rank.
    ranks
        The ranks that leave a result.
    failing
        Whether errors are allowed.
    why
        The reason to show if a rank has left none.
    """
    results: Results = {}
    for rank in ranks:
        path = folder / f"{rank}.json"
        assert path.exists(), f"rank {rank} did not come to its end: {why}"
        result = results[rank] = json.loads(path.read_text())
        assert not result["wrong"], f"rank {rank}: {result['wrong']}"
        errors = result.get("errors")
        assert failing or not errors, f"rank {rank}: {errors}"
    return results


def total(results: Results, counter: str) -> int:
    """Return the sum of a counter over the ranks."""
    return sum(result["stats"][counter] for result in results.values())
