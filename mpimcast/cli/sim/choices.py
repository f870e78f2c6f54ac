# SPDX-License-Identifier: BSD-3-Clause
"""The options about a fabric: which one, who is where on it, what runs on it."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from mpimcast._peers.catalogue import ALLGATHERS, BROADCASTS, REDUCE_SCATTERS
from mpimcast.cli import arguments
from mpimcast.cli.sim.options import COLLECTIVES, OUTAGES, RANKS_MAX

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

PLACEMENTS = ("packed", "shuffled", "interleaved")
TREES = ("subnet-manager", "pim")
ROUTINGS = ("hashed", "adaptive")

# The peer algorithms of each collective that a fabric compares.
PEERS: dict[str, Collection[str]] = {"allgather": ALLGATHERS, "bcast": BROADCASTS}

_ALL = "all"
_LINK_LOSS = "--link-loss"
_SEEDS_MAX = 10_000

_LOSS = arguments.probability()


@dataclass(frozen=True)
class Choices:
    """What the command line says about a fabric.

    Parameters
    ----------
    fabric
        Which fabric, as `mpimcast._fabric.catalogue.built` reads it; "" for none.
    placement, trees, routing
        One of `PLACEMENTS`, of `TREES` and of `ROUTINGS`.
    ranks_per_node
        How many ranks share each adapter.
    link_loss
        Pairs of a class of links, or a link's number, and its loss in parts per
        million.
    failed
        The links between switches, by their numbers, whose cables have failed before
        routes and trees were made.
    against
        The peer algorithms that run on it as well; "all" for those that can.
    beside
        The Reduce-Scatter that is in flight; "" for none.
    background_ppm
        The share of its link at which each host of other jobs sends, in parts per
        million; 0 for none.
    nseeds
        How many seeds each runs with.
    picture
        The file for a picture; "" for none.
    """

    fabric: str = ""
    placement: str = PLACEMENTS[0]
    ranks_per_node: int = 1
    trees: str = TREES[0]
    routing: str = ROUTINGS[0]
    link_loss: tuple[tuple[str, int], ...] = ()
    failed: tuple[int, ...] = ()
    against: tuple[str, ...] = ()
    beside: str = ""
    background_ppm: int = 0
    nseeds: int = 1
    picture: str = ""


def _peers(text: str) -> tuple[str, ...]:
    known = dict.fromkeys([*ALLGATHERS, *BROADCASTS, _ALL])
    parse = arguments.names("algorithm", list(known))
    return tuple(dict.fromkeys(parse(name) for name in text.split(",")))


def _numbers(text: str) -> tuple[int, ...]:
    parse = arguments.whole(0).parse
    return tuple(dict.fromkeys(parse(number) for number in text.split(",")))


def _picture(text: str) -> str:
    if not text.lower().endswith((".svg", ".png")):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not valid: end it in .svg or .png"
        )
    return text


def _link_loss(text: str) -> tuple[str, int]:
    links, equals, loss = text.rpartition("=")
    if not equals or not links:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not valid: it must be CLASS=PROBABILITY, such as leaf-up=1%"
        )
    return links.replace("-", " "), _LOSS.parse(loss)


class _Choice(NamedTuple):
    """An option: its name, the field of `Choices` that it sets, and its values.

    `values` reads the value, or lists what it may be; `metavar` is for the former.
    """

    name: str
    field: str
    values: Callable[[str], Any] | Collection[str]
    metavar: str | None
    doc: str


_CHOICES = (
    _Choice(
        "--fabric",
        "fabric",
        str,
        "NAME[:KEY=VALUE,...]",
        "run on this fabric: single[:hosts=], clos2:radix=, clos3:radix=, fat-tree:k=, "
        "paper (188 hosts, 18 switches), dragonfly:a=,p=,h=, "
        "rails:pods=,nodes=,rails=, or two-sites:site=NAME,long-rate=GBIT/S,"
        "long-latency=US; most take hosts= as well, clos2 and clos3 oversubscription=. "
        "The options about links and queues hold for its links",
    ),
    _Choice(
        "--placement",
        "placement",
        PLACEMENTS,
        None,
        "ranks fill rack after rack, are on random nodes, or go round the racks "
        "(default: packed)",
    ),
    _Choice(
        "--ranks-per-node",
        "ranks_per_node",
        arguments.whole(1, RANKS_MAX).parse,
        "N",
        "ranks that share the adapter of each host (default: 1)",
    ),
    _Choice(
        "--trees",
        "trees",
        TREES,
        None,
        "who builds multicast trees: InfiniBand's subnet manager, or PIM by hashes "
        "(default: subnet-manager)",
    ),
    _Choice(
        "--routing",
        "routing",
        ROUTINGS,
        None,
        "how unicast chooses among equal links: by a hash (ECMP), or the shortest "
        "queue (default: hashed)",
    ),
    _Choice(
        "--failed",
        "failed",
        _numbers,
        "LINK,...",
        "the cables of these links between switches, by their numbers in --json's "
        "list, have failed before routes and trees are made; the other links are then "
        "numbered anew",
    ),
    _Choice(
        "--against",
        "against",
        _peers,
        "NAME,...",
        f"run these algorithms as well, or {_ALL}, over lossless links and without "
        f"mishaps; Allgather: {', '.join(ALLGATHERS)}; Bcast: {', '.join(BROADCASTS)}",
    ),
    _Choice(
        "--beside",
        "beside",
        REDUCE_SCATTERS,
        None,
        "have a Reduce-Scatter of the same blocks in flight; times are until both end",
    ),
    _Choice(
        "--background",
        "background_ppm",
        _LOSS.parse,
        "SHARE",
        "hosts without ranks, or all if there is at most one, send each other messages "
        "of 64 KiB at random, at this share of their rate, for four times the least "
        "time (default: 0)",
    ),
    _Choice(
        "--seeds",
        "nseeds",
        arguments.whole(1, _SEEDS_MAX).parse,
        "N",
        "run with so many seeds, from --seed on (default: 1)",
    ),
    _Choice(
        "--picture",
        "picture",
        _picture,
        "FILE",
        "draw times, bytes and queues into this .svg or .png",
    ),
)


def add_choices(made: argparse.ArgumentParser) -> None:
    """Add the options to a parser, whose results lack those that are not given."""
    group = made.add_argument_group("fabric")
    for name, field, values, metavar, doc in _CHOICES:
        kind: dict[str, Any] = (
            {"type": values, "metavar": metavar}
            if callable(values)
            else {"choices": list(values)}
        )
        group.add_argument(
            name, dest=field, default=argparse.SUPPRESS, help=doc, **kind
        )
    group.add_argument(
        _LINK_LOSS,
        dest="link_loss",
        action="append",
        type=_link_loss,
        metavar="CLASS=PROBABILITY",
        default=argparse.SUPPRESS,
        help="of a datagram to be lost on each link of a class, such as leaf-up=1%%, "
        "or on one, by its number in --json's list; may be given several times",
    )


def taken(options: dict[str, Any]) -> Choices:
    """Take the choices out of a parser's results."""
    fields = Choices.__dataclass_fields__.keys() & options.keys()
    found = {field: options.pop(field) for field in fields}
    if "link_loss" in found:
        found["link_loss"] = tuple(found["link_loss"])
    return Choices(**found)


