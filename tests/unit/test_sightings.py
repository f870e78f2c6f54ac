# SPDX-License-Identifier: BSD-3-Clause
"""What ``doctor security`` makes of frames."""

from __future__ import annotations

import random
import socket
import struct
from ipaddress import IPv4Address, IPv4Network

import datagrams
import pytest
from datagrams import Datagram, Header

from mpimcast._settings.ranges import Groups
from mpimcast.cli.doctor.frames import Form, Membership, Router, form_of, read
from mpimcast.cli.doctor.local import Place
from mpimcast.cli.doctor.sightings import Sightings

GROUP, PORT = "239.192.1.2", 20480
CHANNEL = 0x1234_5678_9ABC << 16
SEAL_BYTES = 24
SUBNET = IPv4Network("10.77.0.0/24")
RANKS = [f"10.77.0.{10 + rank}" for rank in range(4)]


def mac(number: int) -> bytes:
    """Return the address in the Ethernet of a host."""
    return bytes([2, 0, 0, 0, 0, number])


def sealed(whole: bytes) -> bytes:
    """Return a datagram as protection lengthens it, behind its header."""
    at = datagrams.HEADER_BYTES
    return whole[:at] + random.randbytes(SEAL_BYTES) + whole[at:]


def chunk(
    ip: str, *, number: int = 0, channel: int = CHANNEL, seal: bool = False
) -> bytes:
    """Return the frame of a chunk, from host `number`, or from the host of `ip`."""
    payload = datagrams.encode(Header(channel, 7, 3), bytes(100))
    datagram = Datagram((ip, 4000), (GROUP, PORT), sealed(payload) if seal else payload)
    own = mac(number or int(ip.rpartition(".")[2]))
    return datagrams.frame(datagram, datagrams.group_mac(GROUP), own)


def watched(*frames: bytes, times: int = 10) -> Sightings:
    """Return what is seen if each frame comes so many times."""
    sightings = Sightings(Groups.parse("239.192.0.0/14"), frozenset())
    for frame in frames * times:
        sightings.see(frame)
    sightings.learn({}, SUBNET)
    return sightings


@pytest.mark.parametrize("is_sealed", [False, True])
@pytest.mark.parametrize("nbytes", [0, 1, 72, 1456])
def test_form(nbytes: int, is_sealed: bool, seed: int) -> None:
    """A datagram or a train says whether it is protected, however long it is."""
    rng = random.Random(seed)
    for index in (0, 5, datagrams.REPAIR | 5, datagrams.CONTROL):
        header = Header(CHANNEL, rng.randrange(1 << 32), index)
        single = datagrams.encode(header, rng.randbytes(nbytes))
        single = sealed(single) if is_sealed else single
        assert form_of(single, len(single)) == Form(CHANNEL, is_sealed, 1)
        train = 3 * single + single[: datagrams.HEADER_BYTES + 1]
        assert form_of(train, len(train)) == Form(CHANNEL, is_sealed, 4)


def test_no_form(seed: int) -> None:
    """Few random datagrams look like a job's, and short ones never do."""
    rng = random.Random(seed)
    looks = [form_of(rng.randbytes(64), 64) is not None for _ in range(20_000)]
    assert sum(looks) < 20
    for nbytes in range(datagrams.HEADER_BYTES):
        assert form_of(bytes(nbytes), nbytes) is None


def test_random_frames(seed: int) -> None:
    """No frame stops the doctor."""
    rng = random.Random(seed)
    whole = bytearray(chunk(RANKS[0]))
    for protocol in (2, 17, 103):
        whole[23] = protocol
        for nbytes in range(len(whole)):
            read(bytes(whole[:nbytes]))
            read(bytes(whole[:14]) + rng.randbytes(nbytes))
            read(bytes(whole[:34]) + rng.randbytes(nbytes))


def said(ip: str, protocol: int, body: bytes) -> bytes:
    """Return a frame with a body of some protocol in IP, with the router alert."""
    ends = socket.inet_aton(ip) + socket.inet_aton("224.0.0.22")
    fields = (0x46, 0, 24 + len(body), 0, 0, 1, protocol, 0)
    head = struct.pack(">BBHHHBBH", *fields) + ends + bytes([0x94, 4, 0, 0])
    return bytes(6) + mac(9) + b"\x08\x00" + head + body


def test_reports() -> None:
    """Reports of IGMP name hosts and groups; messages of routers name routers."""
    group = socket.inet_aton(GROUP)
    host = IPv4Address(RANKS[1])
    there = [Membership(host, IPv4Address(GROUP))]
    assert read(said(RANKS[1], 2, b"\x16\0\0\0" + group)) == there
    for kind, joins in ((1, False), (2, True), (3, False), (4, True)):
        body = b"\x22\0\0\0\0\0\0\x01" + bytes([kind, 0, 0, 0]) + group
        assert read(said(RANKS[1], 2, body)) == (there if joins else [])
    assert read(said(RANKS[1], 2, bytes([0x11] + 7 * [0]))) == [Router(host, asks=True)]
    assert read(said(RANKS[1], 103, b"\x20\0\0\0")) == [Router(host, asks=False)]


@pytest.mark.parametrize("seal", [False, True])
def test_job(seal: bool) -> None:
    """A job is known by the channel that its ranks share; nobody is accused."""
    seen = watched(*(chunk(ip, seal=seal) for ip in RANKS))
    (job,) = seen.jobs()
    assert job.place == Place(IPv4Address(GROUP), PORT)
    assert (list(map(str, job.ranks)), job.is_open) == (RANKS, not seal)
    assert seen.strangers() == []


def test_forger() -> None:
    """Who sends as ranks, and open datagrams to a protected job, is not of the job."""
    genuine = [chunk(ip, seal=True) for ip in RANKS]
    forged = [chunk(ip, number=99) for ip in RANKS[:2]]
    seen = watched(*genuine, *forged)
    (job,) = seen.jobs()
    assert not job.is_open
    (stranger,) = seen.strangers()
    assert stranger.mac == mac(99).hex(":")
    assert stranger.forges
    assert list(map(str, stranger.ips)) == RANKS[:2]
    assert stranger.ndatagrams == 20


def test_stranger() -> None:
    """Who has another channel than the ranks, or many addresses, is a stranger."""
    genuine = [chunk(ip) for ip in RANKS]
    other = chunk("10.77.0.50", channel=CHANNEL + (1 << 16))
    crowd = [chunk(f"10.77.0.{number}", number=98) for number in range(100, 110)]
    seen = watched(*genuine, other, *crowd)
    (job,) = seen.jobs()
    assert list(map(str, job.ranks)) == RANKS
    found = {each.mac: each for each in seen.strangers()}
    assert set(found) == {mac(50).hex(":"), mac(98).hex(":")}
    assert not any(each.forges for each in found.values())


def test_flood_of_addresses(seed: int) -> None:
    """A flood from any number of addresses takes bounded memory."""
    rng = random.Random(seed)
    seen = watched(
        *(
            chunk(f"10.77.{rng.randrange(256)}.{rng.randrange(256)}", number=7)
            for _ in range(20_000)
        ),
        times=1,
    )
    (stranger,) = seen.strangers()
    assert len(stranger.ips) <= 4096
