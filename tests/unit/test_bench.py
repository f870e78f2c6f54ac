# SPDX-License-Identifier: BSD-3-Clause
"""``python -m mpimcast bench``: its parts, and whole runs on three ranks."""

from __future__ import annotations

import json
import re
import statistics
import sys
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from support import mpirun, run, run_unchecked

from mpimcast.cli.bench.measure import WAYS, Computation
from mpimcast.cli.bench.parser import COLLECTIVES

NRANKS = 3
ITERATIONS = 4
CHUNK_BYTES = 1000
BLOCKS = (8, 999, 1000, 2501)
SETTINGS = {
    "MPIMCAST_TRANSPORT": "udp",
    "MPIMCAST_MIN_BYTES": "900",
    "MPIMCAST_EAGER_BYTES": "0",  # no barrier carries blocks
    "MPIMCAST_CHUNK_BYTES": str(CHUNK_BYTES),
    "MPIMCAST_TIMEOUT": "1",
}
ARGUMENTS = (
    *("--sizes", ",".join(map(str, BLOCKS))),
    *("--iterations", str(ITERATIONS), "--warmup", "2"),
)
HEADER_BYTES = 16
LIMIT_S = 60

# Runs the benchmark, and makes its fifth Allgather go wrong as the first argument says:
# all ranks fail, or rank 1 fails, or a byte is wrong on rank 1.
WRAPPER = """
import sys
from mpi4py import MPI
from mpimcast import Error, Intracomm
from mpimcast.cli.bench.command import main
gather = Intracomm.Allgather
ncalls = 0
def gather_and_spoil(comm, sendbuf, recvbuf):
    global ncalls
    ncalls += 1
    if ncalls == 5 and sys.argv[1] == "all fail":
        raise Error("on purpose")
    if ncalls == 5 and sys.argv[1] == "one fails" and comm.rank == 1:
        raise Error("on purpose")
    gather(comm, sendbuf, recvbuf)
    if ncalls == 5 and sys.argv[1] == "wrong byte" and comm.rank == 1:
        recvbuf[2, 7] ^= 1
Intracomm.Allgather = gather_and_spoil
sys.exit(main(sys.argv[2:]))
"""


# ---- the parts ---------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        *(("--iterations", "0"), ("--warmup", "-1"), ("--iterations", "many")),
        *(("extra",), ("--root", "-1"), ("--gap", "-1"), ("--gap", "nan")),
        ("--format", "csv"),
    ],
)
def test_bad_arguments(arguments: tuple[str, ...]) -> None:
    """A bad argument is a usage error that names it."""
    command = [sys.executable, "-m", "mpimcast", "bench", *arguments]
    status, said = run_unchecked(command, limit_s=LIMIT_S)
    assert status == 2
    assert "usage" in said
    assert arguments[-1] in said


# ---- whole runs --------------------------------------------------------------


@pytest.mark.parametrize(
    "options", [(), ("--in-place",), ("--no-pre-barrier",), ("--no-verify",)]
)
def test_report(options: tuple[str, ...], tmp_path: Path) -> None:
    """The JSON report is complete, and its numbers agree with the printed table.

    The table has no escape sequences, since the output is not a terminal.
    """
    path = tmp_path / "result.json"
    command = [*mpirun(NRANKS), "-m", "mpimcast", "bench", *ARGUMENTS, *options]
    said = run([*command, "--json", path], limit_s=LIMIT_S, **SETTINGS)
    report = json.loads(path.read_text())
    _check_surroundings(report, options)
    for nbytes, measured in zip(BLOCKS, report["measured"], strict=True):
        _check_measured(nbytes, measured)
        line = re.search(rf"^ +{nbytes} +{measured['path']} .*$", said, re.MULTILINE)
        assert line is not None, said
        medians = [f"{1e6 * measured[way]['median_s']:.1f}" for way in WAYS]
        words = line[0].split()
        assert [words[3], words[6]] == medians
        assert words[-1] == ("-" if "--no-verify" in options else "0")
    assert "\x1b" not in said


