# SPDX-License-Identifier: BSD-3-Clause
"""MPI handles can be pickled and loaded, with and without ``mpimcast run``."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

import pytest
from support import BIN, MPICH_BIN, mpirun, run

# How long a program may take.
LIMIT_S = 60

# For each runner, Python's arguments that run a program under the runner. The runners
# are ``mpimcast run`` and mpi4py's own.
RUNNERS = {"run": ("-m", "mpimcast", "run"), "mpi4py": ("-m", "mpi4py")}

# Expressions whose values mpi4py can pickle.
EXPRESSIONS = (
    "MPI.COMM_NULL",
    "MPI.GROUP_EMPTY",
    "MPI.INFO_NULL",
    "MPI.INT",
    "MPI.DOUBLE.Create_vector(2, 1, 3).Commit()",
    "MPI.SUM",
    "MPI.IN_PLACE",
    "MPI.BOTTOM",
    "MPI.ERRORS_RETURN",
    "MPI.REQUEST_NULL",
    "MPI.Request()",
    "MPI.Prequest()",
    "MPI.Intracomm()",
    "MPI.Intercomm()",
    "MPI.Intracomm(MPI.COMM_WORLD)",
    "MPI.Comm(MPI.COMM_SELF)",
    "MPI.COMM_WORLD",
    "MPI.COMM_SELF",
    "type(MPI.COMM_WORLD)",
    "type(MPI.COMM_WORLD)(MPI.COMM_WORLD)",
    "type(MPI.COMM_SELF)()",
)


def program(tmp_path: Path, code: str) -> Path:
    """Write a program and return its path."""
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(code))
    return path


def printed(runner: str, code: str, *arguments: object) -> str:
    """Run code on one rank under one of RUNNERS, and return what the code prints."""
    command = [sys.executable, *RUNNERS[runner], "-c", textwrap.dedent(code)]
    return run([*command, *map(str, arguments)], limit_s=LIMIT_S)


# Code that defines the function `copies`. It yields copies of an object, made with each
# pickle protocol, with the copy module, and by sending the object.
COPIES = """
    import copy, pickle
    from mpi4py import MPI

    def copies(thing):
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            yield pickle.loads(pickle.dumps(thing, protocol))
            yield pickle._loads(pickle._dumps(thing, protocol))
        for each in (copy.copy, copy.deepcopy):
            yield each(thing)
        yield MPI.COMM_SELF.sendrecv(thing, 0, source=0)
        yield MPI.COMM_WORLD.bcast([thing])[0]
        yield from MPI.COMM_WORLD.allgather(thing)
"""


@pytest.mark.parametrize("runner", RUNNERS)
def test_copies(runner: str) -> None:
    """A copy of a constant is the constant itself; any copy has its original's type.

    An expression without parentheses names a constant. A duplicate of COMM_WORLD cannot
    be pickled.
    """
    code = f"""
    {COPIES}
    for expression in {EXPRESSIONS}:
        thing = eval(expression)
        for each in copies(thing):
            assert type(each) is type(thing), (expression, each)
            if "(" not in expression:
                assert each is thing, expression
            elif isinstance(thing, MPI.Comm):
                assert each == thing, expression
    dup = MPI.COMM_WORLD.Dup()
    try:
        pickle.dumps(dup)
    except ValueError as error:
        assert "cannot serialize" in str(error)
    else:
        raise AssertionError("a duplicate was pickled")
    print("done")
    """
    assert printed(runner, code) == "done\n"


def test_world_sent_to_other_ranks(tmp_path: Path) -> None:
    """COMM_WORLD and COMM_SELF, sent under ``run``, arrive as the receiver's own."""
    path = program(
        tmp_path,
        """
        import pickle
        import mpimcast
        import numpy as np
        from mpi4py import MPI
        comm = MPI.COMM_WORLD
        for sent in (MPI.COMM_WORLD, MPI.COMM_SELF):
            for each in (comm.bcast(sent), *comm.allgather(sent)):
                assert each is sent
                assert isinstance(each, mpimcast.Intracomm)
        place = np.zeros(comm.size)
        pickle.loads(pickle.dumps(comm)).Allgather(np.array([1.0 + comm.rank]), place)
        assert place.tolist() == [1.0 + rank for rank in range(comm.size)]
        assert comm.explain(1).path == "udp"
        print("done", flush=True)
        """,
    )
    settings = {"MPIMCAST_TRANSPORT": "udp", "MPIMCAST_MIN_BYTES": "0"}
    for bin_folder in (BIN, MPICH_BIN):
        command = [*mpirun(3, bin_folder=bin_folder), *RUNNERS["run"], path]
        assert run(command, limit_s=LIMIT_S, **settings).count("done") == 3


