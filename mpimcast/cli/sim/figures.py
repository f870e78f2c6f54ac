# SPDX-License-Identifier: BSD-3-Clause
"""The figures of a comparison: a row for each algorithm, fit for JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from mpimcast.cli.sim.comparison import Comparison, Contestant, Run
    from mpimcast.cli.sim.ground import Ground

# Percentiles in thousandths, so that ranks are counted in whole numbers.
PERCENTILES = {"p50_ns": 500, "p99_ns": 990, "p99.9_ns": 999}

_BITS, _NS_PER_US = 8, 1000


def percentile(values: NDArray[np.int64], thousandths: int) -> int:
    """Return the least value that so many of the values do not exceed."""
    place = -(-len(values) * thousandths // 1000) - 1
    return int(np.sort(values)[max(place, 0)])


def row(contestant: Contestant, comparison: Comparison) -> dict[str, Any]:
    """Return an algorithm's figures.

    The time is the median over the seeds, and percentiles are over all ranks and
    seeds. Bytes and losses are means over the seeds, rounded down. The most loaded link
    and the deepest queue are the most of any run.
    """
    ground, runs = comparison.ground, contestant.runs
    times = np.array([run.time_ns for run in runs], np.int64)
    ends = np.concatenate([run.ends_ns for run in runs])
    time_ns = percentile(times, 500)
    link_bytes = sum(run.link_bytes for run in runs) // len(runs)
    by_class = ground.fabric.links.by_class(np.asarray(link_bytes).astype(np.uint64))
    return {
        "name": contestant.name,
        "time_ns": time_ns,
        "over_bound": time_ns / comparison.bound_ns if comparison.bound_ns else None,
        **{name: percentile(ends, part) for name, part in PERCENTILES.items()},
        "bytes": sum(by_class.values()),
        "class_bytes": by_class,
        "repair_bytes": _mean(runs, "repair_bytes"),
        "lost_datagrams": _mean(runs, "lost"),
        "most_loaded": _most_loaded(runs, ground),
        "deepest": _deepest(runs, ground),
    }


def class_depths(contestant: Contestant, ground: Ground) -> dict[str, int]:
    """Return for each class of links the most bytes that waited at one of them.

    Hosts' own links do not count: what waits there is in the hosts' memory.
    """
    deepest = np.max([_queues(run, ground) for run in contestant.runs], axis=0)
    numbers = ground.arrays.link_class[ground.fabric.nhosts :]
    return {
        ground.arrays.classes[number]: int(deepest[numbers == number].max())
        for number in np.unique(numbers)
    }


def _queues(run: Run, ground: Ground) -> NDArray[np.int64]:
    """Return the most bytes that waited at each link but hosts' own."""
    return run.deepest_bytes[ground.fabric.nhosts :]


def _mean(runs: Sequence[Run], field: str) -> int:
    return sum(int(getattr(run, field).sum()) for run in runs) // len(runs)


def _most_loaded(runs: Sequence[Run], ground: Ground) -> dict[str, Any]:
    """Return the link that was busy for the greatest part of a run."""
    mbits = ground.arrays.link_mbits.astype(np.int64)
    found: dict[str, Any] = {"load": -1.0}
    for run in runs:
        busy = run.link_bytes * _BITS * _NS_PER_US / mbits
        link = int(np.argmax(busy))
        load = float(busy[link]) / run.time_ns if run.time_ns else 0.0
        if load > found["load"]:
            nbytes = int(run.link_bytes[link])
            found = {"link": link, "bytes": nbytes, "load": load, "seed": run.seed}
    return found


def _deepest(runs: Sequence[Run], ground: Ground) -> dict[str, Any]:
    """Return the link whose queue held the most; hosts' own do not count."""
    run = max(runs, key=lambda each: int(_queues(each, ground).max()))
    link = ground.fabric.nhosts + int(np.argmax(_queues(run, ground)))
    return {"link": link, "bytes": int(run.deepest_bytes[link]), "seed": run.seed}


def as_json(comparison: Comparison, spec: dict[str, Any]) -> dict[str, Any]:
    """Return all of a comparison, fit for JSON: it has no times of this machine."""
    ground = comparison.ground
    names = ground.link_names()
    links = ground.fabric.links
    classes = [ground.arrays.classes[number] for number in ground.arrays.link_class]
    return {
        "spec": spec,
        "hosts": ground.fabric.nhosts,
        "switches": ground.fabric.nswitches,
        "links": [
            {"name": name, "class": kind, "mbits": link.mbits}
            for name, kind, link in zip(names, classes, links.links, strict=True)
        ],
        "bound_ns": comparison.bound_ns,
        "left_out": comparison.left_out,
        "algorithms": [
            {
                **row(contestant, comparison),
                "class_deepest_bytes": class_depths(contestant, ground),
                "runs": [_run(run) for run in contestant.runs],
            }
            for contestant in comparison.contestants
        ],
        "result": comparison.first,
    }


def _run(run: Run) -> dict[str, Any]:
    return {
        field: value.tolist() if isinstance(value, np.ndarray) else value
        for field, value in vars(run).items()
    }
