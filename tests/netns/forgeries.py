# SPDX-License-Identifier: BSD-3-Clause
"""What an attacker makes of the datagrams of a job that it has heard.

A forgery is a function that takes what was heard, and yields datagrams, or trains of
datagrams for a flood. Those in OPEN need nothing that a job without protection hides;
the others it withstands without one.
"""

from __future__ import annotations

import itertools
import random
import socket
import struct
from collections.abc import Callable, Iterator, Sequence

import datagrams
from datagrams import Datagram, Header

# The epochs from the latest one heard on for which datagrams are forged.
_EPOCHS_AHEAD = range(1, 48)
_RUNS = 32

# A flood has trains of SEGMENTS datagrams, each SEGMENT_BYTES long.
SEGMENTS, SEGMENT_BYTES = 40, 80
_PAYLOAD = b"not what the rank sent; "


class Heard:
    """Datagrams of a job, in the order in which they were heard.

    Attributes
    ----------
    all : sequence of Datagram
        All of them.
    chunks : list of Datagram
        Those with chunks that are as long as the longest.
    messages : list of Datagram
        A record of each rank, as it might send it. Most control messages are unicast,
        so that a switch keeps them from others.
    seal_bytes : int
        How many bytes protection has put into each datagram.
    sources : dict
        The address in the Ethernet of each address and port that sent some.
    """

    def __init__(self, heard: Sequence[Datagram]) -> None:
        self.all = heard
        first_sent = [
            each for each in heard if not datagrams.peek(each.payload).index >> 30
        ]
        longest = max((len(each.payload) for each in first_sent), default=0)
        self.chunks = [each for each in first_sent if len(each.payload) == longest]
        self.seal_bytes = (
            datagrams.seal_bytes(self.chunks[0].payload) if self.chunks else 0
        )
        self.messages = [
            self.message(each, datagrams.RECORD, datagrams.message(datagrams.ENTERED))
            for each, _ in self.latest(self.chunks)
        ]
        self.sources = {each.source: each.source_mac for each in heard}

    def latest(self, of: Sequence[Datagram]) -> list[tuple[Datagram, Header]]:
        """Return the latest datagram that each rank sent, with its header."""
        by_source = {each.source: each for each in of}
        return [(each, datagrams.peek(each.payload)) for each in by_source.values()]

    def message(
        self, each: Datagram, kind: int, body: bytes, ahead: int = 0
    ) -> Datagram:
        """Return a control message by the sender of a chunk, `ahead` epochs later."""
        chunk = datagrams.peek(each.payload)
        epoch = (chunk.epoch + ahead) % (1 << 32)
        header = Header(chunk.channel, epoch, datagrams.CONTROL | kind)
        return each._replace(payload=self.encode(header, body))

    def encode(self, header: Header, body: bytes) -> bytes:
        """Return a datagram of the form that the job's have, but with a wrong tag."""
        return datagrams.encode(header, body, random.randbytes(self.seal_bytes))


Forged = Iterator[Datagram]
Forger = Callable[[Heard], Forged]


# ---- data ------------------------------------------------------------------


