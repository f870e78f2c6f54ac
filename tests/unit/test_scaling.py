# SPDX-License-Identifier: BSD-3-Clause
"""The results of a batch job, the figures derived from them, and the results page."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from support import skip_or_fail

from bench.page.spread import Spread
from bench.scaling import curves
from bench.scaling.nodes import compare
from bench.scaling.results import CONTENDERS, OURS, RESULTS, Series, read

BLOCK_BYTES = 100_000
SERIES = Series("Allgather", "udp", 2, "topology")


def times(
    seconds: Sequence[float], rank_seconds: Sequence[float], sent_bytes: float
) -> dict[str, Any]:
    """Return one library's part of a result: its times, and each rank's sent bytes."""
    nranks = len(rank_seconds)
    return {
        "seconds": list(seconds),
        "rank_seconds": list(rank_seconds),
        "algbw_bytes_per_s": 1000.0,
        "busbw_bytes_per_s": 1000.0 * (nranks - 1) / nranks,
        "sent_bytes_per_rank": sent_bytes,
        "wrong_bytes": 0,
    }


def result_of(
    nnodes: int,
    *,
    ours: Sequence[float] = (0.1,),
    theirs: Sequence[float] = (0.2,),
    slow: tuple[str, float] = ("", 1),
    **changes: Any,
) -> dict[str, Any]:
    """Return the result of a step that gathers with two ranks on each node.

    Parameters
    ----------
    nnodes
        Number of nodes; they are called n1, n2 and so on.
    ours, theirs
        Seconds that each operation of mpimcast and of the MPI library took.
    slow
        The name of a node, and the factor by which its ranks are slower.
    **changes
        Entries of the result to add or to replace.
    """
    nodes = [f"n{1 + rank // 2}" for rank in range(2 * nnodes)]
    nranks = len(nodes)
    name, factor = slow
    rank_seconds = [factor if each == name else 1 for each in nodes]
    row = {
        "collective": "Allgather",
        "block_bytes": BLOCK_BYTES,
        "total_bytes": nranks * BLOCK_BYTES,
        "path": "udp",
        OURS: times(ours, rank_seconds, BLOCK_BYTES + 16),
        "mpi": times(theirs, rank_seconds, BLOCK_BYTES * (nranks - 1)),
    }
    step = {"name": "a", "nodes": nnodes, "ranks_per_node": 2, "transport": "udp"}
    return {
        "step": {**step, "order": "topology", "collective": "Allgather"},
        "ranks": nranks,
        "hosts": nodes,
        "begin": "2026-01-01",
        "versions": {"mpi": "some MPI"},
        "opening": {"seconds": 0.1 * nnodes, "messages": 14, "bytes": 2000},
        "measured": [row],
        **changes,
    }


def written(folder: Path, results: Iterable[dict[str, Any]], rest: bytes = b"") -> Path:
    """Write results, followed by the bytes `rest`, to a job's file; return its path."""
    path = folder / RESULTS
    path.write_bytes(b"".join(b"%s\n" % json.dumps(r).encode() for r in results) + rest)
    return path


def test_curves(tmp_path: Path) -> None:
    """Steps on the same number of nodes make a point: time, bandwidth, bytes sent.

    A point's range goes from the 10th to the 90th percentile of all its operations.
    """
    results = [result_of(4), result_of(2, ours=[1, 2]), result_of(2, ours=[3, 4, 5])]
    steps, notes = read(written(tmp_path, results))
    assert not notes
    ((series, sizes),) = curves.by_series(steps).items()
    assert series == SERIES
    two, four = sizes[BLOCK_BYTES][OURS]
    assert (two.nnodes, four.nnodes) == (2, 4)
    assert two.seconds == pytest.approx((3, 1.4, 4.6))
    assert two.bandwidth == pytest.approx((3e5 / 3, 3e5 / 4.6, 3e5 / 1.4))
    assert four.bandwidth == pytest.approx([7e6] * 3)
    assert four.sent_bytes == BLOCK_BYTES + 16
    assert [each.sent_bytes for each in sizes[BLOCK_BYTES]["mpi"]] == [3e5, 7e5]
    assert not two.by_library
    found = curves.openings(steps)
    assert [each.seconds for each in found["udp", 4]] == [0.2, 0.2]
    assert found["udp", 8] == [(0.4, 14, 2000)]


