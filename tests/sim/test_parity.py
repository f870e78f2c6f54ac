# SPDX-License-Identifier: BSD-3-Clause
"""Codes in the simulator: parity mends losses, and the command tells about it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from simulated import HEADER_BYTES, MS, run, total

from mpimcast.cli.sim import simulator as sim
from mpimcast.cli.sim.command import main

LOSSY = "--ranks 16 --bytes 1M --kind bcast --loss 1%"


def simulated(arguments: str, capsys: pytest.CaptureFixture[str]) -> Any:
    """Run the command with these arguments, and return its JSON."""
    assert main([*arguments.split(), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def counted(result: sim.Plain) -> list[int]:
    """Return the counters of parity, over all ranks."""
    names = ("parity_sent", "parity_used", "groups_mended", "fell_back")
    return [total(result, name) for name in names]


@pytest.mark.parametrize(("delay_ms", "saved_ms"), [(0, 100), (1000, 50)])
def test_parity_saves_a_round_trip(delay_ms: int, saved_ms: int) -> None:
    """With parity the losses of a long link cost no round trip, and without it one.

    A late root sends before all others have heard that all ranks have entered. The last
    rank to hear that loses half a round trip anyway, so parity saves less.
    """
    trip_ns = 100 * MS
    spec = {
        "nranks": 8,
        "kind": 3,
        "root": 0,
        "block_bytes": 1 << 20,
        "window_bytes": 1 << 26,
        "buffer_bytes": 1 << 26,
        "latency_ns": trip_ns // 4,
        "loss_ppm": 3000,
        "seed": 3,
        "delayed_rank": 0,
        "delay_ns": delay_ms * MS,
    }
    repeated = run(**spec)
    coded = run(**spec, code_data=32, code_parity=4)
    assert total(repeated, "lost_chunks") > 0
    assert total(coded, "groups_mended") > total(coded, "lost_chunks") == 0
    assert coded["time_ns"] + saved_ms * MS <= repeated["time_ns"]


def test_parity_takes_no_longer_than_its_bytes() -> None:
    """Parity adds only the time of its bytes, if windows are full and reports late."""
    ns_of_a_byte = 80
    spec = {
        "nranks": 8,
        "block_bytes": 1 << 20,
        "chunk_bytes": 1456,
        "window_bytes": 1 << 20,
        "buffer_bytes": 1 << 26,
        "latency_ns": 6_250_000,
        "link_mbits": 100,
        "known_mbits": 100,
    }
    plain_ns, coded = run(**spec)["time_ns"], run(**spec, code_data=32, code_parity=1)
    heard = total(coded, "parity_sent") * 7 // 8
    most_ns = heard * (1456 + HEADER_BYTES + 100) * ns_of_a_byte
    assert 0 < coded["time_ns"] - plain_ns < most_ns


def test_command_says_what_parity_did(capsys: pytest.CaptureFixture[str]) -> None:
    """The report has the four counters where there is a code, on a fabric, too."""
    for where in ("", " --fabric clos2:radix=8"):
        found = simulated(f"{LOSSY}{where} --code 32,2", capsys)
        spec = found["spec"]
        assert (spec["code_data"], spec["code_parity"]) == (32, 2)
        sent, used, mended, fell_back = counted(found["result"])
        assert sent >= 16
        assert used >= mended > 0
        assert main(f"{LOSSY}{where} --code 32,2".split()) == 0
        assert (
            f"parity    {sent} chunks sent, {used} used; {mended} groups mended, "
            f"{fell_back} chunks requested all the same\n"
        ) in capsys.readouterr().out
        assert main(f"{LOSSY}{where}".split()) == 0
        assert "parity" not in capsys.readouterr().out


def test_auto_fears_what_it_does_not_know(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The first operation has parity, and what is learnt decides about the others."""
    far = f"{LOSSY} --latency 25000 --window 64M --buffer 64M --code 32,4"
    first = simulated(f"{far} --code-auto 1", capsys)["result"]
    assert counted(first)[0] > 0
    several = simulated(f"{far} --ops 4 --code-auto 1", capsys)["result"]
    always = simulated(f"{far} --ops 4", capsys)["result"]
    assert counted(always)[0] >= counted(several)[0] > 4 * counted(first)[0]


def test_auto_finds_out_that_nothing_is_lost(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Where nothing is lost parity comes to an end, and it costs little before."""
    near = f"{LOSSY} --loss 0 --chunk 1456 --code 32,4 --code-auto 1"
    nchunks = -(-(1 << 20) // 1456)
    sent = [
        counted(simulated(f"{near} --ops {nops}", capsys)["result"])[0]
        for nops in (1, 16, 32)
    ]
    assert 0 < sent[0] <= -(-nchunks // 16) < sent[1] == sent[2] < 16 * sent[0]


def test_parity_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    """With no parity chunks in a code, they are sent only after losses.

    No more are sent than chunks are requested. Each may mend chunks of several ranks.
    """
    lossless = "--ranks 16 --bytes 1M --kind bcast --code 32,0"
    assert counted(simulated(lossless, capsys)["result"]) == [0, 0, 0, 0]
    sent, used, mended, fell_back = counted(
        simulated(f"{LOSSY} --code 32,0", capsys)["result"]
    )
    assert 0 < sent <= fell_back
    assert sent < mended <= used


def test_eager_blocks_have_no_code(capsys: pytest.CaptureFixture[str]) -> None:
    """A block of one chunk that is sent before all are ready is not coded."""
    small = "--ranks 8 --bytes 4K --code 8,2"
    assert counted(simulated(small, capsys)["result"]) == [0, 0, 0, 0]
    found = simulated(f"{small} --eager 0", capsys)
    assert counted(found["result"])[0] >= 8


def test_a_code_changes_a_case(capsys: pytest.CaptureFixture[str]) -> None:
    """A random case that would place chunks directly gives that up for a code."""
    seed = next(seed for seed in range(100) if sim.case_spec(seed)["zero_copy"])
    spec = simulated(f"--case {seed} --code 8,2", capsys)["spec"]
    changed = {"code_data": 8, "code_parity": 2, "zero_copy": 0}
    assert spec == {**sim.case_spec(seed), **changed}


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ("--code 8", "it must be two numbers K,M"),
        ("--code 0,0", "from 1 to 128 data chunks"),
        ("--code 4,5", "at most as many parity chunks"),
        ("--code 128,33", "from 0 to 32"),
        ("--code 8,2 --zero-copy 4", "parity may mend cannot be received --zero-copy"),
        ("--code 8,2 --cases 3", "beside --cases only"),
    ],
)
def test_refusals(arguments: str, why: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What is no code, and where there can be none, is refused with words."""
    with pytest.raises(SystemExit):
        main(arguments.split())
    assert why in capsys.readouterr().err
