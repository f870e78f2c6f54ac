# SPDX-License-Identifier: BSD-3-Clause
"""A rank is killed, and the survivors go on with a new communicator without it."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import BIN, MPICH_BIN, TIMED_OUT, mpirun, run_unchecked

LIMIT_S = 90
NRANKS = 5

CODE = """
import os, signal
import numpy as np
from mpi4py import MPI
import mpimcast

world = MPI.Intracomm(MPI.COMM_WORLD)
world.Set_errhandler(MPI.ERRORS_RETURN)
victim = 3
others = [rank for rank in range(world.size) if rank != victim]
group = world.Get_group().Incl(others)
comm = mpimcast.Intracomm(world.Dup(), transport="udp", min_bytes=0, timeout=2)
block = np.full(100_000, world.rank)

def gather(comm, ranks):
    place = np.zeros((len(ranks), block.size), int)
    comm.Allgather(block, place)
    assert (place == np.array(ranks)[:, None]).all()
    place.fill(-1)
    comm.Iallgather(block, place).Wait()
    assert (place == np.array(ranks)[:, None]).all()

gather(comm, range(world.size))
if world.rank == victim:
    os.kill(os.getpid(), signal.SIGKILL)
try:
    gather(comm, range(world.size))
except mpimcast.Error as error:
    assert error.ranks == (victim,), error
else:
    raise AssertionError("an operation succeeded without the killed rank")
survivors = {survivors}
last = MPI.Intracomm(survivors).Dup()
again = mpimcast.Intracomm(survivors, transport="udp", min_bytes=0, timeout=20)
gather(again, others)
assert again.explain(block.nbytes).path == "udp"
again.Free()
comm.Free()
open(f"{folder}/{{world.rank}}", "w").close()
# When a rank ends, MPICH's launcher may end as well, and all other ranks with it.
last.Barrier()
# MPI_Finalize, the only thing left to do, may wait for the killed rank for ever.
os._exit(0)
"""


# When a rank dies, MPICH's launcher ends all ranks that it started on the same host.
# So it starts each rank as if on a different host.
APART = (
    "-launcher",
    "fork",
    "-hosts",
    ",".join(f"127.0.0.{n + 1}:1" for n in range(NRANKS)),
)


@pytest.mark.parametrize(
    ("bin_folder", "options", "survivors"),
    [
        pytest.param(BIN, ("--with-ft", "ulfm"), "world.Shrink()", id="openmpi-shrink"),
        pytest.param(
            BIN,
            ("--enable-recovery",),
            "world.Create_group(group)",
            id="openmpi-create-group",
        ),
        pytest.param(
            MPICH_BIN,
            ("-disable-auto-cleanup", *APART),
            "world.Create_group(group)",
            id="mpich-create-group",
        ),
    ],
)
def test_survivors(
    bin_folder: Path, options: tuple[str, ...], survivors: str, tmp_path: Path
) -> None:
    """The survivors gather on a new communicator, and can free the one that failed.

    `survivors` is the code that makes the new communicator from the world.
    """
    code = CODE.format(survivors=survivors, folder=tmp_path)
    launcher = mpirun(NRANKS, *options, bin_folder=bin_folder)
    status, said = run_unchecked([*launcher, "-c", code], limit_s=LIMIT_S)
    assert status != TIMED_OUT, said
    ended = sorted(path.name for path in tmp_path.iterdir())
    assert ended == ["0", "1", "2", "4"], said
