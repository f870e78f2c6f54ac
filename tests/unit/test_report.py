# SPDX-License-Identifier: BSD-3-Clause
"""The benchmark's measurements, the figures derived from them, and the results page."""

from __future__ import annotations

import dataclasses
import json
import re
from html import escape
from pathlib import Path

import pytest
from measurements import BLOCK_BYTES, MEASUREMENTS, NETWORK, measured
from support import ROOT, skip_or_fail

from bench.cells import comparison, summary
from bench.cells.ratio import ratio
from bench.jobs import job, measurement
from bench.page.spread import Spread


def test_lines() -> None:
    """A measurement can be read back from its line; any other line is an error.

    A line of earlier versions, which has "way" instead of "contender", can be read too.
    """
    for each in MEASUREMENTS:
        assert "\n" not in each.line()
        assert measurement.parse(each.line()) == each
    found = json.loads(MEASUREMENTS[0].line())
    earlier = {"way" if key == "contender" else key: found[key] for key in found}
    assert measurement.parse(json.dumps(earlier)) == MEASUREMENTS[0]
    for line in ("1", "{}", json.dumps({**found, "x": 1})):
        with pytest.raises(ValueError, match="not a measurement"):
            measurement.parse(line)


def test_summary() -> None:
    """A contender's time is the median of its rounds' times.

    A round's time is the median of its operations' times. Bytes, drops and repairs are
    taken from all rounds.
    """
    ((scenario, contenders),) = summary.summarise(MEASUREMENTS).items()
    assert list(contenders) == ["mpimcast", "mpich", "openmpi-tuned"]
    (ours,) = contenders["mpimcast"]
    assert ours.rounds == {0: 2, 1: 4}
    assert ours.seconds == Spread(3, 2, 4)
    # The busiest host sent 4 blocks in each of two rounds of three operations.
    assert ours.host_blocks == pytest.approx(8 / 6)
    assert ours.trunk_blocks is None
    assert (ours.processor_s, ours.dropped_frames) == (0.5, 8)
    assert (ours.lost_chunks, ours.repair_bytes, ours.lost_bytes) == (6, 100, 80)
    assert not ours.by_library
    assert summary.link_part(scenario, ours) == 3 * BLOCK_BYTES / (3 * 10**7 + 1000)


def test_ratio() -> None:
    """The speed relative to the best peer's is the median over the rounds.

    With ``tuned=False`` only peers without tuning are considered.
    """
    (contenders,) = summary.summarise(MEASUREMENTS).values()
    assert ratio(contenders, BLOCK_BYTES) == ("openmpi-tuned", Spread(0.75, 0.5, 1))
    assert ratio(contenders, BLOCK_BYTES, tuned=False) == ("mpich", Spread(1, 0.5, 1.5))
    assert ratio(contenders, 1) is None
    assert ratio({"mpimcast": contenders["mpimcast"]}, BLOCK_BYTES) is None


def test_gloo() -> None:
    """Gloo is compared by itself: it is no peer, even where it is the fastest.

    What needs gloo is left out if it was not measured.
    """
    gloo = [
        measured("gloo", number, [0.5], processor_seconds=[0.4]) for number in range(2)
    ]
    found = summary.summarise([*MEASUREMENTS, *gloo])
    (contenders,) = found.values()
    assert ratio(contenders, BLOCK_BYTES) == ("openmpi-tuned", Spread(0.75, 0.5, 1))
    (compared,) = comparison.compare(found)
    assert compared.peer.contender == "openmpi-tuned"
    assert compared.speed_over_gloo == Spread(0.1875, 0.125, 0.25)
    assert compared.processor_share_of_gloo == pytest.approx(1.25)
    (compared,) = comparison.compare(summary.summarise(MEASUREMENTS))
    assert compared.speed_over_gloo is compared.processor_share_of_gloo is None


def test_committed_tables() -> None:
    """The tables of cells in both READMEs match the committed measurements."""
    try:
        from bench.cells import report
    except ImportError:
        skip_or_fail("matplotlib is not installed: pip install 'mpimcast[bench]'")
    results = (ROOT / "bench/results/README.md").read_text(encoding="utf-8")
    rows = set()
    for folder in (ROOT / "bench/results").glob("20??-??-??"):
        found = summary.summarise(measurement.read(sorted(folder.glob("*.jsonl"))))
        rows |= {without_times(line) for line in report.largest_table(found)}
        assert "\n".join(report.largest_table(found)) in results
        assert "\n".join(report.goals_table(found)) in results
        (page,) = folder.glob("*.html")
        said = page.read_text(encoding="utf-8")
        for sentence in comparison.conclusion(found):
            assert escape(sentence) in said
        for lines in (report.largest_table(found), report.goals_table(found)):
            labels = [line.split("|")[1] for line in lines]
            assert len(set(labels)) == len(labels)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"^\| [A-Z]\. .*$", readme, re.MULTILINE))
    assert len(shown) > 2
    assert shown <= rows


def without_times(line: str) -> str:
    """Return a row without time, peer and gloo's two columns, as in README.md."""
    cells = line.split("|")
    return "|".join(cells[:3] + cells[5:8] + cells[-1:])


