# SPDX-License-Identifier: BSD-3-Clause
"""Time Allgathers while a Reduce-Scatter is in flight."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from bench.study import pictures
from bench.study.case import Case, Chapter, Numbers, Results, Table
from bench.study.site import MBITS, Site
from mpimcast._fabric.clos import clos3, paper
from mpimcast._peers.catalogue import ALLGATHERS, REDUCE_SCATTERS
from mpimcast._peers.schedule import Schedule

_NSUBGROUPS = 4
_NREDUCING = 2
# A fabric that loses nothing, as InfiniBand's: queues that are long enough.
_QUEUE_BYTES = 64 << 20
_WINDOW_BYTES = 4 << 20
_NLAYERS = 4

PAIRS = ("rings", "multicast and ring", "multicast and switches")


class Job(NamedTuple):
    """A number of ranks, and the block of each in a layer."""

    nranks: int
    block_bytes: int
    quick: bool = False


JOBS = (
    Job(2, 8 << 20, quick=True),
    Job(4, 4 << 20, quick=True),
    Job(8, 4 << 20),
    Job(16, 2 << 20),
    Job(32, 1 << 20),
    Job(64, 1 << 20),
    Job(188, 1 << 19),
    Job(512, 1 << 16),
    Job(1024, 1 << 16),
)
_STEP_JOBS = (Job(8, 1 << 20), Job(64, 1 << 18))


def cases() -> Iterator[Case]:
    """Yield a case for each pair and job, then those of a training step."""
    for job in JOBS:
        for pair in PAIRS:
            yield Case(f"{pair} {job.nranks}", ("once", pair, *job), job.quick)
    for job in _STEP_JOBS:
        for pair in PAIRS:
            yield Case(f"step, {pair} {job.nranks}", ("step", pair, *job))


def _site(nranks: int) -> Site:
    fabric = paper(nranks) if nranks <= 216 else clos3(32, nranks)
    lossless = fabric.changed(
        lambda _start, _end, link: replace(
            link, queue_bytes=max(link.queue_bytes, _QUEUE_BYTES)
        )
    )
    return Site(lossless, nsubgroups=_NSUBGROUPS, nreducing=_NREDUCING)


def measure(kind: str, pair: str, nranks: int, block_bytes: int, *_: object) -> Numbers:
    """Run both collectives at once, or a step's forward and backward pass."""
    site = _site(nranks)
    if kind == "once":
        return _both(site, pair, block_bytes)
    forward = _alone(site, pair, block_bytes)
    backward = _both(site, pair, block_bytes, _NLAYERS)
    return {"time_ns": forward + backward["time_ns"], "forward_ns": forward}


def _reduce_scatter(site: Site, pair: str, block_bytes: int) -> Schedule:
    of_switches = pair == "multicast and switches"
    name = "reduce-scatter-in-switches" if of_switches else "reduce-scatter-ring"
    return REDUCE_SCATTERS[name](site.reducing, block_bytes)


def _chains(site: Site) -> int:
    """Return as many chains as there are ranks: each is to send all the time."""
    return min(site.nranks, 256)


def _both(site: Site, pair: str, block_bytes: int, nlayers: int = 1) -> Numbers:
    """Gather and reduce `nlayers` times a layer's blocks, both at once."""
    reduced = _reduce_scatter(site, pair, nlayers * block_bytes)
    if pair == "rings":
        gathered = ALLGATHERS["ring"](site.racks, nlayers * block_bytes)
        return site.peer(gathered.beside(reduced))
    return site.ours(reduced, **_spec(site, block_bytes, nlayers))


def _alone(site: Site, pair: str, block_bytes: int) -> int:
    """Return the time of the forward pass, which only gathers."""
    if pair == "rings":
        gathered = ALLGATHERS["ring"](site.racks, _NLAYERS * block_bytes)
        return site.peer(gathered)["time_ns"]
    return site.ours(**_spec(site, block_bytes, _NLAYERS))["time_ns"]


def _spec(site: Site, block_bytes: int, nlayers: int) -> dict[str, object]:
    return {
        "block_bytes": block_bytes,
        "nops": nlayers,
        "chains": _chains(site),
        "adaptive": 0,
        "window_bytes": _WINDOW_BYTES,
        "buffer_bytes": 4 * _WINDOW_BYTES,
    }


def _row(results: Results, job: Job) -> list[str]:
    """Return a job's line of the table."""
    bound = job.nranks * job.block_bytes * 8000 / MBITS
    times = [results[f"{pair} {job.nranks}"]["time_ns"] for pair in PAIRS]
    return [
        str(job.nranks),
        f"{job.block_bytes // 1024} KiB",
        *(f"{time / bound:.3f}" for time in times),
        *(f"{times[0] / time:.3f}" for time in times[1:]),
        f"{2 - 2 / job.nranks:.3f}",
    ]


def _step(results: Results, job: Job) -> list[str]:
    """Return a job's line of the table of training steps."""
    times = [results[f"step, {pair} {job.nranks}"]["time_ns"] for pair in PAIRS]
    return [
        str(job.nranks),
        f"{job.block_bytes // 1024} KiB",
        *(f"{time / 1000:.0f}" for time in times),
        *(f"{times[0] / time:.3f}" for time in times[1:]),
    ]


_TEXT = [
    (
        "Both collectives start at once and share all links, which are lossless "
        "here. The bound is N P / B: with multicast and a reduction in the "
        "switches, each rank sends N for the one and N (P - 1) for the other, and "
        "receives as much the other way round. Two rings need 2 N (P - 1) / B each "
        "way, so the most that can be gained is 2 - 2 / P. Multicast has as many "
        f"chains as ranks, up to 256, {_NSUBGROUPS} subgroups, and a window of 4 "
        f"MiB; the reduction has {_NREDUCING} trees of its own."
    ),
    (
        f"A step gathers {_NLAYERS} layers one after the other, then gathers them "
        "again while it reduces as much."
    ),
]


def chapter(results: Results, folder: Path) -> Chapter:
    """Return the chapter, with a table by job and one of training steps."""
    rows = [_row(results, job) for job in JOBS]
    heads = ["ranks", "block", *PAIRS, *(f"gain, {pair}" for pair in PAIRS[1:])]
    tables = [
        Table(
            "Times, divided by the bound, and what is gained over two rings.",
            [*heads, "most"],
            rows,
        ),
        Table(
            "A training step, in us, and what is gained over two rings.",
            heads,
            [_step(results, job) for job in _STEP_JOBS],
        ),
    ]
    title = "Allgather with Reduce-Scatter in flight"
    return Chapter(title, _TEXT, tables, [pictures.overlap(rows, folder)])
