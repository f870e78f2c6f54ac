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
from types import MappingProxyType
from typing import TYPE_CHECKING

from mpimcast.cli.sim import simulator, tracing
from mpimcast.cli.sim.choices import refusal, taken
from mpimcast.cli.sim.options import PROTECTS
from mpimcast.cli.sim.parser import conflict, make_parser, numbers
from mpimcast.cli.sim.report import report
from mpimcast.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from mpimcast._native.trace import Trace
    from mpimcast.cli.sim.choices import Choices


# The packages of the extra `sim` that a run on a fabric imports.
_EXTRA = {"matplotlib", "networkx"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line says; return the exit status."""
    parser = make_parser(simulator.default_spec())
    options = vars(parser.parse_args(arguments))
    as_json = options.pop("json")
    case, cases = options.pop("case"), options.pop("cases")
    crowd, trace = options.pop("crowd"), options.pop("trace")
    if cases is not None and (as_json or trace or set(options) - {"protect"}):
        parser.error(
            "beside --cases only --case, --crowd and --protect have a meaning: the "
            "cases draw all else; run one of them with --case to change it"
        )
    options |= numbers(options)
    choices = taken(options)
    if cases is not None and options.get("protect"):
        return _main_protected_cases(case or 0, cases, crowd, options["protect"])
    if cases is not None:
        return _main_cases(case or 0, cases, crowd)
    if why := refusal(choices, options):
        parser.error(why)
    if choices.fabric:
        if case is not None:
            parser.error("--case: its network is drawn, so it has no --fabric")
        return _told(lambda: _main_fabric(choices, options, trace, as_json=as_json))
    drawn = simulator.default_spec() if case is None else _draw(case, crowd)
    spec = {**drawn, **options}
    if why := conflict(spec):
        parser.error(why)
    return _told(lambda: _main_run(spec, trace, as_json=as_json))


def _told(run: Callable[[], int]) -> int:
    """Run something, and return its exit status; tell why if it cannot be."""
    try:
        return run()
    except BrokenPipeError:  # the reader of the output has gone
        raise
    except (ConfigError, OSError, ValueError) as error:
        print(f"mpimcast sim: {error}", file=sys.stderr)
    except ModuleNotFoundError as error:
        if error.name not in _EXTRA:
            raise
        print(
            f"mpimcast sim: this needs {error.name}: pip install 'mpimcast[sim]'",
            file=sys.stderr,
        )
    return 2


def _main_run(spec: simulator.Plain, trace: str | None, *, as_json: bool) -> int:
    """Run a spec on its own network."""
    ring = tracing.new_trace() if trace else None
    begin = time.perf_counter()
    result = simulator.run(spec, trace=ring)
    wall_s = time.perf_counter() - begin
    if trace and ring:
        _write_trace(trace, ring, spec, result)
    if as_json:
        print(json.dumps({"spec": spec, "result": result, "wall_s": wall_s}, indent=1))
    else:
        print("\n".join(report(spec, result, wall_s)))
    return 1 if result["violation"] else 0


def _main_fabric(
    choices: Choices,
    options: Mapping[str, Any],
    trace: str | None,
    *,
    as_json: bool,
) -> int:
    """Run on a fabric, and compare with peer algorithms."""
    # These need networkx and matplotlib, which few have.
    from mpimcast.cli.sim import comparison, figures, ground, sheet

    if choices.picture:
        from mpimcast.cli.sim import picture
    fabric, spec = ground.begun(choices, simulator.default_spec(), options)
    if why := conflict(spec):
        raise ConfigError(why)
    traces: dict[str, Trace] | None = {} if trace else None
    found = comparison.compared(fabric, choices, spec, traces)
    if trace and traces:
        ours, places = traces.pop(comparison.OURS), found.ground.places()
        _write_trace(trace, ours, spec, found.first, places, peers=traces)
    if choices.picture:
        picture.draw(found, choices.picture)
    if as_json:
        whole = {"choices": vars(choices), **figures.as_json(found, spec)}
        print(json.dumps(whole, indent=1))
    else:
        print("\n".join(sheet.sheet(found, choices, spec)))
    return 1 if found.violations else 0


def _write_trace(
    path: str,
    ring: Trace,
    spec: simulator.Plain,
    result: simulator.Plain,
    places: Sequence[str] = (),
    *,
    peers: Mapping[str, Trace] = MappingProxyType({}),
) -> None:
    """Write a trace, and say if it is not whole."""
    if ndropped := tracing.write(path, ring, spec, result, places, peers=peers):
        print(
            f"mpimcast sim: {path} lacks {ndropped} early events, which were too many",
            file=sys.stderr,
        )


def _draw(seed: int, crowd: tuple[int, int] | None) -> simulator.Plain:
    return simulator.crowd_spec(seed, *crowd) if crowd else simulator.case_spec(seed)


def _main_protected_cases(
    first: int, count: int, crowd: tuple[int, int] | None, protect: int
) -> int:
    """Run random cases with protection, until one does not hold."""
    begin = time.perf_counter()
    sealed = 0
    for seed in range(first, first + count):
        # Protection excludes zero-copy receive.
        spec = {**_draw(seed, crowd), "protect": protect, "zero_copy": 0}
        result = simulator.run(spec)
        if result["violation"]:
            print(failure_text(seed, result["violation"], crowd, protect))
            return 1
        sealed += result["sealed"]
    wall_s = time.perf_counter() - begin
    print(f"{count} cases in {wall_s:.1f} s, {count / wall_s:.0f} per second")
    print(f"{sealed} datagrams were sealed, each with a nonce of its own")
    return 0


def _main_cases(first: int, count: int, crowd: tuple[int, int] | None) -> int:
    begin = time.perf_counter()
    held = (
        simulator.run_crowds(first, count, *crowd)
        if crowd
        else simulator.run_cases(first, count)
    )
    wall_s = time.perf_counter() - begin
    print(
        f"{held.ncases} cases in {wall_s:.1f} s, {held.ncases / wall_s:.0f} per second"
    )
    if held.ncases == count:
        return 0
    print(failure_text(first + held.ncases, held.violation, crowd))
    return 1


def failure_text(
    seed: int, violation: str, crowd: tuple[int, int] | None, protect: int = 0
) -> str:
    """Return what a failed case breaks, and the command that replays it."""
    of = f" --crowd {crowd[0]} {crowd[1]}" if crowd else ""
    if protect:
        of += f" --protect {list(PROTECTS)[protect]}"
    return f"case {seed}: {violation}\nreplay: python -m mpimcast sim{of} --case {seed}"
