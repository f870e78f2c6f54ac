# SPDX-License-Identifier: BSD-3-Clause
"""Count the groups that a job and a cluster may have, and see what comes after."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bench.study.case import Case, Chapter, Numbers, Results, Table
from bench.study.site import Site
from mpimcast._fabric.clos import clos2, paper
from mpimcast._fabric.group_table import SUBNET, GroupTable, Limits
from mpimcast._fabric.nodes import nodes

_NRANKS = 188
_SUBGROUPS = (1, 2, 4, 16)
_ENTRIES = (512, 4096)
_FLOOD_HOSTS, _FLOOD_RANKS, _FLOOD_BYTES = 128, 32, 65536
_RANKS_PER_NODE = (1, 8, 240)


def cases() -> Iterator[Case]:
    """Yield the cases, all of which are quick."""
    for nsubgroups in _SUBGROUPS:
        yield Case(f"subnet {nsubgroups}", ("subnet", nsubgroups), quick=True)
        for entries in _ENTRIES:
            name = f"{entries} entries {nsubgroups}"
            yield Case(name, ("entries", nsubgroups, entries), quick=True)
    for ranks in _RANKS_PER_NODE:
        yield Case(f"ranks of a node {ranks}", ("adapter", ranks), quick=True)
    for kind in ("snooped", "flooded"):
        yield Case(kind, (kind,), quick=True)


def measure(kind: str, number: int = 0, entries: int = 0) -> Numbers:
    """Count the jobs for which there is room, or run one in a flooded group."""
    if kind in {"snooped", "flooded"}:
        return _run(flooded=kind == "flooded")
    if kind == "adapter":
        site = Site(nodes(paper(4), number))
        table = GroupTable(site.fabric, site.routes, SUBNET)
        table.add(site.trees[0])
        return {"groups": table.ngroups}
    site = Site(paper(_NRANKS), nsubgroups=number)
    limits = SUBNET if kind == "subnet" else Limits(None, None, entries, floods=True)
    jobs = GroupTable(site.fabric, site.routes, limits).jobs(site.trees)
    return {"jobs": jobs or 0}


def _run(*, flooded: bool) -> Numbers:
    """Run a job on the first hosts of a cluster whose switches have a full table."""
    site = Site(clos2(32, _FLOOD_HOSTS), _FLOOD_RANKS)
    if flooded:
        full = Limits(None, None, entries=0, floods=True)
        table = GroupTable(site.fabric, site.routes, full)
        site.trees = [table.add(site.trees[0])]
    return site.ours(block_bytes=_FLOOD_BYTES)


def chapter(results: Results, _folder: Path) -> Chapter:
    """Return the chapter."""
    rows = [
        [
            str(nsubgroups),
            str(results[f"subnet {nsubgroups}"]["jobs"]),
            *(
                str(results[f"{each} entries {nsubgroups}"]["jobs"])
                for each in _ENTRIES
            ),
        ]
        for nsubgroups in _SUBGROUPS
    ]
    snooped, flooded = results["snooped"], results["flooded"]
    return Chapter(
        "Groups",
        [
            (
                "A communicator has one multicast group for each of its subgroups. "
                "An InfiniBand subnet has 16,383 multicast LIDs, after which the "
                "subnet manager refuses; a switch that snoops IGMP floods the "
                "groups for which its table has no entry. The table counts the "
                "communicators of all ranks at 188 nodes that have room at the "
                "same time. An adapter attaches 240 queue pairs to a group, so "
                "that a node may have as many ranks in it."
            ),
            (
                f"Flooding reaches hosts that are not of the job: {_FLOOD_RANKS} "
                f"ranks in a cluster of {_FLOOD_HOSTS} hosts put "
                f"{flooded['bytes'] / snooped['bytes']:.2f} times the bytes on its "
                f"links, in {flooded['time_ns'] / snooped['time_ns']:.2f} times the "
                "time. Each host that is no rank drops all of it."
            ),
        ],
        [
            Table(
                "Communicators that have room.",
                [
                    "subgroups",
                    "InfiniBand subnet",
                    *(f"switches with {each} entries" for each in _ENTRIES),
                ],
                rows,
            )
        ],
        [],
    )
