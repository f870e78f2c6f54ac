# SPDX-License-Identifier: BSD-3-Clause
"""The draft of a team: what all ranks know of it before it is opened."""

from __future__ import annotations

from typing import NamedTuple


class Draft(NamedTuple):
    """What all ranks know of a team that is to be opened, and this rank's number."""

    rank: int  # this rank's
    hosts: tuple[str, ...]  # by rank; equal where ranks reach each other's loopback
    crowded: bool  # some machine has fewer processors than ranks
    addresses: tuple[str, ...]  # those of rank 0's network interfaces
    name: str  # unique to the team
    group: int
    port: int
    qkey: int

    @property
    def same_host(self) -> bool:
        """Whether all ranks are on one host."""
        return len(set(self.hosts)) == 1

    @property
    def place(self) -> int:
        """This rank's number among the ranks of its host."""
        return self.hosts[: self.rank].count(self.hosts[self.rank])
