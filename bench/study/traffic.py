# SPDX-License-Identifier: BSD-3-Clause
"""Count the bytes on all links, by algorithm and number of nodes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from bench.study import pictures
from bench.study.case import Case, Chapter, Numbers, Results, Table
from bench.study.site import Site
from mpimcast._fabric.clos import fat_tree, paper
from mpimcast._fabric.traffic import multicast, unicast
from mpimcast._peers.catalogue import ALLGATHERS
from mpimcast._peers.schedule import Schedule

_RADIX = 32
_NRANKS = tuple(2**power for power in range(1, 11))
_PAPER = 188
_QUICK_MAX = 64
_SIMULATED_MAX = 188
_BLOCK_BYTES = 65536  # of simulated runs


def cases() -> Iterator[Case]:
    """Yield a case for each number of ranks, and the paper's."""
    for nranks in _NRANKS:
        yield Case(f"tree {nranks}", ("tree", nranks), nranks <= _QUICK_MAX)
    yield Case(f"paper {_PAPER}", ("paper", _PAPER), quick=True)


def measure(kind: str, nranks: int) -> Numbers:
    """Count how often blocks cross links, and links between switches alone."""
    site = Site(paper(nranks) if kind == "paper" else fat_tree(_RADIX, nranks))
    found: Numbers = {}
    ones = np.ones(nranks, np.uint64)
    found |= _named(site, "multicast", multicast(site.trees[0], ones))
    for name, schedule in ALLGATHERS.items():
        messages = schedule(site.racks, 1)
        amounts = unicast(
            site.routes, messages.sender, messages.receiver, messages.nbytes
        )
        found |= _named(site, name, amounts)
        found[f"{name} as charged"] = _as_charged(site, messages)
    if nranks <= _SIMULATED_MAX:
        found["simulated bytes"] = site.ours(block_bytes=_BLOCK_BYTES)["bytes"]
    return found


def _named(site: Site, name: str, amounts: np.ndarray) -> Numbers:
    between = amounts[2 * site.fabric.nhosts :]
    return {name: int(amounts.sum()), f"{name} between": int(between.sum())}


def _as_charged(site: Site, messages: Schedule) -> int:
    """Count as the paper's script does: each message by the distance of its ends.

    A message within a rack, or to any lower rank, crosses 2 links; one within a pod,
    which are two racks, 4; all others 6.
    """
    racks = np.array([host.rack for host in site.fabric.hosts])
    start, end = racks[messages.sender], racks[messages.receiver]
    near = (start == end) | (messages.receiver < messages.sender)
    links = np.where(near, 2, np.where(start // 2 == end // 2, 4, 6))
    return int((links * messages.nbytes.astype(np.int64)).sum())


def _crossings(results: Results) -> Table:
    """Return the table of how often a block crosses a link."""
    rows = []
    for name, found in results.items():
        nranks = int(name.split()[1])
        exact = found["multicast"] * _BLOCK_BYTES
        simulated = found.get("simulated bytes")
        rows.append(
            [
                name.replace("tree ", "").replace("paper 188", "188, the paper's"),
                *(f"{found[each] / nranks:.1f}" for each in ("multicast", *ALLGATHERS)),
                f"{found['ring'] / found['multicast']:.3f}",
                f"{simulated / exact:.4f}" if simulated else "-",
            ]
        )
    heads = ["ranks", "multicast", *ALLGATHERS, "ring / multicast", "simulated / exact"]
    return Table("Crossings of links by each block, with packed ranks.", heads, rows)


def _charges(results: Results) -> Table:
    """Return the table of what the paper's script makes of the same messages."""
    return Table(
        "What the paper's script charges, divided by what the graph counts.",
        ["case", *ALLGATHERS],
        [
            [
                name,
                *(f"{found[f'{e} as charged'] / found[e]:.2f}" for e in ALLGATHERS),
            ]
            for name, found in results.items()
        ],
    )


_TEXT = [
    (
        "Each message is followed along its route, and each multicast along its "
        "tree, on a fat tree of switches with 32 ports and on the paper's fabric. "
        "A number is how often a block crosses a link, so the bytes are that times "
        "N for each rank. `simulated / exact` are the bytes of whole simulated "
        "operations of 64 KiB blocks, with all headers, barriers and reports, "
        "divided by those."
    ),
    (
        "The paper's own script does not follow routes: it charges a message by "
        "the distance of its ends, takes any message to a lower rank for one "
        "within a rack, and calls two racks a pod. The second table shows what "
        "that does to each algorithm."
    ),
]


def chapter(results: Results, folder: Path) -> Chapter:
    """Return the chapter, with a table by number of ranks."""
    return Chapter(
        "Traffic by algorithm",
        _TEXT,
        [_crossings(results), _charges(results)],
        [pictures.traffic(results, tuple(ALLGATHERS), folder)],
    )
