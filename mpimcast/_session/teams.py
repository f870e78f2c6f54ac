# SPDX-License-Identifier: BSD-3-Clause
"""The open teams of this process, one for each set of processes.

Communicators of the same processes, in the same order and with the same settings for
the endpoint, share a team, since every further team would multiply the datagrams that
their hosts receive.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from mpi4py import MPI

if TYPE_CHECKING:
    from mpimcast._native.endpoint import Endpoint
    from mpimcast._native.transport import Transport
    from mpimcast._settings.config import Config

_lock = threading.Lock()
_open: list[Team] = []


class Team:
    """An endpoint with a count of its users.

    Attributes
    ----------
    name : str
        The team's name, equal on all ranks and unique.
    transport : str
        The transport's name, as in TRANSPORT.
    path : str
        A description for people of the transport and its device.
    deserted : bool
        Whether some rank no longer answers, as found on any communicator.
    """

    deserted = False

    def __init__(
        self,
        comm: MPI.Intracomm,
        config: Config,
        endpoint: Endpoint,
        transport: Transport,
    ) -> None:
        self.name = transport.draft.name
        self.transport = transport.name
        self.path = f"{transport.describe()}, chunks of {endpoint.chunk_bytes} bytes"
        self.endpoint = endpoint
        self._group = comm.Get_group()
        self._settings = _settings(config)
        self._nusers = 1

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
        self.endpoint.close()
        if not MPI.Is_finalized():
            self._group.Free()
        return True


def add(
    comm: MPI.Intracomm,
    config: Config,
    endpoint: Endpoint,
    transport: Transport,
) -> Team:
    """Make a team of an endpoint; from here on the team closes the endpoint."""
    team = Team(comm, config, endpoint, transport)
    with _lock:
        _open.append(team)
    return team


def find(comm: MPI.Intracomm, config: Config) -> Team | None:
    """Acquire and return the team of a communicator's processes, if there is one."""
    group = comm.Get_group()
    try:
        with _lock:
            for team in _open:
                if team.serves(group, config):
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
        config.net_devices,
        config.subgroups,
        config.group,
        config.ports,
        config.chunk_bytes,
        config.checksum,
        config.ttl,
        config.join,
        config.pkey_index,
        config.service_level,
        config.traffic_class,
        config.receives,
        config.zero_copy,
        config.progress,
        config.progress_thread,
        config.fault,
    )
