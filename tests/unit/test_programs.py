# SPDX-License-Identifier: BSD-3-Clause
"""Whole programs of several ranks: how they begin, how they use MPI, how they end."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from support import BIN, MPICH_BIN, mpirun, require_tool, run, run_unchecked

SETTINGS = {"MPIMCAST_TRANSPORT": "udp", "MPIMCAST_MIN_BYTES": "0"}
LIMIT_S = 60

# Defines gather(), an Allgather whose result is checked.
GATHER = """
import numpy as np
def gather(comm, count=3000):
    place = np.zeros((comm.size, count))
    comm.Allgather(np.full(count, comm.rank + 1.0), place)
    assert (place == np.arange(1, comm.size + 1)[:, None]).all()
"""


def script(tmp_path: Path, code: str) -> Path:
    """Write a program that defines gather(), and return its path."""
    path = tmp_path / "a script.py"
    path.write_text(GATHER + textwrap.dedent(code))
    return path


def test_run_a_script(tmp_path: Path) -> None:
    """Under ``run``, COMM_WORLD and communicators derived from it multicast.

    In every other way a script runs as under Python: it has its arguments, its name is
    ``__main__``, and it can import the modules beside it.
    """
    path = script(
        tmp_path,
        """
        import sys
        from mpi4py import MPI
        from mpi4py.MPI import COMM_WORLD
        assert __name__ == "__main__"
        assert sys.argv[1:] == ["one", "--two"], sys.argv
        import module_beside
        assert COMM_WORLD is MPI.COMM_WORLD
        gather(COMM_WORLD)
        for comm in (COMM_WORLD.Dup(), COMM_WORLD.Split(COMM_WORLD.rank > 0)):
            gather(comm)
            assert comm.size == 1 or comm.stats()["epochs"] == 1
        assert MPI.COMM_WORLD.stats()["epochs"] == 1
        MPI.COMM_WORLD.Barrier()
        print("done", flush=True)
        """,
    )
    (tmp_path / "module_beside.py").write_text("")
    command = [*mpirun(3), "-m", "mpimcast", "run", path, "one", "--two"]
    assert run(command, limit_s=LIMIT_S, **SETTINGS).count("done") == 3


def test_run_merges_with_self(tmp_path: Path) -> None:
    """A merged communicator is mpimcast's on all ranks, though one brings COMM_SELF."""
    path = script(
        tmp_path,
        """
        from mpi4py import MPI
        world = MPI.COMM_WORLD
        others = world.Split(world.rank > 0)
        mine = others if world.rank else MPI.COMM_SELF
        between = mine.Create_intercomm(0, world, 0 if world.rank else 1)
        whole = between.Merge(world.rank > 0)
        gather(whole)
        assert whole.stats()["epochs"] == 1
        print("done", flush=True)
        """,
    )
    command = [*mpirun(3), "-m", "mpimcast", "run", path]
    assert run(command, limit_s=LIMIT_S, **SETTINGS).count("done") == 3


def test_run_a_module_or_code(tmp_path: Path) -> None:
    """``run -m`` runs a module of the search path, and ``run -c`` a string of code."""
    (tmp_path / "program.py").write_text(
        GATHER + "from mpi4py import MPI; gather(MPI.COMM_WORLD); print('done')"
    )
    command = [*mpirun(2), "-m", "mpimcast", "run", "-m", "program"]
    said = run(command, limit_s=LIMIT_S, PYTHONPATH=str(tmp_path), **SETTINGS)
    assert said.count("done") == 2
    code = "import program, sys; assert sys.argv[1:] == ['x']"
    command = [*mpirun(2), "-m", "mpimcast", "run", "-c", code, "x"]
    said = run(command, limit_s=LIMIT_S, PYTHONPATH=str(tmp_path), **SETTINGS)
    assert said.count("done") == 2


def test_run_a_script_by_relative_path(tmp_path: Path) -> None:
    """``__file__`` is absolute even if the given path is not, as in Python itself."""
    path = script(tmp_path, "print(__file__)")
    command = [sys.executable, "-m", "mpimcast", "run", path.name]
    assert run(command, limit_s=LIMIT_S, cwd=tmp_path).strip() == str(path)


