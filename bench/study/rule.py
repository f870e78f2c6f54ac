# SPDX-License-Identifier: BSD-3-Clause
"""The rule that expects how long repetition and codes take on a lossy link.

`ffi/core/flow/forecast.c` has the same rule in integers, for RELIABILITY=auto; a test
compares the two.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

# By rate in Mbit/s, the payload of a datagram.
CHUNK_BYTES = {1000: 1456, 100_000: 4096}

_US = 1000
# The allowance for late chunks is half a round trip, within these limits.
_ALLOWANCE_NS = (50 * _US, 1000 * _US)
# The messages of a repair take this much time beside the round trip.
_DELAYS_NS = 120 * _US
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
        How many bytes the root sends.
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

    @property
    def last_chunks(self) -> int:
        """The chunks that each receiver gets in the last round of the data."""
        round_bytes = self.round_ns * self.mbits / 8000
        return min(self.nchunks, math.ceil(round_bytes / CHUNK_BYTES[self.mbits]))


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
    # The chunks that mend the receiver with most losses mend all others, too.
    repairs = _sum(
        lambda i: _any(_more_than(parity + i, data + parity, loss), receivers)
    )
    return (parity + repairs) / data


def expected_rounds(link: Link, code: Code) -> float:
    """Return how many rounds the receiver needs that needs most, after the data.

    Only chunks sent in the last round count: earlier ones are repaired while data still
    arrives.
    """
    return _sum(more_rounds(link, code))


def more_rounds(link: Link, code: Code) -> Callable[[int], float]:
    """Return a function: the probability that more than so many rounds are needed."""
    loss, receivers = link.loss_ppm / _PPM, link.nranks - 1
    # A repair fails if the request or the answer is lost.
    fails = 1 - (1 - loss) ** 2
    if _repeats(link, code):
        return lambda i: _any(loss * fails**i, link.last_chunks * receivers)
    data, parity = _group(link, code)
    lacks = _more_than(parity, data + parity, loss)
    ngroups = -(-link.last_chunks // data)
    return lambda i: _any(lacks * fails**i, ngroups * receivers)


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
