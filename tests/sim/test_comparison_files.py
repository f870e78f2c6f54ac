# SPDX-License-Identifier: BSD-3-Clause
"""What ``sim --fabric`` refuses, repeats, and writes into files."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import perfetto
import pytest

from mpimcast.cli.sim.command import main

SMALL = "--fabric clos2:radix=4,hosts=7 --bytes 4000 --chunk 1000 --eager 0"


# ---- refusals ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ("--placement shuffled", "--placement needs a --fabric"),
        ("--ranks-per-node 2", "--ranks-per-node needs a --fabric"),
        ("--against ring", "--against needs a --fabric"),
        ("--seeds 3", "--seeds needs a --fabric"),
        ("--background 1%", "--background needs a --fabric"),
        ("--link-loss all=1%", "--link-loss needs a --fabric"),
        ("--picture a.svg", "--picture needs a --fabric"),
        ("--outage link", "--outage link needs a --fabric"),
        ("--failed 64", "--failed needs a --fabric"),
        ("--fabric single --failed 3", "link 3: the links between switches are none"),
        ("--fabric clos2:radix=4 --failed 9,x", "a whole number of at least 0"),
        ("--fabric single --switches 2", "--switches: the --fabric has"),
        ("--fabric single --host-ranks 2", "--ranks-per-node says it"),
        ("--fabric single --case 3", "--case: its network is drawn"),
        ("--fabric single --kind mixed", "--kind mixed: a --fabric compares"),
        ("--fabric single --ops 2 --against ring", "go with one operation"),
        ("--fabric single --against binomial", "algorithms of allgather are ring"),
        ("--fabric single --kind bcast --against ring", "algorithms of bcast are bin"),
        (
            "--fabric single --against rong",
            "there is no algorithm 'rong'; did you mean",
        ),
        ("--fabric single --kind bcast --beside reduce-scatter-ring", "an Allgather"),
        ("--fabric single --picture a.pdf", "end it in .svg or .png"),
        ("--fabric single --link-loss leaf-up", "must be CLASS=PROBABILITY"),
        ("--fabric single --link-loss leaf-up=2", "0 or a probability"),
        ("--fabric single --cases 3", "beside --cases only"),
        ("--trace t.json --cases 3", "beside --cases only"),
        ("--fabric torus", "there is no fabric 'torus'"),
        ("--fabric clos2", "clos2 needs a value of 'radix'"),
        ("--fabric paper --ranks 189", "--ranks 189: the fabric has places for 188"),
        (
            "--fabric rails:pods=1,nodes=2,rails=2 --ranks-per-node 2",
            "as many ranks as rails",
        ),
        (
            "--fabric single --link-loss leaf-up=1%",
            "the classes of links are host-down",
        ),
        ("--fabric single --link-loss 8=1%", "and the links 0 to 7"),
        ("--fabric single --outage link", "the links between switches are none"),
        (f"{SMALL} --outage link --outage-place 13", "between switches are 14 to 29"),
        (f"{SMALL} --outage leaf --outage-place 6", "the switches are 0 to 5"),
        (f"{SMALL} --dead-rank 7", "--dead-rank 7: the 7 ranks are 0 to 6"),
        (f"{SMALL} --queue 900", "--queue 900: a datagram of --chunk 1000 needs"),
        (f"{SMALL} --bytes 0 --against ring", "blocks of 0 bytes send nothing"),
        (f"{SMALL} --against neighbour-exchange", "cannot exchange in pairs"),
        ("--trace /nowhere/t.json", "/nowhere/t.json"),
    ],
)
def test_refusals(arguments: str, why: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What has no meaning is refused with words and status 2."""
    try:
        status = main(arguments.split())
    except SystemExit as end:
        status = end.code
    assert status == 2
    assert why in capsys.readouterr().err


@pytest.mark.parametrize("missing", ["networkx", "matplotlib"])
def test_what_is_missing_is_named(missing: str) -> None:
    """Without the extra's packages the command says how to get them."""
    program = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        "from mpimcast.cli.sim.command import main\n"
        "print(main('--bytes 1000'.split()), file=sys.stderr)\n"
        "sys.exit(main('--fabric single --picture a.svg'.split()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "0",
        f"mpimcast sim: this needs {missing}: pip install 'mpimcast[sim]'",
    ]


# ---- files, and repetition -------------------------------------------------------


