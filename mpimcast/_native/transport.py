# SPDX-License-Identifier: BSD-3-Clause
"""The transports, each of which finds a rank's device and creates its endpoint.

All ranks open a transport together, in steps: each finds what it has and tells the
others, all choose alike, and each creates its endpoint.
"""

from __future__ import annotations

import ipaddress
import os
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, cast

from mpimcast._native.candidate import Candidate, of_interface, of_port
from mpimcast.errors import TransportError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mpimcast._native import devices
    from mpimcast._native.draft import Draft
    from mpimcast._native.endpoint import Endpoint
    from mpimcast._settings.config import Config


# The most ports that are tried: each attempt costs an exchange between all ranks.
_PORTS_TRIED = 64


class Transport(ABC):
    """One way to carry data.

    Attributes
    ----------
    name : str
        The transport's name, as in TRANSPORT.
    rdma : bool
        Whether devices access the ranks' memory by themselves.
    needs_thread : bool
        Whether a rank can get missing data only from processes that answer its NAKs, so
        that each process needs a thread to answer them.
    smaller_chunk_bytes : tuple of int
        The sizes of chunks to try, in this order, if the largest that all devices carry
        do not pass the network between them.
    config : Config
        The settings.
    draft : Draft
        The team to be opened.
    """

    name: ClassVar[str]
    rdma: ClassVar[bool]
    needs_thread: ClassVar[bool]
    smaller_chunk_bytes: ClassVar[tuple[int, ...]]

    def __init__(self, config: Config, draft: Draft) -> None:
        self.config = config
        self.draft = draft

    @abstractmethod
    def find(self) -> object:
        """Find what this rank can open; return facts about it that JSON can express.

        The ranks exchange these facts, and each passes those of all to `choose`.
        """

    @abstractmethod
    def choose(self, facts: Sequence[Any]) -> int:
        """Choose what to open; return the bytes of a chunk.

        All ranks choose alike, since all have the same `facts`, by rank.
        """

    @abstractmethod
    def create(self, chunk_bytes: int) -> Endpoint:
        """Open this rank's endpoint.

        Raises
        ------
        PortTakenError
            If the port is taken; after `take_next_port` another attempt may succeed.
        TransportError
            If the endpoint cannot be opened.
        """

    @abstractmethod
    def candidates(self) -> list[Candidate]:
        """List the devices that this rank can use, from the best on.

        Those with the same number on all ranks can belong to one rail.
        """

    def take_next_port(self) -> bool:
        """Change `draft` to another port, the same on all ranks.

        Return whether there was another port; False if all have been tried.
        """
        return False

    @abstractmethod
    def describe(self) -> str:
        """Return in words what was chosen, for people."""

    @property
    @abstractmethod
    def device(self) -> str:
        """The name of this rank's device or interface."""

    @abstractmethod
    def folder(self) -> str:
        """Return the folder in /sys of the device that this rank would use.

        Return "" if it has none.
        """

    def _choose_chunk_bytes(self, most_bytes: Sequence[int]) -> int:
        """Return CHUNK_BYTES, or by default the largest chunk that all devices carry.

        Raise TransportError if CHUNK_BYTES is too large for some rank's device.

        Parameters
        ----------
        most_bytes
            The largest chunk that each rank's device carries, by rank; protection takes
            some of it.
        """
        wanted = self.config.chunk_bytes
        most_bytes = [most - self.draft.seal_bytes for most in most_bytes]
        for place, most in enumerate(most_bytes):
            if most < wanted:
                rank = self.draft.number(place)
                raise TransportError(
                    f"rank {rank}: CHUNK_BYTES={wanted} exceeds {most}, the most that "
                    "its device carries in a datagram",
                    ranks=(rank,),
                )
        return wanted or min(most_bytes)


