# SPDX-License-Identifier: BSD-3-Clause
"""The engine on a processor without an operating system does what it does here."""

from __future__ import annotations

import zlib

import image
from support import choose_seed

from mpimcast._native.core import ffi, lib


def simulate(seed: int) -> str:
    """Run a random case of the simulator, and return the line that cases.c prints."""
    spec = ffi.new("struct mmc_sim_spec *")
    result = ffi.new("struct mmc_sim_result *")
    lib.mmc_sim_case(seed, spec)
    assert lib.mmc_sim_run(spec, result) == 0
    ranks = ffi.buffer(result.ranks, result.nranks * ffi.sizeof(result.ranks[0]))
    links = ffi.buffer(result.links, result.nlinks * ffi.sizeof(result.links[0]))
    figures = ffi.buffer(ffi.addressof(result, "figures"))
    line = (
        f"case {seed}: {result.nranks} ranks {zlib.adler32(ranks)}, "
        f"{result.nlinks} links {zlib.adler32(links)}, "
        f"figures {zlib.adler32(figures)}, {result.time_ns} ns, "
        f"{result.events} events, {result.datagrams} datagrams, "
        f"{result.sealed} sealed{ffi.string(result.violation).decode()}"
    )
    lib.mmc_sim_result_clear(result)
    return line


def test_simulated_jobs(long: bool) -> None:
    """Whole jobs, with losses, stalls and reads, take the same course on bare rv64.

    Not only their results are equal, but the times and the numbers of all datagrams.
    """
    first, count = choose_seed(), 300 if long else 40
    printed = image.execute("cases", first, count, limit_s=250)
    *lines, memory = printed.splitlines()
    assert lines == [simulate(seed) for seed in range(first, first + count)]
    assert memory.endswith(" bytes of memory")


def test_library() -> None:
    """What stands in for the C library there does what C says."""
    assert image.execute("library", limit_s=60) == "passed\n"
