# SPDX-License-Identifier: BSD-3-Clause
"""Training steps on a slow network: gathers go on beside Reduce-Scatter."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import support
from job import MPICH, OPENMPI, Job

from bench.testbed.cluster import Cluster
from bench.testbed.launcher import Launcher
from mpimcast._support import trace_file

RATE_MBIT = 20
NRANKS = 3
WIDTH, DEPTH, STEPS = 512, 5, 3  # five layers of 1 MiB
pytestmark = pytest.mark.timeout(240)

# The beginning and the end of operations, in nanoseconds.
Spans = list[tuple[int, int]]


class Training(Job):
    """Ranks that train a model of large layers on little data."""

    program = support.ROOT / "tests/training/overlap_rank.py"


@pytest.mark.parametrize(
    "launcher",
    [
        pytest.param(OPENMPI, id="openmpi"),
        pytest.param(MPICH, id="mpich", marks=pytest.mark.long),
    ],
)
def test_overlap(cluster: Cluster, tmp_path: Path, launcher: Launcher) -> None:
    """A gather is in flight for 80 % of the time in which it and a reduction could be.

    In backward, the gather of the layer before a layer could begin as soon as the layer
    itself has been gathered, which is before its gradients are reduced. From then on
    both could go on until one of them ends. A part of the gather may be over by then,
    hidden behind computation.
    """
    cluster.shape(RATE_MBIT)
    variables = {
        **support.torch_variables(),
        "GLOO_SOCKET_IFNAME": "eth0",
        "MPIMCAST_TRACE": str(tmp_path / "traces"),
    }
    with Training(
        *(cluster, NRANKS, tmp_path),
        launcher=launcher,
        variables=variables,
        width=WIDTH,
        depth=DEPTH,
        steps=STEPS,
    ) as job:
        job.results(200)
    files = sorted((tmp_path / "traces").glob(f"*{trace_file.SUFFIX}"))
    assert len(files) == NRANKS
    for path in files:
        gathers, reductions = spans(path)
        counted = overlaps(gathers, reductions)
        beside_ns, possible_ns = map(sum, zip(*counted, strict=True))
        reducing_ns = sum(end - begin for begin, end in reductions)
        times_s = [each / 1e9 for each in (beside_ns, possible_ns, reducing_ns)]
        print("{}: {:.2f} s beside, {:.2f} possible, of {:.2f}".format(path, *times_s))
        assert possible_ns > 0.2 * reducing_ns, "the gathers were over too early"
        assert beside_ns >= 0.8 * possible_ns, counted


def spans(path: Path) -> tuple[Spans, Spans]:
    """Return when a rank has gathered and reduced layers."""
    _, events = trace_file.read(path)
    block_bytes = WIDTH * WIDTH * 4 // NRANKS
    large = np.sort(events[events["amount"] >= block_bytes], order="begin_ns")
    found = [
        large[large["kind"] == kind][["begin_ns", "end_ns"]].tolist()
        for kind in (trace_file.OPERATION, trace_file.LIBRARY)
    ]
    gathers, reductions = found
    assert len(gathers) == STEPS * 2 * DEPTH
    assert len(reductions) == STEPS * DEPTH
    return gathers, reductions


def overlaps(gathers: Spans, reductions: Spans) -> list[tuple[int, int]]:
    """Return for each pair how long both went on, and how long they could."""
    counted = []
    for number, (begin_ns, end_ns) in enumerate(reductions):
        step, layer = divmod(number, DEPTH)
        if layer == DEPTH - 1:
            continue  # nothing is left to gather in this step
        gather_ns = gathers[2 * DEPTH * step + DEPTH + layer + 1]
        together_ns = min(end_ns, gather_ns[1]) - max(begin_ns, gather_ns[0])
        alone_ns = end_ns - begin_ns, gather_ns[1] - gather_ns[0]
        left_ns = gather_ns[1] - begin_ns
        counted.append((max(0, together_ns), max(0, min(*alone_ns, left_ns))))
    return counted
