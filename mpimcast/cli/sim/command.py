# SPDX-License-Identifier: BSD-3-Clause
"""``python -m mpimcast sim``: operations on a simulated network.

Any number of ranks run the same engine as over a real network, in one process and
in virtual time. A run depends on its options and its seed alone. Every run is
checked as it goes: right bytes, an end, nothing sent outside the protocol.
"""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from mpimcast._core import ffi, lib
from mpimcast.cli.sim import options as sim_options
from mpimcast.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mpimcast._core import _CData as CData

_ROWS_MAX = 32
_KINDS = ("multicast", "control", "repair")

Plain = dict[str, Any]


# ---- runs --------------------------------------------------------------------


def default_spec() -> Plain:
    """Return the spec of one operation of 4 ranks on a healthy network."""
    spec = ffi.new("struct mmc_sim_spec *")
    lib.mmc_sim_spec_init(spec)
    return _plain(spec[0])


def case_spec(seed: int) -> Plain:
    """Return the spec of random case `seed`."""
    spec = ffi.new("struct mmc_sim_spec *")
    lib.mmc_sim_case(seed, spec)
    return _plain(spec[0])


def crowd_spec(seed: int, nranks_min: int, nranks_max: int) -> Plain:
    """Return the spec of random case `seed` of so many ranks."""
    spec = ffi.new("struct mmc_sim_spec *")
    lib.mmc_sim_crowd(seed, nranks_min, nranks_max, spec)
    return _plain(spec[0])


def run(spec: Plain) -> Plain:
    """Run a spec and return its result.

    Both are the C structs of ``mpimcast/sim.h`` as dictionaries; `spec` may leave
    out what is as in `default_spec`.
    """
    fields = {**default_spec(), **spec}
    fields["fault"] = fields["fault"].encode()
    try:
        c_spec = ffi.new("struct mmc_sim_spec *", fields)
    except (IndexError, OverflowError) as error:  # a long text, a large number
        raise ConfigError(f"this cannot be simulated: {error}") from None
    result = ffi.new("struct mmc_sim_result *")
    status = lib.mmc_sim_run(c_spec, result)
    if status != 0:
        raise ConfigError(f"this cannot be simulated: {_error_text(status)}")
    try:
        found = _plain(result[0], pointers=False)
        found["ranks"] = [_plain(result.ranks[i]) for i in range(result.nranks)]
        found["links"] = [_plain(result.links[i]) for i in range(result.nlinks)]
    finally:
        lib.mmc_sim_result_clear(result)
    return found


class CasesHeld(NamedTuple):
    """How many of a range of random cases held, and what the next one broke."""

    ncases: int
    violation: str


def run_cases(first: int, count: int) -> CasesHeld:
    """Run the random cases from seed `first` on until one does not hold."""
    violation = ffi.new("char[]", lib.MMC_SIM_TEXT_SIZE)
    held = lib.mmc_sim_run_cases(first, count, violation)
    return CasesHeld(held, bytes(ffi.string(violation)).decode(errors="replace"))


def run_crowds(first: int, count: int, nranks_min: int, nranks_max: int) -> CasesHeld:
    """Run the random cases of so many ranks, likewise."""
    violation = ffi.new("char[]", lib.MMC_SIM_TEXT_SIZE)
    held = lib.mmc_sim_run_crowds(first, count, nranks_min, nranks_max, violation)
    return CasesHeld(held, bytes(ffi.string(violation)).decode(errors="replace"))


def _error_text(error: int) -> str:
    return bytes(ffi.string(lib.mmc_strerror(error))).decode()


def _plain(struct: CData, *, pointers: bool = True) -> Plain:
    """Return a C struct as a dictionary, without its pointers unless wanted."""
    plain: Plain = {}
    for name, field in ffi.typeof(struct).fields:
        value = getattr(struct, name)
        if field.type.kind == "primitive":
            plain[name] = int(value)
        elif field.type.kind == "struct":
            plain[name] = _plain(value)
        elif field.type.kind == "array" and field.type.item.cname == "char":
            plain[name] = bytes(ffi.string(value)).decode(errors="replace")
        elif field.type.kind == "array":
            plain[name] = list(value)
        elif pointers:
            raise TypeError(name)
    return plain


# ---- the command line --------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line says; return the exit status."""
    parser = sim_options.parser(default_spec())
    options = vars(parser.parse_args(arguments))
    as_json = options.pop("json")
    case, cases = options.pop("case"), options.pop("cases")
    crowd = options.pop("crowd")
    chosen = sim_options.numbers(options)
    if cases is not None:
        return _main_cases(case or 0, cases, crowd)
    if case is not None:
        drawn = crowd_spec(case, *crowd) if crowd else case_spec(case)
        spec = {**drawn, **options}
    else:
        spec = {**default_spec(), **chosen, **options}
    if conflict := sim_options.conflict(spec):
        parser.error(conflict)
    begin = time.perf_counter()
    try:
        result = run(spec)
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 2
    wall_s = time.perf_counter() - begin
    if as_json:
        print(json.dumps({"spec": spec, "result": result, "wall_s": wall_s}, indent=1))
    else:
        print("\n".join(_report(spec, result, wall_s)))
    return 1 if result["violation"] else 0