def test_futures_and_pkl5(tmp_path: Path) -> None:
    """If mpi4py.futures or pkl5 sends COMM_WORLD, mpimcast's COMM_WORLD arrives."""
    path = program(
        tmp_path,
        """
        import mpimcast
        from mpi4py import MPI
        from mpi4py.futures import MPICommExecutor
        from mpi4py.util import pkl5

        def examine(comm):
            return comm is MPI.COMM_WORLD, isinstance(comm, mpimcast.Intracomm), comm

        expected = True, True, MPI.COMM_WORLD
        with MPICommExecutor(MPI.COMM_WORLD, root=1) as executor:
            if executor is not None:
                seen = list(executor.map(examine, [MPI.COMM_WORLD] * 5))
                assert seen == [expected] * 5
                assert all(comm is MPI.COMM_WORLD for _, _, comm in seen)
        by_pkl5 = pkl5.Intracomm(MPI.COMM_WORLD)
        assert examine(by_pkl5.bcast(MPI.COMM_WORLD)) == expected
        print("done", flush=True)
        """,
    )
    command = [*mpirun(3), *RUNNERS["run"], path]
    assert run(command, limit_s=LIMIT_S).count("done") == 3


@pytest.mark.parametrize("runner", RUNNERS)
def test_across_runners(tmp_path: Path, runner: str) -> None:
    """A pickle made under either runner can be loaded under the other."""
    path = tmp_path / "pickle"
    dump = """
        import pickle, sys
        import mpimcast
        from mpi4py import MPI
        plain = MPI.Intracomm(MPI.COMM_WORLD)
        ours = mpimcast.Intracomm(MPI.COMM_SELF, min_bytes=7)
        things = [MPI.COMM_WORLD, MPI.COMM_SELF, MPI.Prequest, plain, ours]
        open(sys.argv[1], "wb").write(pickle.dumps(things))
    """
    printed(runner, dump, path)
    load = """
        import pickle, sys
        from mpi4py import MPI
        *constants, plain, ours = pickle.load(open(sys.argv[1], "rb"))
        expected = [MPI.COMM_WORLD, MPI.COMM_SELF, MPI.Prequest]
        assert all(map(lambda one, other: one is other, constants, expected))
        assert type(plain) is MPI.Intracomm and plain == MPI.COMM_WORLD
        assert type(ours).__module__ == "mpimcast.comm" and ours == MPI.COMM_SELF
        print("done")
    """
    (other,) = set(RUNNERS) - {runner}
    assert printed(other, load, path) == "done\n"


def test_settings_are_restored() -> None:
    """Loading restores a communicator's settings, except those that may differ by rank.

    If the process already has a handle of the communicator, the handle's settings stay,
    and the settings in the pickle are ignored.
    """
    dumped = printed(
        "mpi4py",
        """
        import pickle
        import mpimcast
        from mpi4py import MPI
        settings = dict(min_bytes=0, chains="all", entry_timeout="inf", zero_copy=True)
        local = dict(net_devices="lo", log="error")
        print(pickle.dumps(mpimcast.Intracomm(MPI.COMM_WORLD, **settings, **local)))
        """,
    ).strip()
    load = """
        import pickle
        import mpimcast
        from mpi4py import MPI
        {before}
        comm = pickle.loads({dumped})
        config = mpimcast.Intracomm(MPI.COMM_WORLD)._comm_state.config
        print(comm == MPI.COMM_WORLD, sorted(config.given().items()))
    """
    given = {"min_bytes": 0, "chains": "all", "entry_timeout": "inf", "zero_copy": True}
    said = printed("mpi4py", load.format(dumped=dumped, before=""))
    assert said == f"True {sorted(given.items())}\n"
    before = "first = mpimcast.Intracomm(MPI.COMM_WORLD, min_bytes=8)"
    said = printed("mpi4py", load.format(dumped=dumped, before=before))
    assert said == "True [('min_bytes', 8)]\n"


