# SPDX-License-Identifier: BSD-3-Clause
"""Run tests/mpi under mpirun, for several numbers of ranks in turn.

``python tests/run_mpi.py [--library mpich] [-n 1,2,3] [pytest's arguments]``, of which
``--shm`` runs them in shared memory.

This process never imports MPI, since a launcher must not be a rank. Each rank's output
goes to a file of its own below build/mpi/, and is shown when the run fails.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time

from support import BIN, BUILD, MPICH_BIN, choose_seed, mpirun, run_unchecked

SIZES = (1, 3)
SIZES_LONG = (2, 4, 5, 7)
# The tests that compare results with the MPI library's, and so run under both
# libraries.
COMPARED = tuple(
    f"tests/mpi/test_{name}.py"
    for name in ("buffers", "bcast", "allgatherv", "objects")
)
# The tests of ranks that have a proxy, or an adapter.
PROXIED = (
    "tests/mpi/test_proxy.py",
    "tests/mpi/test_proxy_end.py",
    "tests/mpi/test_partial_proxies.py",
)
# For each MPI library, the folder of its mpirun, and the options that send each rank's
# output to a file; {} stands for the folder of those files.
LIBRARIES = {
    "openmpi": (BIN, ("--output", "file={}/rank:nocopy")),
    "mpich": (
        MPICH_BIN,
        ("-outfile-pattern", "{}/rank.%r.out", "-errfile-pattern", "{}/rank.%r.err"),
    ),
}
TEST_LIMIT_S = 60
RUN_LIMIT_S = 300


def run_size(
    nranks: int,
    arguments: list[str],
    *,
    library: str = "openmpi",
    tests: tuple[str, ...] = ("tests/mpi",),
) -> tuple[int, str]:
    """Run tests on `nranks` ranks.

    Returns
    -------
    status : int
        0 if all tests passed on every rank.
    report : str
        If they passed, the last line that rank 0 printed, else the output of all ranks.
    """
    bin_folder, options = LIBRARIES[library]
    folder = BUILD / "mpi" / f"{library}-n{nranks}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    pytest_command = (
        *("-m", "pytest", "--with-mpi", "-p", "no:cacheprovider", "-q", "--color=no"),
        *(f"--timeout={TEST_LIMIT_S}", "--timeout-method=thread"),
        *(*tests, *arguments),
    )
    options = tuple(option.format(folder) for option in options)
    launcher = mpirun(nranks, *options, bin_folder=bin_folder)
    status, said = run_unchecked([*launcher, *pytest_command], limit_s=RUN_LIMIT_S)
    outputs = {
        path.name: path.read_text(errors="replace").strip()
        for path in sorted(folder.iterdir())
    }
    if status == 0:
        first = next(text for name, text in outputs.items() if name.endswith(".0.out"))
        return 0, first.splitlines()[-1]
    parts = (f"---- {name}\n{text}" for name, text in outputs.items() if text)
    return status, "\n".join((said.strip(), *parts))


def main() -> int:
    """Run the tests on each number of ranks, and print a line for each.

    Return the exit status, which is 1 if the tests failed on any number of ranks.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "-n", dest="sizes", default=",".join(map(str, SIZES)), help="numbers of ranks"
    )
    parser.add_argument("--library", choices=LIBRARIES, default="openmpi")
    options, arguments = parser.parse_known_args()
    print(f"MPIMCAST_TEST_SEED={choose_seed()}")
    failed = []
    for nranks in map(int, options.sizes.split(",")):
        begin_s = time.monotonic()
        status, report = run_size(nranks, arguments, library=options.library)
        took_s = time.monotonic() - begin_s
        print(f"n = {nranks}, {took_s:.1f} s: {report}", flush=True)
        if status != 0:
            failed.append(nranks)
    print(f"failed for n = {failed}" if failed else "all passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
