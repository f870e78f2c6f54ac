# SPDX-License-Identifier: BSD-3-Clause
"""Emulate a cluster of hosts and switches on one machine; this needs root.

::

      host0   host1  ...   head        Every host has eth0. In the order of hosts
       |eth0   |eth0        |eth0      their addresses are 10.77.0.10, .11 and on.
      to0     to1          tohead      A rate limits both directions of a link,
    +--+-------+------------+--+       at eth0 and at the switch's port to it.
    |         switch0          |       The head launches the ranks and has none;
    +------------+-------------+       its link has no limit.
               trunk                   With two switches, the second half of the
    +------------+-------------+       hosts is plugged into the second one.
    |         switch1          |
    +--------------------------+

Hosts may have several links, each to a switch of its own, which no trunk connects::

      host0                        host1         The addresses of the links eth1 are
       |eth0         |eth1          |eth0 ...    10.77.1.10, .11 and on. Of the head
      to0           to0            to1           there is one link, to the first
    +--+-------+   +-+---------+                 switch.
    | switch0  |   |  switch1  |
    +----------+   +-----------+

The switches are Linux bridges that snoop IGMP and send its queries. The queues (tc)
count what leaves a port, and see every frame as it is on the wire.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.testbed.host import Host

if TYPE_CHECKING:
    from typing_extensions import Self

# The kinds of traffic that a switch can be made to drop, as nft's expressions.
TRAFFIC = {
    "multicast": "ip daddr 224.0.0.0/4 ip protocol udp",
    "unicast": "ip daddr != 224.0.0.0/4 ip protocol udp",
    "udp": "ip protocol udp",
    "tcp": "ip protocol tcp",
    "all": "ip version 4",
}

# Devices take a train of _GSO_BYTES, which are twenty datagrams, in one piece. A train
# that is no longer than the burst passes a queue whole. Longer trains are cut up there,
# in software, at several times the cost, and with SINGLE_BURST_BYTES into single
# datagrams.
_GSO_BYTES = 30000
BURST_BYTES = 40000
SINGLE_BURST_BYTES = 4000
_HOST_QUEUE_BYTES = 4 << 20  # long enough that hosts themselves drop nothing


@dataclass(frozen=True)
class Port:
    """Counts of what left through a port, with all frame headers."""

    sent_bytes: int
    sent_frames: int
    dropped_frames: int  # because the queue was full

    def __sub__(self, earlier: Port) -> Port:
        """Return the counts of what left between two readings."""
        return Port(
            self.sent_bytes - earlier.sent_bytes,
            self.sent_frames - earlier.sent_frames,
            self.dropped_frames - earlier.dropped_frames,
        )


class Loss:
    """The filter that makes switches drop traffic, and the counts of what it dropped.

    Parameters
    ----------
    switches
        The switches that have the filter.
    table
        The name of its table in nft.
    """

    def __init__(self, switches: Sequence[Host], table: str) -> None:
        self._switches = switches
        self._table = table

    def dropped(self) -> tuple[int, int]:
        """Return how many of the kernel's buffers were dropped, and how many bytes.

        A buffer holds a batch of datagrams, or one if the batch was cut up on its way.
        Its bytes include the headers of one datagram only.
        """
        buffers = nbytes = 0
        for switch in self._switches:
            said = switch.run("nft", "--json", "list", "table", "bridge", self._table)
            for entry in json.loads(said)["nftables"]:
                for step in entry.get("rule", {}).get("expr", []):
                    if "counter" in step:
                        buffers += step["counter"]["packets"]
                        nbytes += step["counter"]["bytes"]
        return buffers, nbytes


class Cluster:
    """Hosts, switches and the links between them, which exist until close().

    Parameters
    ----------
    nhosts
        The number of hosts beside the head.
    two_switches
        Whether the second half of the hosts has a switch of its own, behind a trunk.
    nlinks
        The links of each host, each to a switch of its own; with several, there is one
        switch for each.
    igmp_version
        3, or 2, which is also common. With version 2 only one member of a group answers
        a query, and the switch may forget the others.
    """

    def __init__(
        self,
        nhosts: int,
        *,
        two_switches: bool = False,
        nlinks: int = 1,
        igmp_version: int = 3,
    ) -> None:
        self.nlinks = nlinks
        self.igmp_version = igmp_version
        self._ntables = 0
        with contextlib.ExitStack() as undo:
            self.head = self._add(Host("head"), undo)
            self.switches = [
                self._add(Host(f"switch{i}", self.head), undo)
                for i in range(nlinks + two_switches)
            ]
            self.hosts = [
                self._add(Host(f"host{i}", self.head), undo) for i in range(nhosts)
            ]
            self._connect()
            self._undo = undo.pop_all()

    @staticmethod
    def _add(host: Host, undo: contextlib.ExitStack) -> Host:
        undo.callback(host.close)
        return host

    def __enter__(self) -> Self:
        """Return the cluster, which is closed at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the cluster."""
        self.close()

    def close(self) -> None:
        """End all hosts and the processes in them."""
        self.head.close()
        self._undo.close()

    # ---- wiring --------------------------------------------------------------

    def _connect(self) -> None:
        """Connect hosts and switches, and give all hosts names and addresses."""
        for number, switch in enumerate(self.switches):
            self._make_bridge(switch, number)
        if self._has_trunk:
            self._link(self.switches[0], "trunk", self.switches[1], "trunk")
            for switch in self.switches:
                _batch(switch, "link set trunk master br0 up")
        for number, host in enumerate(self.hosts):
            for link in range(self.nlinks):
                self._plug(host, f"to{number}", link, number)
        self._plug(self.head, "tohead", 0, len(self.hosts))
        everybody = [*self.hosts, self.head]
        names = "".join(f"{address(i)} {h.name}\n" for i, h in enumerate(everybody))
        self.head.write("/run/hosts", f"127.0.0.1 localhost\n{names}")
        for host in everybody:
            host.run("mount", "--bind", "/run/hosts", "/etc/hosts")
            for link in range(self.nlinks if host is not self.head else 1):
                host.await_up(f"eth{link}")
        self.shape(rate_mbit=None)

    def _make_bridge(self, switch: Host, number: int) -> None:
        # The bridge begins to snoop one response interval after its own first query;
        # this interval is shortened to a second. Only if the bridge has an address does
        # it notice that another switch sends queries behind a port, such as the trunk,
        # and send groups there.
        _batch(
            switch,
            "link add br0 type bridge stp_state 0 forward_delay 0 mcast_snooping 1 "
            f"mcast_igmp_version {self.igmp_version} mcast_query_use_ifaddr 1 "
            "mcast_query_response_interval 100 mcast_startup_query_interval 100",
            f"addr add 10.77.{number % self.nlinks}.{2 + number}/24 dev br0",
            "link set br0 up",
            "link set br0 type bridge mcast_querier 1",
        )

    def _plug(self, host: Host, port: str, link: int, number: int) -> None:
        """Connect a host's link to a port of the link's switch."""
        switch = self.switches[0] if host is self.head else self.switch_of(number, link)
        device = f"eth{link}"
        self._link(switch, port, host, device)
        _batch(switch, f"link set {port} gso_max_size {_GSO_BYTES} master br0 up")
        _batch(
            host,
            f"addr add {address(number, link)}/24 dev {device}",
            f"link set {device} gso_max_size {_GSO_BYTES} up",
        )
        settings = ["net.ipv6.conf.all.disable_ipv6=1"]
        settings.append("net.ipv4.tcp_congestion_control=reno")
        if self.igmp_version == 3:
            settings.append("net.ipv4.conf.all.force_igmp_version=3")
            settings.append(f"net.ipv4.conf.{device}.force_igmp_version=3")
        host.run("sysctl", "--quiet", "--write", *settings)

    def _link(self, one: Host, device: str, other: Host, other_device: str) -> None:
        """Connect a new device of one host with a new one of another, as by a cable."""
        _batch(
            self.head,
            f"link add {device} netns {one.pid_within} type veth "
            f"peer name {other_device} netns {other.pid_within}",
        )

    @property
    def _has_trunk(self) -> bool:
        return len(self.switches) > self.nlinks

    def switch_of(self, number: int, link: int = 0) -> Host:
        """Return the switch that a link of host `number` is plugged into."""
        if not self._has_trunk:
            return self.switches[link]
        is_in_second_half = number >= (len(self.hosts) + 1) // 2
        return self.switches[-1 if is_in_second_half else 0]

    # ---- rates ---------------------------------------------------------------

    def shape(
        self,
        rate_mbit: int | None,
        *,
        trunk_mbit: int | None = None,
        burst_bytes: int = BURST_BYTES,
        queue_bytes: int = 512 << 10,
    ) -> None:
        """Limit the rates of links, and set the counters to 0.

        Parameters
        ----------
        rate_mbit
            The rate of each host's link in each direction, or None for no limit.
        trunk_mbit
            The rate of the trunk in each direction, or None for no limit.
        burst_bytes
            The bytes that an idle link carries at once. Longer batches are cut into
            datagrams, so that with SINGLE_BURST_BYTES single datagrams can be lost.
        queue_bytes
            The bytes that fit into the queue of each switch port.
        """
        for number, host in enumerate(self.hosts):
            for link in range(self.nlinks):
                switch = self.switch_of(number, link)
                _limit(host, f"eth{link}", rate_mbit, burst_bytes, _HOST_QUEUE_BYTES)
                _limit(switch, f"to{number}", rate_mbit, burst_bytes, queue_bytes)
        if self._has_trunk:
            for switch in self.switches:
                _limit(switch, "trunk", trunk_mbit, burst_bytes, queue_bytes)

    # ---- loss and cables -----------------------------------------------------

    @contextlib.contextmanager
    def losing(
        self,
        numbers: Sequence[int],
        fraction: float = 1.0,
        traffic: str = "multicast",
        link: int = 0,
    ) -> Iterator[Loss]:
        """Make the switches drop a random share of the traffic to some hosts.

        Parameters
        ----------
        numbers
            The numbers of the hosts.
        fraction
            The share of the kernel's buffers to drop.
        traffic
            A kind of TRAFFIC, such as "multicast", or an expression of nft.
        link
            The number of the hosts' links.
        """
        self._ntables += 1
        table = f"loss{self._ntables}"
        chance = f"numgen random mod 1000000 < {round(fraction * 1e6)}"
        if fraction == 1:
            chance = ""
        switches = []
        for switch in self.switches:
            rules = "".join(
                f"oifname to{i} {TRAFFIC.get(traffic, traffic)} {chance} counter drop\n"
                for i in numbers
                if self.switch_of(i, link) is switch
            )
            if rules:
                switches.append(switch)
                switch.run("nft", "-f", "-", given=_table(table, rules))
        try:
            yield Loss(switches, table)
        finally:
            for switch in switches:
                switch.run("nft", "delete", "table", "bridge", table)

    @contextlib.contextmanager
    def unplugged(self, number: int) -> Iterator[None]:
        """Unplug a host's cable from the switch until the end of the block."""
        switch, port = self.switch_of(number), f"to{number}"
        switch.run("ip", "link", "set", port, "down")
        try:
            yield
        finally:
            switch.run("ip", "link", "set", port, "up")

    # ---- counters ------------------------------------------------------------

    def ports(self) -> dict[str, Port]:
        """Return the counts of all ports since shape(), by the ports' names.

        These are "host0" for a host's own, "to0" for its switch's port to it, and
        "trunk0" for a switch's end of the trunk. The names of a further link's ports
        end in its device: those of eth1 are "host0.eth1" and "to0.eth1".
        """
        ports = {}
        for host in self.hosts:
            for device, port in _read_ports(host).items():
                ports[_named(host.name, int(device[3:]))] = port
        for number, switch in enumerate(self.switches):
            for name, port in _read_ports(switch).items():
                if name == "trunk":
                    ports[f"trunk{number}"] = port
                else:
                    ports[_named(name, number % self.nlinks)] = port
        return ports