@pytest.mark.parametrize("bin_folder", [BIN, MPICH_BIN], ids=["openmpi", "mpich"])
def test_run_leaves_initialisation_to_the_program(
    tmp_path: Path, bin_folder: Path
) -> None:
    """A program under ``run`` may set ``mpi4py.rc`` and call MPI.Init_thread itself.

    From then on COMM_WORLD is mpimcast's.
    """
    require_tool(str(bin_folder / "mpirun"))
    path = script(
        tmp_path,
        """
        import sys
        import mpi4py
        assert "mpi4py.MPI" not in sys.modules
        mpi4py.rc(initialize=False, recv_mprobe=False)
        from mpi4py import MPI
        assert not MPI.Is_initialized()
        assert MPI.Init_thread(MPI.THREAD_SERIALIZED) == MPI.Query_thread()
        gather(MPI.COMM_WORLD)
        assert MPI.COMM_WORLD.stats()["epochs"] == 1
        print("done", flush=True)
        MPI.Finalize()
        """,
    )
    launcher = mpirun(2, bin_folder=bin_folder)
    said = run([*launcher, "-m", "mpimcast", "run", path], limit_s=LIMIT_S, **SETTINGS)
    assert said.count("done") == 2


def test_run_without_mpi() -> None:
    """``run`` does not import mpi4py.MPI for a program that does not."""
    code = "import mpi4py, sys; print('mpi4py.MPI' in sys.modules)"
    said = run([sys.executable, "-m", "mpimcast", "run", "-c", code], limit_s=LIMIT_S)
    assert said.split() == ["False"]


def test_run_with_a_bad_setting_on_one_rank(tmp_path: Path) -> None:
    """A bad setting on one rank ends the job, even while the other waits in MPI."""
    path = script(
        tmp_path,
        """
        import os
        if os.environ.get("OMPI_COMM_WORLD_RANK") == "1":
            os.environ["MPIMCAST_TRANSPORT"] = "pigeons"
        from mpi4py import MPI
        MPI.COMM_WORLD.Barrier()
        """,
    )
    status, said = run_unchecked(
        [*mpirun(2), "-m", "mpimcast", "run", path], limit_s=20
    )
    assert status == 1, said
    assert "MPIMCAST_TRANSPORT=pigeons" in said


@pytest.mark.parametrize(
    "ending", ["raise ValueError('on purpose')", "sys.exit(3)", "sys.exit('bad')"]
)
@pytest.mark.parametrize("runner", [("mpimcast", "run"), ("mpi4py",)])
def test_an_exception_aborts(
    tmp_path: Path, ending: str, runner: tuple[str, ...]
) -> None:
    """An exception or sys.exit on one rank ends the job with that rank's status.

    The other ranks wait for that rank, and its atexit handlers are slow.
    """
    path = script(
        tmp_path,
        f"""
        import atexit
        import sys
        import time
        from mpi4py import MPI
        if MPI.COMM_WORLD.rank == 1:
            # Registered before mpimcast's handler, and so run after it.
            atexit.register(time.sleep, 0.5)
        import mpimcast
        comm = mpimcast.Intracomm(MPI.COMM_WORLD)
        gather(comm)
        if comm.rank == 1:
            {ending}
        gather(comm)
        """,
    )
    status, said = run_unchecked(
        [*mpirun(3), "-m", *runner, path], limit_s=20, **SETTINGS
    )
    assert status == (3 if "3" in ending else 1), said
    assert "3" in ending or "on purpose" in said or "bad" in said


def test_an_exception_without_a_runner(tmp_path: Path) -> None:
    """Without ``run``, an exception ends only its rank, and the others name that rank.

    Their operations fail with RankLeft.
    """
    path = script(
        tmp_path,
        """
        import sys
        from pathlib import Path
        from mpi4py import MPI
        import mpimcast
        comm = mpimcast.Intracomm(MPI.COMM_WORLD, timeout=20)
        gather(comm)
        comm.Barrier()  # a failure also ends an earlier operation that lacks data
        if comm.rank == 1:
            raise ValueError("on purpose")
        try:
            gather(comm)
        except mpimcast.RankLeft as error:
            # A launcher that ends a failed job loses what it has not yet forwarded.
            Path(sys.argv[1], str(comm.rank)).write_text(str(error.ranks))
        """,
    )
    told = tmp_path / "told"
    told.mkdir()
    status, said = run_unchecked([*mpirun(3), path, told], limit_s=30, **SETTINGS)
    assert status != 0
    assert "on purpose" in said
    assert {each.name: each.read_text() for each in told.iterdir()} == {
        "0": "(1,)",
        "2": "(1,)",
    }


# By name, the last lines of a program.
ENDINGS = {
    "by itself": "",
    "by Finalize": "MPI.Finalize()",
    "by Free": "comm.Free()",
    "by exit": "import sys; sys.exit(0)",
    "by Finalize and exit": "MPI.Finalize(); import sys; sys.exit()",
    "late": "import threading; threading.Event().wait(comm.rank / 2)",
}


