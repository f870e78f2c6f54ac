# SPDX-License-Identifier: BSD-3-Clause
"""What a rank printed before it aborted its job is shown."""

from __future__ import annotations

from support import MPICH_BIN, mpirun, run_unchecked

ABORTING = """
import os, signal, subprocess, threading
from mpi4py import MPI
import mpimcast
comm = mpimcast.Intracomm(MPI.COMM_WORLD)
comm.Bcast(bytearray(8))
if comm.rank:
    threading.Event().wait()
launcher = os.getppid()
os.kill(launcher, signal.SIGSTOP)
subprocess.Popen(["/bin/sh", "-c", f"sleep 0.3; kill -CONT {launcher}"])
raise RuntimeError("the last word")
"""


def test_an_abort_under_mpich_shows_the_last_word() -> None:
    """MPICH's launcher kills the ranks and drops what it has not read from them.

    Its proxy is stopped until rank 0 would have aborted. What the proxy then does first
    is a matter of luck, so there are several goes.
    """
    command = [*mpirun(3, bin_folder=MPICH_BIN), "-m", "mpi4py", "-c", ABORTING]
    for _ in range(4):
        status, said = run_unchecked(command, limit_s=60)
        assert status != 0
        assert "RuntimeError: the last word" in said, said