def test_demo(tmp_path: Path) -> None:
    """A step that runs the demo is a measurement of the whole model."""
    ours = {"seconds": 0.5, "rank_seconds": [0.4, 0.5]}
    theirs = {"seconds": 2, "rank_seconds": [1, 2], "payload_bytes_sent_per_rank": 7}
    result = result_of(2) | {
        "ranks": 2,
        "hosts": ["n1", "n2"],
        "model": "GPT",
        "model_bytes": 1000,
        "path": "udp: lo",
        OURS: ours | {"datagram_bytes_sent_per_rank": 8},
        "mpi": theirs,
        "different_bytes": 3,
    }
    for name in ("measured", "opening", "begin", "versions"):
        del result[name]
    steps, notes = read(written(tmp_path, [result]))
    assert not notes
    ((series, sizes),) = curves.by_series(steps).items()
    assert series == SERIES._replace(collective="unshard of GPT")
    (mine,), (other,) = sizes[1000].values()
    assert mine == (2, Spread(*[0.5] * 3), Spread(*[1000.0] * 3), 8, False)
    assert (other.seconds.median, other.sent_bytes) == (2, 7)
    assert [row.wrong_bytes for row in steps[0].rows] == [3, 0]
    assert not curves.openings(steps)


def test_efficiency(tmp_path: Path) -> None:
    """Efficiency is the bus bandwidth divided by the bus bandwidth on the fewest nodes.

    The bus bandwidth is the bandwidth of a rank's link: with 4, 8 and 16 ranks, an
    operation carries 3, 7 and 15 blocks to each rank.
    """
    results = [
        result_of(2),
        result_of(4, ours=[0.1, 0.2, 0.4]),
        result_of(8, ours=[0.5]),
    ]
    steps, _ = read(written(tmp_path, results))
    points = curves.by_series(steps)[SERIES][BLOCK_BYTES][OURS]
    two, four, eight = curves.efficiency(points)
    assert two == (2, Spread(1, 1, 1))
    median, low, high = four[1]
    assert median == pytest.approx(7 / 0.2 / (3 / 0.1))
    assert low == pytest.approx(7 / 0.36 / 30)
    assert high == pytest.approx(7 / 0.12 / 30)
    assert eight[1].median == pytest.approx(1)


def test_efficiency_where_nothing_is_carried(tmp_path: Path) -> None:
    """A point on one rank has no bandwidth or efficiency; other points ignore it."""
    alone = result_of(1)
    for contender in CONTENDERS:
        alone["measured"][0][contender]["busbw_bytes_per_s"] = 0.0
    steps, _ = read(written(tmp_path, [alone, result_of(2)]))
    points = curves.by_series(steps)[SERIES][BLOCK_BYTES][OURS]
    assert curves.efficiency(points) == [(2, Spread(1, 1, 1))]


def test_outliers(tmp_path: Path) -> None:
    """A node that is slow in most of the steps is an outlier, and comes first."""
    slow = [result_of(4, slow=("n3", 1.5))] * 3 + [result_of(4)] * 2
    steps, _ = read(written(tmp_path, slow))
    first, *others = compare(steps)
    assert first == ("n3", Spread(1.5, 1, 1.5), 6, 10)
    assert first.is_outlier
    assert [each.name for each in others] == ["n1", "n2", "n4"]
    assert not any(each.is_outlier for each in others)
    seldom, _ = read(written(tmp_path, slow[2:]))
    assert not any(each.is_outlier for each in compare(seldom))


@pytest.mark.parametrize(
    ("factor", "nnodes", "outliers"),
    [(1.2, 4, []), (1.3, 4, ["n2"]), (1.3, 3, ["n2"]), (9, 2, []), (0.5, 4, [])],
)
def test_what_is_no_outlier(
    factor: float, nnodes: int, outliers: list[str], tmp_path: Path
) -> None:
    """A node is not an outlier if it is a little slower, faster, or one of two."""
    steps, _ = read(written(tmp_path, [result_of(nnodes, slow=("n2", factor))]))
    assert [each.name for each in compare(steps) if each.is_outlier] == outliers