def _check_surroundings(report: dict[str, Any], options: tuple[str, ...]) -> None:
    """Check what the report says about the run: arguments, versions, settings, load."""
    assert report["arguments"] == {
        "collectives": ["Allgather"],
        "sizes": list(BLOCKS),
        "iterations": ITERATIONS,
        "warmup": 2,
        "in_place": "--in-place" in options,
        "root": 0,
        "verify": "--no-verify" not in options,
        "pre_barrier": "--no-pre-barrier" not in options,
        "gap_s": 0.0,
    }
    assert report["time"] == "last begin to last end"
    assert report["ranks"] == len(report["hosts"]) == NRANKS
    known = {"mpimcast", "wire", "python", "mpi4py", "mpi", "kernel", "machine"}
    assert set(report["versions"]) == known
    assert all(report["versions"].values())
    assert report["environment"].items() >= SETTINGS.items()
    assert report["environment"]["OMPI_COMM_WORLD_SIZE"] == str(NRANKS)
    assert report["settings"]["CHUNK_BYTES"] == CHUNK_BYTES
    for when in ("before", "after"):
        assert [len(each) for each in report["load"][when]] == [3] * NRANKS
    assert report["begin"] <= report["end"]
    _check_opening(report["opening"])


def _check_opening(opening: dict[str, Any]) -> None:
    """Check that opening took a few exchanges among all ranks, of two messages each.

    In one exchange each rank sends a digest to others; in all other exchanges, a slot.
    """
    assert set(opening) == {"seconds", "messages", "bytes"}
    assert 0 < opening["seconds"] < LIMIT_S
    nexchanges, remainder = divmod(opening["messages"], 2)
    assert remainder == 0
    # Six are always needed; the network is probed once, or up to four times.
    assert 7 <= nexchanges <= 10
    slot_bytes, digest_bytes = 384, 36
    sent_bytes = slot_bytes * (nexchanges - 1) + digest_bytes
    assert opening["bytes"] == (NRANKS - 1) * sent_bytes