def test_the_same_seed_gives_the_same_output(tmp_path: Path) -> None:
    """Two processes print the same, and write the same files, byte for byte."""
    arguments = (
        f"{SMALL} --loss 3% --seeds 2 --placement shuffled --trees pim --against all "
        "--routing adaptive --trace t.json --picture p.svg --json"
    )
    command = [sys.executable, "-m", "mpimcast", "sim", *arguments.split()]
    outputs = []
    for name in ("one", "other"):
        folder = tmp_path / name
        folder.mkdir()
        done = subprocess.run(
            command, cwd=folder, capture_output=True, check=True, timeout=100
        )
        files = [(folder / file).read_bytes() for file in ("t.json", "p.svg")]
        outputs.append([done.stdout, *files])
    assert outputs[0] == outputs[1]
    assert b"class_bytes" in outputs[0][0]
    for name in ("neighbour-exchange", "ring", "host down", "bound"):
        assert (name.encode() in outputs[0][2]) == (name != "neighbour-exchange")


def test_failed_cables(capsys: pytest.CaptureFixture[str]) -> None:
    """All ranks get everything over what is left, and nothing over failed cables."""
    fabric = "--fabric clos2:radix=8,hosts=12 --bytes 20000 --against ring --json"
    lists = []
    for options in ("", " --failed 24,31"):
        assert main((fabric + options).split()) == 0
        lists.append(json.loads(capsys.readouterr().out))
    whole, rest = ([link["name"] for link in found["links"]] for found in lists)
    gone = [name for name in whole if name not in rest]
    assert whole[24] in gone
    assert whole[31] in gone
    assert len(gone) == len(whole) - len(rest) == 4
    for found in lists:
        assert [each["name"] for each in found["algorithms"]] == ["mpimcast", "ring"]


def test_a_png(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The ending of a picture's file says its format."""
    path = tmp_path / "picture.png"
    assert main([*SMALL.split(), "--picture", str(path)]) == 0
    assert path.read_bytes().startswith(b"\x89PNG\r\n")
    capsys.readouterr()


@pytest.mark.parametrize(
    "options",
    [
        "--ranks 5 --streams 2 --ops 3 --loss 2%",
        "--fabric paper --ranks 70 --loss 0.5% --bytes 8192 --seeds 2",
    ],
)
def test_a_trace_shows_what_ranks_do(
    options: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A trace is valid; each rank has its operations, which end when it does."""
    path = tmp_path / "trace.json"
    assert main([*options.split(), "--trace", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    spec, ranks = found["spec"], found["result"]["ranks"]
    entries = perfetto.load(path)
    operations = [each for each in entries if each.get("cat") == "operation"]
    assert len(operations) == spec["nranks"] * spec["nops"] * spec["nstreams"]
    begin_us = min(each["ts"] for each in operations)
    for number, rank in enumerate(ranks):
        mine = [each for each in operations if each["pid"] == number]
        assert {each["args"]["bytes"] for each in mine} == {spec["block_bytes"]}
        end_us = max(each["ts"] + each["dur"] for each in mine)
        assert end_us - begin_us == pytest.approx(rank["end_ns"] / 1000, abs=0.01)
    turns = [each for each in entries if each.get("cat") == "turn"]
    assert len(turns) == len(operations)
    stages = {each["name"] for each in entries if each.get("cat") == "stage"}
    assert {"multicast", "repair"} <= stages
    repairs = [each["name"] for each in entries if each.get("cat") == "repair"]
    counted = sum(int(n.split()[1]) for n in repairs if n.startswith("repaired"))
    assert counted == sum(rank["repaired_chunks"] for rank in ranks) > 0


def test_a_trace_shows_what_other_algorithms_send(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each host sends all that it must, one message after the other, to the end."""
    path, nranks, nbytes = tmp_path / "trace.json", 7, 20_000
    options = (
        f"--fabric single:hosts=9 --ranks {nranks} --bytes {nbytes} --seeds 2 "
        f"--against ring,linear --background 20% --trace {path} --json"
    )
    assert main(options.split()) == 0
    found = json.loads(capsys.readouterr().out)
    first_us = {
        each["name"]: each["runs"][0]["time_ns"] / 1000 for each in found["algorithms"]
    }
    entries = perfetto.load(path)
    names = {
        each["pid"]: each["args"]["name"]
        for each in entries
        if each["name"] == "process_name"
    }
    assert len(names) == 3 * nranks
    for algorithm in ("ring", "linear"):
        pids = [pid for pid, name in names.items() if f"({algorithm}, " in name]
        assert len(pids) == nranks
        for pid in pids:
            messages = [
                each
                for each in entries
                if each["pid"] == pid and each.get("cat") == "message"
            ]
            assert [each["args"]["bytes"] for each in messages] == [nbytes] * 6
            receivers = {each["name"] for each in messages}
            assert len(receivers) == (1 if algorithm == "ring" else nranks - 1)
            for one, other in pairwise(messages):
                assert one["ts"] + one["dur"] <= other["ts"] + 0.001
            last = messages[-1]
            assert 0 < last["ts"] + last["dur"] < first_us[algorithm]