def test_no_outlier_if_all_nodes_differ(tmp_path: Path) -> None:
    """If the times of all nodes are far apart, the slowest node is not an outlier."""
    result = result_of(4)
    for contender in CONTENDERS:
        times = [1, 1, 2, 2, 3, 3, 4, 4]
        result["measured"][0][contender]["rank_seconds"] = times
    steps, _ = read(written(tmp_path, [result]))
    ratios = [(each.name, each.ratio.median) for each in compare(steps)]
    assert ratios == [("n4", 2), ("n3", 1.5), ("n2", 2 / 3), ("n1", 1 / 3)]
    assert not any(each.is_outlier for each in compare(steps))


def spoiled(*path: str | int, value: object) -> bytes:
    """Return the line of a result in which the value at `path` is replaced."""
    result: Any = result_of(2)
    place = result
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return json.dumps(result).encode() + b"\n"


@pytest.mark.parametrize(
    "line",
    [
        *(b"{}\n", b"[]\n", b"null\n", b"7\n", b"\0\0\0\n", b"\xff\xfe\n"),
        b"[" * 100_000 + b"\n",
        spoiled("step", value=None),
        spoiled("hosts", value=["n1"]),
        spoiled("hosts", value=["n1"] * 4),
        spoiled("measured", value=7),
        spoiled("measured", 0, OURS, "seconds", value=[]),
        spoiled("measured", 0, OURS, "seconds", value=[float("nan")]),
        spoiled("measured", 0, OURS, "seconds", value=["1"]),
        spoiled("measured", 0, OURS, "seconds", value=[-1]),
        spoiled("measured", 0, OURS, "rank_seconds", value=[1]),
        spoiled("measured", 0, "mpi", value={}),
        spoiled("measured", 0, "block_bytes", value=0),
        spoiled("measured", 0, "total_bytes", value=10**400),
        spoiled("opening", "messages", value="many"),
    ],
)
def test_what_is_no_result(line: bytes, tmp_path: Path) -> None:
    """A line that is not a result is left out, with a note; the other lines count."""
    path = written(
        tmp_path, [result_of(2)], b"\n" + line + json.dumps(result_of(4)).encode()
    )
    steps, (note,) = read(path)
    assert [each.nnodes for each in steps] == [2, 4]
    assert note.startswith("line 3 is left out: no results")


def test_a_line_cut_off(tmp_path: Path) -> None:
    """A last line that was cut off, as happens when a job is killed, is left out."""
    whole = json.dumps(result_of(4)).encode()
    for length in (1, 100, len(whole) - 1):
        path = written(tmp_path, [result_of(2)], whole[:length])
        steps, (note,) = read(path)
        assert len(steps) == 1
        assert note.startswith("line 2 is left out: cut off")


def test_page(tmp_path: Path) -> None:
    """The page contains its pictures, names outliers, and says what is left out.

    Text from the results is escaped, so that it cannot add elements to the page.
    """
    try:
        from bench.scaling import report
    except ImportError:
        skip_or_fail("matplotlib is not installed: pip install 'mpimcast[bench]'")
    results = [result_of(each, slow=("n2", 1.5)) for each in (1, 2, 4)]
    results[0]["measured"][0]["path"] = "mpi"
    results.append(result_of(3, opening={"seconds": 0, "messages": 0, "bytes": 0}))
    results[-1]["step"]["order"] = "<script>"
    written(tmp_path, results, b'{"step": "<script>')
    page = report.write(tmp_path).read_text()
    pictures = list(tmp_path.glob("*.png"))
    assert len(pictures) == 4  # two orders, nodes, opening
    assert page.count('src="data:image/png;base64,') == 4
    assert not re.search(r'(src|href)="(?!data:)', page)
    assert not re.search(r"\$\w", page)
    assert "<script>" not in page
    assert "line 5 is left out: cut off" in page
    assert "<td>n2</td><td>1.25</td><td>1.00 to 1.50</td><td>2 of 4</td>" in page
    assert "<td>100 ms (by the library)</td>" in page
    assert '<span class="ahead">2.00</span>' in page
    written(tmp_path, [], b"{}")
    with pytest.raises(ValueError, match="has no results; line 1 is left out"):
        report.write(tmp_path)
