# SPDX-License-Identifier: BSD-3-Clause
"""The command line of ``python -m mpimcast sim``."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from mpimcast._native import core
from mpimcast._settings import values
from mpimcast.cli import arguments, commands
from mpimcast.cli.sim.choices import add_choices
from mpimcast.cli.sim.options import (
    CHECKSUMS,
    COLLECTIVES,
    GROUPS,
    NOBODY,
    OUTAGES,
    PROTECTS,
    RANKS_MAX,
    REPAIRS,
    UINT64_MAX,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

# The most bytes of a datagram besides its payload: our header and checksum, and those
# of UDP, IPv4 and Ethernet.
_HEADERS_BYTES = 64
_CODE = values.code(example="32,4")


def make_parser(defaults: Mapping[str, Any]) -> argparse.ArgumentParser:
    """Return the parser; its results lack most options that are not given.

    Parameters
    ----------
    defaults
        The simulator's spec unless options change it.
    """
    made = commands.parser(
        "sim",
        "Simulate collectives on a network in virtual time, and check that every byte "
        "is right. Times are in microseconds (US), milliseconds (MS) or seconds (S), "
        "as each option says.",
    )
    for title, options in GROUPS.items():
        group = made.add_argument_group(title)
        for name, field, kind, doc, on_fabric in options:
            elsewhere = f"; on a --fabric {on_fabric}" if on_fabric else ""
            group.add_argument(
                name,
                dest=field,
                type=kind.parse,
                metavar=kind.metavar,
                default=argparse.SUPPRESS,
                help=f"{doc} (default: {kind.show(defaults[field])}{elsewhere})",
            )
        if title == "operations":
            _add_choice(group, "--kind", COLLECTIVES, "allgather", "collective")
        if title == "protocol":
            _add_protocol(group)
        if title == "mishaps":
            _add_choice(group, "--outage", OUTAGES, "none", "what an outage affects")
            group.add_argument(
                "--fault",
                type=_fault,
                default=argparse.SUPPRESS,
                metavar="CLAUSES",
                help="the setting FAULT of every rank, such as loss=0.1,seed=9 "
                "(default: none)",
            )
    add_choices(made)
    _add_runs(made)
    return made


def _fault(text: str) -> str:
    try:
        core.check_fault(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def _code(text: str) -> tuple[int, int]:
    try:
        data, parity = str(_CODE.parse(text)).split(",")
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not valid: it must be {_CODE.expected}"
        ) from None
    return int(data), int(parity)


def _add_protocol(group: Any) -> None:
    _add_choice(group, "--repair", REPAIRS, "nak", "how losses are repaired")
    group.add_argument(
        "--code",
        type=_code,
        default=argparse.SUPPRESS,
        metavar="K,M",
        help="RELIABILITY=code with this CODE: K data chunks of a group at most, and M "
        "parity chunks that are sent with it; blocks of one chunk that are --eager "
        "have none (default: RELIABILITY=repeat)",
    )
    _add_choice(group, "--checksum", CHECKSUMS, "header", "what a checksum protects")
    _add_choice(group, "--protect", PROTECTS, "off", "how datagrams are protected")


def _add_choice(
    group: Any, name: str, choices: Mapping[str, int], default: str, doc: str
) -> None:
    group.add_argument(
        name,
        choices=choices,
        default=argparse.SUPPRESS,
        help=f"{doc} (default: {default})",
    )


def _add_runs(made: argparse.ArgumentParser) -> None:
    group = made.add_argument_group("the run")
    add = group.add_argument
    seed = arguments.whole(0, UINT64_MAX, metavar="SEED")
    add(
        "--seed",
        type=seed.parse,
        metavar=seed.metavar,
        default=argparse.SUPPRESS,
        help="seed of everything random (default: 1)",
    )
    add("--json", action="store_true", help="print spec and result as JSON")
    add(
        "--trace",
        metavar="FILE",
        help="write what each rank does into this file, for ui.perfetto.dev; of "
        "--seeds the first, and what messages it sends with each algorithm --against",
    )
    add(
        "--unwatched",
        action="store_true",
        default=argparse.SUPPRESS,
        help="do not check what ranks send, which a FAULT with dir=tx falsifies",
    )
    add(
        "--case",
        type=seed.parse,
        metavar="SEED",
        help="run the random case of this seed instead, changed by other options",
    )
    add(
        "--cases",
        type=arguments.whole(1, 2**31 - 1).parse,
        metavar="N",
        help="run N random cases, from the seed that --case gives, or 0, on, "
        "protected as --protect says",
    )
    add(
        "--crowd",
        type=arguments.whole(2, RANKS_MAX).parse,
        nargs=2,
        metavar=("MIN", "MAX"),
        help="draw cases of MIN to MAX ranks, on machines and networks that change",
    )


def numbers(options: dict[str, Any]) -> dict[str, int]:
    """Return the numbers that stand for the options that were chosen by name.

    A code is taken out of `options`, since it is two numbers. Protection and codes
    exclude zero-copy receive, so a random case gives that up for them.
    """
    choices = {
        "kind": COLLECTIVES,
        "repair": REPAIRS,
        "checksum": CHECKSUMS,
        "protect": PROTECTS,
        "outage": OUTAGES,
    }
    chosen = {
        field: named[options[field]]
        for field, named in choices.items()
        if field in options
    }
    if "code" in options:
        chosen["code_data"], chosen["code_parity"] = options.pop("code")
    excludes = chosen.get("protect") or chosen.get("code_data")
    if excludes and "zero_copy" not in options:
        chosen["zero_copy"] = 0
    return chosen


def conflict(spec: Mapping[str, Any]) -> str:
    """Return why options do not go together; "" if they do."""
    nranks = spec["nranks"]
    ranks = [
        option
        for options in GROUPS.values()
        for option in options
        if option.kind.metavar == "RANK"
    ]
    for option in ranks:
        if nranks <= spec[option.field] < NOBODY:
            return (
                f"{option.name} {spec[option.field]}: the {nranks} ranks are 0 to "
                f"{nranks - 1}"
            )
    if spec["nswitches"] > nranks:
        return f"--switches {spec['nswitches']}: there are only {nranks} ranks"
    if spec["stall_ns"] and spec["stall_ns"] >= spec["stall_period_ns"]:
        return "--stall must be less than --stall-period"
    for name, field, which in (
        ("--protect", "protect", "chunks that are checked first"),
        ("--code", "code_data", "chunks that parity may mend"),
    ):
        if spec[field] and spec["zero_copy"]:
            return f"{name}: {which} cannot be received --zero-copy"
    datagram_bytes = spec["chunk_bytes"] + _HEADERS_BYTES
    for name, field in (("--queue", "queue_bytes"), ("--buffer", "buffer_bytes")):
        if spec[field] < datagram_bytes:
            return (
                f"{name} {spec[field]}: a datagram of --chunk {spec['chunk_bytes']} "
                f"needs {datagram_bytes}"
            )
    return ""
