# SPDX-License-Identifier: BSD-3-Clause
"""Programs for an emulated rv64 processor without an operating system."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from support import BUILD, ROOT, require_tool, run

MEMORY_MBYTES = 512
# Where the machine's memory begins, and how much of its end parameters take.
MEMORY_AT = 0x8000_0000
PARAMETERS_BYTES = 4096


@cache
def build() -> Path:
    """Link the programs of this folder with the engine; return where they are."""
    require_tool("riscv64-unknown-elf-gcc")
    cmake = require_tool("cmake")
    folder = BUILD / "firmware"
    images = ";".join(map(str, sorted((ROOT / "tests/firmware").glob("*.c"))))
    run(
        [
            *(cmake, "-G", "Ninja", "-S", ROOT / "ffi/firmware", "-B", folder),
            *("--toolchain", "rv64.cmake", f"-DMPIMCAST_IMAGES={images}"),
            f"-DMPIMCAST_MEMORY={MEMORY_MBYTES}M",
            f"-DCMAKE_MAKE_PROGRAM={require_tool('ninja')}",
        ],
        limit_s=60,
    )
    run([cmake, "--build", folder], limit_s=300)
    return folder


def command(name: str, *parameters: int) -> list[str | Path]:
    """Return the command that runs a program on the emulated machine.

    The machine's serial line is the command's input and output.

    Parameters
    ----------
    name
        The program's source file, without its suffix.
    *parameters
        The words that it finds at ``mmc_parameters``.
    """
    at = MEMORY_AT + MEMORY_MBYTES * 2**20 - PARAMETERS_BYTES
    words: list[str | Path] = [
        *(require_tool("qemu-system-riscv64"), "-machine", "virt", "-bios", "none"),
        *("-m", f"{MEMORY_MBYTES}M", "-display", "none", "-monitor", "none"),
        *("-serial", "stdio", "-kernel", build() / f"{name}.elf"),
    ]
    for index, value in enumerate(parameters):
        loaded = f"loader,addr={at + 8 * index},data={value},data-len=8"
        words += ["-device", loaded]
    return words


def execute(name: str, *parameters: int, limit_s: float, counted: bool = False) -> str:
    """Run a program on the emulated machine, and return what it prints.

    Parameters
    ----------
    name, *parameters
        See `command`.
    limit_s
        After how many seconds the test fails.
    counted
        Whether each instruction takes a nanosecond, so that the processor's counters
        of instructions and cycles count these.
    """
    counting = ("-icount", "shift=0,sleep=off") if counted else ()
    return run([*command(name, *parameters), *counting], limit_s=limit_s)


def section_bytes(name: str) -> dict[str, int]:
    """Return how long each section of a program is."""
    path = build() / f"{name}.elf"
    said = run([require_tool("riscv64-unknown-elf-size"), "-A", path], limit_s=10)
    lines = [line.split() for line in said.splitlines() if line.startswith(".")]
    return {words[0]: int(words[1]) for words in lines}
