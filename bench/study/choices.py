# SPDX-License-Identifier: BSD-3-Clause
"""Find the best chains, subgroups and windows on each fabric."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from bench.study.case import Case, Chapter, Numbers, Results, Table
from bench.study.site import Site, bound_ns
from mpimcast._fabric.clos import clos2, paper, single
from mpimcast._fabric.dragonfly import dragonfly
from mpimcast._fabric.fabric import Fabric
from mpimcast._fabric.link import Link
from mpimcast._fabric.rails import rails
from mpimcast._fabric.sites import two_sites

NRANKS = 64
_SIZES = (16384, 262144)
_AUTO = 0
_CHAINS = (_AUTO, 1, 2, 4, 8, NRANKS)
# By name, what a run's spec says; the first is what is shipped.
_WINDOWS: dict[str, dict[str, int]] = {
    "adaptive": {"adaptive": 1},
    "256 KiB": {"adaptive": 0, "window_bytes": 256 << 10},
    "1 MiB": {"adaptive": 0, "window_bytes": 1 << 20},
    "4 MiB": {"adaptive": 0, "window_bytes": 4 << 20},
}
_SUBGROUPS = (1, 4)

FABRICS: dict[str, Callable[[], Fabric]] = {
    "one switch": lambda: single(NRANKS),
    "leaves 1:1": lambda: clos2(16, NRANKS, 1.0),
    "leaves 3:1": lambda: clos2(16, NRANKS, 3.0),
    "the paper's": lambda: paper(NRANKS),
    "dragonfly": lambda: dragonfly(4, 4, 2, NRANKS),
    "rails": lambda: rails(2, 8, 4),
    "two sites, 1 ms": lambda: two_sites(single(NRANKS // 2), 100_000, 1_000_000),
    "shallow queues": lambda: single(NRANKS, Link("host", queue_bytes=128 << 10)),
    "slow": lambda: single(NRANKS, Link("host", mbits=1000, queue_bytes=512 << 10)),
}


def cases() -> Iterator[Case]:
    """Yield a case for each fabric, size and choice."""
    for fabric in FABRICS:
        for nbytes in _SIZES:
            for window in _WINDOWS:
                for chains in _CHAINS:
                    yield _case(fabric, nbytes, window, chains, 1)
            for nsubgroups in _SUBGROUPS[1:]:
                yield _case(fabric, nbytes, "adaptive", _AUTO, nsubgroups)


def _name(fabric: str, nbytes: int, window: str, chains: int, nsubgroups: int) -> str:
    return f"{fabric}, {nbytes}, {window}, {chains} chains, {nsubgroups} subgroups"


def _case(fabric: str, nbytes: int, window: str, chains: int, nsubgroups: int) -> Case:
    quick = fabric == "shallow queues" and chains == _AUTO and nbytes == _SIZES[0]
    arguments = (fabric, nbytes, window, chains, nsubgroups)
    return Case(_name(*arguments), arguments, quick)


def measure(
    fabric: str, nbytes: int, window: str, chains: int, nsubgroups: int
) -> Numbers:
    """Run one Allgather."""
    site = Site(FABRICS[fabric](), NRANKS, nsubgroups)
    return site.ours(block_bytes=nbytes, chains=chains, **_WINDOWS[window])


def _row(results: Results, fabric: str, nbytes: int) -> list[str]:
    """Return a fabric's line of the table for a size."""
    times = {
        (window, chains): results[_name(fabric, nbytes, window, chains, 1)]["time_ns"]
        for window in _WINDOWS
        for chains in _CHAINS
    }
    several = results[_name(fabric, nbytes, "adaptive", _AUTO, _SUBGROUPS[1])]
    adaptive = [item for item in times.items() if item[0][0] == "adaptive"]
    (_, alone), best_adaptive = min(adaptive, key=lambda item: item[1])
    (window, chains), best = min(times.items(), key=lambda item: item[1])
    worst = max(times[window, _AUTO] for window in _WINDOWS)
    bound = bound_ns(NRANKS, nbytes) * (100 if fabric == "slow" else 1)
    return [
        fabric,
        f"{times['adaptive', _AUTO] / bound:.3f}",
        f"{several['time_ns'] / bound:.3f}",
        f"{best_adaptive / bound:.3f} ({_chains(alone)})",
        f"{best / bound:.3f} ({window}, {_chains(chains)})",
        f"{worst / bound:.3f}",
    ]


def _table(results: Results, nbytes: int) -> Table:
    """Return the table for a size."""
    return Table(
        f"Times at blocks of {nbytes // 1024} KiB, divided by the bound; in "
        "brackets the choice that gives them.",
        [
            "fabric",
            "as shipped",
            f"{_SUBGROUPS[1]} subgroups",
            "best chains, adaptive window",
            "best of all",
            "worst window, chains as shipped",
        ],
        [_row(results, fabric, nbytes) for fabric in FABRICS],
    )


def _costly(results: Results) -> str:
    """Say in which runs the protocol sent more than its laws allow."""
    costly = [name for name, found in results.items() if found["costly"]]
    where = [
        fabric for fabric in FABRICS if any(name.startswith(fabric) for name in costly)
    ]
    return (
        f"In {len(costly)} of {len(results)} runs ranks sent more control or repairs "
        f"than the simulator's laws allow: on {', '.join(where) or 'no fabric'}."
    )


def chapter(results: Results, _folder: Path) -> Chapter:
    """Return the chapter, with a table by fabric for each size."""
    return Chapter(
        "Chains, subgroups and windows",
        [
            (
                f"{NRANKS} ranks gather on each fabric with {len(_CHAINS)} numbers "
                f"of chains and {len(_WINDOWS)} windows. As shipped, the window "
                "adapts to what the queues hold, and the number of chains follows "
                "from it. The bound is that of one link, so that rails, of which a "
                "node has four, may fall below it."
            ),
            _costly(results),
        ],
        [_table(results, nbytes) for nbytes in _SIZES],
        [],
    )


def _chains(number: int) -> str:
    words = {_AUTO: "auto", NRANKS: "all"}
    return f"{words.get(number, number)} chains"