def refusal(choices: Choices, options: Mapping[str, Any]) -> str:
    """Return why choices and the simulator's options do not go together; "" if they do.

    Parameters
    ----------
    choices
        The choices.
    options
        The fields of the simulator's spec that the command line gives.
    """
    if not choices.fabric:
        names = {choice.field: choice.name for choice in _CHOICES}
        needless = [
            names.get(field, _LINK_LOSS)
            for field, default in vars(Choices()).items()
            if getattr(choices, field) != default
        ]
        if options.get("outage") == OUTAGES["link"]:
            needless.append("--outage link")
        return f"{needless[0]} needs a --fabric" if needless else ""
    for field, why in (
        ("nswitches", "--switches: the --fabric has switches of its own"),
        ("host_ranks", "--host-ranks: on a --fabric --ranks-per-node says it"),
    ):
        if field in options:
            return why
    return _comparison_refusal(choices, options)


def collective(options: Mapping[str, Any]) -> str:
    """Return the name of the collective that runs."""
    kind = options.get("kind", COLLECTIVES["allgather"])
    return next(name for name, number in COLLECTIVES.items() if number == kind)


def _comparison_refusal(choices: Choices, options: Mapping[str, Any]) -> str:
    name = collective(options)
    if name not in PEERS:
        return f"--kind {name}: a --fabric compares allgather or bcast"
    several = options.get("nops", 1) * options.get("nstreams", 1) > 1
    if several and (choices.against or choices.beside):
        return (
            "--against and --beside go with one operation, not with --ops or --streams"
        )
    if name != "allgather" and choices.beside:
        return f"--beside goes with an Allgather, not with {name}"
    for peer in choices.against:
        if peer not in {*PEERS[name], _ALL}:
            return (
                f"--against {peer}: algorithms of {name} are {', '.join(PEERS[name])}"
            )
    return ""


def wants_all(choices: Choices) -> bool:
    """Return whether all peer algorithms are to run that can."""
    return _ALL in choices.against
