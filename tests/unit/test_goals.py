# SPDX-License-Identifier: BSD-3-Clause
"""The benchmark's goals: which figures they compare, and where they apply."""

from __future__ import annotations

import dataclasses

import pytest
from measurements import BLOCK_BYTES, NETWORK, measured

from bench.cells import goals, summary
from bench.jobs.payload import LAYERS, STEPS


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


def test_goals_of_protection() -> None:
    """Authenticated operations are compared with unprotected ones, round by round."""
    measurements = [
        measured(name, round_, [seconds], block_bytes=goals.MIB)
        for round_, ours_s in enumerate((1, 2, 4))
        for name, seconds in (
            ("mpimcast", ours_s),
            ("mpimcast-authenticate", 1.02 * ours_s + 0.01),
            ("mpimcast-encrypt", 3 * ours_s),
        )
    ]
    found = {
        each.goal.what: (each.figure, each.holds)
        for each in goals.reached(summary.summarise(measurements))
    }
    figure, holds = found["time with authentication as a multiple of that without"]
    assert figure == pytest.approx(1.025)
    assert holds


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


def test_goals_of_training() -> None:
    """A step's time is compared with the best of all, gloo included; bytes with peers'.

    A host receives two gathers and a reduction of each layer, which is twice as large
    in a mixed step.
    """
    seconds = {"mpimcast": 2.0, "mpich": 3.0, "gloo": 1.0}
    measurements = [
        measured(name, 0, [each_s], cell="T", collective=kind)
        for kind in STEPS
        for name, each_s in seconds.items()
    ]
    scenarios = summary.summarise(measurements)
    assert [
        each.payload_bytes(BLOCK_BYTES) / LAYERS / BLOCK_BYTES for each in scenarios
    ] == [3 * (2 + 1), 3 * (2 + 2)]
    found = {
        (each.goal.what, each.goal.bound): each.figure
        for each in goals.reached(scenarios)
    }
    assert found == {
        ("bytes sent as a share of the best peer's", 0.6): 1,
        ("bytes sent as a share of the best peer's", 0.7): 1,
        ("times as fast as the best peer or gloo", 1): 0.5,
    }


def test_goal_labels() -> None:
    """No two goals have the same label."""
    labels = [goal.label for goal in goals.GOALS]
    assert len(set(labels)) == len(labels)
