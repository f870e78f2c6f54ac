# SPDX-License-Identifier: BSD-3-Clause
"""Protection in the simulator: no nonce is used twice under a key, whatever happens."""

from __future__ import annotations

import json

import pytest
from simulated import run, total

from mpimcast.cli.sim import simulator as sim
from mpimcast.cli.sim.command import failure_text, main

OFF, AUTHENTICATE, ENCRYPT = range(3)
NAK, NEIGHBOUR = range(2)

CASES = 150


def protected(seed: int) -> dict[str, object]:
    """Return random case `seed` with protection, which excludes zero-copy receive."""
    return {
        **sim.case_spec(seed),
        "protect": 1 + seed % 2,
        "zero_copy": 0,
        "repair": seed // 2 % 2,
    }


def test_no_nonce_is_used_twice(seed: int, long: bool) -> None:
    """In random cases each datagram has a nonce of its own, and all ends well.

    Losses, failures and repairs by other ranks are among them.
    """
    sealed = 0
    for case in range(seed, seed + CASES * (20 if long else 1)):
        result = sim.run(protected(case))
        assert result["violation"] == "", f"case {case}: {result['violation']}"
        sealed += result["sealed"]
    assert sealed > 20 * CASES


@pytest.mark.parametrize("mode", [AUTHENTICATE, ENCRYPT])
@pytest.mark.parametrize("repair", [NAK, NEIGHBOUR])
def test_duplicates_and_losses(mode: int, repair: int) -> None:
    """What the network doubles is replayed, and what was lost is repaired."""
    result = run(
        nranks=5,
        nops=5,
        block_bytes=200_000,
        protect=mode,
        repair=repair,
        loss_ppm=20_000,
        duplicate_ppm=20_000,
        jitter_ns=50_000,
    )
    assert result["sealed"] > 0
    assert total(result, "lost_chunks") > 0
    assert total(result, "rx_replayed") > 0
    assert total(result, "duplicate_chunks") < total(result, "rx_replayed")
    assert total(result, "rx_forged") == 0


def test_changed_datagrams_are_forged() -> None:
    """A datagram with any bit changed is forged, and the data is right."""
    result = run(
        nranks=4,
        nops=3,
        block_bytes=100_000,
        protect=ENCRYPT,
        checksum=0,
        fault="corrupt=0.05,kind=all",
    )
    assert total(result, "rx_forged") > 0


def test_protection_costs_no_datagram() -> None:
    """Without faults the same datagrams are sent as without, each longer by a seal."""
    sizes = {"nranks": 7, "nops": 4, "block_bytes": 50_000}
    plain = run(**sizes)
    sealed = run(**sizes, protect=AUTHENTICATE)
    assert plain["sealed"] == 0
    ndatagrams = 0
    for before, after in zip(plain["ranks"], sealed["ranks"], strict=True):
        assert before["tx"]["datagrams"][0] == after["tx"]["datagrams"][0]
        assert (
            after["tx"]["bytes"][0]
            == before["tx"]["bytes"][0] + 24 * after["tx"]["datagrams"][0]
        )
        ndatagrams += sum(after["tx"]["datagrams"])
    assert sealed["sealed"] == ndatagrams
    assert plain["time_ns"] < sealed["time_ns"] < 1.1 * plain["time_ns"]


def test_protected_cases(capsys: pytest.CaptureFixture[str], seed: int) -> None:
    """The command runs random cases with protection, and counts what was sealed."""
    assert main(f"--protect encrypt --case {seed} --cases 30".split()) == 0
    cases, sealed = capsys.readouterr().out.splitlines()
    assert cases.startswith("30 cases in ")
    assert int(sealed.split()[0]) > 30


def test_a_protected_case_is_replayed(capsys: pytest.CaptureFixture[str]) -> None:
    """The command that a failure names runs the same spec, without zero-copy."""
    seed = next(seed for seed in range(100) if sim.case_spec(seed)["zero_copy"])
    *_, replay = failure_text(seed, "any", None, AUTHENTICATE).split(" sim ")
    assert replay == f"--protect authenticate --case {seed}"
    assert main([*replay.split(), "--json"]) == 0
    spec = json.loads(capsys.readouterr().out)["spec"]
    assert spec == {**sim.case_spec(seed), "protect": AUTHENTICATE, "zero_copy": 0}


def test_choices_change_a_case(capsys: pytest.CaptureFixture[str]) -> None:
    """Options that are chosen by name change a random case, as others do."""
    assert (
        main(["--case", "1", "--kind", "bcast", "--repair", "neighbour", "--json"]) == 0
    )
    spec = json.loads(capsys.readouterr().out)["spec"]
    assert (spec["kind"], spec["repair"]) == (3, NEIGHBOUR)


def test_protection_excludes_zero_copy(capsys: pytest.CaptureFixture[str]) -> None:
    """Both at once are refused with words."""
    with pytest.raises(SystemExit):
        main(["--protect", "encrypt", "--zero-copy", "4"])
    assert "--zero-copy" in capsys.readouterr().err
