# SPDX-License-Identifier: BSD-3-Clause
"""Find what losses, late and slow ranks and failed links cost, by policy of repair.

The policies are those of REPAIR, and `nak` with parity, which mends most losses before
anyone asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from bench.study import pictures
from bench.study.case import Case, Chapter, Numbers, Results, Table
from bench.study.site import Site
from mpimcast._fabric.clos import paper
from mpimcast._fabric.fabric import Fabric

NRANKS = 188
_BLOCK_BYTES = 65536
_SEEDS = range(1, 4)
# The simulator's words for each policy.
REPAIRS: dict[str, dict[str, int]] = {
    "nak": {"repair": 0},
    "neighbour": {"repair": 1},
    "read": {"repair": 2},
    "nak, CODE=32,2": {"repair": 0, "code_data": 32, "code_parity": 2},
}
# Losses of a datagram on a link, in parts of 10^9.
LOSSES_PPB = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
_LARGE_BYTES, _LARGE_PPB = 262144, 100_000
_LEAF_PPB = 1_000_000
_OUTAGE_LINK = 4

_LARGE = "1e-4 on every link, blocks of 256 KiB"
MISHAPS = (
    _LARGE,
    "none",
    "a leaf's uplinks lose 1e-3",
    "the root's links lose 1e-3",
    "starts within 100 us",
    "starts within 1 ms",
    "a rank at a quarter of the rate",
    "a link of the tree fails for 5 ms",
)


def cases() -> Iterator[Case]:
    """Yield a case for each mishap, policy and seed."""
    for repair in REPAIRS:
        for seed in _SEEDS:
            for loss_ppb in LOSSES_PPB:
                yield Case(
                    f"{loss_ppb} ppb, {repair}, {seed}",
                    ("loss", loss_ppb, repair, seed),
                )
            for mishap in MISHAPS:
                yield Case(f"{mishap}, {repair}, {seed}", (mishap, 0, repair, seed))


def measure(mishap: str, loss_ppb: int, repair: str, seed: int) -> Numbers:
    """Run one Allgather."""
    fabric, spec = paper(NRANKS), {"block_bytes": _BLOCK_BYTES, **REPAIRS[repair]}
    if mishap == "loss":
        fabric = _lossy(fabric, lambda _start, _end: True, loss_ppb)
    elif mishap == _LARGE:
        spec["block_bytes"] = _LARGE_BYTES
        fabric = _lossy(fabric, lambda _start, _end: True, _LARGE_PPB)
    elif mishap == "a leaf's uplinks lose 1e-3":
        leaf = fabric.nhosts
        fabric = _lossy(
            fabric, lambda start, end: start == leaf and end > leaf, _LEAF_PPB
        )
    elif mishap == "the root's links lose 1e-3":
        root = fabric.nhosts + Site(fabric).trees[0].root
        fabric = _lossy(fabric, lambda start, _end: start == root, _LEAF_PPB)
    elif mishap.startswith("starts"):
        spec["entry_spread_ns"] = 1_000_000 if "1 ms" in mishap else 100_000
    elif mishap.startswith("a rank"):
        fabric = fabric.changed(
            lambda start, end, link: (
                replace(link, mbits=link.mbits // 4) if 7 in {start, end} else link
            )
        )
    elif mishap.startswith("a link"):
        tree = Site(fabric).trees[0]
        spec["outage"] = _OUTAGE_LINK
        spec["outage_place"] = next(up for _, up in tree.towards(tree.root))
        spec["outage_ns"], spec["outage_end_ns"] = 100_000, 5_100_000
    return Site(fabric).ours(seed=seed, **spec)


def _lossy(
    fabric: Fabric, between: Callable[[int, int], bool], loss_ppb: int
) -> Fabric:
    """Return the fabric with losses on the links between some vertices."""
    return fabric.changed(
        lambda start, end, link: (
            replace(link, loss_ppb=loss_ppb) if between(start, end) else link
        )
    )


def _summed(results: Results, name: str, repair: str) -> tuple[float, ...]:
    """Return the means over seeds of p50, p99, p99.9 in us, and of repaired bytes."""
    runs = [results[f"{name}, {repair}, {seed}"] for seed in _SEEDS]
    return tuple(
        sum(run[key] for run in runs) / len(runs)
        for key in ("p50", "p99", "p999", "repair_bytes")
    )


def chapter(results: Results, folder: Path) -> Chapter:
    """Return the chapter, with a table by mishap and policy."""
    names = [*(f"{ppb} ppb" for ppb in LOSSES_PPB), *MISHAPS]
    rows = []
    for name in names:
        for repair in REPAIRS:
            p50, p99, p999, repaired = _summed(results, name, repair)
            rows.append(
                [
                    name.replace(" ppb", "e-9 on every link"),
                    repair,
                    f"{p50 / 1000:.0f}",
                    f"{p99 / p50:.3f}",
                    f"{p999 / p50:.3f}",
                    f"{repaired / 1024:.0f}",
                ]
            )
    return Chapter(
        "Losses, late ranks and failures",
        [
            (
                f"{NRANKS} ranks gather blocks of {_BLOCK_BYTES // 1024} KiB on the "
                "paper's fabric, with each policy of repair, and with parity. Times "
                f"are those at which ranks end, means over {len(_SEEDS)} seeds; p99.9 "
                "of 188 ranks is the last of them. A link that fails carries nothing "
                "until the trees are repaired."
            )
        ],
        [
            Table(
                "The median, the tails divided by it, and KiB of repairs on links.",
                ["mishap", "repair", "p50, us", "p99 / p50", "p99.9 / p50", "repairs"],
                rows,
            )
        ],
        [
            pictures.losses(
                {
                    repair: [
                        _summed(results, f"{ppb} ppb", repair)[:3] for ppb in LOSSES_PPB
                    ]
                    for repair in REPAIRS
                },
                [ppb / 1e9 for ppb in LOSSES_PPB],
                folder,
            )
        ],
    )
