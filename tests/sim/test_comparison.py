# SPDX-License-Identifier: BSD-3-Clause
"""``sim --fabric``: figures against what brute force counts on the graph."""

from __future__ import annotations

import json
from math import ceil
from typing import Any

import numpy as np
import pytest
from simulated import HEADER_BYTES

from mpimcast._fabric.catalogue import built
from mpimcast._fabric.link import Link
from mpimcast._fabric.placement import interleaved
from mpimcast._fabric.routes import Routes
from mpimcast._fabric.subnet_manager import SubnetManager
from mpimcast._fabric.traffic import multicast, unicast
from mpimcast._peers.catalogue import ALLGATHERS, BROADCASTS
from mpimcast.cli.sim.command import main
from mpimcast.cli.sim.figures import percentile

UINT64_MAX = 2**64 - 1
FRAME_BYTES = 42  # of Ethernet, IP and UDP
CHUNK_BYTES = 1000

SMALL = "--fabric clos2:radix=4,hosts=7 --bytes 4000 --chunk 1000 --eager 0"


def compared(arguments: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """Run the command with arguments, and return what it prints as JSON."""
    assert main([*arguments.split(), "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def algorithm(found: dict[str, Any], name: str) -> dict[str, Any]:
    """Return one algorithm's figures."""
    (row,) = (row for row in found["algorithms"] if row["name"] == name)
    return dict(row)


# ---- figures -----------------------------------------------------------------


@pytest.mark.parametrize("peer", ALLGATHERS)
def test_bytes_of_peers_are_those_of_the_graph(
    peer: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each link carries what brute force counts, with each packet's headers."""
    text = "fat-tree:k=4,hosts=12"
    found = compared(
        f"--fabric {text} --bytes 2500 --chunk {CHUNK_BYTES} --seed 5 "
        f"--placement interleaved --against {peer}",
        capsys,
    )
    fabric = interleaved(built(text))
    schedule = ALLGATHERS[peer](fabric.racks.tolist(), 2500)
    packets = np.ceil(schedule.nbytes / CHUNK_BYTES).astype(np.uint64)
    nbytes = schedule.nbytes + packets * np.uint64(HEADER_BYTES + FRAME_BYTES)
    ends = schedule.sender, schedule.receiver
    counted = unicast(Routes(fabric), *ends, nbytes, UINT64_MAX - 5)
    row = algorithm(found, peer)
    assert row["runs"][0]["link_bytes"] == counted.tolist()
    assert row["class_bytes"] == fabric.links.by_class(counted)
    assert row["bytes"] == counted.sum()


def test_bytes_of_multicast_are_those_of_the_tree(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Chunks of mpimcast take each link of the tree once; repairs are none."""
    found = compared(SMALL, capsys)
    fabric = built("clos2:radix=4,hosts=7")
    (tree,) = SubnetManager(fabric, Routes(fabric)).trees(range(7))
    sent = np.full(7, 4 * (CHUNK_BYTES + HEADER_BYTES + FRAME_BYTES), np.uint64)
    links = found["result"]["links"]
    assert [each["kind_bytes"][0] for each in links] == multicast(tree, sent).tolist()
    row = algorithm(found, "mpimcast")
    assert row["bytes"] == sum(each["bytes"] for each in links)
    assert row["repair_bytes"] == row["lost_datagrams"] == 0


def test_times(capsys: pytest.CaptureFixture[str]) -> None:
    """Times follow from the runs, and none is below the bound."""
    found = compared(f"{SMALL} --loss 2% --seeds 5 --seed 3 --against ring", capsys)
    assert found["bound_ns"] == 6 * 4000 * 8000 // 100_000
    for row in found["algorithms"]:
        assert [run["seed"] for run in row["runs"]] == [3, 4, 5, 6, 7]
        times = sorted(run["time_ns"] for run in row["runs"])
        ends = sorted(end for run in row["runs"] for end in run["ends_ns"])
        assert times[0] > found["bound_ns"]
        assert row["time_ns"] == times[2]
        assert row["over_bound"] == times[2] / found["bound_ns"]
        assert (row["p50_ns"], row["p99.9_ns"]) == (ends[17], ends[34])
    ours, ring = (algorithm(found, name) for name in ("mpimcast", "ring"))
    assert ours["lost_datagrams"] > 0
    assert ours["repair_bytes"] > 0
    # Peers travel over lossless links.
    assert ring["lost_datagrams"] == ring["repair_bytes"] == 0


def test_percentiles() -> None:
    """A percentile is a value that is there: the least that suffices."""
    values = np.array([40, 10, 30, 20])
    found = [percentile(values, part) for part in (1, 250, 251, 500, 999, 1000)]
    assert found == [10, 10, 20, 20, 40, 40]
    assert percentile(np.arange(1, 2001), 999) == 1998


def test_the_most_loaded_link(capsys: pytest.CaptureFixture[str]) -> None:
    """A slow class of links is the busiest, for at most all of the time."""
    found = compared(f"{SMALL} --trunk-rate 1 --against ring", capsys)
    for row in found["algorithms"]:
        loaded = row["most_loaded"]
        link = found["links"][loaded["link"]]
        assert link["class"] in {"leaf up", "leaf down"}
        assert link["mbits"] == 1000
        assert loaded["bytes"] == row["runs"][0]["link_bytes"][loaded["link"]]
        assert loaded["load"] == loaded["bytes"] * 8 / row["time_ns"]
        assert 0.5 < loaded["load"] <= 1
        assert row["deepest"]["bytes"] == max(row["class_deepest_bytes"].values())
        assert found["links"][row["deepest"]["link"]]["class"] != "host up"


def test_the_deepest_queue(capsys: pytest.CaptureFixture[str]) -> None:
    """No queue of a switch holds more than it can; what hosts hold is none."""
    found = compared(f"{SMALL} --bytes 64K --trunk-rate 1 --queue 8K", capsys)
    row = algorithm(found, "mpimcast")
    assert 4000 < row["deepest"]["bytes"] <= 8192
    assert set(row["class_deepest_bytes"]) == {"host down", "leaf up", "leaf down"}
    assert max(row["runs"][0]["deepest_bytes"][:7]) > 8192


def test_beside_a_reduce_scatter(capsys: pytest.CaptureFixture[str]) -> None:
    """A Reduce-Scatter adds its bytes and, where links are shared, its time."""
    alone, rings, switches = (
        compared(f"{SMALL} --bytes 64K --against ring {beside}", capsys)
        for beside in (
            "",
            "--beside reduce-scatter-ring",
            "--beside reduce-scatter-in-switches",
        )
    )
    assert alone["bound_ns"] == ceil(6 * 65536 * 8000 / 100_000)
    assert rings["bound_ns"] == switches["bound_ns"] == ceil(7 * 65536 * 8000 / 100_000)
    for name in ("mpimcast", "ring"):
        before, after = (algorithm(found, name) for found in (alone, rings))
        payload = 7 * 6 * 65536
        up = after["class_bytes"]["host up"] - before["class_bytes"]["host up"]
        assert payload < up < 1.2 * payload
        assert after["time_ns"] > 1.5 * before["time_ns"]
    # What switches reduce comes to each rank once, so mpimcast's chunks hardly wait.
    ours = algorithm(switches, "mpimcast")
    assert ours["time_ns"] < 1.5 * algorithm(alone, "mpimcast")["time_ns"]
    assert ours["time_ns"] < algorithm(switches, "ring")["time_ns"]


def test_background_takes_its_share(capsys: pytest.CaptureFixture[str]) -> None:
    """Other jobs' messages slow all algorithms down, and no result is wrong."""
    free, shared = (
        compared(
            "--fabric clos2:radix=8,hosts=20 --ranks 16 --bytes 64K --against ring "
            f"--placement interleaved {more}",
            capsys,
        )
        for more in ("", "--background 40%")
    )
    for name in ("mpimcast", "ring"):
        before, after = algorithm(free, name), algorithm(shared, name)
        assert after["time_ns"] > before["time_ns"]
        assert after["bytes"] > before["bytes"]


def test_all_that_can_run_do(capsys: pytest.CaptureFixture[str]) -> None:
    """An odd number of ranks leaves out neighbour exchange, with words."""
    found = compared(f"{SMALL} --against all", capsys)
    names = [row["name"] for row in found["algorithms"]]
    assert names == ["mpimcast", *(n for n in ALLGATHERS if n != "neighbour-exchange")]
    (why,) = found["left_out"]
    assert "neighbour-exchange: neighbours cannot exchange in pairs" in why
    found = compared(f"{SMALL} --kind bcast --root 2 --against all", capsys)
    assert [row["name"] for row in found["algorithms"]] == ["mpimcast", *BROADCASTS]
    assert found["bound_ns"] == 4000 * 8000 // 100_000


# ---- where ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        "--fabric single",
        "--fabric single:hosts=2 --ranks-per-node 3",
        "--fabric clos2:radix=6,oversubscription=2 --trees pim --routing adaptive",
        "--fabric clos3:radix=4,hosts=6 --subgroups 3 --placement shuffled",
        "--fabric fat-tree:k=4,hosts=9 --jitter 1 --receive 0.2 --skew 20",
        "--fabric paper:hosts=40 --ranks 9 --placement interleaved --repair read",
        "--fabric dragonfly:a=2,p=2,h=1 --chains 3 --window 16K",
        "--fabric rails:pods=2,nodes=2,rails=2 --kind bcast",
        "--fabric two-sites:site=clos2,radix=4,hosts=4,long-rate=10,long-latency=1000",
        "--fabric clos2:radix=4,hosts=8 --outage leaf --outage-place 1 --outage-end 3",
        "--fabric clos2:radix=4,hosts=8 --outage link --outage-place 16 --outage-end 3",
        "--fabric clos2:radix=4,hosts=4 --ops 3 --streams 2 --queue 64K --latency 2",
        "--fabric clos2:radix=4,hosts=4 --link-loss leaf-up=2% --link-loss 1=0.1",
    ],
)
def test_runs(options: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Every property holds on all fabrics, with all options, and a table says so."""
    assert main([*options.split(), "--bytes", "20000"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("fabric ")
    assert lines[-1] == "every property held"


def test_all_hosts_have_ranks(capsys: pytest.CaptureFixture[str]) -> None:
    """Without --ranks each host has one, or as many as nodes are to have."""
    for options, nranks in (
        ("--fabric paper:hosts=20", 20),
        ("--fabric paper:hosts=20 --ranks 5", 5),
        ("--fabric clos2:radix=4,hosts=3 --ranks-per-node 4", 12),
        ("--fabric single", 4),
        ("--fabric single --ranks 6 --ranks-per-node 4", 6),
    ):
        found = compared(f"{options} --bytes 1000", capsys)
        assert len(found["result"]["ranks"]) == nranks
    assert found["hosts"] == 8


def test_losses_are_where_they_are_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A class loses, or one link, and no other."""

    def losing(options: str) -> set[str]:
        found = compared(f"{SMALL} --bytes 200000 {options}", capsys)
        lost = algorithm(found, "mpimcast")["runs"][0]["lost"]
        pairs = zip(found["links"], lost, strict=True)
        return {f"{link['class']}, {link['name']}" for link, n in pairs if n}

    assert losing("") == set()
    assert {each.partition(",")[0] for each in losing("--loss 5%")} == {"host down"}
    some = losing("--link-loss leaf-up=5%")
    assert {each.partition(",")[0] for each in some} == {"leaf up"}
    assert losing("--loss 1% --link-loss host-down=0 --link-loss 9=5%") == {
        "host down, leaf 1 to host 2"
    }
    others = losing("--uplink-loss 5%")
    assert {"host up", "leaf up"} <= {each.partition(",")[0] for each in others}
    assert not any(each.startswith("host down") for each in others)


def test_rates_and_delays(capsys: pytest.CaptureFixture[str]) -> None:
    """Links have the rate of hosts' unless told otherwise; delays take time."""
    found = compared(f"{SMALL} --rate 10", capsys)
    assert {link["mbits"] for link in found["links"]} == {10_000}
    found = compared(f"{SMALL} --rate 10 --trunk-rate 40", capsys)
    rates = {link["class"]: link["mbits"] for link in found["links"]}
    assert rates == {
        "host up": 10_000,
        "host down": 10_000,
        "leaf up": 40_000,
        "leaf down": 40_000,
    }
    plain, receiving, late, skewed = (
        algorithm(compared(f"{SMALL} {options}", capsys), "mpimcast")["time_ns"]
        for options in ("", "--receive 5", "--latency 50", "--skew 5000")
    )
    assert receiving > plain + 5000
    assert late > plain + 2 * 49_000
    assert skewed > plain + 500_000


def test_help_has_the_defaults_of_fabrics(capsys: pytest.CaptureFixture[str]) -> None:
    """What the help says of links' defaults on a fabric is what links have."""
    with pytest.raises(SystemExit):
        main(["--help"])
    text = " ".join(capsys.readouterr().out.split())
    link = Link("")
    assert f"on a --fabric {link.latency_ns / 1000:g})" in text
    assert f"on a --fabric {link.queue_bytes >> 20}M)" in text
