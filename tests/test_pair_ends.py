# SPDX-License-Identifier: BSD-3-Clause
"""A rank of a pair is killed or stands still, or the program ends without closing."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import BIN, MPICH_BIN, TIMED_OUT, mpirun, run_unchecked

LIMIT_S = 60

# With these options other ranks go on when a rank is killed. MPICH ends all ranks of
# its host, so each is started as if on a different one.
RECOVERY = {
    BIN: ("--enable-recovery",),
    MPICH_BIN: (
        *("-disable-auto-cleanup", "-launcher", "fork"),
        *("-hosts", "127.0.0.1:1,127.0.0.2:1,127.0.0.3:1"),
    ),
}
LIBRARIES = pytest.mark.parametrize("bin_folder", RECOVERY, ids=["openmpi", "mpich"])

# Rank 2 sends to rank 0, and is killed amid its messages. Ranks 0 and 1 go on.
KILLED = """
import os, signal
import numpy as np
from mpi4py import MPI
import mpimcast
from mpimcast import sdr

world = MPI.Intracomm(MPI.COMM_WORLD)
world.Set_errhandler(MPI.ERRORS_RETURN)
settings = dict(transport="udp", timeout=2)
peers = [[1, 2], [0], [0]][world.rank]
pairs = sdr.connect_all(world, peers, **settings)
data = np.arange(1 << 20)
if world.rank == 2:
    pairs[0].Send(data)
    pairs[0].Isend(data)
    os.kill(os.getpid(), signal.SIGKILL)
place = np.zeros_like(data)
if world.rank == 0:
    pairs[2].Recv(place)
    assert (place == data).all()
    waiting = pairs[2].Irecv(np.zeros(5_000_000))
    try:
        waiting.Wait()
    except mpimcast.Error as error:
        assert error.ranks in ((2,), ()), error
        assert "2" in str(error), error
    else:
        raise AssertionError("a message came from a killed rank")
    try:
        pairs[2].Send(data)
    except mpimcast.Error as error:
        assert "unusable" in str(error) or error.ranks == (2,), error
    else:
        raise AssertionError("a killed rank has received a message")
    pairs[1].Send(data)
    pairs[2].close()
else:
    pairs[0].Recv(place)
    assert (place == data).all()
pairs[1 - world.rank].close()
open(f"{folder}/{{world.rank}}", "w").close()
# MPI_Finalize, the only thing left to do, may wait for the killed rank for ever.
os._exit(0)
"""

# Nobody closes the pair, whose last messages are still under way at the end.
LEFT_OPEN = """
import numpy as np
from mpi4py import MPI
from mpimcast import sdr

world = MPI.Intracomm(MPI.COMM_WORLD)
pair = sdr.connect(world, 1 - world.rank, transport="udp", fault="loss=0.02")
data, place = np.arange(1 << 18), np.zeros(1 << 18, int)
requests = [pair.Isend(data), pair.Irecv(place)]
if world.rank == 0:
    MPI.Request.Waitall(requests)
    assert (place == data).all()
open(f"{folder}/{{world.rank}}", "w").close()
"""

# Rank 1 fails in the middle; rank 0 must learn that, and not wait for ever.
FAILING = """
import sys
import numpy as np
from mpi4py import MPI
import mpimcast
from mpimcast import sdr

world = MPI.Intracomm(MPI.COMM_WORLD)
pair = sdr.connect(world, 1 - world.rank, transport="udp")
if world.rank == 1:
    sys.exit(3)
try:
    pair.Recv(np.zeros(1000))
except mpimcast.RankLeft as error:
    assert error.ranks == (1,), error
    open(f"{folder}/0", "w").close()
"""


def finished(
    folder: Path, code: str, nranks: int, *options: str, bin_folder: Path
) -> tuple[set[str], str]:
    """Run a program; return the ranks that have come to its end, and its output."""
    program = folder / "program.py"
    program.write_text(code.format(folder=folder))
    launcher = mpirun(nranks, *options, bin_folder=bin_folder)
    status, output = run_unchecked([*launcher, program], limit_s=LIMIT_S, cwd=folder)
    assert status != TIMED_OUT, output
    return {path.name for path in folder.iterdir()} - {"program.py"}, output


@LIBRARIES
@pytest.mark.timeout(LIMIT_S + 30)
def test_a_killed_rank(bin_folder: Path, tmp_path: Path) -> None:
    """Its peer gets an error that names it, and other pairs of the peer go on."""
    options = RECOVERY[bin_folder]
    ranks, output = finished(tmp_path, KILLED, 3, *options, bin_folder=bin_folder)
    assert {"0", "1"} <= ranks, output


@LIBRARIES
@pytest.mark.timeout(LIMIT_S + 30)
def test_a_pair_left_open(bin_folder: Path, tmp_path: Path) -> None:
    """At the program's end what is under way is finished, and the pair closed."""
    ranks, output = finished(tmp_path, LEFT_OPEN, 2, bin_folder=bin_folder)
    assert ranks == {"0", "1"}, output


@LIBRARIES
@pytest.mark.timeout(LIMIT_S + 30)
def test_a_rank_that_exits(bin_folder: Path, tmp_path: Path) -> None:
    """Its peer, which waits for a message, learns that it has left."""
    ranks, output = finished(tmp_path, FAILING, 2, bin_folder=bin_folder)
    assert ranks == {"0"}, output