class Udp(Transport):
    """UDP multicast."""

    name = "udp"
    rdma = False
    needs_thread = True
    # Chunks that fit Ethernet's MTU, then those of tunnels, and at last any IPv4 path.
    smaller_chunk_bytes = (1456, 1356, 1200, 508)
    _nports = 1  # how many ports have been tried

    def find(self) -> object:
        """Find an interface for each address at which rank 0 might be reached."""
        self._found = self.candidate_interfaces()
        return [
            [0, False, str(found)]
            if isinstance(found, TransportError)
            else [found.chunk_bytes_max, self._is_near(found, address), ""]
            for found, address in zip(
                self._found, self._candidate_addresses(), strict=True
            )
        ]

    def choose(self, facts: Sequence[Any]) -> int:
        """Choose the first candidate that all can use, preferably without a router."""
        self._chosen = -1
        for near in (True, False):
            for index in range(len(facts[0])):
                ours = [fact[index] for fact in facts]
                if self._chosen < 0 and all(
                    able and (is_near or not near) for able, is_near, _ in ours
                ):
                    self._chosen = index
        if self._chosen < 0:
            raise self._refusal(facts)
        return self._choose_chunk_bytes([fact[self._chosen][0] for fact in facts])

    def create(self, chunk_bytes: int) -> Endpoint:
        """Open this rank's sockets."""
        from mpimcast._native.endpoint import Endpoint

        own = self.config.ports
        return Endpoint(
            self.config,
            self.draft,
            chunk_bytes,
            {
                "interface": self.interface.c[0],
                "port": self.draft.port,
                "ports": {"first": own.first, "count": own.count} if own else {},
                "workers": self.has_workers(),
            },
        )

    def has_workers(self) -> bool:
        """Return whether each subgroup has a worker, as WORKERS says."""
        nsubgroups = self.config.subgroups
        if self.config.workers != "auto":
            return self.config.workers == "on"
        return nsubgroups > 1 and self.draft.nprocessors > nsubgroups

    def candidates(self) -> list[Candidate]:
        """List the interfaces that NET_DEVICES names, or those towards rank 0."""
        from mpimcast._native import devices

        if self.config.net_devices:
            return [
                of_interface(each) for each in devices.named_interfaces(self.config)
            ]
        return [
            Candidate("", "", "", direct=False)
            if isinstance(found, TransportError)
            else of_interface(found, direct=self._is_near(found, address))
            for found, address in zip(
                self.candidate_interfaces(), self._candidate_addresses(), strict=True
            )
        ]

    def take_next_port(self) -> bool:
        """Change to the next port of the range; return False if all were tried."""
        ports = self.config.group_ports
        self._nports += 1
        if self._nports > min(ports.count, _PORTS_TRIED):
            return False
        self.draft = self.draft._replace(port=ports.after(self.draft.port))
        return True

    def describe(self) -> str:
        """Return the interface's name, and whether all ranks are on one host."""
        where = "on one host" if self.draft.same_host else "over the network"
        return f"UDP {self.draft.cast} {where}, {self.device}"

    @property
    def device(self) -> str:
        """The interface's name."""
        return self.interface.name

    def folder(self) -> str:
        """Return the folder of an interface towards rank 0."""
        for found in self.candidate_interfaces():
            if not isinstance(found, TransportError):
                return of_interface(found).folder
        return ""

    @property
    def interface(self) -> devices.Interface:
        """This rank's interface towards the address that all have chosen."""
        return cast("devices.Interface", self._found[self._chosen])

    def candidate_interfaces(self) -> list[devices.Interface | TransportError]:
        """Return an interface, or the error, for each candidate address of rank 0."""
        return [
            self._interface_towards(address) for address in self._candidate_addresses()
        ]

    def _candidate_addresses(self) -> tuple[str, ...]:
        """Return candidate addresses of rank 0; "" means that no route is needed."""
        if self.draft.same_host or self.config.net_devices:
            return ("",)
        return self.draft.addresses

    def _interface_towards(self, address: str) -> Any:
        """Return the interface towards `address`, or the error if there is none."""
        from mpimcast._native import devices

        try:
            if not address:
                same_host = self.draft.same_host
                return devices.find_interface(self.config, same_host=same_host)
            found = devices.find_route(self.config, ipaddress.IPv4Address(address))
        except TransportError as error:
            return error
        host, first = self.draft.hosts[self.draft.rank], self.draft.hosts[0]
        if str(found.address.ip) == address and host != first:
            return TransportError(f"the address {address} also belongs to this host")
        return found

    @staticmethod
    def _is_near(found: Any, address: str) -> bool:
        """Return whether `address` is reached without a router."""
        return not address or ipaddress.IPv4Address(address) in found.address.network

    def _refusal(self, facts: Sequence[Any]) -> TransportError:
        """Return an error that names the rank without an interface."""
        first = self.draft.number(0)
        if not facts[0]:
            return TransportError(
                f"rank {first}: no network interface is up with multicast and an IPv4 "
                "address",
                ranks=(first,),
            )
        for place, fact in enumerate(facts):
            if not fact[0][0]:
                rank = self.draft.number(place)
                return TransportError(f"rank {rank}: {fact[0][2]}", ranks=(rank,))
        return TransportError(
            f"no address of rank {first} can be reached from all ranks"
        )