def _body_like(each: Datagram, seal_bytes: int) -> bytes:
    nbytes = len(each.payload) - datagrams.HEADER_BYTES - seal_bytes
    return (_PAYLOAD * (nbytes // len(_PAYLOAD) + 1))[:nbytes]


def other_payload(heard: Heard, flag: int = 0) -> Forged:
    """Yield chunks of the next epochs, of each rank, with a payload of our choice."""
    latest = max(datagrams.peek(each.payload).epoch for each in heard.chunks)
    chunks = {
        (each.source, datagrams.peek(each.payload).index): each for each in heard.chunks
    }
    for ahead, ((_, index), each) in itertools.product(_EPOCHS_AHEAD, chunks.items()):
        channel = datagrams.peek(each.payload).channel
        forged = Header(channel, (latest + ahead) % (1 << 32), index | flag)
        body = _body_like(each, heard.seal_bytes)
        yield each._replace(payload=heard.encode(forged, body))


def repairs(heard: Heard) -> Forged:
    """Yield the same as repairs."""
    return other_payload(heard, datagrams.REPAIR)


def own_length(heard: Heard) -> Forged:
    """Yield chunks of the next epochs that are of another length, which is checked."""
    for each in other_payload(heard):
        least_bytes = datagrams.HEADER_BYTES + heard.seal_bytes
        nbytes = random.randrange(least_bytes, len(each.payload))
        body = each.payload[least_bytes:nbytes]
        header = datagrams.peek(each.payload)
        yield each._replace(payload=heard.encode(header, body))


# ---- control ---------------------------------------------------------------


def _messages(heard: Heard, kind: int, body: bytes) -> Forged:
    """Yield control messages of the epochs before and after the latest one heard."""
    for ahead, (each, _) in itertools.product(
        range(-1, _EPOCHS_AHEAD.stop), heard.latest(heard.chunks)
    ):
        yield heard.message(each, kind, body, ahead)


def failed(heard: Heard) -> Forged:
    """Yield records by which each rank says that the operation has failed."""
    flags = datagrams.ENTERED | datagrams.FAILED
    body = datagrams.message(flags, failure=13)
    return _messages(heard, datagrams.RECORD, body)


def done(heard: Heard) -> Forged:
    """Yield records by which each rank says that it is done."""
    flags = datagrams.ENTERED | datagrams.DONE
    return _messages(heard, datagrams.RECORD, datagrams.message(flags))


def closed(heard: Heard) -> Forged:
    """Yield records by which each rank says that it closes its epoch, or has left."""
    flags = datagrams.ENTERED | datagrams.DONE | datagrams.CLOSED
    for each in (flags, datagrams.LEFT):
        body = datagrams.message(each)
        yield from _messages(heard, datagrams.RECORD, body)


def adverts(heard: Heard) -> Forged:
    """Yield adverts of memory that nobody has."""
    memory = struct.pack(">QQQIII", 1 << 40, 1 << 20, 1 << 30, 7, 7, 1)
    body = datagrams.message(datagrams.ENTERED, memory, 1)
    return _messages(heard, datagrams.ADVERT, body)


def naks(heard: Heard) -> Forged:
    """Yield NAKs, direct ones and NCFs for as many chunks as fit into one."""
    items = datagrams.runs(*((2 * first, 1) for first in range(_RUNS)))
    body = datagrams.message(datagrams.ENTERED, items, _RUNS)
    for kind in (datagrams.NAK, datagrams.DIRECT_NAK, datagrams.NCF):
        yield from _messages(heard, kind, body)


# ---- what was heard --------------------------------------------------------


def replays(heard: Heard) -> Forged:
    """Yield everything that was heard, unchanged."""
    yield from heard.all


def _examples(heard: Heard) -> tuple[Datagram, Datagram]:
    """Return a chunk of one rank and a control message of another."""
    (chunk, _), *_ = heard.latest(heard.chunks)
    *_, (message, _) = heard.latest(heard.messages)
    return chunk, message


def truncations(heard: Heard) -> Forged:
    """Yield beginnings, of each length, of a chunk and a message."""
    for each in _examples(heard):
        for nbytes in range(len(each.payload)):
            yield each._replace(payload=each.payload[:nbytes])


def _flipped(each: Datagram, bits: range) -> Forged:
    whole = int.from_bytes(each.payload, "big")
    nbytes = len(each.payload)
    for bit in bits:
        other = whole ^ 1 << (8 * nbytes - 1 - bit)
        yield each._replace(payload=other.to_bytes(nbytes, "big"))


def header_flips(heard: Heard) -> Forged:
    """Yield a chunk and a message with each bit of the header flipped."""
    for each in _examples(heard):
        yield from _flipped(each, range(8 * datagrams.HEADER_BYTES))


def flips(heard: Heard) -> Forged:
    """Yield a message with each bit flipped, and a chunk, with a bit of each byte."""
    chunk, message = _examples(heard)
    yield from _flipped(message, range(8 * len(message.payload)))
    payload_at = 8 * (datagrams.HEADER_BYTES + heard.seal_bytes)
    yield from _flipped(chunk, range(payload_at))
    yield from _flipped(chunk, range(payload_at, 8 * len(chunk.payload), 9))


# ---- floods ----------------------------------------------------------------


def _junk(heard: Heard, channel: int | None) -> Forged:
    """Yield trains of chunks of the far future with `channel`; None: the job's own."""
    for each, header in heard.latest(heard.chunks):
        train = b""
        for _ in range(SEGMENTS):
            forged = Header(
                header.channel if channel is None else channel,
                random.randrange(header.epoch + 1000, 1 << 31),
                random.randrange(1 << 20),
            )
            around_bytes = datagrams.HEADER_BYTES + heard.seal_bytes
            body = random.randbytes(SEGMENT_BYTES - around_bytes)
            train += heard.encode(forged, body)
        yield each._replace(payload=train)


def right_channel(heard: Heard) -> Forged:
    """Yield junk as if from ranks, with the job's own channel."""
    return _junk(heard, None)


def wrong_channel(heard: Heard) -> Forged:
    """Yield junk as if from ranks, with channels of no job."""
    return _junk(heard, random.randrange(1 << 48) << 16)


def strangers(heard: Heard) -> Forged:
    """Yield junk from addresses of no rank, with the job's own channel."""
    for each in _junk(heard, None):
        address = socket.inet_ntoa(bytes([10, 77, 0, random.randrange(100, 116)]))
        yield each._replace(source=(address, each.source[1]))


# What only protection withstands: it changes results, or ends the job.
OPEN: dict[str, Forger] = {
    each.__name__: each
    for each in (
        *(other_payload, repairs, failed, done, closed, adverts, naks),
        *(replays, flips),
    )
}

# What a job withstands without protection, too.
WITHSTOOD: dict[str, Forger] = {
    each.__name__: each for each in (own_length, truncations, header_flips)
}

FLOODS: dict[str, Forger] = {
    each.__name__: each for each in (right_channel, wrong_channel, strangers)
}

FORGERS = {**OPEN, **WITHSTOOD, **FLOODS}
