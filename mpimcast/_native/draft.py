# SPDX-License-Identifier: BSD-3-Clause
"""The draft of a team: what its ranks have agreed on before they open it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from mpimcast._native.protection import Protection


class Draft(NamedTuple):
    """A team that is to be opened.

    All fields but `rank`, `nlocal` and `nprocessors` are equal on all ranks.

    Attributes
    ----------
    rank : int
        This rank's number in the team.
    hosts : tuple of str
        A key for the host of each rank. Ranks with equal keys reach each other by the
        loopback interface.
    nlocal : int
        How many ranks of the communicator are on this rank's host.
    nprocessors : int
        How many processors this rank has for itself; those that several ranks may use
        count in equal parts.
    crowded : bool
        Whether some machine has fewer processors than ranks.
    addresses : tuple of str
        The IPv4 addresses of rank 0's network interfaces.
    name : str
        A random name in hexadecimal digits, unique to the team.
    group : int
        The first of the team's multicast groups, as a number.
    port : int
        The UDP port of the multicast groups.
    qkey : int
        The Q_Key, which RDMA devices check in the datagrams that they receive.
    leaders : tuple of int
        The ranks of the communicator that are in the team; empty if all are.
    protection : Protection or None
        How the team's datagrams are protected; None if they are not.
    pair : bool
        Whether the team is a pair: two ranks that send to each other by unicast.
    """

    rank: int
    hosts: tuple[str, ...]
    nlocal: int
    nprocessors: int
    crowded: bool
    addresses: tuple[str, ...]
    name: str
    group: int
    port: int
    qkey: int
    leaders: tuple[int, ...] = ()
    protection: Protection | None = None
    pair: bool = False

    def number(self, rank: int) -> int:
        """Return the number in the communicator of a rank of the team."""
        return self.leaders[rank] if self.leaders else rank

    @property
    def seal_bytes(self) -> int:
        """By how much protection makes each datagram longer."""
        from mpimcast._native.protection import SEAL_BYTES

        return SEAL_BYTES if self.protection is not None else 0

    @property
    def cast(self) -> str:
        """How data goes to the other ranks, in a word."""
        return "unicast" if self.pair else "multicast"

    @property
    def same_host(self) -> bool:
        """Whether all ranks are on one host."""
        return len(set(self.hosts)) == 1

    @property
    def local_rank(self) -> int:
        """This rank's number among the ranks of its host."""
        return self.hosts[: self.rank].count(self.hosts[self.rank])
