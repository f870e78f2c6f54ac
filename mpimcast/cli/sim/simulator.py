# SPDX-License-Identifier: BSD-3-Clause
"""The simulator: any number of ranks in one process, in virtual time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from mpimcast._core import ffi, lib
from mpimcast.errors import ConfigError

if TYPE_CHECKING:
    from mpimcast._core import _CData as CData
    from mpimcast._native.trace import Trace
    from mpimcast.cli.sim.scene import Scene

Plain = dict[str, Any]


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
    """Return the spec of random case `seed`, with a number of ranks in this range."""
    spec = ffi.new("struct mmc_sim_spec *")
    lib.mmc_sim_crowd(seed, nranks_min, nranks_max, spec)
    return _plain(spec[0])


def run(spec: Plain, scene: Scene | None = None, trace: Trace | None = None) -> Plain:
    """Run a spec and return its result.

    The run is on the fabric of `scene` and beside its script, if it has them, and adds
    to `trace` what the ranks' streams do. Spec
    and result are the C structs of ``mpimcast/sim.h`` as dictionaries; `spec` may
    leave out fields that are as in `default_spec`.
    """
    fields = {**default_spec(), **spec}
    fields["fault"] = fields["fault"].encode()
    try:
        c_spec = ffi.new("struct mmc_sim_spec *", fields)
    except (IndexError, OverflowError) as error:  # a long text, a large number
        raise ConfigError(f"this cannot be simulated: {error}") from None
    result = ffi.new("struct mmc_sim_result *")
    fabric, script = (scene.fabric, scene.script) if scene else (ffi.NULL, ffi.NULL)
    ring = trace.c if trace else ffi.NULL
    status = lib.mmc_sim_run_on(c_spec, fabric, script, ring, result)
    if status != 0:
        raise ConfigError(f"this cannot be simulated: {error_text(status)}")
    try:
        found = _plain(result[0], refuses_pointers=False)
        found["ranks"] = [_plain(result.ranks[i]) for i in range(result.nranks)]
        found["links"] = [_plain(result.links[i]) for i in range(result.nlinks)]
    finally:
        lib.mmc_sim_result_clear(result)
    return found


def stamp_scale(spec: Plain) -> int:
    """Return how many bytes of payload a byte stands for in a run with stamps."""
    return int(spec["chunk_bytes"]) // lib.MMC_SIM_STAMP_BYTES


def forecast_ns(outlook: Plain, data_chunks: int, parity_chunks: int) -> int:
    """Return the cost that RELIABILITY=auto forecasts for operations on a lossy link.

    `outlook` is a ``struct mmc_sim_outlook`` of ``mpimcast/sim.h``. With 0 data chunks
    lost chunks are repeated.
    """
    c_outlook = ffi.new("struct mmc_sim_outlook *", outlook)
    return int(lib.mmc_sim_forecast_ns(c_outlook, data_chunks, parity_chunks))


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
    """Run random cases as `run_cases` does, with numbers of ranks in this range."""
    violation = ffi.new("char[]", lib.MMC_SIM_TEXT_SIZE)
    held = lib.mmc_sim_run_crowds(first, count, nranks_min, nranks_max, violation)
    return CasesHeld(held, bytes(ffi.string(violation)).decode(errors="replace"))


def error_text(error: int) -> str:
    """Return the words for an error of the C core."""
    return bytes(ffi.string(lib.mmc_strerror(error))).decode()


def _plain(struct: CData, *, refuses_pointers: bool = True) -> Plain:
    """Return a C struct as a dictionary.

    If it has a pointer, raise TypeError with `refuses_pointers`, else leave it out.
    """
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
        elif refuses_pointers:
            raise TypeError(name)
    return plain
