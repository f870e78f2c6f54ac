# SPDX-License-Identifier: BSD-3-Clause
"""Measure what erasure codes cost a core: ``python -m bench.codes``.

ISA-L, where it is installed, and our own tables compute parity, and mend as many lost
chunks as there are parity chunks, in one thread and in memory that stays in the cache.
The figures are the best of some rounds, in GB of data in a second of processor time.
"""

from __future__ import annotations

import argparse
import ctypes
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from mpimcast._native import codec

ROOT = Path(__file__).resolve().parent.parent

CODES = ((8, 1), (8, 2), (32, 1), (32, 4), (32, 8))
# The chunks that fit the MTUs of 1500 and 9000 bytes.
SIZES = (1456, 8960)
ACTS = ("encode", "mend")

_ROUNDS = 5
_BYTES = 50_000_000  # of each round
_FLAGS = ("-std=c11", "-O2", "-D_GNU_SOURCE", "-shared", "-fPIC", "-Iffi")
_CODE = [f"ffi/code/{name}.c" for name in ("code", "codec", "field")]
_ISAL = ("ffi/code/isal.c", "ffi/support/error.c", "ffi/support/library.c")
_OURS = ("ffi/firmware/codec.c",)  # where there is no library
_SOURCES = ("bench/jobs/codes.c", *_CODE, "ffi/support/assert.c")


def build(folder: Path, name: str, choice: tuple[str, ...]) -> ctypes.CDLL:
    """Build the library that measures a codec in `folder`, and load it."""
    library = folder / f"{name}.so"
    command = ("gcc", *_FLAGS, "-Iffi/include", *_SOURCES, *choice)
    subprocess.run([*command, "-lpthread", "-ldl", "-o", library], cwd=ROOT, check=True)
    loaded = ctypes.CDLL(str(library))
    loaded.mmc_bench_codes.restype = ctypes.c_double
    return loaded


def measure(name: str, library: ctypes.CDLL, rounds: int) -> Iterator[tuple[str, ...]]:
    """Yield a line of the table for each code and size."""
    for ndata, nparity in CODES:
        for nbytes in SIZES:
            count = _BYTES // (ndata * nbytes)
            rates = [
                max(
                    library.mmc_bench_codes(ndata, nparity, nbytes, act, count)
                    for _ in range(rounds)
                )
                for act in range(len(ACTS))
            ]
            speeds = [f"{rate / 1e9:.2f}" for rate in rates]
            yield name, f"{ndata}, {nparity}", str(nbytes), *speeds


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=_ROUNDS)
    rounds = parser.parse_args().rounds
    heads = ("codec", "data, parity", "chunk", *(f"{act}, GB/s" for act in ACTS))
    codecs = {"tables": _OURS}
    if why := codec.missing():
        print(f"ISA-L is left out: {why}\n")
    else:
        codecs = {"ISA-L": _ISAL, **codecs}
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    with tempfile.TemporaryDirectory() as folder:
        for name, choice in codecs.items():
            library = build(Path(folder), name, choice)
            for line in measure(name, library, rounds):
                print(f"| {' | '.join(line)} |", flush=True)


if __name__ == "__main__":
    main()