@pytest.mark.parametrize("runner", RUNNERS)
@pytest.mark.parametrize("which", ["MPI.Intracomm", "type(MPI.COMM_WORLD)"])
def test_copyreg(runner: str, which: str) -> None:
    """A function registered with copyreg is used for mpimcast's communicators, too."""
    code = f"""
    import copyreg
    {COPIES}
    named = [MPI.COMM_WORLD.Dup(), MPI.COMM_WORLD.Split(), MPI.COMM_WORLD]
    def find(index):
        return named[index]
    def reduce(comm):
        return find, ([each == comm for each in named].index(True),)
    copyreg.pickle({which}, reduce)
    for comm in named:
        assert all(each is comm for each in copies(comm)), comm.name
    print("done")
    """
    assert printed(runner, code) == "done\n"


def test_extension_codes() -> None:
    """COMM_WORLD and COMM_SELF can be pickled as extension codes, as copyreg allows."""
    code = f"""
    import copyreg
    {COPIES}
    for code, name in enumerate(("COMM_WORLD", "COMM_SELF"), 240):
        copyreg.add_extension("mpi4py.MPI", name, code)
        constant = getattr(MPI, name)
        assert len(pickle.dumps(constant)) < 9
        assert all(each is constant for each in copies(constant))
    print("done")
    """
    assert printed("run", code) == "done\n"


@pytest.mark.parametrize("runner", RUNNERS)
def test_constants(runner: str) -> None:
    """COMM_WORLD and COMM_SELF are still valid after ``free``.

    Once a clone of a constant is freed, the clone is null, and a second ``free`` of it
    does nothing. For the handle or the Fortran integer of a constant, ``fromhandle``
    and ``f2py`` return a communicator of the constant's type.
    """
    code = """
    from mpi4py import MPI
    for constant in (MPI.COMM_WORLD, MPI.COMM_SELF):
        constant.free()
        assert constant and constant.size
        clone = type(constant)(constant)
        clone.free()
        clone.free()
        assert constant and not clone
        for form in ("fromhandle", "f2py"):
            number = constant.handle if form == "fromhandle" else constant.py2f()
            again = getattr(type(constant), form)(number)
            assert type(again) is type(constant) and again == constant
        cart = constant.Create_cart([constant.size])
        assert type(type(constant).fromhandle(cart.handle)) is MPI.Cartcomm
        cart.free()
    assert type(MPI.COMM_SELF) is type(MPI.COMM_WORLD)
    print("done")
    """
    assert printed(runner, code) == "done\n"


def test_communicators_of_compiled_code() -> None:
    """PyMPIComm_New() returns an object of the same Python type as the original.

    This function belongs to mpi4py's C interface. Compiled code passes an MPI_Comm, and
    gets a Python object that stands for the same communicator.
    """
    code = """
    import ctypes
    import mpimcast
    from mpi4py import MPI
    signature = b"PyObject *(MPI_Comm)"
    kind = ctypes.c_uint64 if MPI._sizeof(MPI.Comm) == 8 else ctypes.c_uint32
    prototype = ctypes.PYFUNCTYPE(ctypes.py_object, kind)
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.argtypes, pointer.restype = [ctypes.py_object, ctypes.c_char_p], prototype
    make = pointer(MPI.__pyx_capi__["PyMPIComm_New"], signature)
    cart = MPI.COMM_SELF.Create_cart([1])
    null = MPI.COMM_NULL
    for comm in (MPI.COMM_WORLD, MPI.COMM_WORLD.Dup(), MPI.COMM_SELF, cart, null):
        again = make(comm.handle)
        assert again == comm and type(again) is type(comm), comm
    print("done")
    """
    for runner in RUNNERS:
        assert printed(runner, code) == "done\n"
