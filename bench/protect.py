# SPDX-License-Identifier: BSD-3-Clause
"""Measure what protection costs a core: ``python -m bench.protect``.

Each primitive seals and opens datagrams of Ethernet's usual and largest chunks, in one
thread and in memory that stays in the cache. The figures are the best of some rounds,
in GB of bodies in a second of processor time, so other load disturbs them little.
"""

from __future__ import annotations

import argparse
import ctypes
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from mpimcast._native import protection

ROOT = Path(__file__).resolve().parent.parent

# The chunks that fit the MTUs of 1500 and 9000 bytes without protection.
SIZES = (1456, 8960)
MODES = ("authenticate", "encrypt")
ACTS = ("seal", "open")

_ROUNDS = 5
_BYTES = 100_000_000  # of each round
_FLAGS = ("-std=c11", "-O2", "-D_GNU_SOURCE", "-shared", "-fPIC")
_SUPPORT = ("ffi/support/error.c", "ffi/support/library.c")
_SOURCES = ("bench/jobs/seals.c", *_SUPPORT, *("-lpthread", "-ldl"))


def build(folder: Path) -> ctypes.CDLL:
    """Build the library that measures in `folder`, and load it."""
    library = folder / "seals.so"
    sources = sorted((ROOT / "ffi/drivers/protect").glob("*.c"))
    names = ("primitive", "libcrypto", "aegis", "answers")
    parts = [each for each in sources if each.stem in names]
    command = ("gcc", *_FLAGS, "-Iffi", "-Iffi/include", *parts, *_SOURCES)
    subprocess.run([*command, "-o", library], cwd=ROOT, check=True)
    loaded = ctypes.CDLL(str(library))
    loaded.mmc_bench_seals.restype = ctypes.c_double
    return loaded


def measure(library: ctypes.CDLL, rounds: int) -> Iterator[tuple[str, ...]]:
    """Yield a line of the table for each primitive, mode, size and act."""
    for primitive, kind in protection.PRIMITIVES.items():
        paths = ("", *protection.modules(primitive))
        if not any(library.mmc_primitive_open(kind, p.encode()) == 0 for p in paths):
            yield protection.name(primitive), "cannot be opened", "", "", ""
            continue
        for mode in MODES:
            for nbytes in SIZES:
                rates = [
                    max(
                        library.mmc_bench_seals(
                            kind, mode == "encrypt", act, nbytes, _BYTES // nbytes
                        )
                        for _ in range(rounds)
                    )
                    for act in range(len(ACTS))
                ]
                speeds = [f"{rate / 1e9:.1f}" for rate in rates]
                yield protection.name(primitive), mode, str(nbytes), *speeds


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=_ROUNDS)
    rounds = parser.parse_args().rounds
    heads = ("primitive", "mode", "bytes", *(f"{act}, GB/s" for act in ACTS))
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    with tempfile.TemporaryDirectory() as folder:
        for line in measure(build(Path(folder)), rounds):
            print(f"| {' | '.join(line)} |")


if __name__ == "__main__":
    main()