def test_conclusion() -> None:
    """The conclusion says in how many comparisons mpimcast is faster, and by how much.

    Only the largest blocks of each scenario count. A sentence for each cell follows.
    """
    measurements = [
        measured(contender, 0, [seconds], cell=cell, block_bytes=nbytes)
        for cell, nbytes, ours_s in (("A", 1024, 9), ("A", 2048, 1), ("C", 1024, 8))
        for contender, seconds in (("mpimcast", ours_s), ("mpich", 2), ("openmpi", 4))
    ]
    first, *cells = comparison.conclusion(summary.summarise(measurements))
    assert "faster than the best peer in 1 of 2 comparisons" in first
    assert "slower in 1." in first
    fast, slow = cells
    assert fast.startswith(
        "A. One switch, limited links: mpimcast is 2.00 times as fast"
    )
    assert "sends 100 % of the peer's bytes and takes 100 % of the peer's" in fast
    assert fast.endswith("(blocks of 2 KiB).")
    assert slow.startswith("C. ")
    assert "mpimcast is 0.25 times as fast" in slow


def test_stages() -> None:
    """A run's counters are divided by its epochs, to give those of one operation."""
    counted = {"epochs": 8, "entry_ns": 4 * 10**9, "tx_control_datagrams": 20}
    (contenders,) = summary.summarise(
        [measured("mpimcast", 0, [1], counters=counted)]
    ).values()
    (ours,) = contenders["mpimcast"]
    assert ours.stages_s == {"entry": 0.5, "multicast": 0, "repair": 0, "release": 0}
    assert ours.control_datagrams == 2.5


def test_calls() -> None:
    """System calls are divided by the MiB that they sent and received, with repairs."""
    counted = {
        "epochs": 1,
        "tx_calls": 30,
        "tx_multicast_bytes": 2 << 20,
        "tx_repair_bytes": 1 << 20,
        "rx_calls": 12,
        "rx_multicast_bytes": 8 << 20,
    }
    (contenders,) = summary.summarise(
        [measured("mpimcast", 0, [1], counters=counted), *MEASUREMENTS[2:]]
    ).values()
    ours = contenders["mpimcast"][0]
    assert (ours.sending_calls, ours.receiving_calls) == (10, 1.5)
    assert contenders["mpich"][0].sending_calls == 0


def test_by_library() -> None:
    """If mpimcast multicast no operation, its result is marked as the MPI library's."""
    measurements = [
        measured("mpimcast", 0, [1], counters={"epochs": 0}),
        *MEASUREMENTS[2:],
    ]
    (contenders,) = summary.summarise(measurements).values()
    assert contenders["mpimcast"][0].by_library
    assert not contenders["mpich"][0].by_library


@pytest.mark.parametrize(
    ("nbytes", "collective", "is_enough"),
    [(300, "Allgather", True), (299, "Allgather", False), (100, "Bcast", True)],
)
def test_links(nbytes: int, collective: str, *, is_enough: bool) -> None:
    """A measurement is refused if a host's link carried less than the host received.

    A host receives three of four blocks of 100 bytes; by a Bcast, one block or none.
    """
    root = {"sent_bytes": 300 if collective == "Allgather" else 0}
    ports = {"host0": {"sent_bytes": 0}, "to0": root, "to1": {"sent_bytes": nbytes}}
    found = measured(
        "mpich", 0, [1], block_bytes=100, collective=collective, ports=ports
    )
    if is_enough:
        job.check_links(found)
    else:
        with pytest.raises(RuntimeError, match="not all went over its link"):
            job.check_links(found)


def test_page(tmp_path: Path) -> None:
    """The page contains its pictures, needs no other file, and shows the ratios."""
    try:
        from bench.cells import report
    except ImportError:
        skip_or_fail("matplotlib is not installed: pip install 'mpimcast[bench]'")
    more = [
        dataclasses.replace(each, block_bytes=2 * BLOCK_BYTES) for each in MEASUREMENTS
    ]
    lossy = dataclasses.replace(NETWORK, loss=0.01)
    more += [dataclasses.replace(each, cell="D") for each in MEASUREMENTS]
    more += [
        dataclasses.replace(each, cell="D", network=lossy) for each in MEASUREMENTS
    ]
    lines = [f"{each.line()}\n" for each in (*MEASUREMENTS, *more)]
    (tmp_path / "A.jsonl").write_text("".join(lines))
    page = report.write(tmp_path).read_text()
    heads = re.findall(r"<h2>(.*?)</h2>", page)
    assert heads[0] == "Conclusion"
    assert heads[-1] == "Goals"
    for rows in re.findall(r"<table>(.*?)</table>", page, re.DOTALL):
        for part in rows.split('<tr class="group">'):
            labels = re.findall(r'<tr class="(?:ours)?"><td>(.*?)</td>', part)
            assert len(set(labels)) == len(labels)
    pictures = list(tmp_path.glob("*.png"))
    assert len(pictures) == 4
    assert page.count('src="data:image/png;base64,') == 4
    assert not re.search(r'(src|href)="(?!data:)', page)
    assert not re.search(r"\$\w", page)
    assert "0.75 (0.50 to 1.00)" in page
    (*_, row) = report.largest_table(summary.summarise(MEASUREMENTS))
    assert "| 3,000 ms | Open MPI 5, tuned | 0.75 (0.50 to 1.00) | " in row
    assert row.endswith("| 100 % |")
    gloo = [measured("gloo", number, [1.5]) for number in range(2)]
    found = summary.summarise([*MEASUREMENTS, *gloo])
    heads, _, row = report.largest_table(found)
    assert heads.endswith("| times as fast as gloo | processor time, of gloo's |")
    assert row.endswith("| 100 % | 0.56 (0.38 to 0.75) | 100 % |")
    assert heads.count("|") == row.count("|")
    with pytest.raises(ValueError, match="has no measurements"):
        report.write(tmp_path / "empty")
