# SPDX-License-Identifier: BSD-3-Clause
"""Find where another number of chains than that of CHAINS=auto is faster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from bench.study.case import Case, Chapter, Numbers, Results, Table
from bench.study.site import Site
from mpimcast._fabric.clos import single
from mpimcast._fabric.fabric import Fabric
from mpimcast._fabric.link import Link
from mpimcast._fabric.sites import two_sites

NRANKS = 64
_SIZES = (16384, 65536, 262144)
_AUTO = 0
_CHAINS = (_AUTO, 2, 4, 8)
_EVERY_RANK = 0xFFFFFFFF
_US = 1000
_STALLS = {
    "stalled_rank": _EVERY_RANK,
    "stall_ns": 1000 * _US,
    "stall_period_ns": 25_000 * _US,
}


class _Setting(NamedTuple):
    """A function that makes a fabric, and fields of the spec of the run on it."""

    make: Callable[[], Fabric]
    spec: dict[str, Any]


def _links(nops: int = 1, **link: int) -> _Setting:
    """Return one switch with such links, and operations on it."""
    return _Setting(lambda: single(NRANKS, Link("host", **link)), {"nops": nops})


def _far(latency_ns: int) -> _Setting:
    """Return two sites with a long link between them."""
    return _Setting(lambda: two_sites(single(NRANKS // 2), 100_000, latency_ns), {})


_SETTINGS: dict[str, _Setting] = {
    "short links": _links(),
    "links of 5 us": _links(latency_ns=5 * _US),
    "links of 50 us": _links(latency_ns=50 * _US),
    "two sites, 50 us": _far(50 * _US),
    "two sites, 500 us": _far(500 * _US),
    "10 Gbit/s": _links(mbits=10_000),
    "10 Gbit/s, 50 us": _links(mbits=10_000, latency_ns=50 * _US),
    "10 Gbit/s, each rank stalls for 1 ms in 25": _Setting(
        _links(mbits=10_000).make, _STALLS
    ),
    "queues of 128 KiB": _links(queue_bytes=128 << 10),
    "queues of 128 KiB, 16 operations": _links(16, queue_bytes=128 << 10),
    "queues of 256 KiB, 16 operations": _links(16, queue_bytes=256 << 10),
    "1 Gbit/s, queues of 512 KiB": _links(mbits=1000, queue_bytes=512 << 10),
    "1 Gbit/s, queues of 512 KiB, 16 operations": _links(
        16, mbits=1000, queue_bytes=512 << 10
    ),
}


def _name(setting: str, nbytes: int, chains: int) -> str:
    return f"{setting}, {nbytes}, {chains} chains"


def cases() -> Iterator[Case]:
    """Yield a case for each setting, size and number of chains."""
    for setting in _SETTINGS:
        for nbytes in _SIZES:
            for chains in _CHAINS:
                quick = setting == "short links" and nbytes == _SIZES[0]
                arguments = (setting, nbytes, chains)
                yield Case(_name(*arguments), arguments, quick)


def measure(setting: str, nbytes: int, chains: int) -> Numbers:
    """Run Allgathers one after the other, most often one."""
    make, spec = _SETTINGS[setting]
    return Site(make(), NRANKS).ours(block_bytes=nbytes, chains=chains, **spec)


def _row(results: Results, setting: str) -> list[str]:
    """Return a setting's line of the table."""
    times = [
        [results[_name(setting, nbytes, chains)]["time_ns"] for chains in _CHAINS]
        for nbytes in _SIZES
    ]
    ratios = [f"{time / auto:.2f}" for auto, *others in times for time in others]
    return [setting, *ratios]


def chapter(results: Results, _folder: Path) -> Chapter:
    """Return the chapter, with a table by setting."""
    heads = [
        f"{nbytes // 1024} KiB, {chains} chains"
        for nbytes in _SIZES
        for chains in _CHAINS[1:]
    ]
    return Chapter(
        "Fewer chains",
        [
            (
                f"{NRANKS} ranks gather with 2, 4 and 8 chains. CHAINS=auto stays as "
                "it is: on short links fewer chains gain 4 % at most, and where links "
                "are long or ranks stall they mostly lose, up to half the speed. Two "
                "chains win where queues are short, as two senders fill them less: "
                "clearly with 128 KiB a port, by up to a sixth with 256 KiB, and with "
                "512 KiB at 1 Gbit/s in a first operation alone, until the window has "
                "adapted. With queues of 128 KiB set CHAINS=2."
            ),
        ],
        [
            Table(
                "Times, divided by the time with CHAINS=auto.",
                ["setting", *heads],
                [_row(results, setting) for setting in _SETTINGS],
            )
        ],
        [],
    )