@pytest.mark.parametrize("name", ENDINGS)
def test_the_end(tmp_path: Path, name: str) -> None:
    """A program may end in any way with communicators open, and has no error.

    To the end, 20 % of all datagrams are lost, so that ranks still need each other.
    """
    path = script(
        tmp_path,
        f"""
        from mpi4py import MPI
        import mpimcast
        lossy = "loss=0.2,kind=all,seed=1"
        comm = mpimcast.Intracomm(MPI.COMM_WORLD.Dup(), fault=lossy)
        others = [comm.Dup(), comm.Split(0, -comm.rank), comm.Dup()]
        for each in others:
            gather(each)
        gather(comm)
        others[0].Free()
        print("done", flush=True)
        {ENDINGS[name]}
        """,
    )
    said = run([*mpirun(3), path], limit_s=LIMIT_S, **SETTINGS)
    assert said.count("done") == 3
    assert "rror" not in said


@pytest.mark.parametrize("btl", ["self,tcp", ""])
def test_mpi_progress_during_an_operation(tmp_path: Path, btl: str) -> None:
    """While a rank waits in an Allgather, its MPI library completes an Isend.

    The receiving rank enters the Allgather only when it has received everything. `btl`
    is Open MPI's transport, or empty for the default.
    """
    path = script(
        tmp_path,
        """
        from mpi4py import MPI
        import mpimcast
        comm = mpimcast.Intracomm(MPI.COMM_WORLD)
        big = np.full(8 << 20, comm.rank, np.uint8)
        for _ in range(3):
            if comm.rank == 0:
                request = comm.Isend(big, 1)
                gather(comm)
                request.Wait()
            else:
                if comm.rank == 1:
                    comm.Recv(np.empty_like(big), 0)
                gather(comm)
        print("done", flush=True)
        """,
    )
    env = {"OMPI_MCA_btl": btl} if btl else {}
    said = run([*mpirun(3), path], limit_s=LIMIT_S, **SETTINGS, **env)
    assert said.count("done") == 3


def test_a_forked_child(tmp_path: Path) -> None:
    """A forked child may not start operations; after its end its parent's go on."""
    path = script(
        tmp_path,
        """
        import os, sys
        from mpi4py import MPI
        import mpimcast
        comm = mpimcast.Intracomm(MPI.COMM_WORLD)
        gather(comm)
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            try:
                gather(comm)
            except mpimcast.Error as error:
                print("child:", error, flush=True)
            # Runs Python's atexit handlers, as the end of a program does, but not
            # mpi4py's own, which would finalise MPI here.
            import atexit
            atexit._run_exitfuncs()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        gather(comm)
        print("done", flush=True)
        """,
    )
    said = run([*mpirun(2), path], limit_s=LIMIT_S, **SETTINGS)
    assert said.count("done") == 2
    assert said.count("child: ") == 2
    assert "fork" in said


def test_missing_c_library(tmp_path: Path) -> None:
    """If one rank lacks the C library, all ranks use the MPI library and say why."""
    path = script(
        tmp_path,
        """
        import sys
        from mpi4py import MPI
        if MPI.COMM_WORLD.rank == 1:
            sys.modules["mpimcast._core"] = None
        import mpimcast
        comm = mpimcast.Intracomm(MPI.COMM_WORLD, transport="auto")
        gather(comm)
        print(comm.explain(1), flush=True)
        """,
    )
    said = run([*mpirun(3), path], limit_s=LIMIT_S, **SETTINGS)
    assert said.count("mpi: multicast cannot be opened: rank 1: mpimcast's C") == 3


def test_demo_of_a_file(tmp_path: Path) -> None:
    """The demo takes a file of weights, and writes its results to a file."""
    weights = tmp_path / "weights.npz"
    np.savez(weights, **{"h.0.a": np.arange(1001), "h.1.a": np.ones((7, 3))})
    result = tmp_path / "result.json"
    demo = ["-m", "mpimcast", "demo", weights, "--json", result]
    said = run([*mpirun(3), *demo], limit_s=LIMIT_S)
    assert "every byte is equal" in said
    assert '"different_bytes": 0' in result.read_text()
    assert "\x1b" not in said


def test_a_misspelt_variable(tmp_path: Path) -> None:
    """A misspelt variable is logged once, by rank 0, not once for each communicator."""
    path = script(
        tmp_path,
        """
        from mpi4py import MPI
        import mpimcast
        for _ in range(2):
            comm = mpimcast.Intracomm(MPI.COMM_WORLD.Dup())
            gather(comm)
            comm.Split(comm.rank % 2).Free()
            comm.Free()
        """,
    )
    said = run(
        [*mpirun(3), path], limit_s=LIMIT_S, MPIMCAST_TRANSPROT="mpi", **SETTINGS
    )
    (line,) = said.splitlines()
    assert "[0] MPIMCAST WARN MPIMCAST_TRANSPROT=mpi is ignored" in line
    assert line.endswith("did you mean MPIMCAST_TRANSPORT?")
