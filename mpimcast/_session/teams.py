# SPDX-License-Identifier: BSD-3-Clause
"""The open teams of this process, one for each set of processes.

Communicators of the same processes, in the same order and with the same settings for
the endpoint, share a team, since every further team would multiply the datagrams that
their hosts receive, and the memory that their nodes share.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, NamedTuple

from mpi4py import MPI

from mpimcast._session.alarm import Alarm

if TYPE_CHECKING:
    from mpimcast._native.endpoint import Endpoint
    from mpimcast._session.sharing import Shared
    from mpimcast._settings.config import Config

_lock = threading.Lock()
_open: list[Team] = []


class Means(NamedTuple):
    """What carries the data of a team.

    Attributes
    ----------
    name : str
        The team's name, equal on all ranks and unique.
    transport : str
        The transport's name, as in TRANSPORT.
    path : str
        A description for people of the transport and its device; between nodes of
        several ranks it is set later.
    endpoint : Endpoint or None
        This rank's endpoint; None if other ranks of its node lead the node, or if
        there is no network.
    shared : Shared or None
        This rank's part in its node; None if no ranks share memory.
    rail : str
        On node leaders, the same as `path` for their rail alone.
    pair : bool
        Whether it is a pair, whose ranks send to each other by unicast.
    """

    name: str
    transport: str
    path: str
    endpoint: Endpoint | None
    shared: Shared | None
    rail: str = ""
    pair: bool = False


class Team:
    """An endpoint, a node, or both, with a count of their users.

    Attributes
    ----------
    name, transport, path, endpoint, shared, rail, pair
        As in `Means`.
    runner : str
        What runs the ranks' operations over the network, in words.
    has_firmware : bool
        Whether the firmware of an adapter runs some rank's.
    deserted : bool
        Whether some rank no longer answers, as found on any communicator.
    """

    runner = ""
    has_firmware = False
    deserted = False

    def __init__(self, comm: MPI.Intracomm, config: Config, means: Means) -> None:
        self.name = means.name
        self.transport = means.transport
        self.path = means.path
        self.endpoint = means.endpoint
        self.shared = means.shared
        self.rail = means.rail
        self.pair = means.pair
        self._group = comm.Get_group()
        self._settings = _settings(config)
        self._nusers = 1
        self._alarm: Alarm | None = None
        if self.endpoint is not None:
            self._alarm = Alarm(
                self.endpoint.strangers,
                self.path,
                attended=config.progress_thread == "on",
            )

    def serves(self, group: MPI.Group, config: Config) -> bool:
        """Return whether these processes would open the same team."""
        return self._settings == _settings(config) and (
            MPI.Group.Compare(self._group, group) == MPI.IDENT
        )

    def acquire(self) -> None:
        """Count one more user."""
        self._nusers += 1

    def release(self) -> bool:
        """Count one user less; with the last, close the team and return True."""
        self._nusers -= 1
        if self._nusers:
            return False
        if self._alarm is not None:
            self._alarm.stop()
        if self.endpoint is not None:
            self.endpoint.close()
        if self.shared is not None:
            self.shared.close()
        if not MPI.Is_finalized():
            self._group.Free()
        return True


def add(comm: MPI.Intracomm, config: Config, means: Means) -> Team:
    """Make a team, which from here on closes what carries its data."""
    team = Team(comm, config, means)
    with _lock:
        _open.append(team)
    return team


def acquire(team: Team) -> None:
    """Count one more user of an open team."""
    with _lock:
        team.acquire()


def find(
    comm: MPI.Intracomm, config: Config, *, shares: bool, pair: bool
) -> Team | None:
    """Acquire and return the team of a communicator's processes, if there is one.

    Parameters
    ----------
    shares
        Whether ranks of one node may share memory; a team whose ranks do is preferred.
    pair
        Whether the team has to be a pair; others are none.
    """
    group = comm.Get_group()
    try:
        with _lock:
            found = [
                team
                for team in _open
                if team.serves(group, config)
                and (shares or team.shared is None)
                and team.pair == pair
            ]
            found.sort(key=lambda team: team.shared is None)
            for team in found[:1]:
                team.acquire()
                return team
    finally:
        group.Free()
    return None


def release(team: Team) -> None:
    """Release a team. Its user's streams must have been closed."""
    with _lock:
        if team.release():
            _open.remove(team)


def _settings(config: Config) -> tuple[object, ...]:
    """Return the settings that concern the endpoint."""
    return (
        config.transport,
        config.node_bytes,
        config.rails,
        config.net_devices,
        config.subgroups,
        config.workers,
        config.group,
        config.ports,
        config.chunk_bytes,
        config.checksum,
        config.protect,
        config.ttl,
        config.join,
        config.pkey_index,
        config.service_level,
        config.traffic_class,
        config.receives,
        config.zero_copy,
        config.progress,
        config.proxy,
        config.progress_thread,
        config.fault,
    )
