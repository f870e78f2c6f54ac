# SPDX-License-Identifier: BSD-3-Clause
"""What was seen on a network of jobs, and of those who have no part in them."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, NamedTuple

from mpimcast.cli.doctor import frames
from mpimcast.cli.doctor.frames import Datagram, Membership, Router
from mpimcast.cli.doctor.local import Place

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from ipaddress import IPv4Address, IPv4Network

    from mpimcast._settings.ranges import Groups

# So often must a channel be seen to count: one in 32,768 random datagrams has a form.
_SEEN_MIN = 8

# The most sources, and the most channels of each, that are told apart. A flood may have
# any number.
_SOURCES_MAX, _CHANNELS_MAX = 4096, 64

# A host has no more addresses in one subnet.
_ADDRESSES_MAX = 4


class Source(NamedTuple):
    """Who has sent a frame: the addresses in the Ethernet and in IP."""

    mac: str
    ip: IPv4Address


class Seen:
    """What one source has sent to one place.

    Attributes
    ----------
    ndatagrams : int
        All its datagrams.
    """

    def __init__(self) -> None:
        self.ndatagrams = 0
        self._sealed = Counter[int]()  # datagrams by channel
        self._open = Counter[int]()

    def add(self, datagram: Datagram) -> None:
        """Count a datagram or a train."""
        form = datagram.form
        self.ndatagrams += form.ndatagrams if form else 1
        if form is None:
            return
        counts = self._sealed if form.is_sealed else self._open
        if form.channel in counts or len(counts) < _CHANNELS_MAX:
            counts[form.channel] += form.ndatagrams

    def channels(self, least: int = _SEEN_MIN) -> set[int]:
        """Return the channels that were seen at least so often."""
        return _often(self._sealed, least) | self.open_channels(least)

    def open_channels(self, least: int = _SEEN_MIN) -> set[int]:
        """Return those of them that were seen so often without protection."""
        return _often(self._open, least)


def _often(counts: Counter[int], least: int) -> set[int]:
    return {channel for channel, count in counts.items() if count >= least}


class Job(NamedTuple):
    """A job, as it is seen at one of the places where its ranks receive.

    Attributes
    ----------
    place : Place
        The place.
    channels : set of int
        The channels of its communicators there.
    ranks : list of IPv4Address
        The addresses that send to these.
    is_open : bool
        Whether some of its datagrams are not protected.
    """

    place: Place
    channels: set[int]
    ranks: list[IPv4Address]
    is_open: bool


class Stranger(NamedTuple):
    """A place in the Ethernet from which comes what no rank sends.

    Attributes
    ----------
    mac : str
        Its address in the Ethernet.
    ips : list of IPv4Address
        The addresses that its frames bear.
    places : list of Place
        Where they go to.
    ndatagrams : int
        How many datagrams there are.
    forges : bool
        Whether the addresses are those of other hosts.
    """

    mac: str
    ips: list[IPv4Address]
    places: list[Place]
    ndatagrams: int
    forges: bool


class Sightings:
    """All that was seen.

    Parameters
    ----------
    groups
        The groups that jobs may have.
    own
        The places where processes of this host receive jobs' unicast.

    Attributes
    ----------
    members : dict
        The hosts that have reported to be in a group, by group.
    routers : set of Router
        The hosts that have said to be routers.
    """

    def __init__(self, groups: Groups, own: Collection[Place]) -> None:
        self._groups = groups
        self._own = own
        self._places: dict[Place, dict[Source, Seen]] = defaultdict(dict)
        self._nsources = 0
        self._macs: Mapping[IPv4Address, str] = {}
        self._crowds: set[str] = set()
        self.members: dict[IPv4Address, set[IPv4Address]] = defaultdict(set)
        self.routers: set[Router] = set()

    def see(self, frame: bytes) -> None:
        """Take in a frame."""
        for each in frames.read(frame):
            if isinstance(each, Router):
                self.routers.add(each)
            elif isinstance(each, Membership):
                if self._is_ours(each.group):
                    self.members[each.group].add(each.host)
            elif self._is_ours(each.to) or Place(each.to, each.port) in self._own:
                self._see_datagram(each)

    def _is_ours(self, group: IPv4Address) -> bool:
        return self._groups.first <= int(group) <= self._groups.last

    def _see_datagram(self, datagram: Datagram) -> None:
        seen = self._places[Place(datagram.to, datagram.port)]
        source = Source(datagram.mac.hex(":"), datagram.source)
        if source not in seen:
            if self._nsources == _SOURCES_MAX:
                return
            self._nsources += 1
            seen[source] = Seen()
        seen[source].add(datagram)

    def jobs(self) -> list[Job]:
        """Return what was seen of jobs.

        A job's channels are those that several addresses share, if any are: a stranger
        may send others.
        """
        found = []
        for place, sources in self._places.items():
            genuine = {s: n for s, n in sources.items() if self._is_genuine(s)}
            shared = Counter(c for seen in genuine.values() for c in seen.channels())
            most = max(shared.values(), default=0)
            channels = {c for c, count in shared.items() if count > 1 or most == 1}
            if not channels:
                continue
            ranks = sorted(
                s.ip for s, seen in genuine.items() if seen.channels() & channels
            )
            is_open = any(seen.open_channels() & channels for seen in genuine.values())
            found.append(Job(place, channels, ranks, is_open))
        return found

    def strangers(self) -> list[Stranger]:
        """Return who has sent what no rank sends; who sent most comes first."""
        channels = {channel for job in self.jobs() for channel in job.channels}
        found: dict[tuple[str, bool], list[tuple[Place, Source, Seen]]]
        found = defaultdict(list)
        for place, source, seen in self._all():
            forges = self._forges(source)
            if not self._is_genuine(source) or not seen.channels(1) & channels:
                found[source.mac, forges].append((place, source, seen))
        strangers = [
            Stranger(
                mac,
                sorted({source.ip for _, source, _ in each}),
                sorted({place for place, *_ in each}),
                sum(seen.ndatagrams for *_, seen in each),
                forges,
            )
            for (mac, forges), each in found.items()
        ]
        return sorted(strangers, key=lambda each: each.ndatagrams, reverse=True)

    def learn(self, known: Mapping[IPv4Address, str], subnet: IPv4Network) -> None:
        """Learn which sources are not what they claim to be.

        If frames bear one address in IP and several in the Ethernet, the genuine one is
        that which this host knows, or else the one with the fewest addresses in IP. One
        with many of the own subnet is no host's.

        Parameters
        ----------
        known
            The addresses in the Ethernet that this host knows.
        subnet
            The subnet that is watched.
        """
        ips: dict[str, set[IPv4Address]] = defaultdict(set)
        for _, source, _ in self._all():
            ips[source.mac].add(source.ip)
        macs: dict[IPv4Address, str] = {}
        for mac in sorted(ips, key=lambda mac: len(ips[mac]), reverse=True):
            macs |= dict.fromkeys(ips[mac], mac)
        self._macs = macs | dict(known)
        self._crowds = {
            mac
            for mac, each in ips.items()
            if sum(ip in subnet for ip in each) > _ADDRESSES_MAX
        }

    def _forges(self, source: Source) -> bool:
        """Return whether the address in IP is that of another host."""
        return self._macs.get(source.ip, source.mac) != source.mac

    def _is_genuine(self, source: Source) -> bool:
        return not (self._forges(source) or source.mac in self._crowds)

    def _all(self) -> Iterator[tuple[Place, Source, Seen]]:
        for place, sources in self._places.items():
            for source, seen in sources.items():
                yield place, source, seen