class Verbs(Transport):
    """Multicast over RDMA devices: InfiniBand, or RoCE v2."""

    name = "verbs"
    rdma = True
    needs_thread = False
    smaller_chunk_bytes = (2032, 1008, 496, 240)  # InfiniBand's MTUs, less our header

    def find(self) -> object:
        """Find this rank's port; the ranks of a host are spread over its devices.

        The facts are the largest chunk that it carries, and whether it is RoCE.
        """
        from mpimcast._native import devices

        self._device = devices.find_device(self.config, self.draft.local_rank)
        return [self._device.chunk_bytes_max, self._device.ethernet]

    def choose(self, facts: Sequence[Any]) -> int:
        """Check that all ports are on one kind of network; return a chunk's bytes."""
        kinds = ["RoCE" if ethernet else "InfiniBand" for _, ethernet in facts]
        for place, kind in enumerate(kinds):
            if kind != kinds[0]:
                rank = self.draft.number(place)
                raise TransportError(
                    f"rank {rank}: its device is on {kind}, rank "
                    f"{self.draft.number(0)}'s on {kinds[0]}; choose others with "
                    "NET_DEVICES",
                    ranks=(rank,),
                )
        return self._choose_chunk_bytes([most for most, _ in facts])

    def create(self, chunk_bytes: int) -> Endpoint:
        """Open this rank's queues."""
        from mpimcast._native.core import JOINS, TRANSPORT_VERBS
        from mpimcast._native.endpoint import Endpoint

        config = self.config
        return Endpoint(
            config,
            self.draft,
            chunk_bytes,
            {
                "transport": TRANSPORT_VERBS,
                "device": self._device.c[0],
                "join": JOINS[config.join],
                "qkey": self.draft.qkey,
                "pkey_index": config.pkey_index,
                "service_level": config.service_level,
                "traffic_class": config.traffic_class,
                "receives": config.receives,
                "zero_copy": config.zero_copy,
                "spins": self._spins(),
            },
        )

    def candidates(self) -> list[Candidate]:
        """List the ports over which the ranks of this host are spread."""
        from mpimcast._native import devices

        return [of_port(each) for each in devices.usable_devices(self.config)]

    def describe(self) -> str:
        """Return the kind of network, the device and the port."""
        kind = "RoCE" if self._device.ethernet else "InfiniBand"
        return f"{kind} {self.draft.cast}, {self._device.place}"

    @property
    def device(self) -> str:
        """The RDMA device's name."""
        return self._device.name

    def folder(self) -> str:
        """Return the folder of this rank's RDMA device."""
        from mpimcast._native import devices

        try:
            found = devices.find_device(self.config, self.draft.local_rank)
        except TransportError:
            return ""
        return of_port(found).folder

    def _spins(self) -> bool:
        """Return whether a waiting rank polls, as PROGRESS says.

        With "auto" it polls if this host has a core for each of its ranks, and never
        with a proxy.
        """
        if self.config.progress != "auto":
            return self.config.progress == "poll"
        return len(os.sched_getaffinity(0)) >= self.draft.nlocal


TRANSPORTS: tuple[type[Transport], ...] = (Verbs, Udp)


def wanted(config: Config) -> list[type[Transport]]:
    """Return the transports that TRANSPORT names, in the order in which to try them."""
    kinds = {kind.name: kind for kind in TRANSPORTS}
    return [kinds[name] for name in config.transports if name in kinds]
