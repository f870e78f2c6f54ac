# SPDX-License-Identifier: BSD-3-Clause
"""Model how many threads of a SmartNIC would carry a link: ``python -m bench.offload``.

The instructions that our engine takes for a chunk are measured: the program
tests/firmware/counts.c runs whole operations in an emulator, which counts exactly. All
else is not ours: how many cycles an instruction takes on such cores was published, and
threads are modelled from both. An emulator says nothing about time.
"""

from __future__ import annotations

import argparse
import math
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from matplotlib import rc_context
from matplotlib.figure import Figure

from bench.page.plot import STYLE, save

ROOT = Path(__file__).resolve().parent.parent

RATES_GBIT = (200, 400, 800, 1600)
CHUNKS_BYTES = (1024, 4096)
NCHUNKS = 1024  # of an operation in counts.c
FUNCTIONS = 8  # shown of each case
CLOCK_HZ = 1.8e9  # published, of the cores that the paper used

_MEMORY_MBYTES = 512
_MEMORY_AT = 0x8000_0000
_PARAMETERS_BYTES = 4096
_KEPT_EVENTS = 64


class Published(NamedTuple):
    """The paper's cost of a completion, as we remember it.

    Compare it with the paper before you quote it.
    """

    name: str
    instructions: int
    cycles: int

    @property
    def cycles_each(self) -> float:
        """The cycles that an instruction takes: these cores wait for memory."""
        return self.cycles / self.instructions


WRITES = Published("paper, zero-copy writes", 66, 598)
DATAGRAMS = Published("paper, datagrams by DMA", 113, 1084)


class Case(NamedTuple):
    """A way of placing, and how completions come."""

    name: str
    way: int  # an index of `ways` in counts.c
    found: int  # completions that one poll finds
    like: Published  # whose cycles an instruction takes


CASES = (
    Case("writes, alone", 0, 1, WRITES),
    Case("writes, runs of 16", 0, 16, WRITES),
    Case("datagrams by DMA, alone", 2, 1, DATAGRAMS),
    Case("datagrams by DMA, runs of 16", 2, 16, DATAGRAMS),
)


class Row(NamedTuple):
    """A line of the table."""

    name: str
    kind: str  # where its instructions come from
    instructions: float
    cycles: float

    def threads(self, rate_gbit: float, chunk_bytes: int) -> int:
        """Return how many threads take in chunks at a link's rate, if all scales."""
        chunks = rate_gbit * 1e9 / 8 / chunk_bytes
        return math.ceil(chunks * self.cycles / CLOCK_HZ)


def run(command: list[str | Path]) -> subprocess.CompletedProcess[str]:
    """Run a command, and return what it writes."""
    return subprocess.run(
        command, check=True, capture_output=True, text=True, timeout=300
    )


def build(folder: Path) -> Path:
    """Link counts.c with the engine; return the program."""
    program = ROOT / "tests/firmware/counts.c"
    configure: list[str | Path] = [
        *("cmake", "-G", "Ninja", "-S", ROOT / "ffi/firmware", "-B", folder),
        *("--toolchain", "rv64.cmake", f"-DMPIMCAST_IMAGES={program}"),
        f"-DMPIMCAST_MEMORY={_MEMORY_MBYTES}M",
    ]
    run(configure)
    run(["cmake", "--build", folder])
    return folder / "counts.elf"


def execute(
    program: Path, case: Case, *options: str | Path
) -> subprocess.CompletedProcess[str]:
    """Run the program on the emulator, with further options of it."""
    command: list[str | Path] = [
        *("qemu-system-riscv64", "-machine", "virt", "-bios", "none"),
        *("-m", f"{_MEMORY_MBYTES}M", "-display", "none", "-monitor", "none"),
        *("-serial", "stdio", "-icount", "shift=0,sleep=off", "-kernel", program),
    ]
    at = _MEMORY_AT + _MEMORY_MBYTES * 2**20 - _PARAMETERS_BYTES
    for index, value in enumerate((case.way, case.found, _KEPT_EVENTS)):
        loaded = f"loader,addr={at + 8 * index},data={value},data-len=8"
        command += ["-device", loaded]
    return run([*command, *options])


def count(program: Path, case: Case) -> float:
    """Return the instructions that a chunk takes, in a whole operation of 1,024."""
    done = execute(program, case)
    found = re.search(r"(\d+) in all", done.stdout)
    if found is None:
        message = f"counts.c printed {done.stdout!r}"
        raise RuntimeError(message)
    return int(found[1]) / NCHUNKS


