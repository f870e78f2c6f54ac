# SPDX-License-Identifier: BSD-3-Clause
"""Jobs that trace: late ranks are named, and files are left whatever happens."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import perfetto
import pytest
from support import BIN, MPICH_BIN, mpirun, run, run_unchecked

from mpimcast._support import trace_file
from mpimcast.cli.trace import clocks, job, waits

LIMIT_S = 90
LATE, LATE_OPERATION = 1, 4

BEGIN = """
import os, signal, sys, time
import numpy as np
from mpi4py import MPI
import mpimcast

world = MPI.Intracomm(MPI.COMM_WORLD)
dup = world.Dup()
dup.Set_name("shards")
rank, size = world.rank, world.size
block = np.full(50_000, rank, np.uint8)
place = np.zeros((size, block.size), np.uint8)

def make(**settings):
    return mpimcast.Intracomm(dup, **settings)
"""

WORK = """
comm = make()
for number in range(1, 7):
    # The late rank enters once all others are about to wait for it.
    if number == {number} and rank != {late}:
        dup.send(None, {late})
    elif number == {number}:
        for _ in range(size - 1):
            dup.recv()
        time.sleep(0.3)
    comm.Allgather(block, place)
    assert (place == np.arange(size)[:, None]).all()
comm.Ibcast(place, root=2).Wait()
comm.Free()
"""


def run_job(
    folder: Path,
    code: str,
    *,
    nranks: int = 3,
    bin_folder: Path = BIN,
    options: Sequence[str] = (),
    **settings: str,
) -> tuple[int, str]:
    """Run code on some ranks that trace to a folder; return its status and output."""
    common = {"MPIMCAST_MIN_BYTES": "0", "MPIMCAST_TRANSPORT": "udp"}
    return run_unchecked(
        [*mpirun(nranks, *options, bin_folder=bin_folder), "-c", BEGIN + code],
        limit_s=LIMIT_S,
        **{**common, "MPIMCAST_TRACE": str(folder), **settings},
    )


def merge(folder: Path) -> tuple[dict[str, Any], list[perfetto.Entry]]:
    """Merge a folder's traces; return the report, and the events, which are valid."""
    command = [sys.executable, "-m", "mpimcast", "trace", str(folder), "--json"]
    report = json.loads(run(command, limit_s=60))
    return report, perfetto.load(folder / "trace.json")


def check_operations(entries: list[perfetto.Entry], nranks: int = 3) -> None:
    """Check the operations of `WORK`, and that stages and waits lie within them."""
    for number in range(nranks):
        mine = [each for each in entries if each["pid"] == number]
        operations = {
            each["args"]["operation"]: each
            for each in perfetto.of_kind(mine, "operation")
        }
        names = [operations[epoch]["name"] for epoch in sorted(operations)]
        assert names == ["Allgather"] * 6 + ["Bcast"]
        assert {operations[epoch]["args"]["bytes"] for epoch in range(1, 7)} == {50_000}
        for stage in perfetto.of_kind(mine, "stage"):
            assert any(
                perfetto.within(stage, each) and stage["tid"] == each["tid"]
                for each in operations.values()
            ), stage
        for wait in perfetto.of_kind(mine, "wait"):
            if "args" in wait:  # no arrow
                assert perfetto.within(wait, operations[wait["args"]["operation"]])
                assert wait["args"]["awaited"] != number


def check_late(folder: Path, entries: list[perfetto.Entry]) -> None:
    """Check that the waits of the late operation are the late rank's blame."""
    traces = job.load(folder).traces
    shifts = clocks.align([each.header for each in traces])
    name = f"Allgather {LATE_OPERATION} of shards"
    known, nleft_out = waits.find(traces, shifts)
    entering = [each for each in known if each.operation == name and each.enters]
    assert nleft_out == 0
    blamed = waits.blame(entering)[0]
    assert blamed.rank == LATE
    assert set(blamed.by_rank) == {0, 1, 2} - {LATE}
    assert blamed.longest is not None
    for number in blamed.by_rank:
        (entry,) = (
            each
            for each in perfetto.of_kind(entries, "stage")
            if each["pid"] == number
            and each["name"] == "entry"
            and any(
                perfetto.within(each, operation)
                and operation["pid"] == number
                and operation["args"]["operation"] == LATE_OPERATION
                for operation in perfetto.of_kind(entries, "operation")
            )
        )
        (late,) = (
            each
            for each in perfetto.of_kind(entries, "operation")
            if each["pid"] == LATE and each["args"]["operation"] == LATE_OPERATION
        )
        # The late rank enters within the others' entry, as far as the clocks tell.
        error_us = sum(each.error_ns or 0 for each in shifts) / 1000
        assert entry["ts"] < late["ts"] < entry["ts"] + entry["dur"] + error_us


@pytest.mark.parametrize("bin_folder", [BIN, MPICH_BIN], ids=["openmpi", "mpich"])
def test_a_late_rank_and_losses(tmp_path: Path, bin_folder: Path) -> None:
    """The table and the picture name the late rank, and show what was repaired."""
    status, said = run_job(
        tmp_path,
        WORK.format(late=LATE, number=LATE_OPERATION),
        bin_folder=bin_folder,
        MPIMCAST_FAULT="loss=0.1,seed=5,kind=multicast",
        MPIMCAST_CHOICE="always",
        MPIMCAST_CHUNK_BYTES="512",
    )
    assert status == 0, said
    report, entries = merge(tmp_path)
    assert [each["rank"] for each in report["processes"]] == [0, 1, 2]
    assert {each["ended"] for each in report["processes"]} == {"exit"}
    assert all(each["clock_error_s"] is not None for each in report["processes"])
    assert all(each["dropped"] == 0 for each in report["processes"])
    check_operations(entries)
    check_late(tmp_path, entries)
    repairs = {each["name"].split()[0] for each in perfetto.of_kind(entries, "repair")}
    assert repairs == {"lost", "repaired", "resent"}
    # An arrow leads from the late entry to the end of the longest wait for it.
    assert any(
        each["ph"] == "s" and each["pid"] == LATE
        for each in perfetto.of_kind(entries, "wait")
    )


