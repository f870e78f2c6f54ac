# SPDX-License-Identifier: BSD-3-Clause
"""The ring and the files of traces: good ones, and bad ones of every sort."""

from __future__ import annotations

import io
import json
import random
from pathlib import Path

import numpy as np
import pytest
from support import choose_seed
from traces import NRANKS, event, events, header, write

from mpimcast._native.trace import Trace
from mpimcast._support import trace_file
from mpimcast._support.trace_file import (
    EVENT,
    LIBRARY,
    NOBODY,
    OPERATION,
    STAGE,
    WAIT,
    Process,
    TraceFileError,
)

# ---- the ring ----------------------------------------------------------------


def test_the_ring_has_the_form_of_files() -> None:
    """What C adds is what NumPy reads; a full ring has the latest."""
    trace = Trace(4)
    found, nadded = trace.read()
    assert (len(found), nadded) == (0, 0)
    for number in range(1, 7):
        trace.add_library(7, 3, 1000 * number, number, 2 * number)
    found, nadded = trace.read()
    assert nadded == 6
    assert found.dtype == EVENT
    assert found.tolist() == [
        (number, 2 * number, 1000 * number, 0, NOBODY, 0, 7, LIBRARY, 3)
        for number in range(3, 7)
    ]


# ---- files -------------------------------------------------------------------


def test_round_trip(tmp_path: Path) -> None:
    """A file says what was written; a further writing replaces it."""
    rows = events(event(STAGE, 1, 2), event(OPERATION, 1, 3))
    head = header(3, nadded=7)
    path = write(tmp_path, header(3), events())
    assert trace_file.read(path)[0] == header(3)
    assert write(tmp_path, head, rows) == path
    found, read = trace_file.read(path)
    assert found == head
    assert read.tolist() == rows.tolist()
    assert list(tmp_path.iterdir()) == [path]


def test_names_are_unique_and_harmless(tmp_path: Path) -> None:
    """Each process of a job has its own file, whatever its host's name is."""
    names = {
        trace_file.path_of(str(tmp_path), Process(rank, host, pid)).name
        for rank in (0, 1)
        for host in ("a", "b.c-d", "../e")
        for pid in (1, 22)
    }
    assert len(names) == 12
    assert not any("/" in name for name in names)


def refusal(path: Path) -> str:
    """Return why a file is refused; the reason names the file."""
    with pytest.raises(TraceFileError) as caught:
        trace_file.read(path)
    assert str(caught.value).startswith(f"{path}: ")
    return str(caught.value)


@pytest.mark.parametrize(
    ("begin", "why"),
    [
        (b"", "no trace of mpimcast"),
        (b"\x7fELF\n", "no trace of mpimcast"),
        (b"mpimcast trace 2\n{}\n", "version '2' of the format"),
        (b"mpimcast trace x\n", "version 'x'"),
        (b"mpimcast trace 1\n", "header has been cut off"),
        (b'mpimcast trace 1\n{"process": ', "header has been cut off"),
        (b"mpimcast trace 1\nnot json\n", "header is not valid"),
        (b"mpimcast trace 1\n[]\n", "header is not valid"),
        (b"mpimcast trace 1\n{}\n", "header is not valid: KeyError"),
        (b"mpimcast trace 1\n" + b"[" * 100_000 + b"\n", "header is not valid"),
    ],
)
def test_bad_beginnings(tmp_path: Path, begin: bytes, why: str) -> None:
    """Files that are none of ours, of another version, or cut off."""
    path = tmp_path / f"bad{trace_file.SUFFIX}"
    path.write_bytes(begin)
    assert why in refusal(path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("process", {"rank": -1, "host": "h", "pid": 1}),
        ("process", {"rank": "0", "host": "h", "pid": 1}),
        ("process", None),
        ("ended", 5),
        ("begun_s", "soon"),
        ("nadded", 1.5),
        ("tracks", [{"name": "x", "channel": "y", "ranks": ["0"]}]),
        ("tracks", [{"name": "x"}]),
        ("tracks", 3),
        ("offsets", [{"peer": {}, "offset_ns": 0, "error_ns": 0}]),
    ],
)
def test_bad_headers(tmp_path: Path, name: str, value: object) -> None:
    """A header whose fields have other types than they must."""
    path = write(tmp_path, header(), events())
    lines = path.read_bytes().split(b"\n", 2)
    found = json.loads(lines[1])
    found[name] = value
    path.write_bytes(b"\n".join([lines[0], json.dumps(found).encode(), lines[2]]))
    assert "header is not valid" in refusal(path)


def test_every_cut(tmp_path: Path) -> None:
    """Wherever a file is cut off, that is found out; so is what was appended."""
    path = write(tmp_path, header(nadded=1), events(event(WAIT, 1, 2)))
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        refusal(path)
    path.write_bytes(whole + b"x")
    assert "cut off, or something was appended" in refusal(path)
    path.write_bytes(whole)
    trace_file.read(path)


def test_random_damage(tmp_path: Path) -> None:
    """Damaged bytes are either found out or leave a valid trace: nothing else."""
    rng = random.Random(choose_seed())
    rows = events(*(event(WAIT, n, n + 1, peer=1) for n in range(5)))
    path = write(tmp_path, header(nadded=5), rows)
    whole = path.read_bytes()
    for _ in range(300):
        damaged = bytearray(whole)
        for _ in range(rng.randrange(1, 4)):
            damaged[rng.randrange(len(whole))] = rng.randrange(256)
        path.write_bytes(damaged)
        try:
            head, found = trace_file.read(path)
        except TraceFileError:
            continue
        assert len(found) <= head.nadded
        assert (found["begin_ns"] <= found["end_ns"]).all()
        assert (found["track"] < len(head.tracks)).all()


@pytest.mark.parametrize(
    "row",
    [
        (5, 4, 0, 1, NOBODY, 0, 0, WAIT, 1),
        (5, 2**63, 0, 1, NOBODY, 0, 0, WAIT, 1),
        (5, 6, 0, 1, NRANKS, 0, 0, WAIT, 1),
        (5, 6, 0, 1, NOBODY, 0, 1, WAIT, 1),
        (5, 6, 0, 1, NOBODY, 0, 0, 0, 1),
        (5, 6, 0, 1, NOBODY, 0, 0, 10, 1),
    ],
)
def test_bad_events(tmp_path: Path, row: tuple[int, ...]) -> None:
    """Events with times, ranks, tracks or kinds that cannot be."""
    path = write(tmp_path, header(nadded=2), events(event(WAIT, 1, 2), row))
    assert "event 1 is not valid" in refusal(path)


def test_other_arrays(tmp_path: Path) -> None:
    """Arrays of another form, even such as run code when they are read, are refused."""
    path = write(tmp_path, header(nadded=9), events())
    lines = path.read_bytes().split(b"\n", 2)
    for array in (np.zeros(3), np.zeros((1, 1), EVENT), np.array([print])):
        file = io.BytesIO()
        np.save(file, array, allow_pickle=True)
        path.write_bytes(b"\n".join([*lines[:2], file.getvalue()]))
        assert "another form" in refusal(path)
    write(tmp_path, header(nadded=0), events(event(WAIT, 1, 2)))
    assert "more events than were ever added" in refusal(path)
