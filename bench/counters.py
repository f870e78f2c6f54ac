# SPDX-License-Identifier: BSD-3-Clause
"""Count what chunks and operations cost: ``python -m bench.counters [--write]``.

No time is measured. Callgrind counts the instructions of a chunk, and tests/c/costs.c
counts the system calls, copies, allocations and datagrams of an operation while one
thread moves all ranks. Each count is the same on every run and under any load, so only
a change of the code can change it. ``--write`` makes the counts the new baseline, with
which tests/structure/test_counters.py compares.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BASELINE = Path(__file__).with_name("baseline.json")
TOOLS = ("gcc", "valgrind", "callgrind_annotate")

# A count has risen if it exceeds the baseline by more than this share.
TOLERANCE = 0.02

# The parts of a chunk's way that tests/c/instructions.c measures one by one, and
# tests/c/instructions_protect.c for `seal` and `open`, each with a text that marks the
# lines of callgrind that count. For `receive`, `run` and `send` these are the core's
# functions, for `train` the UDP driver's; for the others, the total, which includes the
# C library's copies.
COUNTED = {
    "receive": "ffi/core/",
    "run": "ffi/core/",
    "send": "ffi/core/",
    "train": "ffi/drivers/udp/",
    "stage": "PROGRAM TOTALS",
    "direct": "PROGRAM TOTALS",
    "seal": "PROGRAM TOTALS",
    "open": "PROGRAM TOTALS",
}
# The operations whose costs are counted, and the bytes of their blocks.
OPERATIONS = (
    ("Allgather", 64 << 10),
    ("Allgather", 512 << 10),
    ("Bcast", 512 << 10),
)

_ENGINE = ("support", "code", "core/*", "engine", "engine/*")
_FLAGS = ("-std=c11", "-O2", "-g", "-D_GNU_SOURCE", "-Iffi", "-Iffi/include")
_LIMIT_S = 300


def instructions(part: str, folder: Path) -> float:
    """Return the x86-64 instructions that a chunk takes in one part of its way.

    Each chunk's share of polling is included. The program and callgrind's profile are
    made in `folder`.
    """
    program, profile = folder / f"instructions_{part}", folder / f"profile_{part}"
    _run("gcc", *_FLAGS, *_measuring(part), "-o", program)
    callgrind = ("--tool=callgrind", "--toggle-collect=measured")
    out = f"--callgrind-out-file={profile}"
    said = _run("valgrind", *callgrind, out, program, part)
    table = _run("callgrind_annotate", "--auto=no", "--threshold=100", profile)
    spent = re.findall(rf"^\s*([\d,]+) .*{COUNTED[part]}", table, re.MULTILINE)
    chunks = re.search(r"^(\d+) chunks$", said, re.MULTILINE)
    if not (spent and chunks):
        raise RuntimeError(f"callgrind counted nothing:\n{said}{table}")
    return sum(int(count.replace(",", "")) for count in spent) / int(chunks[1])


def _measuring(part: str) -> list[str | Path]:
    """Return the C files of the program that measures a part of a chunk's way."""
    if part in ("seal", "open"):
        layer = ("ffi/drivers/wrapper.c", *_sources("drivers/protect", "support"))
        return ["tests/c/instructions_protect.c", *layer]
    drivers = ("ffi/drivers/placement.c", "ffi/drivers/udp/batch.c")
    core = ("ffi/engine/destination.c", "ffi/engine/predictor.c", *_sources("core/*"))
    return ["tests/c/instructions.c", *drivers, *core]


def operations(folder: Path) -> dict[str, dict[str, float]]:
    """Return what OPERATIONS cost a rank, by operation and kind of cost.

    A cost is the average of four ranks. The program is built in `folder`.
    """
    program = folder / "costs"
    source = ROOT / "tests/c/costs.c"
    # The program replaces these functions in order to count their calls.
    wrapped = re.findall(r"^WRAP\(.*?, (\w+),", source.read_text(), re.MULTILINE)
    sources = [
        *_sources(*_ENGINE),
        *_sources("drivers", "drivers/udp", "drivers/fault", "drivers/protect"),
        *_sources("drivers/remote", "offload"),
    ]
    _run(
        *("gcc", *_FLAGS, "-fno-builtin-memcpy", "-fno-builtin-memmove", "-pthread"),
        *(source, *sources, "ffi/drivers/verbs/absent.c", "-o", program),
        *(f"-Wl,--wrap={name}" for name in wrapped),
    )
    found = {}
    for name, nbytes in OPERATIONS:
        lines = _run(program, name, str(nbytes)).splitlines()
        found[f"{name} {nbytes}"] = {
            what: float(count) for what, count in map(str.split, lines)
        }
    return found


def count(folder: Path) -> dict[str, dict[str, float]]:
    """Return all counts: instructions per chunk by part, and costs by operation."""
    per_chunk = {part: round(instructions(part, folder), 1) for part in COUNTED}
    return {"instructions per chunk": per_chunk, **operations(folder)}


def rises(
    baseline: dict[str, dict[str, float]], found: dict[str, dict[str, float]]
) -> list[str]:
    """Return a line of text for each count that has risen.

    A count that the baseline lacks counts as risen.
    """
    lines = []
    for group, counts in found.items():
        for name, value in counts.items():
            before = baseline.get(group, {}).get(name)
            if before is None:
                lines.append(f"{group}: {name}: {value:g} has no baseline")
            elif value > before * (1 + TOLERANCE):
                lines.append(f"{group}: {name}: {value:g}, was {before:g}")
    return lines


def read_baseline() -> dict[str, dict[str, float]]:
    """Return the committed counts."""
    baseline: dict[str, dict[str, float]] = json.loads(BASELINE.read_text())
    return baseline


def _sources(*folders: str) -> list[Path]:
    """Return the C files of folders in ffi/, whose names may be patterns."""
    return [
        path for name in folders for path in sorted((ROOT / "ffi").glob(f"{name}/*.c"))
    ]


def _run(*command: str | Path) -> str:
    """Run a command and return its output; raise RuntimeError if it fails."""
    done = subprocess.run(
        command,
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_LIMIT_S,
        check=False,
    )
    if done.returncode != 0:
        shown = " ".join(map(str, command))
        raise RuntimeError(f"status {done.returncode} of {shown}\n{done.stdout}")
    return done.stdout


def main(argv: Sequence[str] | None = None) -> None:
    """Print the counts beside the baseline, and write the baseline if asked."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.counters", description=__doc__
    )
    parser.add_argument(
        "--write", action="store_true", help="make the counts the new baseline"
    )
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        found = count(Path(folder))
    baseline = read_baseline() if BASELINE.exists() else {}
    for group, counts in found.items():
        for name, value in counts.items():
            before = baseline.get(group, {}).get(name, float("nan"))
            print(f"{group:22} {name:20} {value:12g}  baseline {before:12g}")
    if options.write:
        BASELINE.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
