# SPDX-License-Identifier: BSD-3-Clause
"""The benchmark's measurements, the figures derived from them, and the results page."""

from __future__ import annotations

import dataclasses
import json
import re
from html import escape
from pathlib import Path

import pytest
from support import ROOT, skip_or_fail

from bench.cells import comparison, goals, summary
from bench.cells.ratio import ratio
from bench.jobs import job, measurement
from bench.jobs.measurement import Measurement, Network
from bench.page.spread import Spread

NETWORK = Network("cluster", rate_mbit=80, burst_bytes=1000)  # 10^7 bytes a second
BLOCK_BYTES = 100_000


def measured(
    contender: str, round_: int, seconds: list[float], **changes: object
) -> Measurement:
    """Return a measurement of an Allgather of four ranks, with these changes.

    It has two hosts' ports and the two switch ports to these hosts. The same number of
    bytes left through each port.
    """
    port = {"sent_bytes": 4 * BLOCK_BYTES, "sent_frames": 9, "dropped_frames": 1}
    found = Measurement(
        cell="A",
        contender=contender,
        collective="Allgather",
        nranks=4,
        block_bytes=BLOCK_BYTES,
        round=round_,
        network=NETWORK,
        seconds=seconds,
        processor_seconds=[0.5 for _ in seconds],
        ports={
            name: port for kind in ("host", "to") for name in (f"{kind}0", f"{kind}1")
        },
        counters={"epochs": 4, "rx_lost_chunks": 3, "tx_repair_bytes": 50},
        lost={"bytes": 40},
        versions={"mpi": "some MPI"},
        load=[1.0, 2.0],
        begin="2026-01-01",
    )
    return dataclasses.replace(found, **changes)  # type: ignore[arg-type]


MEASUREMENTS = [
    *(measured("mpimcast", 0, [1, 2, 3]), measured("mpimcast", 1, [4, 4, 4])),
    *(measured("mpich", 0, [3]), measured("mpich", 1, [2])),
    *(measured("openmpi-tuned", 0, [2]), measured("openmpi-tuned", 1, [2])),
]


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


def test_goals_beside_gloo() -> None:
    """Processor time is compared with gloo's, the speed with the best peer's only."""
    sizes = (goals.MIB, 2 * goals.MIB)
    measurements = [
        measured(name, 0, [1], block_bytes=nbytes, processor_seconds=[used_s])
        for nbytes in sizes
        for name, used_s in (("mpimcast", 3 * nbytes), ("mpich", 9 * goals.MIB))
    ]
    what = "processor time as a share of gloo's"
    assert what not in {
        each.goal.what for each in goals.reached(summary.summarise(measurements))
    }
    measurements += [
        measured(
            "gloo", 0, [0.1], block_bytes=nbytes, processor_seconds=[4 * goals.MIB]
        )
        for nbytes in sizes
    ]
    found = {
        each.goal.what: (each.figure, each.holds, each.block_bytes)
        for each in goals.reached(summary.summarise(measurements))
    }
    assert found[what] == (1.5, False, 2 * goals.MIB)
    assert found["times as fast as the best peer"][0] == 1


def test_goals() -> None:
    """A goal's worst figure counts; a goal that was not measured is left out."""
    measurements = [
        measured(contender, 0, [seconds], block_bytes=nbytes)
        for nbytes, ours_s in ((goals.KIB, 9), (goals.MIB, 2), (2 * goals.MIB, 1))
        for contender, seconds in (
            ("mpimcast", ours_s),
            ("mpich", 1.96),
            ("openmpi", 3),
        )
    ]
    found = {
        each.goal.what: (each.figure, each.holds, each.block_bytes)
        for each in goals.reached(summary.summarise(measurements))
    }
    assert found["times as fast as the best peer"] == (0.98, True, goals.MIB)
    assert found["chunks lost"] == (3, False, goals.MIB)
    assert "blocks over the trunk" not in found


def test_goals_under_loss() -> None:
    """A time under loss is compared with the time without loss in the same round."""
    lossy = dataclasses.replace(NETWORK, loss=0.01)
    measurements = [
        measured("mpimcast", number, [seconds], cell="D", network=network)
        for network, rounds in ((NETWORK, (1, 2, 4)), (lossy, (1.5, 2, 8)))
        for number, seconds in enumerate(rounds)
    ]
    found = {
        each.goal.what: each for each in goals.reached(summary.summarise(measurements))
    }
    assert found["time as a multiple of that without loss"].figure == 1.5
    assert not found["time as a multiple of that without loss"].holds
    assert found["bytes repaired for each byte lost"].figure == 50 / 40


def test_goals_with_several_ranks_a_host() -> None:
    """A host is sent the blocks of other hosts' ranks, of which there are two here."""
    network = dataclasses.replace(NETWORK, ranks_per_host=2)
    measurements = [
        measured(contender, 0, [seconds], cell="H", network=network)
        for contender, seconds in (("mpimcast", 1), ("openmpi-han", 2))
    ]
    ((scenario, _),) = summary.summarise(measurements).items()
    assert scenario.title().startswith("Allgather, P = 4, 2 ranks a host")
    assert scenario.payload_bytes(BLOCK_BYTES) == 2 * BLOCK_BYTES
    found = {
        each.goal.what: each.figure
        for each in goals.reached(summary.summarise(measurements))
    }
    assert found["times as fast as the best peer"] == 2
    # The port to each host carried four blocks.
    assert found["bytes a host is sent by payload"] == 2


def test_goals_of_programs() -> None:
    """Of a program all calls count, or those after the trials."""
    ours = [[4.0] * 9 + [1.0] * 11, [2.0] * 20]
    measurements = [
        *(
            measured("mpimcast-default", n, each, cell="I")
            for n, each in enumerate(ours)
        ),
        *(measured("openmpi", n, [2.0] * 20, cell="I") for n in range(2)),
    ]
    found = {
        each.goal.what: each.figure
        for each in goals.reached(summary.summarise(measurements))
    }
    # The median of two rounds is their mean.
    assert found["times as fast as the MPI library, with trials"] == pytest.approx(
        (40 / 47 + 1) / 2
    )
    assert found["times as fast after them"] == 1.5


def test_committed_tables() -> None:
    """The tables of both READMEs match the committed measurements."""
    try:
        from bench.cells import report
    except ImportError:
        skip_or_fail("matplotlib is not installed: pip install 'mpimcast[bench]'")
    results = (ROOT / "bench/results/README.md").read_text(encoding="utf-8")
    rows = set()
    for folder in (ROOT / "bench/results").iterdir():
        if not folder.is_dir():
            continue
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
    _, _, *shown = (line for line in readme.splitlines() if line.startswith("|"))
    assert len(shown) > 2
    assert set(shown) <= rows


def without_times(line: str) -> str:
    """Return a row without the two columns that README.md lacks: time and peer."""
    cells = line.split("|")
    return "|".join(cells[:3] + cells[5:])


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


def test_goal_labels() -> None:
    """No two goals have the same label."""
    labels = [goal.label for goal in goals.GOALS]
    assert len(set(labels)) == len(labels)


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
