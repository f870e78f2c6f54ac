# SPDX-License-Identifier: BSD-3-Clause
"""mpi4py's own demonstrations do with mpimcast what they do without."""

from __future__ import annotations

import shutil
import sysconfig
from pathlib import Path

import mpi4py
import pytest
from sdist import fetch
from sides import DEFAULTS, LIBRARIES, MULTICAST, Program, compare
from support import MPICH_BIN, require_tool, run

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

REQUIREMENT = f"mpi4py=={mpi4py.__version__}"

INTERVALS = "100\n0\n"  # input of the programs that compute pi; 0 ends them

# For each folder, its programs and the numbers of ranks that they are made for.
PROGRAMS = {
    ".": {"helloworld.py": (2, 3, 4)},
    "compute-pi": {
        "cpi-cco.py": (2, 3, 4),
        "cpi-rma.py": (2, 3),
        "cpi-dpm.py 2": (1,),
    },
    "init-fini": {
        "test_0.py threads=true": (2,),
        "test_0.py threads=false": (2,),
        "test_0.py thread_level=single": (2,),
        "test_0.py thread_level=funneled": (2,),
        "test_0.py thread_level=serialized": (2,),
        "test_0.py fast_reduce=false": (2,),
        "test_0.py recv_mprobe=false": (2,),
        "test_0.py irecv_bufsz=0": (2,),
        "test_0.py errors=default": (2,),
        "test_0.py errors=abort": (2,),
        "test_0.py errors=fatal": (2,),
        "test_1.py": (3,),
        "test_2.py": (2,),
        "test_3.py": (2,),
        "test_4.py": (2, 3, 4),
        "test_5.py": (2,),
        "test_6.py": (2,),
        "test_mpi40.py": (2,),
    },
    "mandelbrot": {"mandelbrot.py": (3,)},
    "mpi-ref-v1": {
        **{f"ex-2.{number}.py": (2,) for number in ("01", "08", "16", "29")},
        **{f"ex-2.{number}.py": (2,) for number in (32, 34, 35)},
        **{f"ex-3.{number:02}.py": (2,) for number in (*range(1, 10), 11, 12, 13)},
    },
    "nxtval": {
        "nxtval-dynproc.py": (3,),
        "nxtval-mpi3.py": (2, 3, 4),
        "nxtval-onesided.py": (2, 3, 4),
        "nxtval-scalable.py": (2, 3, 4),
        "nxtval-threads.py": (2, 3, 4),
    },
    "profiling": {"cpi.py": (3,), "ring.py": (2, 3, 4), "threads.py": (2,)},
    "reductions": {"test_reductions.py": (2, 3, 4)},
    "sequential": {"test_seq.py": (2, 3, 4)},
    "threads": {"sendrecv.py": (2,)},
}

# Programs that print times, or sums of floating-point numbers in varying order.
VARYING = (
    "cpi-dpm.py 2",
    "cpi-rma.py",
    "mandelbrot.py",
    "test_reductions.py",
    "threads.py",
    "nxtval-scalable.py",
)

# Under Open MPI 5.0 this program's own assertion fails without mpimcast too.
WRONG_IN_OPENMPI = "nxtval-mpi3.py"


@LIBRARIES
@pytest.mark.parametrize(
    ("folder", "command"),
    [(folder, command) for folder in PROGRAMS for command in PROGRAMS[folder]],
)
def test_demo(folder: str, command: str, bin_folder: Path) -> None:
    """A program ends with the same status and output as without mpimcast."""
    if command == WRONG_IN_OPENMPI and bin_folder != MPICH_BIN:
        pytest.skip("it fails in Open MPI without us")
    program = Program(
        arguments=tuple(command.split()),
        folder=fetch(REQUIREMENT) / "demo" / folder,
        given=INTERVALS if folder == "compute-pi" else "",
        varying=command in VARYING,
    )
    sizes = PROGRAMS[folder][command]
    for nranks in sizes:
        last = nranks == sizes[-1]
        sides = (MULTICAST, DEFAULTS) if last else (MULTICAST,)
        compare(program, nranks, bin_folder, sides)


OSU = "skip=1, loop=9, skip_large=1, loop_large=3"
OSU_BENCHMARKS = {
    **dict.fromkeys(("allgather", "alltoall", "alltoallv", "barrier"), OSU),
    **dict.fromkeys(("bcast", "gather", "latency", "scatter", "bw", "bibw"), OSU),
    "multi_lat": OSU.replace("=1,", "_small=1,", 1).replace("loop=", "loop_small="),
}


@LIBRARIES
@pytest.mark.parametrize("name", OSU_BENCHMARKS)
def test_osu(name: str, bin_folder: Path) -> None:
    """Benchmarks like OSU's, repeated few times, print the same as without mpimcast."""
    code = f"from osu_{name} import osu_{name}; osu_{name}({OSU_BENCHMARKS[name]})"
    folder = fetch(REQUIREMENT) / "demo"
    program = Program(("-c", code), folder, varying=True)
    between_two = name in ("latency", "bw", "bibw")
    for nranks in (2,) if between_two else (2, 4):
        compare(program, nranks, bin_folder, (MULTICAST, DEFAULTS))


LIBRARY_NAMES = {
    "wrap-c": f"helloworld{sysconfig.get_config_var('EXT_SUFFIX')}",
    "wrap-ctypes": "libhelloworld.so",
}


@LIBRARIES
@pytest.mark.parametrize("name", LIBRARY_NAMES)
def test_wrapped_c(name: str, bin_folder: Path, tmp_path: Path) -> None:
    """C code gets the plain communicator through mpi4py's C interface or ctypes."""
    folder = tmp_path / name
    shutil.copytree(fetch(REQUIREMENT) / "demo" / name, folder)
    compiler = require_tool(str(bin_folder / "mpicc"))
    headers = (sysconfig.get_path("include"), mpi4py.get_include())
    includes = [f"-I{path}" for path in headers]
    options = ("-shared", "-fPIC", *includes, "helloworld.c", "-o", LIBRARY_NAMES[name])
    run([compiler, *options], limit_s=60, cwd=folder)
    for nranks in (2, 3):
        compare(Program(("test.py",), folder), nranks, bin_folder)
