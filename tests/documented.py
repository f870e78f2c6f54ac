# SPDX-License-Identifier: BSD-3-Clause
"""One rank that runs the examples in the docstrings of the public API."""

from __future__ import annotations

import doctest
import sys
from collections.abc import Iterator

import numpy as np
from mpi4py import MPI

import mpimcast
from mpimcast import sdr


def public() -> Iterator[tuple[str, object]]:
    """Yield the name and value of each public object and of Intracomm's public methods.

    Objects without a docstring of ours are left out: the version, and the methods that
    mpi4py defines.
    """
    for name in mpimcast.__all__:
        if name != "__version__":
            yield name, getattr(mpimcast, name)
    for base in mpimcast.Intracomm.__mro__:
        if base.__module__.startswith("mpimcast."):
            for name in vars(base):
                if not name.startswith("_"):
                    yield f"Intracomm.{name}", getattr(mpimcast.Intracomm, name)


def main() -> int:
    """Run all examples; return 1 if an object has none or an example's output differs.

    The result is the exit status.
    """
    finder = doctest.DocTestFinder(recurse=False, exclude_empty=False)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    missing = []
    messages = [(f"sdr.{name}", getattr(sdr, name)) for name in sdr.__all__]
    for name, value in [*public(), *messages]:
        # The examples use these names without defining them.
        given = {"np": np, "MPI": MPI, "mpimcast": mpimcast}
        given["comm"] = mpimcast.Intracomm(MPI.COMM_WORLD)
        (docstring,) = finder.find(value, name, extraglobs=given)
        if not docstring.examples:
            missing.append(name)
        runner.run(docstring)
    result = runner.summarize(verbose=False)
    print(f"{result.attempted} examples, {result.failed} failed")
    if missing:
        print(f"These have no example in their docstrings: {', '.join(missing)}")
    return 1 if result.failed or missing else 0


if __name__ == "__main__":
    sys.exit(main())
