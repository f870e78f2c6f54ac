# SPDX-License-Identifier: BSD-3-Clause
"""What is made of traces: whose job they are, who is blamed, and the picture."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import perfetto
import pytest
from support import choose_seed
from traces import NRANKS, event, events, header, write

from mpimcast._support import trace_file
from mpimcast._support.trace_file import (
    ENTRY,
    LOST,
    OPERATION,
    STAGE,
    STALL,
    WAIT,
    Track,
)
from mpimcast.cli.trace import command, job, profiles, waits
from mpimcast.cli.trace import perfetto as export
from mpimcast.cli.trace.clocks import Shift, align
from mpimcast.cli.trace.job import Job, Traced

# ---- jobs --------------------------------------------------------------------


def test_the_latest_job(tmp_path: Path) -> None:
    """The latest job's files are taken, that of a rank that was killed, too."""
    for rank in range(3):
        old = Track("world", "0ld", [0, 1, 2])
        write(tmp_path, header(rank, tracks=[old]), events())
        head = header(rank, pid=200, begun_s=20.0, written_s=30.0 + rank)
        write(tmp_path, head, events())
    # It began with the latest job, but shares no stream with the others.
    lone = Track("alone", "77", [3])
    head = header(3, pid=500, tracks=[lone], begun_s=21.0, written_s=21.0)
    write(tmp_path, head, events())
    found = job.load(tmp_path)
    assert [each.header.process.pid for each in found.traces] == [200, 201, 202, 503]
    assert found.nothers == 3
    assert found.of_rank(3) == 3
    assert found.of_rank(4) is None


def test_joined_by_a_third(tmp_path: Path) -> None:
    """Ranks that share no stream are one job if each shares one with a third."""
    tracks = [["a"], ["b"], ["a", "b"]]
    for rank, channels in enumerate(tracks):
        streams = [Track(name, name, [0, 1, 2]) for name in channels]
        head = header(rank, tracks=streams, begun_s=10.0 * rank, written_s=10 * rank)
        write(tmp_path, head, events())
    assert len(job.load(tmp_path).traces) == 3


# ---- blame -------------------------------------------------------------------


def wait(
    rank: int, awaited: int, begin_ns: int, end_ns: int, idle_ns: int | None = None
) -> waits.Wait:
    """Return a wait of a rank."""
    idle_ns = end_ns - begin_ns if idle_ns is None else idle_ns
    return waits.Wait(rank, awaited, begin_ns, end_ns, idle_ns, True, "it")  # noqa: FBT003


def blamed(*found: waits.Wait) -> dict[int, int]:
    """Return how long each rank made others wait."""
    return {each.rank: each.total_ns for each in waits.blame(found)}


def test_blame() -> None:
    """A wait is passed on while the awaited rank waits itself."""
    assert blamed(wait(0, 1, 10, 30)) == {1: 20}
    # Rank 1 awaits rank 2 in the middle of it.
    assert blamed(wait(0, 1, 0, 100), wait(1, 2, 20, 70)) == {1: 50, 2: 100}
    # Through a chain, all of it is the last one's.
    chain = [wait(rank, rank + 1, 0, 100) for rank in range(5)]
    assert blamed(*chain) == {5: 500}
    # Two that await each other wait for the network between them.
    assert blamed(wait(0, 1, 0, 100), wait(1, 0, 0, 100)) == {0: 100, 1: 100}
    # Only a tenth of the time had the rank nothing to do.
    assert blamed(wait(0, 1, 0, 100, 10)) == {1: 10}
    # A long wait of the awaited rank, behind which many short ones began.
    short = [wait(1, 3, n, n + 1) for n in range(10, 50)]
    assert blamed(wait(0, 1, 60, 100), wait(1, 2, 0, 100), *short)[2] == 100 + 40


def test_blame_adds_up() -> None:
    """Whoever waits for whom, the blame is as long as the waits."""
    rng = random.Random(choose_seed())
    for _ in range(200):
        found = []
        for rank in range(NRANKS):
            at_ns = 0
            for _ in range(rng.randrange(6)):
                at_ns += rng.randrange(50)
                end_ns = at_ns + rng.randrange(100)
                others = [other for other in range(NRANKS) if other != rank]
                found.append(wait(rank, rng.choice(others), at_ns, end_ns))
                at_ns = end_ns
        total = sum(each.idle_ns for each in found)
        assert sum(blamed(*found).values()) == total


