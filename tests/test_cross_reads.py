# SPDX-License-Identifier: BSD-3-Clause
"""Two ranks of a node read large blocks from each other's memory, where they may."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import BIN, MPICH_BIN, TIMED_OUT, mpirun, run_unchecked

LIMIT_S = 60
LIBRARIES = pytest.mark.parametrize(
    "bin_folder", [BIN, MPICH_BIN], ids=["openmpi", "mpich"]
)

BEGIN = """
import ctypes, os, platform, signal, struct, sys
import numpy as np
from mpi4py import MPI
import mpimcast

world = MPI.Intracomm(MPI.COMM_WORLD)
world.Set_errhandler(MPI.ERRORS_RETURN)
settings = {"transport": "shm", "min_bytes": 0, "timeout": 5, "log": "error"}
settings["progress_thread"] = "off"
comm = mpimcast.Intracomm(world.Dup(), choice="always", **settings)
rank, nbytes = comm.rank, (4 << 20) + 1

def block_of(rank, salt):
    return np.random.default_rng((rank, salt)).integers(0, 256, nbytes, np.uint8)

def gather(salt):
    place = np.zeros((2, nbytes), np.uint8)
    comm.Allgather(block_of(rank, salt), place)
    assert all((place[each] == block_of(each, salt)).all() for each in range(2))

def refuse():
    # The kernel answers process_vm_readv() of any thread with EPERM from now on.
    machine = platform.machine()
    readv, seccomp = {"x86_64": (310, 317), "aarch64": (270, 277)}[machine]
    rules = [(0x20, 0, 0, 0), (0x15, 0, 1, readv)]
    rules += [(6, 0, 0, 0x50001), (6, 0, 0, 0x7FFF0000)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *r) for r in rules))
    program = struct.pack("HxxxxxxQ", len(rules), ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(38, 1, 0, 0, 0) == 0
    assert libc.syscall(seccomp, 1, 1, program) == 0, ctypes.get_errno()

def crossed():
    return comm.stats()["node_cross_bytes"]

def done():
    with open(f"{folder}/{rank}", "w"):
        pass
"""

REFUSED_AT_OPEN = """
if rank == 1:
    refuse()
for salt in range(3):
    gather(salt)
assert crossed() == 0
path = str(comm.explain(nbytes))
assert "no rank read the other's own memory" in path, path
assert "Operation not permitted on rank 1" in path, path
done()
"""

REFUSED_LATER = """
gather(0)
assert crossed() == nbytes, crossed()
assert "own memory" not in str(comm.explain(nbytes))
before = comm.stats()["node_rx_bytes"]
if rank == 1:
    refuse()
for salt in range(1, 4):
    gather(salt)
assert crossed() == (1 if rank == 1 else 4) * nbytes, crossed()
assert comm.stats()["node_rx_bytes"] - before == 3 * nbytes
done()
"""

# Rank 1 has told where its block lies, and does not live to read the other one.
KILLED = """
gather(0)
place = np.zeros((2, nbytes), np.uint8)
if rank == 1:
    request = comm.Iallgather(block_of(rank, 1), place)
    open(f"{folder}/started", "w").close()
    os.kill(os.getpid(), signal.SIGKILL)
while not os.path.exists(f"{folder}/started"):
    pass
try:
    comm.Allgather(block_of(rank, 1), place)
except mpimcast.Error as error:
    assert error.ranks == (1,), error
    done()
# MPI_Finalize may wait for the killed rank for ever.
os._exit(0)
"""


def job(
    code: str, folder: Path, bin_folder: Path, *options: str
) -> tuple[list[str], str]:
    """Run `BEGIN` and code on two ranks; return who came to the end, and the output."""
    launcher = mpirun(2, *options, bin_folder=bin_folder)
    text = f"folder = {str(folder)!r}\n{BEGIN}{code}"
    status, said = run_unchecked([*launcher, "-c", text], limit_s=LIMIT_S)
    assert status != TIMED_OUT, said
    return sorted(path.name for path in folder.iterdir()), said


@LIBRARIES
@pytest.mark.parametrize(
    "code", [REFUSED_AT_OPEN, REFUSED_LATER], ids=["at open", "later"]
)
def test_a_kernel_that_refuses(bin_folder: Path, code: str, tmp_path: Path) -> None:
    """A filter of system calls forbids one rank to read; yet all bytes arrive."""
    ended, said = job(code, tmp_path, bin_folder)
    assert ended == ["0", "1"], said


def test_a_killed_sender(tmp_path: Path) -> None:
    """A rank that dies in the middle of an operation is named."""
    ended, said = job(KILLED, tmp_path, BIN, "--enable-recovery")
    assert ended == ["0", "started"], said
