# SPDX-License-Identifier: BSD-3-Clause
"""The rule that expects how long repetition and codes take on a lossy link."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

# By rate in Mbit/s, the payload of a datagram.
CHUNK_BYTES = {1000: 1456, 100_000: 4096}

_US = 1000
# How long a chunk may be late, which is half a round trip within these limits.
_ALLOWANCE_NS = (50 * _US, 1000 * _US)
# What else a round takes: random delays of requests, until an answer is under way.
_DELAYS_NS = 100 * _US
_PPM = 10**6
_NEGLIGIBLE = 1e-12  # a term that ends its sum


class Code(NamedTuple):
    """The data and parity chunks of a group; no data chunks: repetition."""

    data: int
    parity: int


REPEAT = "repeat"
# By name; repetition first, which other codes have to beat.
CODES = {
    REPEAT: Code(0, 0),
    "32,0": Code(32, 0),
    "32,1": Code(32, 1),
    "32,4": Code(32, 4),
    "32,8": Code(32, 8),
}


class Link(NamedTuple):
    """The way from the root to each other rank, and what it sends them.

    Attributes
    ----------
    nranks
        How many ranks there are.
    nbytes
        What the root sends.
    mbits
        The rate of each host's link.
    trip_us
        The round trip between any two hosts.
    loss_ppm
        How many of a million datagrams are lost on their way to each host.
    """

    nranks: int
    nbytes: int
    mbits: int
    trip_us: int
    loss_ppm: int

    @property
    def name(self) -> str:
        """Its name among the cases of a question."""
        return (
            f"{self.nranks} ranks, {self.nbytes} bytes, {self.mbits} Mbit/s, "
            f"{self.trip_us} us, {self.loss_ppm} ppm"
        )

    @property
    def nchunks(self) -> int:
        """The datagrams that carry the data once."""
        return -(-self.nbytes // CHUNK_BYTES[self.mbits])

    @property
    def send_ns(self) -> float:
        """The time in which the link carries the data once."""
        return self.nbytes * 8000 / self.mbits

    @property
    def round_ns(self) -> float:
        """The time in which a loss is noticed, and repaired."""
        trip_ns = self.trip_us * _US
        least, most = _ALLOWANCE_NS
        return trip_ns + min(max(trip_ns / 2, least), most) + _DELAYS_NS


def expected_ns(link: Link, code: Code) -> float:
    """Return the time that losses and parity are expected to add to an operation."""
    more, rounds = expected_more(link, code), expected_rounds(link, code)
    return link.send_ns * more + link.round_ns * rounds


def expected_more(link: Link, code: Code) -> float:
    """Return what is sent beside the data, as a part of it: parity and repairs."""
    loss, receivers = link.loss_ppm / _PPM, link.nranks - 1
    if _repeats(link, code):
        return _sum(lambda i: _any(loss ** (i + 1), receivers))
    data, parity = _group(link, code)
    return code.parity / code.data + (
        # What the unluckiest receiver of a group lacks mends all others, too.
        _sum(lambda i: _any(_more_than(parity + i, data + parity, loss), receivers))
        / data
    )


def expected_rounds(link: Link, code: Code) -> float:
    """Return the rounds of the unluckiest receiver of what was sent in the last one.

    What was lost before is repaired meanwhile.
    """
    loss, receivers = link.loss_ppm / _PPM, link.nranks - 1
    # A repair fails if the request or the answer is lost.
    fails = 1 - (1 - loss) ** 2
    round_bytes = link.round_ns * link.mbits / 8000
    last = min(link.nchunks, math.ceil(round_bytes / CHUNK_BYTES[link.mbits]))
    if _repeats(link, code):
        return _sum(lambda i: _any(loss * fails**i, last * receivers))
    data, parity = _group(link, code)
    lacks = _more_than(parity, data + parity, loss)
    ngroups = -(-last // code.data)
    return _sum(lambda i: _any(lacks * fails**i, ngroups * receivers))


def _repeats(link: Link, code: Code) -> bool:
    """Return whether chunks are repeated, as one receiver alone always asks for."""
    return code.data == 0 or (code.parity == 0 and link.nranks == 2)


def _group(link: Link, code: Code) -> Code:
    """Return the largest group that the data has."""
    data = min(code.data, link.nchunks)
    return Code(data, -(-data * code.parity // code.data))


def _any(probability: float, count: int) -> float:
    """Return how probable it is that any of so many independent events happens."""
    return -math.expm1(count * math.log1p(-probability))


def _more_than(most: int, count: int, probability: float) -> float:
    """Return how probable it is that of so many events more than `most` happen."""
    return math.fsum(
        math.comb(count, i) * probability**i * (1 - probability) ** (count - i)
        for i in range(most + 1, count + 1)
    )


def _sum(term: Callable[[int], float]) -> float:
    """Return the sum of falling terms, from number 0 on."""
    total, number = 0.0, 0
    while (each := term(number)) > _NEGLIGIBLE:
        total, number = total + each, number + 1
    return total