def test_the_longest_waits_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of too many waits the longest are kept, and the others counted."""
    monkeypatch.setattr(waits, "WAITS_MAX", 3)
    rows = [event(WAIT, 100 * n, 100 * n + n, peer=1) for n in range(1, 9)]
    traced = Traced(header(nadded=8), events(*rows))
    found, nleft_out = waits.find([traced], [Shift(5, 0)])
    assert nleft_out == 5
    assert sorted(each.idle_ns for each in found) == [6, 7, 8]
    assert max(each.begin_ns for each in found) == 805
    assert found[0].operation == "an operation 1 of world"


# ---- the picture -------------------------------------------------------------


def random_job(rng: random.Random) -> Job:
    """Return traces of operations that overlap, with stages, waits and repairs."""
    traces = []
    for rank in range(rng.randrange(1, NRANKS + 1)):
        rows: list[tuple[int, ...]] = []
        for epoch in range(1, rng.randrange(2, 30)):
            begin_ns = rng.randrange(10**6)
            cuts = sorted(begin_ns + rng.randrange(10**5) for _ in range(4))
            spans = zip([begin_ns, *cuts], cuts, range(1, 5), strict=False)
            rows += [
                event(STAGE, low, high, epoch=epoch, detail=stage)
                for low, high, stage in spans
                if high > low
            ]
            rows.append(event(OPERATION, begin_ns, cuts[-1], epoch=epoch, amount=9))
        at_ns = 0
        for _ in range(rng.randrange(20)):
            at_ns += rng.randrange(1000)
            end_ns = at_ns + rng.randrange(10**5)
            peer = rng.randrange(NRANKS)
            epoch = rng.randrange(1, 30)
            rows.append(event(WAIT, at_ns, end_ns, epoch=epoch, peer=peer))
            rows.append(event(STALL, at_ns, end_ns, epoch=epoch, detail=2))
            rows.append(event(LOST, end_ns, end_ns, count=3))
            at_ns = end_ns
        lost = rng.randrange(len(rows) + 1)
        traces.append(Traced(header(rank, nadded=len(rows)), events(*rows[lost:])))
    return Job(traces, [], 0)


def test_any_picture_is_valid(tmp_path: Path) -> None:
    """Operations that overlap have threads of their own, and all slices nest."""
    rng = random.Random(choose_seed())
    path = tmp_path / "trace.json"
    for _ in range(40):
        made = random_job(rng)
        shifts = [Shift(rng.randrange(-(10**6), 10**6), 0) for _ in made.traces]
        with path.open("w") as file:
            export.write(made, shifts, file)
        entries = perfetto.load(path)
        assert len(perfetto.of_kind(entries, "repair")) == sum(
            int((each.events["kind"] == LOST).sum()) for each in made.traces
        )


def test_arrows(tmp_path: Path) -> None:
    """An arrow leads from a late entry to the wait's end; from an early one, none."""
    waiter = events(
        event(WAIT, 100, 300, peer=1, detail=ENTRY),
        event(OPERATION, 90, 400),
        event(WAIT, 500, 600, peer=1, detail=ENTRY, epoch=2),
        event(OPERATION, 490, 700, epoch=2),
    )
    late = events(event(OPERATION, 1250, 1400), event(OPERATION, 1450, 1700, epoch=2))
    traces = [Traced(header(0, nadded=4), waiter), Traced(header(1, nadded=2), late)]
    path = tmp_path / "trace.json"
    with path.open("w") as file:
        export.write(Job(traces, [], 0), [Shift(0, 0), Shift(-1000, 0)], file)
    arrows = [each for each in perfetto.load(path) if each["ph"] in "sf"]
    assert [(each["pid"], each["ts"]) for each in arrows] == [(1, 0.16), (0, 0.21)]


# ---- profiles ----------------------------------------------------------------