def _main_cases(first: int, count: int, crowd: tuple[int, int] | None) -> int:
    begin = time.perf_counter()
    held = run_crowds(first, count, *crowd) if crowd else run_cases(first, count)
    wall_s = time.perf_counter() - begin
    print(
        f"{held.ncases} cases in {wall_s:.1f} s, {held.ncases / wall_s:.0f} per second"
    )
    if held.ncases == count:
        return 0
    print(failure_text(first + held.ncases, held.violation, crowd))
    return 1


def failure_text(seed: int, violation: str, crowd: tuple[int, int] | None) -> str:
    """Return what a failed case breaks, and the command that replays it."""
    of = f" --crowd {crowd[0]} {crowd[1]}" if crowd else ""
    return f"case {seed}: {violation}\nreplay: python -m mpimcast sim{of} --case {seed}"


# ---- the report --------------------------------------------------------------


def _report(spec: Plain, result: Plain, wall_s: float) -> list[str]:
    lost = sum(rank["lost_chunks"] for rank in result["ranks"])
    repaired = sum(rank["repaired_chunks"] for rank in result["ranks"])
    fetched = sum(rank["read_chunks"] for rank in result["ranks"])
    blocks = 1 if spec["kind"] == lib.MMC_BCAST else spec["nranks"] - 1
    link_us = spec["block_bytes"] * blocks * 8 / spec["link_mbits"]
    kind = next(
        name for name, kind in sim_options.COLLECTIVES.items() if kind == spec["kind"]
    )
    slowest_us = max(rank["busy_ns"] for rank in result["ranks"]) / 1000
    lines = [
        f"ranks     {spec['nranks']} x {spec['block_bytes']} bytes, {kind}",
        f"started   {spec['nops']} operations on each of {spec['nstreams']} streams",
        f"time      {result['time_ns'] / 1000:.1f} us, {slowest_us:.1f} us the slowest",
        f"link time {link_us:.1f} us for the payload that a rank receives in each",
        f"chunks    {lost} lost, {repaired} repaired, {fetched} of them read",
        *_laws(result["figures"]),
        f"simulated {result['datagrams']} deliveries in {wall_s:.2f} s",
        "",
        *_table(_rank_rows(result)),
        "",
        *_table(_link_rows(result)),
        "",
    ]
    if result["violation"]:
        lines.append(f"VIOLATED {result['violation']}")
    else:
        lines.append("every property held")
    return lines


def _laws(figures: Plain) -> list[str]:
    sent, lacked = figures["repair_chunks"], figures["lacked_chunks"]
    control, bound = figures["control_most"], figures["control_bound"]
    still = figures["excused_most"]
    return [
        f"repairs   {sent} chunks sent again or read, {lacked} lost, for each receiver",
        f"control   {control} datagrams of a rank in an operation that needs {bound}",
        f"          {still} at most about ranks that stand still",
    ]


def _rank_rows(result: Plain) -> list[list[str]]:
    head = ["rank", "end us", "outcome"]
    head += [f"{way} {kind}" for way in ("tx", "rx") for kind in _KINDS]
    head += ["lost", "repaired", "read", "duplicate", "overrun"]
    rows = [head]
    for index, rank in enumerate(result["ranks"]):
        traffic = [*rank["tx"]["bytes"], *rank["rx"]["bytes"]]
        kinds = ("lost", "repaired", "read", "duplicate")
        chunks = [rank[f"{kind}_chunks"] for kind in kinds]
        outcome = _error_text(rank["error"]) if rank["error"] else "ok"
        cells = [f"{rank['end_ns'] / 1000:.1f}", outcome, *traffic, *chunks]
        rows.append([str(index), *map(str, cells), str(rank["overrun_datagrams"])])
    return rows


def _link_rows(result: Plain) -> list[list[str]]:
    fields = ("bytes", "datagrams", "lost_datagrams", "overflowed_datagrams")
    rows = [["link", "bytes", "datagrams", "lost", "overflowed"]]
    rows += [
        [link["name"], *(str(link[field]) for field in fields)]
        for link in result["links"]
    ]
    return rows


def _table(rows: list[list[str]]) -> list[str]:
    left_out = len(rows) - 1 - _ROWS_MAX
    if left_out > 0:
        rows = rows[: 1 + _ROWS_MAX]
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    ]
    if left_out > 0:
        lines.append(f"... and {left_out} more; --json has them all")
    return lines


if __name__ == "__main__":
    sys.exit(main())