def build_plugin(program: Path) -> tuple[str, str]:
    """Build what counts by function; return the emulator's options for it."""
    plugin = program.with_name("functions.so")
    source = ROOT / "bench/jobs/functions.c"
    run(["gcc", "-O2", "-shared", "-fPIC", source, "-o", plugin])
    names = run(["riscv64-unknown-elf-nm", "-S", "--defined-only", program])
    listed = program.with_name("functions.txt")
    with listed.open("w") as file:
        for line in names.stdout.splitlines():
            match line.split():
                case [begin, nbytes, "t" | "T", name]:
                    file.write(f"{begin} {nbytes} {name}\n")
    return "-plugin", f"{plugin},functions={listed}"


def functions(program: Path, case: Case, plugin: tuple[str, str]) -> Iterator[str]:
    """Yield the functions that take the most instructions of a chunk, with these."""
    done = execute(program, case, *plugin)
    counts = {
        name: int(number) / NCHUNKS / 2  # the program carries out two operations
        for name, number in re.findall(r"^(\w+) (\d+)$", done.stderr, re.MULTILINE)
    }
    for name in sorted(counts, key=counts.__getitem__, reverse=True)[:FUNCTIONS]:
        yield f"| {case.name} | `{name}` | {counts[name]:.1f} measured |"


def rows(program: Path) -> Iterator[Row]:
    """Yield the lines of the table: the paper's, then ours."""
    for each in (WRITES, DATAGRAMS):
        yield Row(each.name, "published", each.instructions, each.cycles)
    for case in CASES:
        instructions = count(program, case)
        cycles = instructions * case.like.cycles_each
        yield Row(f"ours, {case.name}", "measured", instructions, cycles)


def table(found: list[Row], chunk_bytes: int) -> Iterator[str]:
    """Yield the lines of a table in Markdown."""
    heads = [
        *(f"chunks of {chunk_bytes} bytes", "instructions a chunk", "cycles a chunk"),
        *(f"threads, {rate} Gbit/s" for rate in RATES_GBIT),
    ]
    yield f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}"
    for row in found:
        cycles = "published" if row.kind == "published" else "modelled"
        cells = [
            *(row.name, f"{row.instructions:.1f} {row.kind}"),
            f"{row.cycles:.0f} {cycles}",
            *(f"{row.threads(rate, chunk_bytes)} modelled" for rate in RATES_GBIT),
        ]
        yield f"| {' | '.join(cells)} |"


def draw(found: list[Row], path: Path) -> None:
    """Draw the threads against the link's rate, for both sizes of chunks."""
    figure = Figure(figsize=(9, 3.6))
    for column, chunk_bytes in enumerate(CHUNKS_BYTES, 1):
        axes = figure.add_subplot(1, len(CHUNKS_BYTES), column)
        for row in found:
            axes.plot(
                RATES_GBIT,
                [row.threads(rate, chunk_bytes) for rate in RATES_GBIT],
                "o--" if row.kind == "published" else "s-",
                markersize=4,
                label=f"{row.name}: {row.instructions:.0f} ({row.kind})",
            )
        axes.set_xscale("log", base=2)
        axes.set_yscale("log", base=2)
        axes.set_xticks(RATES_GBIT, [str(rate) for rate in RATES_GBIT])
        axes.yaxis.set_major_formatter("{x:g}")
        axes.set_xlabel("link, Gbit/s")
        axes.set_title(f"chunks of {chunk_bytes} bytes")
        if column == 1:
            axes.set_ylabel("threads at 1.8 GHz (modelled)")
    figure.legend(
        *axes.get_legend_handles_labels(),
        title="instructions a chunk",
        loc="upper center",
        bbox_to_anchor=(0.5, 0),
        ncols=2,
    )
    caption = "Threads of a SmartNIC, modelled from measured instructions."
    save(figure, path, caption)


def main() -> None:
    """Print the tables, and draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    folder = ROOT / "build/bench"
    parser.add_argument("--folder", type=Path, default=folder, help="of the picture")
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    program = build(folder / "firmware")
    found = list(rows(program))
    for chunk_bytes in CHUNKS_BYTES:
        print("\n".join(table(found, chunk_bytes)), end="\n\n")
    print("| case | function | instructions a chunk |\n|---|---|---|")
    plugin = build_plugin(program)
    for case in CASES:
        print("\n".join(functions(program, case, plugin)))
    with rc_context(STYLE):
        draw(found, folder / "offload.png")
    print(folder / "offload.png")


if __name__ == "__main__":
    main()