def profile(rank: int, pid: int, **event: object) -> dict[str, object]:
    """Return what torch's profiler writes, with one event of process `pid`."""
    usual = {"ph": "X", "cat": "cpu_op", "name": "add", "tid": 7, "ts": 3.5, "dur": 2.0}
    return {
        "distributedInfo": {"rank": rank},
        "baseTimeNanoseconds": 1_000_000,
        "traceEvents": [
            {"ph": "M", "name": "process_name", "pid": pid, "tid": 7, "args": {}},
            {"ph": "X", "cat": "Trace", "name": "whole", "pid": "Spans", "tid": "x"},
            {"pid": pid, **usual, **event},
        ],
    }


def test_profiles(tmp_path: Path) -> None:
    """A profile's times are put on the clock of its process, and of no other."""
    traces = [
        Traced(replace(header(rank, pid=100 - rank), ahead_ns=900_000), events())
        for rank in range(2)  # on two hosts, with the same number
    ]
    files = {
        "right": json.dumps(profile(1, 100)),
        "annotated": json.dumps(profile(1, 100, cat="user_annotation", ts=4.0, dur=1)),
        "of another job": json.dumps(profile(1, 5)),
        "broken": "{",
        "list": "[]",
        "without times": json.dumps(profile(0, 100, ts=None)),
    }
    for name, text in files.items():
        (tmp_path / f"{name}{profiles.SUFFIX}").write_text(text)
    found = profiles.load(tmp_path, traces)
    bad = ("broken", "list", "without times")
    assert [Path(each.partition(": ")[0]).name for each in found.bad] == [
        f"{name}{profiles.SUFFIX}" for name in bad
    ]
    assert sorted(found.slices[1]) == [
        ("add", "cpu_op", 7, 103_500, 105_500),
        ("add", "user_annotation", 7, 104_000, 105_000),
    ]
    assert found.slices[0] == []
    path = tmp_path / "trace.json"
    with path.open("w") as file:
        export.write(
            Job(traces, [], 0), [Shift(0, 0), Shift(-1000, 0)], file, found.slices
        )
    shown = [each for each in perfetto.load(path) if each["ph"] == "X"]
    assert [(each["pid"], each["ts"], each["dur"]) for each in shown] == [
        (1, 0.5, 1.0),
        (1, 0.0, 2.0),
    ]


# ---- the command -------------------------------------------------------------


def test_exit_statuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder without traces, with bad ones, and with good ones."""
    assert command.main([str(tmp_path / "none")]) == 1
    assert "is no directory" in capsys.readouterr().err
    assert command.main([str(tmp_path)]) == 1
    assert f"MPIMCAST_TRACE={tmp_path}" in capsys.readouterr().err
    rows = events(event(WAIT, 0, 10**9, peer=2), event(OPERATION, 0, 2 * 10**9))
    write(tmp_path, header(nadded=5), rows)
    (tmp_path / "other.txt").write_text("not ours")
    assert command.main([str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "rank 0 in Allgather 1 of world" in said
    assert "3 older events were dropped" in said
    assert "2 small calls" in said
    assert command.main([str(tmp_path), "--out", str(tmp_path / "no" / "x")]) == 1
    bad = tmp_path / f"bad{trace_file.SUFFIX}"
    bad.write_bytes(b"x")
    capsys.readouterr()
    assert command.main([str(tmp_path), "--json"]) == 1
    said, complaint = capsys.readouterr()
    assert str(bad) in complaint
    report = json.loads(said)
    assert report["blame"][0]["rank"] == 2
    assert report["blame"][0]["seconds"] == 1.0
    assert report["bad_files"] == [f"{bad}: this is no trace of mpimcast"]
    assert command.main([str(tmp_path), "--json", "--top", "1"]) == 1


def test_the_tables_are_bounded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of many ranks the tables show the first, and say how many more there are."""
    n = 40
    stream = Track("world", "abc", list(range(n)))
    for rank in range(n):
        rows = events(event(WAIT, 0, 1000 + rank, peer=(rank + 1) % n))
        write(tmp_path, header(rank, nadded=1, tracks=[stream]), rows)
    assert command.main([str(tmp_path), "--top", "3"]) == 0
    assert capsys.readouterr().out.count("and 37 more ranks") == 2


def test_shifts_of_a_job(tmp_path: Path) -> None:
    """The clock of the first rank counts; the errors are those that were measured."""
    for rank in range(3):
        write(tmp_path, header(rank), events())
    found = job.load(tmp_path)
    shifts = align([each.header for each in found.traces])
    assert shifts == [(0, 0), (0, 1000), (0, 2000)]