def test_shared_memory(tmp_path: Path) -> None:
    """Operations in a node's memory are traced alike."""
    status, said = run_job(
        tmp_path,
        WORK.format(late=LATE, number=LATE_OPERATION),
        MPIMCAST_TRANSPORT="shm",
        MPIMCAST_CHOICE="always",
    )
    assert status == 0, said
    _, entries = merge(tmp_path)
    check_operations(entries)
    check_late(tmp_path, entries)


def test_what_the_mpi_library_carries(tmp_path: Path) -> None:
    """Calls that the MPI library carries are shown, but for small ones."""
    status, said = run_job(
        tmp_path,
        """
comm = make()
comm.Allgather(block, place)
comm.Bcast(place, root=1)
comm.Allgather(np.zeros(1), np.zeros(size))
comm.Free()
""",
        MPIMCAST_TRANSPORT="mpi",
        MPIMCAST_MIN_BYTES="4K",
    )
    assert status == 0, said
    report, entries = merge(tmp_path)
    calls = [
        (each["pid"], each["name"], each["args"]["bytes"])
        for each in perfetto.of_kind(entries, "library")
    ]
    assert sorted(calls) == [
        (rank, name, nbytes)
        for rank in range(3)
        for name, nbytes in (("Allgather", 50_000), ("Bcast", 150_000))
    ]
    assert {each["small_calls"] for each in report["processes"]} == {1}


def test_a_killed_rank(tmp_path: Path) -> None:
    """When a rank is killed, the others' files say in which operation, and who."""
    victim = 2
    run_job(
        tmp_path,
        f"""
comm = make(timeout=2, choice="always")
comm.Allgather(block, place)
if rank == {victim}:
    os.kill(os.getpid(), signal.SIGKILL)
try:
    comm.Allgather(block, place)
except mpimcast.Error as error:
    assert error.ranks == ({victim},), error
    os._exit(0)
""",
        options=("--enable-recovery",),
    )
    report, entries = merge(tmp_path)
    ended = {each["rank"]: each["ended"] for each in report["processes"]}
    assert ended == {0: "failure", 1: "failure", victim: "open"}
    failed = [
        each
        for each in perfetto.of_kind(entries, "operation")
        if "error" in each["args"]
    ]
    assert sorted(each["pid"] for each in failed) == [0, 1]
    assert {each["args"]["culprit"] for each in failed} == {victim}
    assert {each["args"]["operation"] for each in failed} == {2}


def test_a_directory_that_cannot_be_written(tmp_path: Path) -> None:
    """If one rank cannot write, all raise an error that names it; none hangs."""
    blocked = tmp_path / "file"
    blocked.touch()
    status, said = run_job(
        tmp_path,
        f"""
comm = make(trace="{blocked}" if rank == 1 else "{tmp_path}/traces")
try:
    comm.Allgather(block, place)
except mpimcast.ConfigError as error:
    assert error.ranks == (1,), error
    os.write(1, f"told {{error}};".encode())
""",
    )
    assert status == 0, said
    assert said.count(f"told rank 1: cannot write to TRACE={blocked}") == 3, said
    assert said.count("MPIMCAST ERROR cannot write to TRACE=") == 1, said


def test_only_some_ranks_trace(tmp_path: Path) -> None:
    """All ranks must trace, or none: clocks are compared by all."""
    status, said = run_job(
        tmp_path,
        f"""
comm = make(trace="{tmp_path}" if rank == 1 else None)
try:
    comm.Allgather(block, place)
except mpimcast.ConfigError as error:
    os.write(1, f"told {{error}};".encode())
""",
        MPIMCAST_TRACE="",
    )
    assert status == 0, said
    assert said.count("told the ranks disagree: TRACE is") == 3, said


def test_persistent_and_derived(tmp_path: Path) -> None:
    """Persistent requests and derived communicators are traced on tracks of their own.

    A process has one file for all of them.
    """
    status, said = run_job(
        tmp_path,
        """
comm = make()
half = comm.Split(rank == 2)
half.Set_name("half")
request = comm.Allgather_init(block, place)
for _ in range(3):
    request.Start()
    request.Wait()
request.Free()
part = np.zeros((half.size, block.size), np.uint8)
half.Allgather(block, part)
""",
        MPIMCAST_CHOICE="always",
    )
    assert status == 0, said
    paths = sorted(tmp_path.glob(f"*{trace_file.SUFFIX}"))
    assert len(paths) == 3
    for path in paths:
        header, events = trace_file.read(path)
        done = events[events["kind"] == trace_file.OPERATION]
        counts = [
            (track.ranks, int((done["track"] == number).sum()))
            for number, track in enumerate(header.tracks)
            if (done["track"] == number).any()
        ]
        expected = [([0, 1, 2], 3)]
        if header.process.rank != 2:
            expected.append(([0, 1], 1))
        assert counts == expected
    merge(tmp_path)