def address(number: int, link: int = 0) -> str:
    """Return the IPv4 address of a link of host `number`."""
    return f"10.77.{link}.{10 + number}"


def _named(port: str, link: int) -> str:
    """Return the name of a port among those of all links."""
    return f"{port}.eth{link}" if link else port


def _table(name: str, rules: str) -> str:
    """Return the text of an nft table that filters what a bridge forwards."""
    hook = "type filter hook forward priority 0;"
    return f"table bridge {name} {{\n chain c {{\n{hook}\n{rules} }}\n}}\n"


def _batch(host: Host, *lines: str) -> None:
    """Run several commands of ``ip`` in a host."""
    host.run("ip", "-batch", "-", given="\n".join(lines) + "\n")


def _limit(
    host: Host, device: str, rate_mbit: int | None, burst_bytes: int, queue_bytes: int
) -> None:
    """Give a port of a host a new queue, whose counters are 0.

    Without a rate the queue only counts, and has room for all frames that ever wait.
    """
    queue: tuple[str, ...] = ("pfifo", "limit", "10000")
    if rate_mbit is not None:
        queue = (
            *("tbf", "rate", f"{rate_mbit}mbit"),
            *("burst", str(burst_bytes), "limit", str(queue_bytes)),
        )
    # Counters survive if a queue replaces one of its kind, so the old one is deleted.
    with contextlib.suppress(RuntimeError):
        host.run("tc", "qdisc", "delete", "dev", device, "root")
    host.run("tc", "qdisc", "add", "dev", device, "root", *queue)


def _read_ports(host: Host) -> dict[str, Port]:
    """Return the counts of a host's or switch's ports, but not of the head's link."""
    queues = json.loads(host.run("tc", "-s", "-j", "qdisc", "show"))
    return {
        queue["dev"]: Port(queue["bytes"], queue["packets"], queue["drops"])
        for queue in queues
        if queue.get("root") and queue["dev"] not in ("lo", "br0", "tohead")
    }
