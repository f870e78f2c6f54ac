# SPDX-License-Identifier: BSD-3-Clause
"""The command line of ``python -m mpimcast bench``."""

from __future__ import annotations

import argparse

from mpimcast._settings.values import parse_size
from mpimcast.cli import arguments, commands
from mpimcast.cli.bench import table

COLLECTIVES = (
    *("Allgather", "Allgatherv", "Bcast"),
    *("Iallgather", "Iallgatherv", "Ibcast"),
)

_GAP_S_MAX = 60.0


def make_parser(doc: str | None) -> argparse.ArgumentParser:
    """Return the parser.

    Parameters
    ----------
    doc
        The docstring of the command's module.
    """
    parser = commands.parser("bench", doc)
    parser.add_argument(
        "collectives",
        nargs="*",
        type=_collective,
        metavar="COLLECTIVE",
        help=f"{', '.join(COLLECTIVES)} or all (default: Allgather)",
    )
    _add_operations(parser)
    _add_conditions(parser)
    _add_output(parser)
    return parser


def _add_operations(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which operations are timed, and how many."""
    parser.add_argument(
        "--sizes",
        type=sizes,
        default="8:4M",
        metavar="LIST",
        help="bytes of each rank's block (Allgatherv: the mean; Bcast: the root's): "
        "numbers such as 1000 or 64K, and ranges of powers of two such as 8:4M, "
        "separated by commas (default: %(default)s)",
    )
    parser.add_argument(
        "--iterations",
        type=arguments.whole(1).parse,
        default=100,
        metavar="N",
        help="operations of each size (default: %(default)s)",
    )
    parser.add_argument(
        "--warmup",
        type=arguments.whole(0).parse,
        default=10,
        metavar="N",
        help="operations before those that are timed (default: %(default)s)",
    )
    parser.add_argument(
        "--in-place",
        action="store_true",
        help="use MPI.IN_PLACE, as a Bcast always does",
    )
    parser.add_argument(
        "--root",
        type=_root,
        default=0,
        metavar="RANK",
        help="the root of a Bcast; rotate: each rank in turn (default: %(default)s)",
    )


def _add_conditions(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what happens between operations."""
    parser.add_argument(
        "--no-verify",
        dest="verify",
        action="store_false",
        help="do not check the data, which keeps ranks busy between operations",
    )
    parser.add_argument(
        "--pre-barrier",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="begin every operation with the MPI library's barrier (the default)",
    )
    parser.add_argument(
        "--gap",
        dest="gap_s",
        type=arguments.seconds(0, _GAP_S_MAX, example="0.005"),
        default=0.0,
        metavar="SECONDS",
        help="stay idle before every operation (default: 0)",
    )


def _add_output(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what is printed and written."""
    parser.add_argument(
        "--format",
        choices=table.FORMATS,
        default="osu",
        help="the table's format: as OSU's benchmarks print it, or as NCCL's do, with "
        "the size of the whole result and bandwidths (default: %(default)s)",
    )
    parser.add_argument(
        "--json",
        metavar="PATH",
        help="also write everything to this file, or with - to standard output instead "
        "of the table",
    )


def sizes(text: str) -> list[int]:
    """Parse a list of sizes and ranges of powers of two."""
    try:
        return [size for part in text.split(",") for size in _range(part)]
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _range(text: str) -> list[int]:
    first, colon, last = text.partition(":")
    low, high = parse_size(first), parse_size(last if colon else first)
    if low < 1:
        raise ValueError(f"{text!r} begins below 1")
    if not colon:
        return [low]
    powers = [1 << bits for bits in range(high.bit_length()) if 1 << bits >= low]
    if not powers:
        raise ValueError(f"there is no power of two in {text!r}")
    return powers


def _collective(text: str) -> list[str]:
    name = arguments.names("collective", [*COLLECTIVES, "all"])(text)
    return list(COLLECTIVES) if name == "all" else [name]


def _root(text: str) -> int | None:
    rotate = -1
    words = {"rotate": rotate}
    root = arguments.whole(0, metavar="RANK", words=words).parse(text)
    return None if root == rotate else root