def _check_measured(nbytes: int, measured: dict[str, Any]) -> None:
    """Check the measurement of an Allgather of one size: times, rates, bytes, path."""
    assert measured["collective"] == "Allgather"
    assert measured["block_bytes"] == nbytes
    assert measured["total_bytes"] == NRANKS * nbytes
    for way in WAYS:
        each = measured[way]
        assert len(each["seconds"]) == ITERATIONS
        assert len(each["rank_seconds"]) == NRANKS
        assert min(each["rank_seconds"]) > 0
        assert 0 < each["min_s"] == min(each["seconds"])
        assert each["median_s"] == statistics.median(each["seconds"])
        assert each["p99_s"] == max(each["seconds"])
        assert each["wrong_bytes"] == 0
        assert each["algbw_bytes_per_s"] == NRANKS * nbytes / each["median_s"]
        bus_part = each["busbw_bytes_per_s"] / each["algbw_bytes_per_s"]
        assert bus_part == pytest.approx((NRANKS - 1) / NRANKS)
        assert len(each["processor_seconds"]) == ITERATIONS
        assert min(each["processor_seconds"]) >= 0
        assert "overlap_percent" not in each
    ours, theirs = (measured[way] for way in WAYS)
    assert measured["ratio"] == theirs["median_s"] / ours["median_s"]
    assert theirs["sent_bytes_per_rank"] == nbytes * (NRANKS - 1)
    assert theirs["computed"] == ["sent_bytes_per_rank"]
    counters = measured["counters"]
    assert len(counters) == NRANKS
    if nbytes < int(SETTINGS["MPIMCAST_MIN_BYTES"]):
        assert measured["path"] == "mpi"
        assert "MIN_BYTES=900" in measured["reason"]
        assert not any(each["tx_multicast_bytes"] for each in counters)
        assert ours["sent_bytes_per_rank"] == theirs["sent_bytes_per_rank"]
        assert ours["computed"] == ["sent_bytes_per_rank"]
        return
    assert measured["path"] == "udp"
    nchunks = -(-nbytes // CHUNK_BYTES)
    for each in counters:
        assert each["epochs"] == ITERATIONS
        assert each["tx_multicast_datagrams"] == ITERATIONS * nchunks
        sent_bytes = ITERATIONS * (nbytes + nchunks * HEADER_BYTES)
        assert each["tx_multicast_bytes"] == sent_bytes
    kinds = ("multicast", "repair", "control")
    sent_bytes = sum(each[f"tx_{kind}_bytes"] for each in counters for kind in kinds)
    assert ours["sent_bytes_per_rank"] == pytest.approx(
        sent_bytes / NRANKS / ITERATIONS
    )
    assert ours["computed"] == []


def test_report_on_standard_output() -> None:
    """With ``--json -`` only the report is printed.

    Without a launcher the command starts four ranks itself. If Slurm names the node,
    the report has that name for the hosts.
    """
    command = [sys.executable, "-m", "mpimcast", "bench", *ARGUMENTS, "--json", "-"]
    mpirun(NRANKS)  # sets the variables that let root launch
    report = json.loads(run(command, limit_s=LIMIT_S, SLURMD_NODENAME="n7", **SETTINGS))
    assert report["ranks"] == 4
    assert report["hosts"] == ["n7"] * 4
    assert [each["block_bytes"] for each in report["measured"]] == list(BLOCKS)


@pytest.mark.parametrize("options", [(), ("--format", "nccl"), ("--root", "rotate")])
def test_collectives(options: tuple[str, ...], tmp_path: Path) -> None:
    """With ``all``, every collective is measured in turn, and its data is right."""
    path = tmp_path / "result.json"
    command = [*mpirun(NRANKS), "-m", "mpimcast", "bench", "all", *ARGUMENTS, *options]
    said = run([*command, "--json", path], limit_s=LIMIT_S, **SETTINGS)
    report = json.loads(path.read_text())
    order = [(each["collective"], each["block_bytes"]) for each in report["measured"]]
    assert order == list(product(COLLECTIVES, BLOCKS))
    for measured in report["measured"]:
        _check_collective(measured, has_fixed_root="rotate" not in options)
        size = "total_bytes" if "nccl" in options else "block_bytes"
        lines = re.findall(rf"^ +{measured[size]} .* 0$", said, re.MULTILINE)
        assert len(lines) >= 2, said  # blocking and nonblocking
    assert [name for name in COLLECTIVES if f"# {name}" not in said] == []
    assert ("each rank in turn as root" in said) == ("rotate" in options)
    assert ("# root: bytes that it sends in an operation" in said) == (not options)
    _check_conclusion(report, said)


def _check_conclusion(report: dict[str, Any], said: str) -> None:
    """Check that the last lines are one sentence for each collective."""
    last = said.splitlines()[-len(COLLECTIVES) :]
    assert last == [f"# {sentence}" for sentence in report["conclusion"]]
    for name, sentence in zip(COLLECTIVES, report["conclusion"], strict=True):
        assert sentence.startswith(f"{name}: ")
        assert "times as fast" in sentence
        assert sentence.endswith("bytes than computed for the MPI library")


def _check_senders(measured: dict[str, Any]) -> None:
    """Check that a fixed root's bytes are counted separately from the other ranks'."""
    for way in WAYS:
        each = measured[way]
        total_bytes = NRANKS * each["sent_bytes_per_rank"]
        others_bytes = (NRANKS - 1) * each["sent_bytes_per_other_rank"]
        assert each["sent_bytes_root"] + others_bytes == pytest.approx(total_bytes)
    assert measured["mpi"]["sent_bytes_root"] == measured["block_bytes"]
    if measured["path"] == "udp":
        ours = measured["mpimcast"]
        assert ours["sent_bytes_root"] > measured["block_bytes"]
        # Other ranks send only control messages.
        assert 0 < ours["sent_bytes_per_other_rank"] < ours["sent_bytes_root"]


def _check_collective(measured: dict[str, Any], *, has_fixed_root: bool) -> None:
    """Check the measurement of any collective: bytes by rank, times, overlap."""
    is_bcast = measured["collective"].lower().endswith("bcast")
    nblocks = 1 if is_bcast else NRANKS
    for way in WAYS:
        assert ("sent_bytes_root" in measured[way]) == (is_bcast and has_fixed_root)
    if is_bcast and has_fixed_root:
        _check_senders(measured)
    assert measured["total_bytes"] == measured["block_bytes"] * nblocks
    for way in WAYS:
        each = measured[way]
        assert each["wrong_bytes"] == 0
        assert len(each["seconds"]) == ITERATIONS
        if measured["collective"].startswith("I"):
            for part in ("computation_seconds", "both_seconds"):
                assert len(each[part]) == ITERATIONS
                assert min(each[part]) > 0
            assert 0 <= each["overlap_percent"] <= 100


def test_computation() -> None:
    """The units of computation are proportional to the time asked for, at least one."""
    computation = Computation()
    units = computation.units(0.01)
    assert computation.units(0.02) in (2 * units - 1, 2 * units, 2 * units + 1)
    assert computation.units(0) == 1


def _run_wrapped(
    tmp_path: Path, what_fails: str, *options: str | Path, **settings: str
) -> tuple[int, str]:
    """Run the benchmark in WRAPPER; return its exit status and output.

    With an empty `what_fails` nothing goes wrong.
    """
    wrapper = tmp_path / "wrapper.py"
    wrapper.write_text(WRAPPER)
    command = [*mpirun(NRANKS), wrapper, what_fails, *ARGUMENTS, *options]
    return run_unchecked(command, limit_s=LIMIT_S, **{**SETTINGS, **settings})


@pytest.mark.parametrize("options", [(), ("--in-place", "--no-pre-barrier")])
def test_a_wrong_byte(tmp_path: Path, options: tuple[str, ...]) -> None:
    """A wrong byte on one rank is counted, and fails the run unless --no-verify."""
    path = tmp_path / "result.json"
    status, said = _run_wrapped(tmp_path, "wrong byte", *options, "--json", path)
    assert status == 1
    assert said.count("mpimcast bench: wrong bytes: 1") == 1
    measured = json.loads(path.read_text())["measured"]
    assert [each["mpimcast"]["wrong_bytes"] for each in measured] == [1, 0, 0, 0]
    assert not any(each["mpi"]["wrong_bytes"] for each in measured)
    status, said = _run_wrapped(tmp_path, "wrong byte", *options, "--no-verify")
    assert status == 0


@pytest.mark.parametrize("option", ["--pre-barrier", "--no-pre-barrier"])
@pytest.mark.parametrize("what_fails", ["all fail", "one fails"])
def test_a_failure(tmp_path: Path, what_fails: str, option: str) -> None:
    """A failed operation ends all ranks with one message, even if only one failed."""
    status, said = _run_wrapped(tmp_path, what_fails, option)
    assert status == 1
    rank = 0 if what_fails == "all fail" else 1
    assert said.count(f"mpimcast bench: rank {rank}: on purpose") == 1
    assert said.count("on purpose") == 1


@pytest.mark.parametrize("option", ["--pre-barrier", "--no-pre-barrier"])
def test_a_dead_network(tmp_path: Path, option: str) -> None:
    """A network that loses all data ends the run with one message."""
    status, said = _run_wrapped(
        tmp_path, "", option, MPIMCAST_FAULT="loss=1,kind=multicast+repair"
    )
    assert status == 1
    assert said.count("mpimcast bench: rank 0: Allgather of 999 bytes") == 1
    assert said.count("TIMEOUT (1 s)") == 1


@pytest.mark.parametrize(
    ("arguments", "settings", "text"),
    [
        (("--json", "no such folder/x.json"), {}, "no such folder"),
        ((), {"MPIMCAST_TTL": "many"}, "MPIMCAST_TTL=many"),
        (("--sizes", "1000000G"), {}, "allocate"),
        (("--root", str(NRANKS)), {}, f"no rank {NRANKS} among {NRANKS}"),
    ],
)
def test_run_that_cannot_begin(
    arguments: tuple[str, ...], settings: dict[str, str], text: str, tmp_path: Path
) -> None:
    """If a run cannot begin, rank 0 alone says why.

    The reasons are a folder that does not exist, a bad setting, too little memory, and
    a root that is not a rank.
    """
    status, said = _run_wrapped(tmp_path, "", *arguments, **settings)
    assert status == 1
    assert said.count("mpimcast bench: rank 0: ") == 1
    assert said.count(text) == 1
