# SPDX-License-Identifier: BSD-3-Clause
"""One rank that executes the examples of the public API."""

from __future__ import annotations

import doctest
import sys
from collections.abc import Iterator

import numpy as np
from mpi4py import MPI

import mpimcast


def public() -> Iterator[tuple[str, object]]:
    """Yield each public object that has a docstring of its own, with its name."""
    for name in mpimcast.__all__:
        if name != "__version__":
            yield name, getattr(mpimcast, name)
    for ours in mpimcast.Intracomm.__mro__:
        if ours.__module__.startswith("mpimcast."):
            for name in vars(ours):
                if not name.startswith("_"):
                    yield f"Intracomm.{name}", getattr(mpimcast.Intracomm, name)


def main() -> int:
    """Run all examples; return 1 if one is missing or its output differs."""
    finder = doctest.DocTestFinder(recurse=False, exclude_empty=False)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    missing = []
    for name, value in public():
        # The examples of methods assume these names.
        known = {"np": np, "MPI": MPI, "mpimcast": mpimcast}
        known["comm"] = mpimcast.Intracomm(MPI.COMM_WORLD)
        (found,) = finder.find(value, name, extraglobs=known)
        if not found.examples:
            missing.append(name)
        runner.run(found)
    result = runner.summarize(verbose=False)
    print(f"{result.attempted} examples, {result.failed} failed; none of {missing}")
    return 1 if result.failed or missing else 0


if __name__ == "__main__":
    sys.exit(main())
