# SPDX-License-Identifier: BSD-3-Clause
"""mpi4py.futures and mpi4py.bench do with mpimcast what they do without."""

from __future__ import annotations

from pathlib import Path

import mpi4py
import pytest
from sdist import fetch
from sides import DEFAULTS, LIBRARIES, MULTICAST, Program, compare

RUNNER = ("-m", "mpi4py.futures")

POOL = """
from mpi4py.futures import MPIPoolExecutor
def square(number):
    return number * number
if __name__ == "__main__":
    with MPIPoolExecutor() as pool:
        print(sorted(pool.map(square, range(50))))
        print(pool.submit(sum, [1, 2, 3]).result())
"""

SHARED = """
from mpi4py import MPI
from mpi4py.futures import MPICommExecutor
comm = MPI.COMM_WORLD
for root in range(comm.size):
    with MPICommExecutor(comm, root=root) as pool:
        if pool is not None:
            print(root, list(pool.map(abs, range(-20, 0))))
    print(comm.allgather(comm.rank), comm.bcast("end", root=root))
"""


# The benchmarks, at their shortest.
HELLO = ("-m", "mpi4py.bench", "helloworld")
RING = ("-m", "mpi4py.bench", "ringtest", "-n", "1000", "-l", "3")
SHORT = ("-s", "1", "-l", "3", "--loop-large", "2", "--loop-huge", "1")
PINGPONG = ("-m", "mpi4py.bench", "pingpong", *SHORT)
POOLS = ("-m", "mpi4py.bench", "futures", *SHORT, "--num-tasks", "3")


@LIBRARIES
def test_quick(bin_folder: Path, tmp_path: Path) -> None:
    """Pools, and executors between collectives, print the same as without mpimcast."""
    (tmp_path / "pool.py").write_text(POOL)
    (tmp_path / "shared.py").write_text(SHARED)
    compare(Program((*RUNNER, "pool.py"), tmp_path), 3, bin_folder)
    compare(Program(("shared.py",), tmp_path), 3, bin_folder)


@pytest.mark.long
@pytest.mark.timeout(600)
@LIBRARIES
@pytest.mark.parametrize(
    ("command", "sizes"),
    [
        (HELLO, (2, 3, 4)),
        (RING, (2, 3, 4)),
        (PINGPONG, (2,)),
        (POOLS, (1,)),
        ((*RUNNER, *POOLS), (2, 3, 4)),
    ],
    ids=["helloworld", "ringtest", "pingpong", "futures", "shared futures"],
)
def test_bench(
    command: tuple[str, ...], sizes: tuple[int, ...], bin_folder: Path
) -> None:
    """A benchmark of mpi4py prints as many figures as without mpimcast."""
    program = Program(command, bin_folder, varying=command != HELLO)
    for nranks in sizes:
        compare(program, nranks, bin_folder, (MULTICAST, DEFAULTS))


@pytest.mark.long
@pytest.mark.timeout(1500)
@LIBRARIES
@pytest.mark.parametrize(
    ("command", "nranks"),
    [
        (("run_hello.py",), 1),
        (("run_cpi.py",), 1),
        ((*RUNNER, "run_hello.py"), 3),
        ((*RUNNER, "run_cpi.py"), 4),
        (("run_mandelbrot.py",), 3),
        (("test_futures.py", "-q"), 1),
        (("test_futures.py", "-q"), 2),
        ((*RUNNER, "test_futures.py", "-q"), 1),
        ((*RUNNER, "test_futures.py", "-q"), 3),
    ],
    ids=lambda value: str(value) if isinstance(value, int) else value[-1],
)
def test_futures(command: tuple[str, ...], nranks: int, bin_folder: Path) -> None:
    """Examples and tests of ``mpi4py.futures`` end as without mpimcast."""
    folder = fetch(f"mpi4py=={mpi4py.__version__}") / "demo/futures"
    varying = "hello" not in command[-1] and "cpi" not in command[-1]
    program = Program(command, folder, varying=varying, limit_s=400)
    compare(program, nranks, bin_folder)
